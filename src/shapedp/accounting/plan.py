"""Plans: what will be released how often, fixed beforehand; and the noise that a budget allows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shapedp.accounting.bare import BareLoss
from shapedp.accounting.compose import adjacency_of, common_adjacency, compose, loss_from
from shapedp.accounting.subsample import Scheme, SubsampledLoss, sampling_rate, subsample
from shapedp.mechanisms.certify import KINDS, mechanism_from_json
from shapedp.numerics.checks import count, positive, probability
from shapedp.privacy import Bracket, GaussianLoss, Loss

SCHEMA = 1


class PlanningError(ValueError):
    """No noise in the searched range meets the claim, or the time ran out before one was found."""


@dataclass(frozen=True)
class Step:
    """A mechanism or a loss, run `count` times on Poisson samples of the given rate."""

    subject: Any
    sampling_rate: float = 1.0
    count: int = 1

    def __post_init__(self) -> None:
        loss_from(self.subject)
        object.__setattr__(self, "sampling_rate", sampling_rate(self.sampling_rate))
        object.__setattr__(self, "count", count("count", self.count))

    @property
    def loss(self) -> Loss:
        """The loss of one run."""
        if self.sampling_rate == 1:
            return loss_from(self.subject)
        return subsample(self.subject, self.sampling_rate)

    @property
    def adjacency(self) -> str | None:
        """The neighbour relation of the subject, or of its sampling."""
        return adjacency_of(self.subject) or adjacency_of(self.loss)

    def to_json(self) -> dict[str, Any]:
        return {"subject": _subject_to_json(self.subject), "sampling_rate": self.sampling_rate, "count": self.count}


def _subject_to_json(subject: Any) -> dict[str, Any]:
    if isinstance(subject, GaussianLoss):
        return {"loss": "gaussian", "mu": subject.mu}
    if isinstance(subject, BareLoss):
        return {"loss": "bare", "epsilon": subject.pure_epsilon, "delta": subject.failure}
    if hasattr(subject, "to_json"):
        return {"mechanism": subject.to_json()}
    raise TypeError(
        f"{type(subject).__name__} cannot be written as JSON: plan with a mechanism, a Gaussian or a bare loss"
    )


def _subject_from_json(data: dict[str, Any]) -> Any:
    if data.get("loss") == "gaussian":
        return GaussianLoss(data["mu"])
    if data.get("loss") == "bare":
        return BareLoss(data["epsilon"], data["delta"])
    if "mechanism" in data:
        return mechanism_from_json(data["mechanism"])
    raise ValueError(f"unknown step {data!r}: expected a mechanism, a gaussian or a bare loss")


@dataclass(frozen=True)
class Plan:
    """Steps fixed before the first answer is seen.

    Guarantee: `loss` is that of all steps together; steps under different neighbour relations are refused.
    """

    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", tuple(self.steps))
        if not self.steps:
            raise ValueError("a plan needs at least one step")
        common_adjacency(self.steps)

    @property
    def adjacency(self) -> str | None:
        """The neighbour relation of all steps."""
        return common_adjacency(self.steps)

    @property
    def loss(self) -> Loss:
        """The loss of the whole plan."""
        return compose([(step.loss, step.count) for step in self.steps])

    def epsilon(self, delta: float) -> Bracket:
        """The epsilon of the whole plan at delta."""
        return self.loss.epsilon(delta)

    def delta(self, epsilon: float) -> Bracket:
        """The delta of the whole plan at epsilon."""
        return self.loss.delta(epsilon)

    def to_json(self) -> dict[str, Any]:
        """A JSON object from which `from_json` restores an equal plan."""
        return {"schema": SCHEMA, "kind": "plan", "steps": [step.to_json() for step in self.steps]}

    @classmethod
    def from_json(cls, data: Any) -> Plan:
        """A plan from `to_json`."""
        if not isinstance(data, dict) or not isinstance(data.get("steps"), list):
            raise ValueError("not a plan: a JSON object with the field steps is expected")
        if data.get("schema") != SCHEMA:
            raise ValueError(f"plan schema {SCHEMA} is expected, got {data.get('schema')!r}")
        try:
            steps = [(step["subject"], step["sampling_rate"], step["count"]) for step in data["steps"]]
        except (KeyError, TypeError) as missing:
            raise ValueError(f"a step of the plan lacks the field {missing}") from None
        return cls(tuple(Step(_subject_from_json(subject), rate, times) for subject, rate, times in steps))


KINDS["plan"] = Plan  # certificates of plans can be recomputed


@dataclass(frozen=True)
class Planned:
    """A noise scale that meets a claim, the plan it belongs to, and the delta it reaches."""

    scale: float
    loss: Loss
    delta: Bracket


def gaussian_family(scale: float) -> Loss:
    """Gaussian noise of `scale` times the sensitivity."""
    return GaussianLoss(1 / scale)


def plan(
    *,
    epsilon: float,
    delta: float,
    sampling_rate: float,
    steps: int,
    family: Callable[[float], Loss] = gaussian_family,
    scheme: Scheme = "poisson",
    smallest: float = 1e-2,
    largest: float = 1e6,
    relative: float = 1e-4,
    seconds: float = 60.0,
) -> Planned:
    """The least noise scale (up to `relative`) at which `steps` subsampled runs meet (epsilon, delta).

    `family` maps a scale to the loss of one run, less private as the scale falls.

    Guarantee: the upper end of the composed bracket meets the claim at the scale returned. Raises PlanningError,
    naming what cannot be met, if no scale up to `largest` does, or after about `seconds`.
    """
    epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
    steps, relative = count("steps", steps), positive("relative", relative)
    smallest, largest = positive("smallest", smallest), positive("largest", largest)
    deadline = time.monotonic() + positive("seconds", seconds)

    def reached(scale: float) -> Bracket:
        if time.monotonic() > deadline:
            raise PlanningError(f"no scale was settled within {seconds:g} s: allow more, or a larger `relative`")
        loss = SubsampledLoss(family(scale), sampling_rate, scheme)
        return compose([(loss, steps)], accuracy=min(relative, 1e-3)).delta(epsilon)

    low, high = smallest, min(1.0, largest)
    best = reached(high)
    while best.upper > delta:
        if high >= largest:
            raise PlanningError(
                f"delta {delta:g} cannot be met at epsilon {epsilon:g} with {steps} steps of rate {sampling_rate:g}: "
                f"at the largest scale {largest:g} delta is still in {best}; allow a larger scale, epsilon or delta, "
                "or fewer steps"
            )
        low, high = high, min(4 * high, largest)
        best = reached(high)
    if low == smallest and (easy := reached(smallest)).upper <= delta:
        high, best = smallest, easy
    while high > low * (1 + relative):
        middle = (low * high) ** 0.5
        found = reached(middle)
        if found.upper <= delta:
            high, best = middle, found
        else:
            low = middle
    loss = compose([(SubsampledLoss(family(high), sampling_rate, scheme), steps)], accuracy=min(relative, 1e-3))
    return Planned(high, loss, best)
