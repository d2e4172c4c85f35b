"""A law of noise: one class that answers everything about it. And the registries of laws and families.

A law's file says how the noise is distributed, drawn and written down, what it costs in privacy for a sensitivity
set (`_loss`), which member of the family meets a claim (`fitted`), how a report names it (`phrase`) and what an audit
may count (`traits`). `@registered` enters the class in `LAWS` and, under a family's name, in `FAMILIES`. Everything
else in the library asks these methods: no other module knows a law by name.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from shapedp._papers import PROVIDED, published
from shapedp.boundary.documents import LacksFieldError, decode, described, encode
from shapedp.boundary.values import boolean, plain
from shapedp.noise.errors import Measure, measure_of
from shapedp.noise.request import DoesNotApplyError, Request
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, finite, laid_out, positive, real
from shapedp.privacy.losses import Loss
from shapedp.sampling import Source
from shapedp.sensitivity import Sensitivity

Moments = TypeVar("Moments", bound=Callable[..., Any])
_HIGHEST = 170.0  # order of a moment: Gamma(p + 1) is a float


def of_order(moments: Moments) -> Moments:
    """A method of an order p: p is checked, and what leaves the range of floats is refused."""

    @functools.wraps(moments)
    def checked(self: Any, p: float) -> Floats:
        order = real("p", p)
        if not 0 <= order <= _HIGHEST:
            raise ValueError(f"p must lie in [0, {_HIGHEST:g}], got {order!r}")
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                found = np.asarray(moments(self, order))
        except OverflowError:
            found = np.array([math.inf])
        if not np.isfinite(found).all():
            raise ValueError("E |n|^p leaves the range of floats: measure the query in other units")
        return found

    return checked  # type: ignore[return-value]


@dataclass(frozen=True)
class Traits:
    """What an audit may count in draws of a law.

    `independent`: the coordinates are. `fair`: signs are coins of their own, given the magnitudes. `isotropic`: so is
    the noise divided by its scales. `grid`: the points that draws lie on; `parity`: it is so fine that even and odd
    points are equally likely. `widths`: `half_widths` is exact, not a bound.
    """

    independent: bool = False
    fair: bool = False
    isotropic: bool = False
    grid: Floats | None = None
    parity: bool = True
    widths: bool = True


class Law(ABC):
    """A distribution of noise on R^dim, symmetric about zero.

    Example:
        >>> from shapedp import Gaussian, L2
        >>> round(Gaussian(2.0, dim=3).loss(L2(1.0, dim=3)).mu, 12)
        0.5
    """

    kind: ClassVar[str]
    phrase: ClassVar[str] = ""  # the noise in words, for reports
    parameters: ClassVar[tuple[str, ...]] = ()  # arguments that are attributes too, and together describe the law
    dim: int

    @abstractmethod
    def log_density(self, x: Floats) -> Floats:
        """log p at each point of an array whose last axis has length dim."""

    @property
    @abstractmethod
    def scales(self) -> Floats:
        """The scale of each coordinate in the law's own parameter, or one entry where all are equal."""

    @abstractmethod
    def variances(self) -> Floats:
        """The variance of each coordinate, or one entry where all are equal."""

    @abstractmethod
    def half_widths(self, confidence: float) -> Floats:
        """c with P(|n_i| <= c_i) = confidence, or one entry where all are equal."""

    @abstractmethod
    def add_to(self, x: NDArray[Any], source: Source) -> NDArray[Any]:
        """x + noise on the law's grid; one independent draw per vector along the last axis.

        Guarantee: what leaves is a function of x + noise alone, whatever the bits of x.
        """

    def to_json(self) -> dict[str, Any]:
        """A JSON object from which `law_from_json` restores an equal law."""
        values = {name: getattr(self, name) for name in self.parameters}
        return {"law": self.kind, **{name: encode(v) if isinstance(v, np.ndarray) else v for name, v in values.items()}}

    @classmethod
    @described
    def from_json(cls, data: dict[str, Any]) -> Self:
        """What `to_json` wrote."""
        if not cls.parameters:
            raise ValueError(f"{cls.__name__} noise cannot be read from a file")
        values = {name: data[name] for name in cls.parameters}
        return cls(**{name: decode(name, v) if isinstance(v, list | dict) else v for name, v in values.items()})

    def loss(self, sensitivity: Sensitivity) -> Loss:
        """The privacy loss of f(D) + noise when neighbours move f by a vector of the set, under its relation."""
        return self._loss(sensitivity).under(sensitivity.adjacency)

    def _loss(self, sensitivity: Sensitivity) -> Loss:
        raise TypeError(f"no privacy loss is known for {type(self).__name__} noise")

    @classmethod
    def fitted(cls, request: Request) -> Law:
        """The least-error law of the family that meets a request, on the private side; or DoesNotApplyError."""
        raise DoesNotApplyError(f"{cls.__name__} noise is not calibrated")

    @classmethod
    def why(cls, request: Request, law: Law) -> str:
        """What made a law of the family win over the other families; empty where nothing is to be said."""
        return ""

    def words(self, number: Callable[[float], str] = "{:.4g}".format) -> str:
        """The noise in a phrase, its numbers written by `number`."""
        return self.phrase or f"{self.kind} noise"

    @property
    def second_moment(self) -> float:
        """E |n|_2^2."""
        return self.weighted_second_moment(None)

    def weighted_second_moment(self, weights: Floats | None) -> float:
        """sum_i w_i E n_i^2."""
        variances = self.variances()
        if weights is None:
            return float(variances.sum()) * (self.dim if variances.size == 1 else 1)
        weights = self._weights(weights)
        return float(weights.sum() * variances[0]) if variances.size == 1 else float(weights @ variances)

    @of_order
    def absolute_moments(self, p: float) -> Floats:
        """E |n_i|^p of each coordinate, or one entry where all are equal."""
        if p != 2:
            raise ValueError(f"{self.kind} noise knows E |n|^p for p = 2 only, got p = {p:g}")
        return self.variances()

    def expected_error(self, measure: Any = "squared", weights: Floats | None = None) -> float:
        """The expected error under a measure: sum_i w_i E |n_i|^p, or the largest w_i E n_i^2 for "max".

        `measure` is "squared" (p = 2), "absolute" (p = 1), "l3" or ("lp", 3) for any p >= 1, or "max".
        """
        chosen: Measure = measure_of(measure)
        if chosen.power == 2:
            return self.weighted_second_moment(weights)
        moments = self.variances() if chosen.maximum else self.absolute_moments(chosen.power)
        weighed = moments if weights is None else self._weights(weights) * moments
        if chosen.maximum:
            return float(weighed.max())
        return float(weighed.sum()) * (self.dim if weighed.size == 1 else 1)

    def _weights(self, weights: Any) -> Floats:
        """Finite weights, one for each coordinate."""
        found = finite("weights", weights).reshape(-1)
        if found.size != self.dim:
            raise ValueError(f"weights must be one for each of {self.dim} coordinates, got {found.size}")
        return found

    def marginal_scales(self) -> Floats:
        """The standard deviation of each coordinate."""
        return np.broadcast_to(np.sqrt(self.variances()), self.dim)

    def sample(self, n: int, source: Source) -> Floats:
        """n draws, one per row."""
        return np.asarray(self.add_to(np.zeros(laid_out(count("n", n) * self.dim)).reshape(-1, self.dim), source))

    def traits(self) -> Traits:
        """What an audit may count in its draws."""
        return Traits()

    def whitened(self, noise: Floats) -> tuple[Law, Floats]:
        """The law and its draws, turned where that makes coordinates independent."""
        return self, noise

    def magnitude_levels(self, level: float) -> tuple[Floats, Floats]:
        """Widths c and chances p with P(|n_i| <= c_i) = p_i; rounding to a grid may move p by 1e-5."""
        return self.half_widths(level), np.array([level])

    def radius_level(self, level: float) -> float | None:
        """r with P(|n/scales|_2 <= r) = level, scales the standard deviations; None where it is not known."""
        return None

    def noisy(self) -> NDArray[np.bool_]:
        """Which coordinates carry noise."""
        return np.broadcast_to(self.variances() > 0, self.dim)

    def centre(self, x: Floats) -> Floats:
        """Where the noise is centred when x is released."""
        return x

    def _kept(self, keep: Any) -> NDArray[np.bool_]:
        """A mask of the coordinates, which keeps one at least."""
        found: NDArray[Any] = keep if isinstance(keep, np.ndarray) else np.empty(0)
        if found.dtype != np.bool_ or found.shape != (self.dim,) or not found.any():
            raise TypeError(f"keep must be an array of {self.dim} booleans, one of them True")
        return found

    def of_coordinates(self, keep: NDArray[np.bool_]) -> Law:
        """The law of some of its coordinates."""
        raise TypeError(f"{type(self).__name__} noise leaves coordinates without noise: audit the others on their own")


