"""The plan of a private training: all that decides its privacy, fixed before a model exists."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from shapedp._papers import PROVIDED, published
from shapedp.accounting import PlanningError, Step, plan
from shapedp.accounting.passes import PASSES, Way
from shapedp.boundary.documents import described, read, write
from shapedp.boundary.files import Where
from shapedp.boundary.values import boolean, plain
from shapedp.mechanisms import Additive
from shapedp.noise import Gaussian, Law
from shapedp.numerics.checks import count, nonnegative, one_of, positive, probability
from shapedp.numerics.outward import WIDE
from shapedp.privacy import Certificate, loss_of
from shapedp.privacy.losses.base import EPSILON_LIMIT
from shapedp.sensitivity import Adjacency, Sensitivity
from shapedp.torch.accountant import PERSONS, Account
from shapedp.torch.clips import Clip, NormClip, PerValue
from shapedp.torch.layout import Layout
from shapedp.torch.noise import GaussianNoise, Noise
from shapedp.torch.published import Published
from shapedp.torch.refusals import refusal
from shapedp.torch.rounding import GRID, OTHERS, margin, most_records
from shapedp.workloads import Banded, Buffered, Correlation, Toeplitz

SCHEMA = 1
_NAME = "TrainingPlan"
_RELATIVE = 3e-4  # how much more noise than the least is accepted
_LABEL = WIDE  # the delta at which a step states its own epsilon where no claim was made
_CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "records": count, "batch_size": count, "steps": count, "epsilon": positive, "delta": probability,
    "scale": nonnegative, "per_owner": count,
}  # fmt: skip

SAMPLING: dict[str, tuple[Way, Adjacency, float]] = {
    "poisson": ("poisson", "add-remove", 1.0),
    "allocation": ("allocation", "add-remove", 1.0),
    "shuffle": ("shuffle", "zero-out", 1.0),
    "fixed": ("without-replacement", "replace", 2.0),
}  # by name: the scheme of the account's steps, the neighbours, and how many clips one of them changes a sum by
EXACT_SIZES = tuple(name for name, (_, relation, _) in SAMPLING.items() if relation != "add-remove")
_WORDS = {
    "poisson": "Poisson samples", "allocation": "passes of batches drawn record by record, about",
    "shuffle": "shuffled batches", "fixed": "samples of a fixed size",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class StepMechanism(Additive):
    """The noise of one step; no ledger takes it for the whole training."""

    step_of: ClassVar[str] = "a training: spend optimizer.privacy_.plan, before the first step"


@dataclass(frozen=True)
class TrainingPlan:
    """Clip, noise, sampling and claim of a private training; `attach` trains a model by it.

    Parameters
    ----------
    layout : the model's trainable parameters; `Layout.single(n)` stands for n of them where layers do not matter.
    records : the number of records of the data set, which is public.
    batch_size : the size of a batch, expected or exact, over all processes.
    clip, noise : what bounds one record's gradient, and the family of noise laws.
    epsilon, delta, steps : the claim and the number of steps it is made for; None where none is made.
    scale : the noise scale (the noise multiplier of Gaussian noise); 0 means the least that meets the claim.
    check_records : whether the model is checked for mixing records.
    gpu_noise : whether noise is drawn in float32 on a CUDA device where the law allows it.
    correlated : noise over time (`workloads.Banded`, `Toeplitz`, `Buffered`), or None for noise of each step alone.
    per_owner : the most of a person's records that a step uses, where persons are protected; `records` and `batch_size`
        then count persons. None where each record is protected on its own.
    sampling : how batches are drawn, and so what is certified. "poisson": each record in each with one probability;
        "allocation": each in one step of a pass, on its own; "shuffle": a random order cut into batches of a fixed
        size; "fixed": each step draws `batch_size` records anew. See `SAMPLING`.
    independent : whether records stand at random places of batches of one fixed shape, so that no record's gradient
        depends on who else is in the batch; places without a record have no weight.

    Guarantee: `certificate` is computed from these values alone. A plan that was loaded is certified anew.

    Examples
    --------
    >>> from shapedp.torch import Flat, Layout, TrainingPlan
    >>> plan = TrainingPlan(
    ...     Layout.single(1000), records=600, batch_size=600, clip=Flat(1.0), epsilon=2.0, delta=1e-5, steps=10
    ... )
    >>> plan.certificate.verdict
    'certified'
    >>> TrainingPlan.from_json(plan.to_json()) == plan
    True
    """

    layout: Layout
    records: int
    batch_size: int
    clip: Clip
    noise: Noise = field(default_factory=GaussianNoise)
    epsilon: float | None = None
    delta: float | None = None
    steps: int | None = None
    scale: float = 0.0
    check_records: bool = True
    gpu_noise: bool = False
    per_owner: int | None = None
    sampling: str = "poisson"
    correlated: Correlation | None = None
    independent: bool = False

    def __post_init__(self) -> None:
        plain(self)
        for name, kind in (("layout", Layout), ("clip", Clip), ("noise", Noise)):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"{name} must be a {kind.__name__}, got {type(getattr(self, name)).__name__}")
        for name, check in _CHECKS.items():
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, check(name, value))
        if self.batch_size > self.records:
            raise ValueError(f"the expected batch of {self.batch_size} exceeds the {self.records} records")
        if self.epsilon is not None and self.delta is None:
            raise ValueError("epsilon needs a delta: name both parts of the claim")
        one_of("sampling", self.sampling, tuple(SAMPLING))
        if self.per_owner is not None and self.sampling in EXACT_SIZES:
            raise ValueError(refusal("owner-sampling", sampling=self.sampling))
        if self.per_owner is not None and self.independent:
            raise ValueError(refusal("owner-independent"))
        if isinstance(self.noise, Published) and self.sampling != "poisson":
            raise ValueError(refusal("published-sampling", sampling=self.sampling))
        if self.correlated is not None:
            self._correlate(self.correlated)
        if isinstance(self.noise, Published):
            self._take_claim(self.noise)
        elif self.scale == 0:
            self._solve()

    def _correlate(self, kept: Correlation) -> None:
        """Refuse what noise over time does not serve; it is drawn on the CPU."""
        if not isinstance(kept, Banded | Toeplitz | Buffered):
            raise TypeError(refusal("correlated-unknown", kind=type(kept).__name__))
        if self.sampling != "poisson":
            raise ValueError(refusal("correlated-sampling", sampling=self.sampling))
        if not isinstance(self.noise, GaussianNoise):
            raise ValueError(refusal("correlated-needs-gaussian", kind=type(self.noise).__name__))
        if type(self.clip).updated is not Clip.updated:
            raise ValueError(refusal("correlated-fixed-clip", kind=type(self.clip).__name__))
        if self.steps != kept.steps:
            raise ValueError(refusal("correlated-steps", made=kept.steps, given=self.steps))
        most = kept.separation * self.batch_size
        if (most > self.records) if kept.sampled else (most < self.records):
            apart, batch, records = kept.separation, self.batch_size, self.records
            if kept.sampled:
                raise ValueError(refusal("correlated-too-far", separation=apart, batch=batch, records=records))
            raise ValueError(refusal("correlated-too-near", separation=apart, batch=batch, records=records))
        object.__setattr__(self, "gpu_noise", False)

    def _take_claim(self, noise: Published) -> None:
        """Published noise has a scale and a claim of its own."""
        sensitivity, rate = self.clip.sensitivity(self.layout), self.sampling_rate
        claim = None if self.steps is None else noise.claim(sensitivity, rate, self.steps)
        if claim is None or (self.epsilon, self.delta) not in ((None, None), claim) or self.scale not in (0.0, 1.0):
            raise ValueError(
                f"{type(noise).__name__} brings its own scale and claim: leave out epsilon, delta and "
                "noise_multiplier, and give epochs or steps; optimizer.privacy_.certificate then holds the claim"
            )
        for name, value in zip(("epsilon", "delta", "scale"), (*claim, 1.0), strict=True):
            object.__setattr__(self, name, value)

    def _solve(self) -> None:
        """Take the least noise scale that meets the claim; a little more where rounding leaves the claim undecided."""
        if self.epsilon is None or self.delta is None or self.steps is None:
            raise ValueError("give epsilon and delta together with epochs or steps, or a noise_multiplier")
        if self.delta == 0:
            raise ValueError(refusal("delta-zero"))
        way, relation, reach = SAMPLING[self.sampling]
        family = self.noise.family(self.clip.sensitivity(self.layout).scaled(1.0, relation), self.layout)
        scale = plan(
            epsilon=self.epsilon, delta=self.delta, sampling_rate=self.rate, steps=self._counted(self.steps),
            family=lambda one: family(one / reach), scheme=way, batches=self._together, relative=_RELATIVE,
            seconds=3600.0,
        ).scale  # fmt: skip
        for _ in range(20):
            found = replace(self, scale=scale).certificate
            if found.verdict == "certified":
                object.__setattr__(self, "scale", scale)
                self.__dict__["certificate"] = found  # computed once
                return
            scale *= 1 + 2e-4
        raise PlanningError(f"the claim could not be certified near the noise scale {scale:g}: {found.explain()}")

    @property
    def sampling_rate(self) -> float:
        """The probability with which a record is in a batch."""
        return self.batch_size / self.records

    @property
    def batches(self) -> int:
        """The steps that the account counts together: of a pass that is certified whole, of one noise over time."""
        if self.correlated is not None:
            return self.correlated.unit
        return -(-self.records // self.batch_size) if self.sampling in PASSES else 1

    @property
    def _together(self) -> int:
        """The batches of a pass in the account's steps; with noise over time one of them is all of its unit."""
        return self.batches if self.correlated is None else 1

    @property
    def rate(self) -> float:
        """What the certificate's step says of sampling; a share that no float equals is rounded up."""
        kept = self.correlated
        if kept is not None:
            return min(kept.separation * self.batch_size / self.records, 1.0) if kept.sampled else 1.0
        if self.sampling != "fixed":
            return 1.0 if self.sampling in PASSES else self.sampling_rate
        rate = self.sampling_rate
        return rate if Fraction(rate) >= Fraction(self.batch_size, self.records) else math.nextafter(rate, 1.0)

    def _counted(self, steps: int) -> int:
        """How many steps, or passes, the account counts; a pass that is broken off counts whole."""
        return -(-steps // self.batches)

    def law_of(self, clip: Clip, factor: float = 1.0) -> tuple[Law, Sensitivity]:
        """The noise for a clip, `factor` times the scale, and what a record changes, with room for rounding.

        A record that is replaced changes a sum by the difference of two rows: by the clip's set twice.
        """
        exact = clip.sensitivity(self.layout)
        if exact.adjacency != "add-remove":
            raise ValueError(f"a clip's sensitivity must be that of 'add-remove', got {exact.adjacency!r}")
        over, kept = 1.0 if self.correlated is None else self.correlated.reach, self.correlated
        others = 0.0 if self.independent else OTHERS
        room = margin(self.batch_size, exact.dim, self.scale * over, clip.steepness, others)
        if isinstance(kept, Buffered):
            room += self.scale * kept.stray * GRID * math.sqrt(kept.steps * exact.dim) / 2**8
        _, relation, reach = SAMPLING[self.sampling]
        widened = exact.scaled((1 + room) * over, relation)
        law = self.noise.law(widened, self.layout, self.scale * factor)
        return law, widened if reach == 1 else widened.scaled(reach, relation)

    @cached_property
    def mechanism(self) -> Additive:
        """The noise of one step; what it claims for itself is the epsilon of one step."""
        law, widened = self.law_of(self.clip)
        at = self.delta or _LABEL
        if isinstance(self.noise, Published):
            epsilon = self.noise.step_epsilon
        else:
            epsilon = loss_of(law, widened).epsilon(at).upper
        epsilon = epsilon if 0 < epsilon < math.inf else EPSILON_LIMIT
        return StepMechanism(law, widened, epsilon, at, premises=self._premises(law))

    def _premises(self, law: Law) -> tuple[str, ...]:
        """What a training rests on beyond what is computed; see privacy.assumptions."""
        smooth = isinstance(self.clip, NormClip | PerValue)
        others = "places" if self.independent else "gradients" if smooth else "jumps"
        names = [others, "records" if self.check_records else "unchecked", "draws"]
        names += [] if self.per_owner is None else [PERSONS]
        names += [] if type(self.clip).__module__.split(".")[0] == "shapedp" else ["own"]
        names += ["number", "rare"] if SAMPLING[self.sampling][1] == "add-remove" else []
        return (*names, "gpu") if self.gpu_noise and isinstance(law, Gaussian) else tuple(names)

    def account(self, journal: Path | None = None, secure: bool = True) -> Account:
        """An account without steps, whose limit is the planned number where a claim was made."""
        secure = boolean("secure", secure)
        limit = None if self.epsilon is None or self.steps is None else self._counted(self.steps)
        step = Step(self.mechanism, self.rate, 1, SAMPLING[self.sampling][0], self._together)
        return Account(step, self.epsilon, self.delta, limit, journal, secure=secure, note=self._note)

    @cached_property
    def certificate(self) -> Certificate:
        """The claim, computed for all planned steps; without one, the epsilon they spend at `delta`, rounded up."""
        limit = None if self.steps is None else self._counted(self.steps)
        return replace(self.account(), limit=limit).certificate(early=isinstance(self.noise, Published))

    def __str__(self) -> str:
        steps = "any number of" if self.steps is None else self.steps
        claim = "none" if self.epsilon is None else f"epsilon {self.epsilon:g} at delta {self.delta:g}"
        return (
            f"private training of {self.layout.dim} parameters: {steps} steps on {_WORDS[self.sampling]} of "
            f"{self.batch_size} of {self.records} {self._unit}{self._placed}\n"
            f"clip {self.clip}\nnoise {self.noise} at scale {self.scale:g}{self._over_time}\nclaim {claim}"
        )

    @property
    def _placed(self) -> str:
        return f", at random among {self.places()} places" if self.independent else ""

    def places(self, shares: int = 1) -> int:
        """How many places the draws of each of `shares` processes have, where records stand at places."""
        if self.sampling in EXACT_SIZES:
            return self.batch_size
        shares = count("shares", shares)
        return min(most_records(self.batch_size / shares, shares), -(-self.records // shares))

    @property
    def _over_time(self) -> str:
        kept = self.correlated
        if kept is None:
            return ""
        return f", over time {type(kept).__name__} with {kept.separation} groups, {kept.copies} gradients kept"

    @property
    def _note(self) -> str:
        """What the certificate says of its steps where they are not those of the training, and of blank records."""
        if self.correlated is None:
            return refusal("blank-scope") if SAMPLING[self.sampling][1] == "zero-out" else ""
        return refusal("correlated-scope", unit=self.correlated.unit, separation=self.correlated.separation)

    @property
    def _unit(self) -> str:
        return "records" if self.per_owner is None else f"persons, at most {self.per_owner} records of each"

    def to_json(self) -> dict[str, Any]:
        """A JSON object from which `from_json` restores an equal plan; clips and noises of your own are refused."""
        return {"schema": SCHEMA, **_written(self)}

    @classmethod
    @described
    def from_json(cls, data: Any) -> TrainingPlan:
        """The plan that `to_json` wrote."""
        if not isinstance(data, dict) or data.get("kind") != _NAME or data.get("schema") != SCHEMA:
            raise ValueError(f"not a training plan of schema {SCHEMA}: pass what to_json returned")
        if data.get("scale") == 0:
            raise ValueError("a saved plan has its noise scale, above 0: pass what to_json returned")
        found: TrainingPlan = _made({name: value for name, value in data.items() if name != "schema"})
        return found

    def save(self, path: Where) -> None:
        """Write the plan to a JSON file, whole or not at all."""
        write(path, self.to_json())

    @classmethod
    def load(cls, path: Where) -> TrainingPlan:
        """The plan in a file that `save` wrote."""
        return cls.from_json(read(path))


def steps_of_epoch(records: int, batch_size: int, drop_last: bool) -> int:
    """How many batches make an epoch."""
    return max(records // batch_size if drop_last else -(-records // batch_size), 1)


def _kinds() -> dict[str, Any]:
    """What a plan consists of, by name: only dataclasses of this library are written and read."""
    found: list[type[Any]] = [TrainingPlan, Layout, Clip, Noise, Correlation]
    for kind in found:
        found.extend(kind.__subclasses__())
    return {k.__name__: k for k in found if is_dataclass(k) and k.__module__.split(".")[0] == "shapedp"}


def _written(part: Any) -> Any:
    """A part of a plan as JSON can hold it: a dataclass becomes its name (`kind`) and its fields."""
    if is_dataclass(part) and not isinstance(part, type):
        name = type(part).__name__
        if _kinds().get(name) is not type(part):
            raise TypeError(f"{name} is not of this library and cannot be saved: keep the code that makes it")
        return {"kind": name, **{one.name: _written(getattr(part, one.name)) for one in fields(part)}}
    if isinstance(part, Mapping):
        return {str(key): _written(one) for key, one in part.items()}
    if isinstance(part, list | tuple):
        return [_written(one) for one in part]
    return part.tolist() if isinstance(part, np.ndarray | np.generic | torch.Tensor) else part


def _made(data: Any) -> Any:
    """What `_written` wrote; refuses names and fields that are not known."""
    if isinstance(data, list):
        return tuple(_made(one) for one in data)
    if not isinstance(data, dict):
        return data
    parts = {name: _made(value) for name, value in data.items() if name != "kind"}
    if "kind" not in data:
        return parts
    name = str(data["kind"])
    kind = published("training noise", name) if name in PROVIDED["training noise"] else _kinds().get(name)
    optional = (
        {"per_owner", "sampling", "correlated", "independent"} if kind is TrainingPlan else set()
    )  # files from before they were there
    if kind is None or set(parts) | optional != {one.name for one in fields(kind)}:
        raise ValueError(f"a plan has a part that is not known, or with other fields: {data['kind']!r:.40}")
    return kind(**parts)
