"""What every noise law answers."""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from shapedp.noise.errors import Measure, measure_of
from shapedp.numerics.checks import count, finite, laid_out, positive, real
from shapedp.sampling import Source

Floats = NDArray[np.float64]
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


class Law(ABC):
    """A distribution of noise on R^dim, symmetric about zero."""

    kind: ClassVar[str]
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

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """A JSON object from which `law_from_json` restores an equal law."""

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


def confidence_level(value: float) -> float:
    """A confidence in (0, 1)."""
    level = positive("confidence", real("confidence", value))
    if not level < 1:
        raise ValueError(f"confidence must lie in (0, 1), got {value!r}")
    return level