@dataclass(frozen=True)
class Family:
    """A name that `calibrate` knows, the law that fits itself to a request, and the options it takes.

    `every_measure` says whether it can minimise other measures than the squared error.

    Example:
        >>> from shapedp.noise import FAMILIES
        >>> FAMILIES["radial"].options
        ('shape', 'progress')
    """

    name: str
    law: type[Law]
    options: tuple[str, ...] = ()
    every_measure: bool = False

    def __post_init__(self) -> None:
        plain(self)


LAWS: dict[str, type[Law]] = {}
FAMILIES: dict[str, Family] = {}
LawClass = TypeVar("LawClass", bound=type[Law])


def registered(
    *, family: str | None = None, options: tuple[str, ...] = (), every_measure: bool = False
) -> Callable[[LawClass], LawClass]:
    """Enters a law: `law_from_json` then reads its kind and, under a family's name, `calibrate` fits it."""
    every_measure = boolean("every_measure", every_measure)

    def enter(law: LawClass) -> LawClass:
        LAWS[law.kind] = law
        if family is not None:
            FAMILIES[family] = Family(family, law, options, every_measure)
        return law

    return enter


@described
def law_from_json(data: Any) -> Law:
    """The law that `to_json` wrote.

    Parameters: what `to_json` of a law returned.
    Returns: an equal law. ValueError says what is missing or wrong.

    Example:
        >>> from shapedp import Gaussian
        >>> law_from_json(Gaussian(2.0, dim=3).to_json()).second_moment
        12.0
    """
    kind = data.get("law") if isinstance(data, dict) else None
    if not isinstance(kind, str) or kind not in {**LAWS, **PROVIDED["law"]}:
        raise ValueError(f"law must be one of {', '.join(LAWS)}, got {kind!r}")
    try:
        return (LAWS[kind] if kind in LAWS else published("law", kind)).from_json(data)
    except (KeyError, LacksFieldError) as missing:
        raise ValueError(f"law {kind!r} lacks the field {missing.args[0]!r}") from None


def confidence_level(value: float) -> float:
    """A confidence in (0, 1)."""
    level = positive("confidence", real("confidence", value))
    if not level < 1:
        raise ValueError(f"confidence must lie in (0, 1), got {value!r}")
    return level
