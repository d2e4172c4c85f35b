"""Published noise for private gradients: its paper's accounting beside what is computed. The papers hold the laws."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from shapedp._papers import PROVIDED, published
from shapedp.sensitivity import Sensitivity
from shapedp.torch.noise import Noise
from shapedp.torch.noise import flat_radius as flat_radius


class Published(Noise):
    """Noise whose scale a paper's formula chose; `claim` is what the paper says a training with it is worth.

    Examples
    --------
    >>> from shapedp.torch import Published, PublishedProductNoise
    >>> issubclass(PublishedProductNoise, Published)
    True
    """

    step_epsilon: float

    @abstractmethod
    def claim(self, sensitivity: Sensitivity, rate: float, steps: int) -> tuple[float, float]:
        """(epsilon, delta) of a whole training by the paper's accounting."""


def __getattr__(name: str) -> Any:
    """The noise of a paper, loaded when it is first asked for."""
    if name in PROVIDED["training noise"]:
        return published("training noise", name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
