"""Published noise for private gradients: its paper's accounting beside what is computed. The papers hold the laws."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from shapedp._papers import PROVIDED, published
from shapedp.accounting import Plan, Step
from shapedp.mechanisms import Additive, certify
from shapedp.privacy import Certificate
from shapedp.sensitivity import L2, Sensitivity
from shapedp.torch.noise import Noise


class Published(Noise):
    """Noise whose scale a paper's formula chose; `claim` is what the paper says a training with it is worth."""

    step_epsilon: float

    @abstractmethod
    def claim(self, sensitivity: Sensitivity, rate: float, steps: int) -> tuple[float, float]:
        """(epsilon, delta) of a whole training by the paper's accounting."""

    def judged(self, mechanism: Additive, rate: float, steps: int, epsilon: float, delta: float) -> Certificate:
        """The claim, computed: one step first, since a claim that one step breaks is broken by more of them."""
        one = certify(Plan((Step(mechanism, rate, 1),)), epsilon=epsilon, delta=delta)
        if one.verdict == "refuted":
            return one
        return certify(Plan((Step(mechanism, rate, steps),)), epsilon=epsilon, delta=delta)


def flat_radius(sensitivity: Sensitivity) -> float:
    """The radius of a flat clip; any other set is refused."""
    if not isinstance(sensitivity, L2) or sensitivity.scales is not None:
        raise ValueError(f"the published noise is for a flat clip, not the set {sensitivity.kind!r}: use Flat or Auto")
    return sensitivity.radius


def __getattr__(name: str) -> Any:
    """The noise of a paper, loaded when it is first asked for."""
    if name in PROVIDED["training noise"]:
        return published("training noise", name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
