"""What every mechanism answers, what a release hands back, and the one way from a claim to a release."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from shapedp.boundary.documents import described
from shapedp.boundary.values import boolean, plain
from shapedp.mechanisms.watch import is_watched, watched
from shapedp.noise import Law, law_from_json
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import numeric
from shapedp.privacy import Certificate, Deferred, Loss, assumptions_of, certificate_of
from shapedp.privacy.losses.base import adjacency_of
from shapedp.sampling import Source, source

SCHEMA = 1
Rng = np.random.Generator | None  # None: secure randomness
T = TypeVar("T")


@runtime_checkable
class Mechanism(Protocol):
    """A release with a privacy loss: the loss is the mechanism's own, nothing else computes privacy.

    Examples
    --------
    >>> import shapedp as sdp
    >>> isinstance(sdp.calibrate("gaussian", sdp.L2(1.0, dim=3), epsilon=1.0, delta=1e-6), Mechanism)
    True
    """

    @property
    def loss(self) -> Loss:
        """The privacy loss of one release."""

    @property
    def certificate(self) -> Certificate:
        """The mechanism's own claim, computed."""

    def release(self, x: Any, /, *, rng: Rng = None, unsafe: bool = False) -> Release[Any]:
        """A noisy answer; raises unless the certificate is certified or `unsafe` is passed."""


@dataclass(frozen=True, eq=False)
class Release(Generic[T]):
    """A released value with its error bars and the certificate it was released under.

    `law` is the noise in the value; None where the value has no error bars of its own. `spends` is the number of times
    the mechanism's budget was used; `unsafe` marks a release whose claim is not certified. `shape` is that of one
    query, where `value` may hold a batch of them.

    Example:
        >>> import numpy as np, shapedp as sdp
        >>> m = sdp.calibrate("laplace", sdp.L1(1.0, dim=2), epsilon=1.0, delta=1e-6)
        >>> m.release([1.0, 2.0], rng=np.random.default_rng(0)).standard_error.round(3)
        array([1.414, 1.414])
    """

    value: T
    law: Law | None
    certificate: Certificate
    spends: int = 1
    unsafe: bool = False
    shape: tuple[int, ...] = (-1,)

    def __post_init__(self) -> None:
        plain(self)
        released: Any = self.value
        values = numeric("value", released)
        if values.size and not (math.isfinite(values.min()) and math.isfinite(values.max())):
            raise ValueError("a released value must be finite")
        named: tuple[Any, Any] = (self.law, self.certificate)
        if not isinstance(named[0], Law | None) or not isinstance(named[1], Certificate):
            raise TypeError("a release names the law of its noise and the certificate it was released under")
        if not self.unsafe and self.certificate.verdict != "certified":
            raise ValueError("a release under a claim that is not certified must say unsafe=True")

    @property
    def _noise(self) -> Law:
        if self.law is None:
            raise ValueError("this release has no error bars of its own: what is computed from it has")
        return self.law

    @property
    def standard_error(self) -> Floats:
        """The standard deviation of the noise in each coordinate."""
        return self._noise.marginal_scales().reshape(self.shape)

    def interval(self, confidence: float) -> tuple[Floats, Floats]:
        """Lower and upper ends that hold each true coordinate with the given probability, one at a time."""
        half = np.broadcast_to(self._noise.half_widths(confidence), self._noise.dim).reshape(self.shape)
        centre = np.asarray(self.value, dtype=np.float64)
        return centre - half, centre + half

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.value, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return len(np.asarray(self.value))


def certificate_for(subject: Any, epsilon: float, delta: float) -> Certificate:
    """The certificate of a claim about a mechanism, or anything with a `loss`."""
    described = Deferred(subject.to_json) if hasattr(subject, "to_json") else None
    loss, stated = subject.loss.under(adjacency_of(subject)), assumptions_of(subject)
    reason = getattr(subject, "reason", "")
    return certificate_of(loss, epsilon, delta, subject=described, reason=reason, assumptions=stated)


KINDS: dict[str, Any] = {}  # what `mechanism_from_json` reads; filled by every class of the library that names its kind


class Claimed(ABC):
    """A mechanism with a claim (epsilon, delta): its certificate, its one way to a release, and its description.

    A subclass is a frozen dataclass with a `kind`, a `loss` and a `release` that goes through `_drawn`.
    """

    kind: ClassVar[str]
    _laws: ClassVar[tuple[str, ...]] = ()  # the fields that hold laws
    epsilon: float
    delta: float

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in cls.__dict__ and cls.__module__.startswith("shapedp."):  # not a user's class
            KINDS[cls.kind] = cls

    @property
    @abstractmethod
    def loss(self) -> Loss:
        """The privacy loss of one release."""

    @property
    def reason(self) -> str:
        """Which step of a published argument fails where the claim is refuted; empty for our own."""
        return ""

    @cached_property
    def certificate(self) -> Certificate:
        """The mechanism's own claim, computed."""
        return certificate_for(self, self.epsilon, self.delta)

    def _plain(self, check: Callable[[str, Any], Any], *names: str) -> None:
        """Put plain numbers, checked, in place of what the fields were given."""
        for name in names:
            object.__setattr__(self, name, check(name, getattr(self, name)))

    def _drawn(
        self,
        x: NDArray[Any],
        draw: Callable[[Source], NDArray[Any]],
        rng: Rng,
        unsafe: bool,
        certificate: Certificate | None = None,
        law: Law | None = None,
    ) -> Release[NDArray[Any]]:
        """draw(randomness) for the input x, once the certificate allows it; an audit that watches sees both.

        `rng` replaces secure randomness; the certificate then says so. `certificate` is the one checked, where it
        is not the mechanism's own; `law` the noise in what is drawn, where that has error bars.
        """
        checked = self.certificate if certificate is None else certificate
        if not boolean("unsafe", unsafe):
            checked.require()
        randomness = source(rng)
        value = watched(self, x, lambda: draw(randomness))
        marked = checked.with_randomness(randomness.secure and not is_watched())
        return Release(value, law, marked, unsafe=checked.verdict != "certified")

    def to_json(self) -> dict[str, Any]:
        """A JSON object from which `from_json` restores an equal mechanism."""
        return {"schema": SCHEMA, "kind": self.kind, **self._described()}

    def _described(self) -> dict[str, Any]:
        """The fields by name, laws described in turn."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {name: value.to_json() if isinstance(value, Law) else value for name, value in values.items()}

    @classmethod
    @described
    def from_json(cls, data: Any) -> Self:
        """What `to_json` wrote."""
        if not isinstance(data, dict) or data.get("kind") != cls.kind:
            raise ValueError(f"not a mechanism of this kind: the field kind must read {cls.kind!r}")
        if data.get("schema") != SCHEMA:
            raise ValueError(f"mechanism schema {data.get('schema')!r} is not the supported {SCHEMA}")
        try:
            return cls(**cls._read(data))
        except KeyError as missing:
            raise ValueError(f"mechanism lacks the field {missing}") from None

    @classmethod
    def _read(cls, data: dict[str, Any]) -> dict[str, Any]:
        """The fields from a description."""
        names = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        return {name: law_from_json(data[name]) if name in cls._laws else data[name] for name in names}
