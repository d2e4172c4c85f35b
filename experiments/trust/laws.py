"""Laws of the privacy loss L = log dP/dQ under P, written down from the definitions of the mechanisms.

Nothing here imports the library under test. A law knows P(L > x), Q(L > x), its largest value and the mass there.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

Floats = NDArray[np.float64]
DEEP = 1e-305  # a mass that no question of the scan can see
LEFT = 1e-20  # a mass at the left end that tilting to the right hides


class Law(ABC):
    """The law of L under P. `infinity` is the P-mass where Q has none; tails are those of the finite part."""

    infinity: float = 0.0

    @property
    @abstractmethod
    def top(self) -> float:
        """The essential supremum of the finite part."""

    @property
    def top_mass(self) -> float:
        """P(L = top), 0 without an atom there."""
        return 0.0

    @abstractmethod
    def span(self) -> tuple[float, float]:
        """Ends beyond which there is less mass than LEFT (below) and DEEP (above)."""

    @abstractmethod
    def tail(self, x: Floats) -> Floats:
        """P(x < L < infinity)."""

    @abstractmethod
    def qtail(self, x: Floats) -> Floats:
        """Q(L > x)."""


@dataclass(frozen=True)
class Normal(Law):
    """N(mu, 1) against N(0, 1): L ~ N(mu^2/2, mu^2)."""

    mu: float

    @property
    def top(self) -> float:
        return math.inf if self.mu else 0.0

    def span(self) -> tuple[float, float]:
        return self.mu * (self.mu / 2 - 9.5), self.mu * (self.mu / 2 + 37.6)

    def tail(self, x: Floats) -> Floats:
        return special.ndtr(self.mu / 2 - x / self.mu)

    def qtail(self, x: Floats) -> Floats:
        return special.ndtr(-self.mu / 2 - x / self.mu)


@dataclass(frozen=True)
class Atoms(Law):
    """Finitely many values with their P-masses (which sum to 1 less `infinity`), ascending."""

    values: tuple[float, ...]
    masses: tuple[float, ...]
    infinity: float = 0.0

    @property
    def top(self) -> float:
        return self.values[-1]

    @property
    def top_mass(self) -> float:
        return self.masses[-1]

    def span(self) -> tuple[float, float]:
        return self.values[0], self.values[-1]

    def _beyond(self, x: Floats, weights: Floats) -> Floats:
        sums = np.append(np.cumsum(weights[::-1])[::-1], 0.0)
        return sums[np.searchsorted(np.array(self.values), x, side="right")]

    def tail(self, x: Floats) -> Floats:
        return self._beyond(x, np.array(self.masses))

    def qtail(self, x: Floats) -> Floats:
        return self._beyond(x, np.array(self.masses) * np.exp(-np.array(self.values)))


def response(epsilon: float, failure: float = 0.0) -> Atoms:
    """The worst pair that (epsilon, failure)-DP allows (Kairouz, Oh and Viswanath 2017)."""
    if epsilon == 0:
        return Atoms((0.0,), (1 - failure,), failure)
    high = (1 - failure) / (1 + math.exp(-epsilon))
    low = (1 - failure) * math.exp(-epsilon) / (1 + math.exp(-epsilon))
    return Atoms((-epsilon, epsilon), (low, high), failure)


def many_answers(noise: float, buckets: int) -> Atoms:
    """Randomised response over `buckets` answers: the true one with probability 1 - noise, else a uniform one."""
    other = noise / buckets
    kept = 1 - noise + other
    epsilon = math.log(kept / other)
    return Atoms((-epsilon, 0.0, epsilon), (other, (buckets - 2) * other, kept))


def staircase(epsilon: float, share: float, loss: float = 1e-5) -> Atoms:
    """Staircase noise moved by its width; `share` of the width is the inner part. A `loss` of the masses is given up.

    For x >= 0 and for the inner |x| < min(share, 1 - share) of the other side the loss is epsilon, its mirror image is
    -epsilon, the rest 0.
    """
    decay = math.exp(-epsilon)
    half = share + decay / -math.expm1(-epsilon)
    up = (0.5 + min(share, 1 - share) / (2 * half)) * (1 - loss)
    middle = max(1 - up * (1 + decay), 0.0) * (1 - 2 * loss)
    return Atoms((-epsilon, 0.0, epsilon), (max(1 - up - middle, 0.0), middle, up))


@dataclass(frozen=True)
class Laplacian(Law):
    """One coordinate of Laplace noise moved by `a` scales: mass 1/2 at a, e^-a/2 at -a, density e^((x-a)/2)/4."""

    a: float

    @property
    def top(self) -> float:
        return self.a

    @property
    def top_mass(self) -> float:
        return 0.5

    def span(self) -> tuple[float, float]:
        return -self.a, self.a

    def tail(self, x: Floats) -> Floats:
        inside = 1 - 0.5 * np.exp(np.clip((x - self.a) / 2, -745, 0))
        return np.where(x >= self.a, 0.0, np.where(x < -self.a, 1.0, inside))

    def qtail(self, x: Floats) -> Floats:
        inside = 0.5 * np.exp(np.clip(-(x + self.a) / 2, -745, 0))
        return np.where(x >= self.a, 0.0, np.where(x < -self.a, 1.0, inside))


@dataclass(frozen=True)
class ChiSquare(Law):
    """k coordinates N(0, 1) against N(0, 1 - t) (forward), or N(0, 1 - t) against N(0, 1)."""

    k: int
    t: float
    forward: bool = True

    @property
    def _shift(self) -> float:
        return -self.k / 2 * math.log1p(-self.t)

    @property
    def top(self) -> float:
        return math.inf if self.forward else self._shift

    def span(self) -> tuple[float, float]:
        if self.forward:
            far = 2 * special.gammainccinv(self.k / 2, 1e-300)
            return -self._shift, self.t / (1 - self.t) * far / 2 - self._shift
        far = 2 * special.gammainccinv(self.k / 2, LEFT)
        return self._shift - self.t * far / 2, self._shift

    def _squares(self, x: Floats) -> Floats:
        """The value of the chi-square (of the first law, for forward; of Q's own scale else) at loss x."""
        rate = self.t / (1 - self.t) if self.forward else self.t
        return np.maximum(2 * ((x + self._shift) if self.forward else (self._shift - x)) / rate, 0.0)

    def tail(self, x: Floats) -> Floats:
        z = self._squares(x) / 2
        return special.gammaincc(self.k / 2, z) if self.forward else special.gammainc(self.k / 2, z)

    def qtail(self, x: Floats) -> Floats:
        z = self._squares(x) / 2
        if self.forward:
            return special.gammaincc(self.k / 2, z / (1 - self.t))
        return special.gammainc(self.k / 2, z * (1 - self.t))


@dataclass(frozen=True)
class Ball(Law):
    """The first coordinate of density e^-|x| in three dimensions, moved by `a`: what a half-space test sees.

    Marginal density (1 + |x|) e^-|x|/4; L is monotone in x, as the density is log-concave.
    """

    a: float

    @property
    def top(self) -> float:
        return self.a

    def span(self) -> tuple[float, float]:
        return -self.a, self.a

    def _where(self, x: Floats) -> Floats:
        """The y with loss x (increasing; P is centred at a, Q at 0), by bisection."""
        low, high = np.full_like(x, -800.0), np.full_like(x, 800.0 + self.a)
        for _ in range(60):
            y = (low + high) / 2
            below = self._loss(y) <= x
            low, high = np.where(below, y, low), np.where(below, high, y)
        return high

    def _loss(self, y: Floats) -> Floats:
        far, near = np.abs(y), np.abs(y - self.a)
        return np.log1p(near) - near - np.log1p(far) + far

    @staticmethod
    def _right(y: Floats) -> Floats:
        """P(first coordinate > y)."""
        side = (2 + np.abs(y)) * np.exp(-np.abs(y)) / 4
        return np.where(y > 0, side, 1 - side)

    def tail(self, x: Floats) -> Floats:
        return np.where(x >= self.a, 0.0, np.where(x < -self.a, 1.0, self._right(self._where(x) - self.a)))

    def qtail(self, x: Floats) -> Floats:
        return np.where(x >= self.a, 0.0, np.where(x < -self.a, 1.0, self._right(self._where(x))))


@dataclass(frozen=True)
class Slow(Law):
    """delta(e) = infinity + (1 - infinity) height e^(-fall e), a pair that mirrors itself."""

    height: float  # at most 1/(1 + 2 fall)
    fall: float
    infinity: float = 0.0

    @property
    def top(self) -> float:
        return math.inf

    def span(self) -> tuple[float, float]:
        return math.log(LEFT / (self.height * self.fall)) / (1 + self.fall), -math.log(DEEP) / self.fall

    def _both(self, x: Floats, above: float, below: float) -> Floats:
        """above e^-(rate x) for x >= 0 and 1 - below e^(rate x) else, the rates being those of the two heights."""
        rates = [self.fall + (height < self.height * (1 + self.fall)) for height in (above, below)]
        up, down = above * np.exp(-rates[0] * np.maximum(x, 0.0)), 1 - below * np.exp(rates[1] * np.minimum(x, 0.0))
        return (1 - self.infinity) * np.where(x >= 0, up, down)

    def tail(self, x: Floats) -> Floats:
        return self._both(x, self.height * (1 + self.fall), self.height * self.fall)

    def qtail(self, x: Floats) -> Floats:
        return self._both(x, self.height * self.fall, self.height * (1 + self.fall))


@dataclass(frozen=True)
class Sampled(Law):
    """(1 - rate) Q + rate P against Q, or (`forward` False) Q against it, for a base pair that mirrors itself."""

    base: Law
    rate: float
    forward: bool = True

    @property
    def infinity(self) -> float:  # type: ignore[override]
        return self.rate * self.base.infinity if self.forward else self._lost

    @property
    def _lost(self) -> float:
        """Q against a mixture that holds (1 - rate) Q: nothing is ever certain."""
        return 0.0

    def _mixed(self, x: float) -> float:
        if x > 700:
            return x + math.log(self.rate)
        return math.log1p(self.rate * math.expm1(x))

    @property
    def top(self) -> float:
        if self.forward:
            return math.inf if math.isinf(self.base.top) else self._mixed(self.base.top)
        if self.base.infinity:
            return -math.log1p(-self.rate)
        return -math.log1p(-self.rate) if math.isinf(self.base.top) else -self._mixed(-self.base.top)

    @property
    def top_mass(self) -> float:
        mass, top = self.base.top_mass, self.base.top
        if self.forward:
            return mass * (self.rate + (1 - self.rate) * math.exp(-top)) if mass else 0.0
        return self.base.infinity or mass  # Q(L = -top) = P(L = top), and Q-mass where P has none

    def span(self) -> tuple[float, float]:
        low, high = self.base.span()
        if self.forward:
            return math.log1p(-self.rate) if self.base.infinity else self._mixed(low), self._mixed(high)
        left = -self._mixed(high)
        return left, self.top

    def _inner(self, x: Floats) -> Floats:
        """The base loss at which log(1 - rate + rate e^L) = x; -inf where there is none."""
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            inner = np.log1p(np.expm1(np.minimum(x, 700)) / self.rate)
            inner = np.where(x > 690, x - math.log(self.rate), inner)
        return np.where(np.isnan(inner), -np.inf, inner)

    def tail(self, x: Floats) -> Floats:
        if self.forward:
            at = self._inner(x)
            return self.rate * self.base.tail(at) + (1 - self.rate) * self._base_q(at)
        return self._mirror(x, self.base.tail, self.base.infinity)

    def _base_q(self, at: Floats) -> Floats:
        """Q(L > at), with Q's own mass where P has none below everything."""
        return np.where(np.isneginf(at), 1.0, self.base.qtail(at))

    def _mirror(self, x: Floats, tail, extra: float) -> Floats:  # type: ignore[no-untyped-def]
        """Q(-log(1 - rate + rate e^L) > x) = P(L > -inner(-x)) by the mirror, and all of `extra` below the end."""
        at = -self._inner(-x)
        found = np.where(np.isposinf(at), 0.0, tail(np.minimum(at, 1e300))) + extra
        return np.where(x >= self.top, 0.0, found)

    def qtail(self, x: Floats) -> Floats:
        if self.forward:
            return self._base_q(self._inner(x))
        lost = (1 - self.rate) * self.base.infinity
        return self._mirror(x, lambda at: self.rate * self.base.qtail(at) + (1 - self.rate) * self.base.tail(at), lost)


@dataclass(frozen=True)
class Moved(Law):
    """L + shift, with a further mass `lost` at infinity and the rest scaled down."""

    base: Law
    shift: float = 0.0
    lost: float = 0.0

    @property
    def infinity(self) -> float:  # type: ignore[override]
        return self.lost + (1 - self.lost) * self.base.infinity

    @property
    def top(self) -> float:
        return self.base.top + self.shift

    @property
    def top_mass(self) -> float:
        return self.base.top_mass * (1 - self.lost)

    def span(self) -> tuple[float, float]:
        low, high = self.base.span()
        return low + self.shift, high + self.shift

    def tail(self, x: Floats) -> Floats:
        return (1 - self.lost) * self.base.tail(x - self.shift)

    def qtail(self, x: Floats) -> Floats:
        return (1 - self.lost) * math.exp(-self.shift) * self.base.qtail(x - self.shift)
