"""Conversions among mu-GDP, zCDP, Renyi DP and (epsilon, delta)-DP, each towards less privacy claimed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from shapedp.numerics.checks import nonnegative, positive, probability
from shapedp.numerics.outward import ABOVE_32, ABOVE_128, ROUNDINGS_16
from shapedp.privacy.bracket import Bracket
from shapedp.privacy.losses.base import renyi_order
from shapedp.privacy.losses.gaussian import GaussianLoss

_TINY = 5e-324
ORDERS: tuple[float, ...] = tuple(1 + 2.0 ** (i / 8) for i in range(-80, 97))


def _up(value: float) -> float:
    """A little more than a non-negative value that carries a few roundings."""
    return value * ABOVE_32 + _TINY if value != 0 else value


def _log_kept(alpha: float) -> float:
    """log(1 - 1/alpha), accurate at both ends."""
    return math.log1p(-1 / alpha) if alpha > 2 else math.log(alpha - 1) - math.log(alpha)


def _target(delta: float) -> float:
    target = probability("delta", delta)
    if not target > 0:
        raise ValueError("delta must be > 0: Renyi and concentrated DP promise no pure epsilon")
    return target


def gdp_to_dp(mu: float, delta: float) -> Bracket:
    """epsilon of mu-GDP at delta, exactly. Reference: Dong, Roth and Su 2022, Corollary 2.13."""
    return GaussianLoss(mu).epsilon(delta)


def gdp_to_zcdp(mu: float) -> float:
    """rho = mu^2/2 (of Gaussian noise). Reference: Bun and Steinke 2016, Proposition 1.6."""
    return _half_square(nonnegative("mu", mu))


def gdp_to_rdp(mu: float, alpha: float) -> float:
    """R(alpha) = alpha mu^2/2 (of Gaussian noise). Reference: Mironov 2017, Proposition 7."""
    return _up(renyi_order(alpha) * gdp_to_zcdp(mu))


def zcdp_to_rdp(rho: float, alpha: float) -> float:
    """R(alpha) = rho alpha, by definition. Reference: Bun and Steinke 2016, Definition 1.1."""
    return _up(nonnegative("rho", rho) * renyi_order(alpha))


def pure_to_zcdp(epsilon: float) -> float:
    """rho = epsilon^2/2. Reference: Bun and Steinke 2016, Proposition 1.4."""
    return _half_square(nonnegative("epsilon", epsilon))


def _half_square(x: float) -> float:
    return x * x / 2 * ABOVE_32 + (_TINY if x else 0.0)


def pure_to_rdp(epsilon: float, alpha: float) -> float:
    """R(alpha) of randomised response, the worst (epsilon, 0)-DP mechanism.

    log(cosh((alpha - 1/2) epsilon)/cosh(epsilon/2))/(alpha - 1), written without cancellation.
    Reference: Mironov 2017, Proposition 5; Kairouz, Oh and Viswanath 2015, Theorem 2.5.
    """
    epsilon, alpha = nonnegative("epsilon", epsilon), renyi_order(alpha)
    if alpha * epsilon < 40:
        grown = 2 * math.sinh(alpha * epsilon / 2) * math.sinh((alpha - 1) * epsilon / 2) / math.cosh(epsilon / 2)
        value = (math.log1p(grown) + (_TINY if epsilon else 0.0)) / (alpha - 1)  # the product may be subnormal
    else:
        ends = math.log1p(math.exp(-(2 * alpha - 1) * epsilon)) - math.log1p(math.exp(-epsilon))
        value = epsilon + ends / (alpha - 1)
    return min(value * ABOVE_128 + (_TINY if epsilon else 0.0), epsilon)


def rdp_to_epsilon(alpha: float, renyi: float, delta: float) -> float:
    """epsilon = R + log(1 - 1/alpha) - log(alpha delta)/(alpha - 1), at least 0.

    Reference: Canonne, Kamath and Steinke 2020, Proposition 12; Asoodeh et al. 2021.
    """
    alpha, renyi, delta = renyi_order(alpha), nonnegative("renyi", renyi), _target(delta)
    kept, log_alpha, log_delta = _log_kept(alpha), math.log(alpha), math.log(delta)
    value = renyi + kept - (log_alpha + log_delta) / (alpha - 1)
    slack = ROUNDINGS_16 * (renyi + abs(kept) + (log_alpha + abs(log_delta)) / (alpha - 1))
    return max(value + slack, 0.0)


def rdp_to_delta(alpha: float, renyi: float, epsilon: float) -> float:
    """delta = e^((alpha-1)(R - epsilon)) (1 - 1/alpha)^alpha/(alpha - 1), at most 1.

    Reference: Canonne, Kamath and Steinke 2020, Proposition 12; Asoodeh et al. 2021.
    """
    return rdp_curve_to_delta({alpha: renyi})(epsilon)


def rdp_curve_to_delta(renyi: Mapping[float, float]) -> Callable[[float], float]:
    """delta as a function of epsilon: the least over the orders, given as {alpha: R(alpha)}.

    Reference: Canonne, Kamath and Steinke 2020, Proposition 12, at each order.
    """
    orders = [renyi_order(alpha) for alpha in renyi]
    grown = np.array([nonnegative("renyi", value) for value in renyi.values()])
    less, kept = np.array([alpha - 1 for alpha in orders]), np.array([(a - 1) * _log_kept(a) for a in orders])
    log_alpha = np.array([math.log(alpha) for alpha in orders])
    slack = 1 + np.abs(kept) + log_alpha

    def delta(epsilon: float) -> float:
        epsilon = nonnegative("epsilon", epsilon)
        with np.errstate(over="ignore", invalid="ignore"):
            log_delta = less * (grown - epsilon) + kept - log_alpha + ROUNDINGS_16 * (slack + less * (grown + epsilon))
        least = float(np.where(np.isnan(log_delta), 0.0, log_delta).min())  # an order that overflows says nothing
        return min(math.exp(min(least, 0.0)) + _TINY, 1.0)  # exp rounds to the nearest subnormal, which may be below

    return delta


def rdp_curve_to_epsilon(curve: Callable[[float], float], delta: float, orders: Iterable[float] = ORDERS) -> float:
    """The least epsilon over the orders at which the curve is finite; infinite if there is none.

    Reference: Canonne, Kamath and Steinke 2020, Proposition 12, at each order.
    """
    best = math.inf
    for alpha in orders:
        renyi = curve(alpha)
        if math.isfinite(renyi):
            best = min(best, rdp_to_epsilon(alpha, renyi, delta))
    return best


def zcdp_to_dp(rho: float, delta: float) -> float:
    """epsilon of rho-zCDP at delta: the best order of the Renyi conversion.

    The optimum of rho a + log(1 - 1/a) - log(a delta)/(a - 1) is unimodal in a: a search in one variable; any order
    gives a valid epsilon. Reference: Canonne, Kamath and Steinke 2020, Corollary 13.
    """
    rho, delta = nonnegative("rho", rho), _target(delta)
    if rho == 0:
        return 0.0

    def value(t: float) -> float:
        alpha = 1 + math.exp(t)
        return rdp_to_epsilon(alpha, rho * alpha, delta)

    from scipy import optimize  # slow to import

    ends = math.log(1e-9), math.log(1e12)
    return float(optimize.minimize_scalar(value, bounds=ends, method="bounded", options={"xatol": 1e-9}).fun)


def mu_for(epsilon: float, delta: float) -> float:
    """The largest mu whose mu-GDP implies (epsilon, delta)-DP. Reference: Balle and Wang 2018, Theorem 8."""
    return GaussianLoss.calibrate(positive("epsilon", epsilon), delta).mu
