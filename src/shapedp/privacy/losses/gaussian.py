"""The privacy loss of Gaussian noise of any covariance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from shapedp.numerics import last_true, last_true_near, mills, normal_log_density
from shapedp.numerics.checks import nonnegative, positive, probability
from shapedp.privacy.bracket import Bracket
from shapedp.privacy.losses.base import Floats, Loss

_ROUND = 2.0**-49
_TINY = 5e-324
MU_LIMIT = 1e6


def _log_delta(epsilon: float, mu: float) -> float:
    """log delta in plain floats, for the search only: it guides and never certifies."""
    a = epsilon / mu - mu / 2
    b = epsilon / mu + mu / 2
    if a < 0:
        return math.log(0.5 * math.erfc(a * math.sqrt(0.5)) - math.exp(-a * a / 2) * 0.5 * special.erfcx(b * math.sqrt(0.5)))
    gap = 0.5 * (special.erfcx(a * math.sqrt(0.5)) - special.erfcx(b * math.sqrt(0.5)))
    return -a * a / 2 + math.log(gap) if gap > 0 else -math.inf


@dataclass(frozen=True)
class GaussianLoss(Loss):
    """The loss of N(mu, 1) against N(0, 1): mu = sup |S^(-1/2) v| over the sensitivity set.

    Guarantee: exact; the bracket holds rounding only. delta(e) = Phi(mu/2 - e/mu) - e^e Phi(-mu/2 - e/mu).
    Reference: Balle and Wang 2018, Theorem 8; Dong, Roth and Su 2022, Corollary 2.13.
    """

    mu: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", nonnegative("mu", self.mu))

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        """With a = e/mu - mu/2, b = a + mu and M the Mills ratio: delta = phi(a) (M(a) - M(b)).

        Rounding: a and b carry at most 2^-52 (|a| + b), erfcx and exp a few units in the last place; the two
        terms of `error` dominate what these do to phi(a) and to the difference.
        """
        epsilon = np.asarray(epsilon, dtype=np.float64)
        if self.mu == 0:
            return np.zeros_like(epsilon), np.zeros_like(epsilon)
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            ratio = epsilon / self.mu
            a, b = ratio - self.mu / 2, ratio + self.mu / 2
            tail = special.ndtr(-np.minimum(a, 0.0))
            first = np.where(a < 0, tail, 0.0)
            density = np.exp(normal_log_density(a))
            near = density * mills(np.maximum(a, 0.0))
            first = np.where(a < 0, first, near)
            second = density * mills(b)
            value = np.where(a < 0, first - second, density * (mills(np.maximum(a, 0.0)) - mills(b)))
            error = _ROUND * (first + second) * np.where(a < 1, 1 + b, 1.0) + value * 2.0**-51 * (a * a + b * b)
            lower = np.clip(np.nan_to_num(value - error), 0.0, 1.0)
            upper = np.clip(value + error + _TINY, 0.0, 1.0)
        upper = np.where(np.isfinite(upper), upper, np.where(a > 0, _TINY, 1.0))
        return lower, upper

    def log_delta(self, epsilon: float) -> float:
        """log delta(epsilon), right where delta itself underflows."""
        epsilon = nonnegative("epsilon", epsilon)
        if self.mu == 0:
            return -math.inf
        a = epsilon / self.mu - self.mu / 2
        if a < 0:
            return _log_delta(epsilon, self.mu)
        return float(normal_log_density(a)) + math.log(mills(a) - mills(epsilon / self.mu + self.mu / 2))

    def renyi(self, alpha: float) -> Bracket:
        """alpha mu^2/2. Reference: Mironov 2017, Proposition 7."""
        value = _order(alpha) * self.mu**2 / 2
        return Bracket(value * (1 - 2.0**-51), value * (1 + 2.0**-51))

    @classmethod
    def calibrate(cls, epsilon: float, delta: float) -> GaussianLoss:
        """The largest mu that meets (epsilon, delta), on the private side.

        Guarantee: `calibrate(e, d).delta(e).upper <= d`.
        Newton in log delta (its derivative in mu is phi(a)) finds the root; the bracket then certifies it.
        """
        epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
        if delta == 0:
            raise ValueError("delta must be > 0 for Gaussian noise: no Gaussian meets pure differential privacy")
        at = np.array([epsilon])

        def holds(mu: float) -> bool:
            return bool(cls(mu).profile(at)[1][0] <= delta)

        guess = _newton(epsilon, delta)
        if guess is not None:
            return cls(last_true_near(holds, guess))
        return cls(last_true(holds, 1e-300, MU_LIMIT))


def _order(alpha: float) -> float:
    alpha = positive("alpha", alpha)
    if not alpha > 1:
        raise ValueError(f"alpha must be > 1, got {alpha!r}")
    return alpha


def _newton(epsilon: float, delta: float) -> float | None:
    """A root of log delta(mu) = log delta, or None where plain floats do not find one."""
    target = math.log(delta)
    quantile = max(-float(special.ndtri(delta)), 0.0)
    mu = 2 * epsilon / (quantile + math.sqrt(quantile * quantile + 2 * epsilon))
    low, high = 0.0, MU_LIMIT
    for _ in range(60):
        try:
            value = _log_delta(epsilon, mu)
        except ValueError:
            return None
        if value > target:
            high = mu
        else:
            low = mu
        a = epsilon / mu - mu / 2
        slope = math.exp(min(-a * a / 2 - 0.9189385332046727 - value, 700.0)) if value > -math.inf else 0.0
        step = (target - value) / slope if slope > 0 else math.inf
        following = mu + step
        if not low < following < high:
            following = (low + high) / 2 if low > 0 and high < MU_LIMIT else (mu * 2 if high == MU_LIMIT else mu / 2)
        if abs(following - mu) <= 2.0**-52 * mu:
            return following
        mu = following
    return mu
