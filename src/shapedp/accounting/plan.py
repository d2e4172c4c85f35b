"""Plans: what will be released how often, fixed beforehand; and the noise that a budget allows."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from shapedp.accounting.bare import BareLoss
from shapedp.accounting.compose import common_adjacency, compose, loss_from
from shapedp.accounting.passes import PASSES, WAYS, Way, one_run
from shapedp.boundary.documents import described
from shapedp.boundary.values import whole_text
from shapedp.mechanisms.certify import KINDS, mechanism_from_json
from shapedp.numerics.checks import count, entries, one_of, positive, probability, share
from shapedp.privacy import Bracket, GaussianLoss, Loss
from shapedp.privacy.losses.base import adjacency_of

SCHEMA = 1
_COARSE = 1e-2
_SHARE = 3.0  # accuracy of delta over that of the scale: delta moves at least five times as much
_SLOPE = -10.0
_SQUARE = 1e6  # of one over the scale, where a search may begin
_STEP = 1.4  # the most a search moves the log of a scale at once

_FIELDS = {
    "gaussian": ("loss", "mu", "least", "adjacency"),
    "bare": ("loss", "epsilon", "delta", "attained", "adjacency"),
}


class PlanningError(ValueError):
    """No noise in the searched range meets the claim, or the time ran out before one was found.

    Example:
        >>> try:
        ...     plan(epsilon=0.1, delta=1e-9, sampling_rate=1.0, steps=100, largest=1.0)
        ... except PlanningError as cause:
        ...     print(str(cause)[:21])
        delta 1e-09 cannot be
    """


@dataclass(frozen=True)
class Step:
    """A mechanism or a loss, run `count` times on random samples of the given rate.

    Parameters
    ----------
    subject
        A mechanism or a loss.
    sampling_rate
        Poisson: the probability that a person is in a sample. Without replacement: the share m/n of the n people that a
        sample of m holds, rounded up where no float equals it.
    count
        The number of runs, each on a new sample.
    scheme
        "poisson" (neighbours add, remove or blank a record); "without-replacement": samples of a fixed size (neighbours
        replace a record); "allocation": a pass of `batches` runs, each person in one of them at random and on their own
        (add-remove or zero-out); "shuffle": a pass over batches of fixed sizes, in random order (zero-out).
    batches
        The number of runs of a pass; `count` is then the number of passes, each drawn anew.

    Examples
    --------
    >>> import shapedp as sdp
    >>> step = Step(sdp.GaussianLoss(0.5), sampling_rate=0.01, count=100, scheme="without-replacement")
    >>> step.adjacency, round(Plan((step,)).epsilon(1e-6).upper, 2)
    ('replace', 0.25)
    """

    subject: Any
    sampling_rate: float = 1.0
    count: int = 1
    scheme: Way = "poisson"
    batches: int = 1

    def __post_init__(self) -> None:
        loss_from(self.subject)
        object.__setattr__(self, "sampling_rate", share("sampling_rate", self.sampling_rate))
        object.__setattr__(self, "count", count("count", self.count))
        one_of("scheme", self.scheme, WAYS)
        object.__setattr__(self, "batches", count("batches", self.batches))
        if self.scheme in PASSES and self.sampling_rate != 1:
            raise ValueError(f"in a pass by {self.scheme} everybody takes part: leave sampling_rate at 1")
        if self.scheme not in PASSES and self.batches != 1:
            raise ValueError(f"batches go with {' or '.join(PASSES)}, not with {self.scheme} sampling")

    @property
    def loss(self) -> Loss:
        """The loss of one run, or of one pass."""
        return one_run(self.subject, self.sampling_rate, self.scheme, self.batches)

    @property
    def adjacency(self) -> str | None:
        """The neighbour relation of the subject, or of its sampling."""
        return adjacency_of(self.subject) or adjacency_of(self.loss)

    @property
    def premises(self) -> tuple[str, ...]:
        """What its sampling rests on; see `privacy.assumptions`."""
        drawn = self.scheme == "allocation" or (self.scheme == "poisson" and self.sampling_rate < 1)
        return ("blanks",) if drawn and self.adjacency == "zero-out" else ()

    def to_json(self) -> dict[str, Any]:
        plain = {"subject": _subject_to_json(self.subject), "sampling_rate": self.sampling_rate, "count": self.count}
        plain |= {} if self.scheme == "poisson" else {"scheme": self.scheme}
        return plain if self.batches == 1 else {**plain, "batches": self.batches}


def _subject_to_json(subject: Any) -> dict[str, Any]:
    if isinstance(subject, GaussianLoss):
        return {"loss": "gaussian", "mu": subject.mu, "least": subject.least, "adjacency": subject.adjacency}
    if isinstance(subject, BareLoss):
        plain = {"epsilon": subject.pure_epsilon, "delta": subject.failure, "attained": subject.attained}
        return {"loss": "bare", **plain, "adjacency": subject.adjacency}
    if hasattr(subject, "to_json"):
        return {"mechanism": subject.to_json()}
    raise TypeError(
        f"{type(subject).__name__} cannot be written as JSON: plan with a mechanism, a Gaussian or a bare loss"
    )


def _only(data: Any, names: tuple[str, ...], what: str) -> None:
    """Refuses a field that would be passed over: it may change what the file describes."""
    if not isinstance(data, dict):
        raise ValueError(f"{what} must be a JSON object")
    other = sorted(map(str, set(data) - set(names)))
    if other:
        raise ValueError(f"{what} has fields that are not known: {', '.join(other)}")


def _subject_from_json(data: Any) -> Any:
    loss = str(data.get("loss")) if isinstance(data, dict) else ""
    _only(data, _FIELDS.get(loss, ("mechanism",)), "a step's subject")
    if data.get("loss") == "gaussian":
        return GaussianLoss(data["mu"], data.get("least"), adjacency=data.get("adjacency"))
    if data.get("loss") == "bare":
        attained = data.get("attained", True)
        if not isinstance(attained, bool):
            raise ValueError(f"attained must be true or false, got {attained!r}")
        return BareLoss(data["epsilon"], data["delta"], attained, adjacency=data.get("adjacency"))
    if "mechanism" in data:
        return mechanism_from_json(data["mechanism"])
    raise ValueError(f"unknown step {data!r}: expected a mechanism, a gaussian or a bare loss")


@dataclass(frozen=True)
class Plan:
    """Steps fixed before the first answer is seen. `vouched`: sentences that a user vouches for, beside the steps.

    Guarantee: `loss` is that of all steps together; steps under different neighbour relations are refused.

    Example:
        >>> import shapedp as sdp
        >>> training = Plan((Step(sdp.GaussianLoss(1.0), sampling_rate=0.01, count=1000),))
        >>> round(training.epsilon(1e-6).upper, 2)
        2.12
    """

    steps: tuple[Step, ...]
    vouched: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", entries("steps", self.steps))
        stated: Any = self.vouched
        object.__setattr__(self, "vouched", entries("vouched", stated))
        if isinstance(stated, str | dict) or not all(type(one) is str and one for one in entries("vouched", stated)):
            raise ValueError("vouched must be a list of sentences")
        for one in self.vouched:
            whole_text("vouched", one)
        if not self.steps:
            raise ValueError("a plan needs at least one step")
        common_adjacency(self.steps)

    @property
    def adjacency(self) -> str | None:
        """The neighbour relation of all steps."""
        return common_adjacency(self.steps)

    @cached_property
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
        plain = {"schema": SCHEMA, "kind": "plan", "steps": [step.to_json() for step in self.steps]}
        return {**plain, "vouched": list(self.vouched)} if self.vouched else plain

    @classmethod
    @described
    def from_json(cls, data: Any) -> Plan:
        """A plan from `to_json`."""
        if not isinstance(data, dict) or not isinstance(data.get("steps"), list):
            raise ValueError("not a plan: a JSON object with the field steps is expected")
        _only(data, ("schema", "kind", "steps", "vouched"), "a plan")
        if data.get("schema") != SCHEMA:
            raise ValueError(f"plan schema {SCHEMA} is expected, got {data.get('schema')!r}")
        for step in data["steps"]:
            _only(step, ("subject", "sampling_rate", "count", "scheme", "batches"), "a step of the plan")
        try:
            steps = [
                (
                    step["subject"],
                    step["sampling_rate"],
                    step["count"],
                    step.get("scheme", "poisson"),
                    step.get("batches", 1),
                )
                for step in data["steps"]
            ]
        except (KeyError, TypeError) as missing:
            raise ValueError(f"a step of the plan lacks the field {missing}") from None
        return cls(
            tuple(Step(_subject_from_json(subject), *others) for subject, *others in steps), data.get("vouched", ())
        )


KINDS["plan"] = Plan  # certificates of plans can be recomputed


@dataclass(frozen=True)
class Planned:
    """A noise scale that meets a claim, the plan it belongs to, and the delta it reaches.

    Example:
        >>> found = plan(epsilon=2.0, delta=1e-5, sampling_rate=0.1, steps=10, relative=1e-2)
        >>> isinstance(found, Planned), found.delta.upper <= 1e-5
        (True, True)
    """

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
    scheme: Way = "poisson",
    batches: int = 1,
    smallest: float = 1e-2,
    largest: float = 1e6,
    relative: float = 1e-4,
    seconds: float = 60.0,
) -> Planned:
    """The least noise scale (up to `relative`) at which `steps` subsampled runs, or passes, meet (epsilon, delta).

    `family` maps a scale to the loss of one run, less private as the scale falls. Secant steps on log delta, from the
    scale that a central limit theorem suggests for Gaussian noise, first with coarse brackets.

    Guarantee: the upper end of the composed bracket meets the claim at the scale returned. Raises PlanningError,
    naming what cannot be met, if no scale up to `largest` does, or after about `seconds`.

    Example:
        >>> found = plan(epsilon=2.0, delta=1e-5, sampling_rate=0.01, steps=100, relative=1e-2)
        >>> round(found.scale, 2)
        0.74
    """
    epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
    steps, relative, scheme = count("steps", steps), positive("relative", relative), one_of("scheme", scheme, WAYS)
    smallest, largest = positive("smallest", smallest), positive("largest", largest)
    if not relative <= 1:
        raise ValueError(f"relative must be at most 1, got {relative:g}: it is how far above the least scale may be")
    if not smallest < largest:
        raise ValueError(f"smallest must be below largest, got {smallest:g} and {largest:g}")
    rate, deadline = share("sampling_rate", sampling_rate), time.monotonic() + positive("seconds", seconds)

    def composed(scale: float, accuracy: float) -> Loss:
        one = one_run(family(scale), rate, scheme, batches, rough=accuracy == _COARSE)
        return compose([(one, steps)], accuracy=accuracy)

    def reached(scale: float, accuracy: float) -> Bracket:
        if time.monotonic() > deadline:
            raise PlanningError(f"no scale was settled within {seconds:g} s: allow more, or a larger `relative`")
        return composed(scale, accuracy).delta(epsilon)

    if rate == 0:
        raise ValueError("sampling_rate must be > 0: from no record nothing is learnt, whatever the noise")
    fine = min(_SHARE * relative, 1e-3)
    batches = count("batches", batches)
    spread = batches if scheme == "allocation" else 1
    search = _Search(delta, smallest, largest, *_start(epsilon, delta, rate / spread, steps * spread))
    search.run(lambda scale: reached(scale, _COARSE), max(min(50 * relative, 1e-2), relative))
    search = _Search(delta, smallest, largest, search.scale, search.slope)
    search.run(lambda scale: reached(scale, fine), relative)
    if search.best is None:
        raise PlanningError(
            f"delta {delta:g} cannot be met at epsilon {epsilon:g} with {steps} steps of rate {sampling_rate:g}: "
            f"at the largest scale {largest:g} delta is still in {search.last}; allow a larger scale, epsilon or "
            "delta, or fewer steps"
        )
    return Planned(search.high, composed(search.high, fine), search.best)


def _start(epsilon: float, delta: float, rate: float, steps: int) -> tuple[float, float]:
    """The scale with rate sqrt(steps (e^(1/scale^2) - 1)) = mu of the claim, and d log delta/d log scale there.

    Where a search begins, never an answer.
    """
    if delta == 0:
        return 1.0, _SLOPE
    mu = GaussianLoss.calibrate(epsilon, delta).mu
    steeper = GaussianLoss(mu * 1.001).delta(epsilon).upper
    slope = -math.log(steeper / delta) / math.log(1.001)
    if rate == 1:
        return math.sqrt(steps) / mu, slope
    square = min(math.log1p(mu / rate * (mu / rate) / steps), _SQUARE)  # 1/scale^2
    return 1 / math.sqrt(square), slope * square / -math.expm1(-square)


@dataclass
class _Search:
    """The least scale at which delta is met, by secant steps on log delta between a failing and a meeting scale."""

    delta: float
    smallest: float
    largest: float
    scale: float
    slope: float
    low: float = 0.0
    high: float = math.inf
    best: Bracket | None = None
    last: Bracket | None = None

    def run(self, reached: Callable[[float], Bracket], relative: float) -> None:
        """Move `scale`; afterwards high <= low (1 + relative), or one end of the range is decisive."""
        before = (0.0, 0.0)
        while True:
            self.scale = min(max(self.scale, self.smallest), self.largest)
            self.last = reached(self.scale)
            if self.last.upper <= self.delta:
                self.high, self.best = self.scale, self.last
            else:
                self.low = self.scale
            if self.high <= self.low * (1 + relative) or self.high == self.smallest or self.low == self.largest:
                return
            excess = self._excess()
            if math.isfinite(excess):
                if before[0] and before[0] != self.scale:
                    self.slope = min((excess - before[1]) / math.log(self.scale / before[0]), -0.1)
                before = (self.scale, excess)
                root = self.scale * math.exp(min(max(-excess / self.slope, -_STEP), _STEP))
            else:
                root = self.scale * math.exp(math.copysign(_STEP, excess))
            self.scale = self._between(root, relative / 3)

    def _excess(self) -> float:
        """log(delta reached/delta asked for)."""
        if self.last is None or self.last.upper == 0 or self.delta == 0:
            return -math.inf if self.last is not None and self.last.upper <= self.delta else math.inf
        return math.log(self.last.upper / self.delta)

    def _between(self, root: float, margin: float) -> float:
        """A little above the root, or a little below where that is known to be met; inside what is open."""
        scale = root * (1 + margin)
        if not scale < self.high * (1 - margin / 4):
            scale = root * (1 - margin)
        if self.low < scale < self.high:
            return scale
        return math.sqrt(self.low * self.high) if self.low > 0 and math.isfinite(self.high) else root
