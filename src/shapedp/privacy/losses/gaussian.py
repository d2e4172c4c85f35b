"""The privacy loss of Gaussian noise of any covariance."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from shapedp.boundary.values import boolean
from shapedp.numerics import SearchError, last_true
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import nonnegative, numeric, positive, probability, real, vector
from shapedp.numerics.outward import ABOVE_8, BELOW_8, BELOW_8192, ROUNDINGS_4, ROUNDINGS_8, ROUNDINGS_32, WIDE
from shapedp.privacy.bracket import Bracket
from shapedp.privacy.losses.base import Loss, renyi_order

_TINY = 2e-323
_FAR = 2.0**25  # beyond it rounding of a = e/mu - mu/2 is no longer small
_SQRT_HALF = math.sqrt(0.5)
_SQRT_HALF_PI = math.sqrt(math.pi / 2)
_SQRT_2PI = math.sqrt(2 * math.pi)
_LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)
MU_LIMIT = 1e150
_BLOCK = 4096  # claims at once: what they need stays in a core's cache
_PART = 16_384  # points of a profile at once, for the same reason


def _log_delta(epsilon: float, mu: float) -> float:
    """log delta in plain floats, for the search only: it guides and never certifies."""
    a = epsilon / mu - mu / 2
    far = special.erfcx((a + mu) * _SQRT_HALF)
    if a < 0:
        return math.log(0.5 * (math.erfc(a * _SQRT_HALF) - math.exp(-a * a / 2) * far))
    gap = 0.5 * (special.erfcx(a * _SQRT_HALF) - far)
    return float(-a * a / 2 + math.log(gap)) if gap > 0 else -math.inf


def _profile(epsilon: Floats, mu: float | Floats, move: Floats | float = 0.0) -> tuple[Floats, Floats]:
    """With a = e/mu - mu/2, b = a + mu and M the Mills ratio: delta = phi(a) (M(a) - M(b)).

    Rounding, u = 2^-53: a and b are off by at most 2 u b, which moves delta by at most phi(a) (1 - a M(b)) 2 u b;
    erfcx is off by at most 9 u (measured), ndtr, exp and the rest by 7 u; the exponent of phi by
    (3 a^2 + b^2) u. The two terms of `error` dominate these, _TINY what underflows. delta falls with e by phi(a) M(b)
    per unit, which changes by less than a factor 2 where `move` (1 + (b + 1)/mu) < log 2 (1/M(b) <= b + 1): bounds for
    all e within such a `move` are twice that wider.
    """
    if isinstance(mu, float) and (mu == 0 or mu == math.inf):
        flat = np.full_like(epsilon, 0.0 if mu == 0 else 1.0)
        return flat, flat
    if epsilon.size > 2 * _PART and isinstance(mu, float) and epsilon.ndim == 1:
        ends, moves = range(0, epsilon.size, _PART), np.broadcast_to(move, epsilon.shape)
        parts = [_profile(epsilon[k : k + _PART], mu, moves[k : k + _PART]) for k in ends]
        return np.concatenate([one for one, _ in parts]), np.concatenate([one for _, one in parts])
    with np.errstate(over="ignore", under="ignore"):
        ratio = np.minimum(epsilon / mu, 1e300)
        a, b = ratio - mu / 2, ratio + mu / 2
        negative = a < 0
        density = np.exp(-0.5 * np.square(a) - _LOG_SQRT_2PI)
        near, far = (_SQRT_HALF_PI * special.erfcx(x * _SQRT_HALF) for x in (np.maximum(a, 0.0), b))
        first, second = np.where(negative, special.ndtr(-a), density * near), density * far
        value = np.where(negative, first - second, density * (near - far))
        widened = np.where(a < 1, 1 + b, 1.0)
        error = ROUNDINGS_32 * (first + second) * widened + value * (ROUNDINGS_4 * np.minimum(a * a + b * b, 2.0**60))
        error += 2 * move * second
        lower, upper = value - error - _TINY, value + error + _TINY
        lost = b > _FAR
        if lost.any():
            coarse = _coarse(a, b)
            lower, upper = np.where(lost, coarse[0], lower), np.where(lost, coarse[1], upper)
    return np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)


def _ends(epsilon: float, mu: float) -> tuple[float, float]:
    """`_profile` at one point, bit by bit the same: numpy's functions without its arrays."""
    ratio = epsilon / mu if 0 < mu < math.inf and epsilon < 1e300 * mu else math.inf
    a, b = ratio - mu / 2, ratio + mu / 2
    if not (b <= _FAR and a < 37):  # 37: no exponential underflows
        lower, upper = _profile(np.array([epsilon]), mu)
        return float(lower[0]), float(upper[0])
    density = float(np.exp(-0.5 * (a * a) - _LOG_SQRT_2PI))
    far = _SQRT_HALF_PI * float(special.erfcx(b * _SQRT_HALF))
    second = density * far
    if a < 0:
        first = float(special.ndtr(-a))
        value = first - second
    else:
        near = _SQRT_HALF_PI * float(special.erfcx(a * _SQRT_HALF))
        first, value = density * near, density * (near - far)
    widened = 1 + b if a < 1 else 1.0
    error = ROUNDINGS_32 * (first + second) * widened + value * (ROUNDINGS_4 * min(a * a + b * b, 2.0**60))
    return min(max(value - error - _TINY, 0.0), 1.0), min(max(value + error + _TINY, 0.0), 1.0)


