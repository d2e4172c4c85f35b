"""The privacy loss of Gaussian noise of any covariance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from shapedp.noise import Gaussian
from shapedp.numerics import last_true, last_true_near, mills, normal_log_density
from shapedp.numerics.checks import nonnegative, positive, probability
from shapedp.privacy.bracket import Bracket
from shapedp.privacy.losses.base import Floats, Loss
from shapedp.privacy.losses.pairing import loss_of
from shapedp.sensitivity import Sensitivity

_ROUND = 2.0**-49
_TINY = 5e-324
MU_LIMIT = 1e6


def _log_delta(epsilon: float, mu: float) -> float:
    """log delta in plain floats, for the search only: it guides and never certifies."""
    a = epsilon / mu - mu / 2
    b = epsilon / mu + mu / 2
    if a < 0:
        return math.log(
            0.5 * math.erfc(a * math.sqrt(0.5)) - math.exp(-a * a / 2) * 0.5 * special.erfcx(b * math.sqrt(0.5))
        )
    gap = 0.5 * (special.erfcx(a * math.sqrt(0.5)) - special.erfcx(b * math.sqrt(0.5)))
    return -a * a / 2 + math.log(gap) if gap > 0 else -math.inf


def _profile(epsilon: Floats, mu: float) -> tuple[Floats, Floats]:
    """With a = e/mu - mu/2, b = a + mu and M the Mills ratio: delta = phi(a) (M(a) - M(b)).

    Rounding: a and b carry at most 2^-52 (|a| + b), erfcx and exp a few units in the last place; the two
    terms of `error` dominate what these do to phi(a) and to the difference.
    """
    if mu == 0 or math.isinf(mu):
        flat = np.full_like(epsilon, 0.0 if mu == 0 else 1.0)
        return flat, flat
    with np.errstate(over="ignore", under="ignore"):
        ratio = epsilon / mu
        a, b = ratio - mu / 2, ratio + mu / 2
        negative = a < 0
        density = np.exp(normal_log_density(a))
        near, far = mills(np.maximum(a, 0.0)), mills(b)
        first = np.where(negative, special.ndtr(-a), density * near)
        second = density * far
        value = np.where(negative, first - second, density * (near - far))
        error = _ROUND * (first + second) * np.where(a < 1, 1 + b, 1.0) + value * (2.0**-51 * (a * a + b * b))
        lower = np.clip(np.where(np.isfinite(error), value - error, 0.0), 0.0, 1.0)
        upper = np.clip(np.where(np.isfinite(error), value + error + _TINY, _TINY), 0.0, 1.0)
    return lower, upper


@dataclass(frozen=True)
class GaussianLoss(Loss):
    """The loss of N(mu, 1) against N(0, 1): mu = sup |S^(-1/2) v| over the sensitivity set.

    `least` is a lower bound on the true mu where `mu` is an upper bound; without it mu is exact.
    Guarantee: the bracket holds rounding only. delta(e) = Phi(mu/2 - e/mu) - e^e Phi(-mu/2 - e/mu).
    Reference: Balle and Wang 2018, Theorem 8; Dong, Roth and Su 2022, Corollary 2.13.
    """

    mu: float
    least: float | None = None

    def __post_init__(self) -> None:
        if self.mu != math.inf:
            object.__setattr__(self, "mu", nonnegative("mu", self.mu))
        if self.least is not None and not 0 <= self.least <= self.mu:
            raise ValueError(f"least must lie in [0, mu = {self.mu!r}], got {self.least!r}")

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        epsilon = np.asarray(epsilon, dtype=np.float64)
        lower, upper = _profile(epsilon, self.mu)
        if self.least is not None and self.least < self.mu:
            lower, _ = _profile(epsilon, self.least)
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
        half = renyi_order(alpha) / 2
        least = self.mu if self.least is None else self.least
        return Bracket(half * least**2 * (1 - 2.0**-50), half * self.mu**2 * (1 + 2.0**-50))

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


def renyi_order(alpha: float) -> float:
    """An order above 1."""
    alpha = positive("alpha", alpha)
    if not alpha > 1:
        raise ValueError(f"alpha must be > 1, got {alpha!r}")
    return alpha


@loss_of.register(Gaussian)
def _gaussian(law: Gaussian, sensitivity: Sensitivity) -> GaussianLoss:
    least, mu = sensitivity.l2_reach(law.scales)
    return GaussianLoss(mu, least)


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