def _coarse(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """From a alone, known to 2^-51 b: delta <= e^(-a^2/2)/2 for a >= 0, 1 - delta <= e^(-a^2/2) for a <= 0."""
    slack = ROUNDINGS_4 * b
    above, below = np.maximum(a - slack, 0.0), np.maximum(-a - slack, 0.0)
    shy = 0.5 * BELOW_8192
    upper = np.where(above > 0, shy * (1 + WIDE) * np.exp(-shy * above * above) + _TINY, 1.0)
    return -np.expm1(-shy * below * below) * BELOW_8192, upper


@dataclass(frozen=True)
class GaussianLoss(Loss):
    """The loss of N(mu, 1) against N(0, 1): mu = sup |S^(-1/2) v| over the sensitivity set.

    `least` is a lower bound on the true mu where `mu` is an upper bound; without it mu is exact.
    Guarantee: the bracket holds rounding only. delta(e) = Phi(mu/2 - e/mu) - e^e Phi(-mu/2 - e/mu).
    Reference: Balle and Wang 2018, Theorem 8; Dong, Roth and Su 2022, Corollary 2.13.

    Parameters: `mu`, `least`, and `adjacency`, the neighbour relation.

    Example:
        >>> loss = GaussianLoss.calibrate(1.0, 1e-6)
        >>> round(loss.mu, 6), loss.delta(1.0).upper <= 1e-6
        (0.236704, True)
    """

    mu: float
    least: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        mu = real("mu", self.mu)
        object.__setattr__(self, "mu", mu if mu == math.inf else nonnegative("mu", mu))
        if self.least is not None:
            least = real("least", self.least)
            if not 0 <= least <= self.mu:
                raise ValueError(f"least must lie in [0, mu = {self.mu!r}], got {self.least!r}")
            object.__setattr__(self, "least", abs(least))

    @property
    def pure(self) -> float:  # type: ignore[override]
        return math.inf if self.mu else 0.0

    @property
    def lost(self) -> bool:  # type: ignore[override]
        return self.mu == math.inf and self.least in (None, math.inf)

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        lower, upper = _profile(epsilon, self.mu)
        if self.least is not None and self.least < self.mu:
            lower, _ = _profile(epsilon, self.least)
        return lower, upper

    def profile_near(self, epsilon: Floats, move: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        """One evaluation for both ends, where the moves are small beside the deviation of the loss."""
        reverse, near = boolean("reverse", reverse), self.least is None and 0 < self.mu < math.inf
        with np.errstate(over="ignore"):
            if near and (move * (1 + (epsilon / self.mu + self.mu + 1) / self.mu) < 0.5).all():
                return _profile(epsilon, self.mu, move)
        return super().profile_near(epsilon, move, reverse=reverse)

    def delta(self, epsilon: float) -> Bracket:
        epsilon = nonnegative("epsilon", epsilon)
        lower, upper = _ends(epsilon, self.mu)
        return Bracket(lower if self.least in (None, self.mu) else _ends(epsilon, float(self.least or 0.0))[0], upper)

    def log_delta(self, epsilon: float) -> float:
        """log delta(epsilon) of `mu`, right where delta itself underflows (an estimate, without a bracket)."""
        epsilon = nonnegative("epsilon", epsilon)
        return -math.inf if self.mu == 0 else _log_delta(epsilon, self.mu)

    def renyi(self, alpha: float) -> Bracket:
        """alpha mu^2/2. Reference: Mironov 2017, Proposition 7."""
        half = renyi_order(alpha) / 2
        least = self.mu if self.least is None else self.least
        upper = half * self.mu * self.mu * ABOVE_8 + (_TINY if self.mu else 0.0)
        lower = half * least * least * BELOW_8 - _TINY
        return Bracket(max(lower if least == math.inf else min(lower, sys.float_info.max), 0.0), upper)

    @classmethod
    def calibrate(cls, epsilon: float, delta: float) -> GaussianLoss:
        """The largest mu that meets (epsilon, delta), on the private side.

        Guarantee: `calibrate(e, d).delta(e).upper <= d`.
        Newton in log delta (its derivative in mu is phi(a)) finds the root; the bracket then certifies it.
        """
        epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
        if delta == 0:
            raise ValueError("delta must be > 0 for Gaussian noise: no Gaussian meets pure differential privacy")
        mu = _newton(epsilon, delta)
        for factor in (0.125, 1.0, 8.0) if mu > 0 else ():
            lower, upper = _ends(epsilon, mu)
            if upper <= delta:
                return cls(mu)
            a = epsilon / mu - mu / 2
            slope = max(math.exp(-a * a / 2) / _SQRT_2PI, sys.float_info.min)
            excess = upper - delta + factor * (upper - lower)  # and some of the bracket's own noise
            mu = max(mu - excess / slope, mu / 2) * (1 - factor * ROUNDINGS_8)
        try:
            low = epsilon / (100 + math.sqrt(2 * epsilon))  # a > 100 there
            return cls(last_true(lambda mu: _ends(epsilon, mu)[1] <= delta, low, MU_LIMIT))
        except SearchError:
            raise ValueError(f"delta = {delta!r} is below what floats resolve: ask for delta >= 1e-320") from None


def largest_mus(epsilon: ArrayLike, delta: ArrayLike) -> Floats:
    """`GaussianLoss.calibrate(e, d).mu` for arrays of claims at once, for planners that try many.

    Guarantee: `GaussianLoss(mu).delta(e).upper <= d` for every claim. A value may differ from that of `calibrate` by
    rounding.

    Parameters: `epsilon` and `delta` > 0, arrays (or numbers) of one shape, or of shapes that broadcast.
    Returns: an array of that shape. Noise for an `L2` ball of radius r has the standard deviation r/mu.

    Example:
        >>> largest_mus([0.5, 1.0], 1e-6).round(6)
        array([0.124106, 0.236704])
    """
    claims = np.broadcast_arrays(numeric("epsilon", epsilon), numeric("delta", delta))
    e, d = (
        vector(name, one.ravel(), least=0.0, strict=True)
        for name, one in zip(("epsilon", "delta"), claims, strict=True)
    )
    if d.max() >= 1:
        raise ValueError(f"delta must lie in (0, 1), got {float(d.max())!r}")
    mu = np.concatenate([_together(e[i : i + _BLOCK], d[i : i + _BLOCK]) for i in range(0, e.size, _BLOCK)])
    return mu.reshape(claims[0].shape)


def _together(epsilon: Floats, delta: Floats) -> Floats:
    """A block of claims: Newton for all of them, and one by one what it does not settle."""
    target = np.log(delta)
    quantile = np.maximum(-special.ndtri(delta), 0.0)
    mu: Floats = 2 * epsilon / (quantile + np.sqrt(quantile * quantile + 2 * epsilon))
    with np.errstate(all="ignore"):
        for _ in range(6):
            value, a = _log_deltas(epsilon, mu)
            step = (target - value) * np.exp(0.5 * a * a + value) * _SQRT_2PI
            mu = np.clip(mu + np.where(np.isfinite(step), step, 0.0), 0.5 * mu, 2 * mu)
            if np.all(np.abs(step) <= WIDE * mu):
                break
        lower, upper = _profile(epsilon, mu)
        a = epsilon / mu - mu / 2
        slope = np.maximum(np.exp(-0.5 * a * a) / _SQRT_2PI, sys.float_info.min)
        excess = np.maximum(upper - delta + 0.125 * (upper - lower), 0.0)
        mu = np.where(upper <= delta, mu, np.maximum(mu - excess / slope, mu / 2) * BELOW_8)
        met = np.abs(step) <= WIDE * mu
        met &= _profile(epsilon, mu)[1] <= delta
    for i in np.flatnonzero(~met):
        mu[i] = GaussianLoss.calibrate(float(epsilon[i]), float(delta[i])).mu
    return mu


def _log_deltas(epsilon: Floats, mu: Floats) -> tuple[Floats, Floats]:
    """`_log_delta` of many, and a = e/mu - mu/2."""
    a = epsilon / mu - mu / 2
    far = special.erfcx((a + mu) * _SQRT_HALF)
    low = a < 0
    near = special.erfcx(np.where(low, 0.0, a) * _SQRT_HALF)
    value: Floats = np.log(0.5 * (near - far)) - 0.5 * a * a
    if low.any():
        at = a[low]
        value[low] = np.log(special.ndtr(-at) - 0.5 * np.exp(-0.5 * at * at) * far[low])
    return value, a


def _newton(epsilon: float, delta: float) -> float:
    """A root of log delta(mu) = log delta, or 0 where plain floats do not find one."""
    target = math.log(delta)
    quantile = max(-float(special.ndtri(delta)), 0.0)
    mu = 2 * epsilon / (quantile + math.sqrt(quantile * quantile + 2 * epsilon))
    for _ in range(40):
        try:
            value = _log_delta(epsilon, mu)
            a = epsilon / mu - mu / 2
            step = (target - value) * math.exp(a * a / 2 + value) * _SQRT_2PI
        except (ValueError, OverflowError, ZeroDivisionError):
            return 0.0
        if not abs(step) < math.inf:
            return 0.0
        if abs(step) <= WIDE * mu:
            return mu + step
        mu = min(max(mu + step, mu / 2), mu * 2)
    return 0.0
