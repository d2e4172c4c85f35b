"""Other accountants behind one interface: (item, count) pairs in, epsilon at delta out, as an upper bound."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from shapedp.accounting.bare import BareLoss
from shapedp.accounting.compose import common_adjacency, compose, counted, loss_from
from shapedp.accounting.subsample import SubsampledLoss
from shapedp.boundary.values import plain
from shapedp.numerics.checks import count, nonnegative, positive, probability
from shapedp.numerics.outward import ABOVE_128, BELOW_8192, ROUNDINGS_8192
from shapedp.privacy import GaussianLoss, Loss
from shapedp.privacy.conversions import ORDERS, rdp_curve_to_epsilon, zcdp_to_dp

_TERMS = 1_000_000  # of a sum

FEWER_ORDERS = tuple(alpha for alpha in ORDERS if 1.01 < alpha <= 512)


@dataclass(frozen=True)
class Answer:
    """An epsilon at a delta, who computed it, and whether it may certify a claim.

    Example:
        >>> Answer(1.0, 1e-6, "pld", True).certifies
        True
    """

    epsilon: float
    delta: float
    accountant: str
    certifies: bool

    def __post_init__(self) -> None:
        plain(self)


class Accountant(ABC):
    """Turns parts with counts into an epsilon.

    Guarantee: where `certifies` is true the epsilon is at least the exact one.

    Example:
        >>> from shapedp import GaussianLoss
        >>> from shapedp.accounting import ACCOUNTANTS
        >>> round(ACCOUNTANTS["renyi"].answer([(GaussianLoss(0.5), 4)], 1e-6).epsilon, 2)
        5.22
    """

    name: ClassVar[str]
    certifies: ClassVar[bool] = True

    def answer(self, items: Iterable[Any], delta: float) -> Answer:
        """Epsilon of the composition of losses, mechanisms or (either, count) pairs at delta."""
        pairs = [counted(item) for item in items]
        if not pairs:
            raise ValueError("nothing to account for: give at least one loss or mechanism")
        common_adjacency(item for item, _ in pairs)
        parts = [(loss_from(item), n) for item, n in pairs]
        return Answer(self.epsilon(parts, probability("delta", delta)), delta, self.name, self.certifies)

    @abstractmethod
    def epsilon(self, parts: list[tuple[Loss, int]], delta: float) -> float:
        """Epsilon at delta of checked parts."""


class Exact(Accountant):
    """The privacy-loss distribution itself: the upper end of `compose`."""

    name = "pld"

    def epsilon(self, parts: list[tuple[Loss, int]], delta: float) -> float:
        return compose(parts).epsilon(delta).upper


class Renyi(Accountant):
    """Renyi divergences add up; the improved conversion. Reference: Mironov 2017; Canonne, Kamath and Steinke 2020."""

    name = "renyi"

    def epsilon(self, parts: list[tuple[Loss, int]], delta: float) -> float:
        sampled = any(isinstance(loss, SubsampledLoss) for loss, _ in parts)

        def curve(alpha: float) -> float:
            return math.fsum(n * loss.renyi(alpha).upper for loss, n in parts) * ABOVE_128

        return rdp_curve_to_epsilon(curve, delta, FEWER_ORDERS if sampled else ORDERS)


class ZCDP(Accountant):
    """rho adds up: mu^2/2 for Gaussians, eps^2/2 for pure DP. Reference: Bun and Steinke 2016, Lemma 1.7."""

    name = "zcdp"

    def epsilon(self, parts: list[tuple[Loss, int]], delta: float) -> float:
        return zcdp_to_dp(math.fsum(n * _rho(loss) for loss, n in parts) * ABOVE_128, delta)


def _rho(loss: Loss) -> float:
    if isinstance(loss, GaussianLoss):
        return loss.mu**2 / 2 * ABOVE_128
    pure = loss.epsilon(0.0).upper
    if not math.isfinite(pure):
        raise ValueError(f"{type(loss).__name__} has no known rho: zCDP is kept for Gaussian and pure losses")
    return pure**2 / 2 * ABOVE_128


@dataclass(frozen=True)
class TCDP(Accountant):
    """Truncated concentrated DP: R(alpha) <= rho alpha for alpha < omega, rho read off the losses' own curves.

    Reference: Bun, Dwork, Rothblum and Steinke 2018, Definition 1 and Lemma 6 (here with the improved conversion).
    """

    omega: float = 64.0
    name: ClassVar[str] = "tcdp"

    def epsilon(self, parts: list[tuple[Loss, int]], delta: float) -> float:
        orders = [alpha for alpha in FEWER_ORDERS if alpha < positive("omega", self.omega)]
        if not orders:
            raise ValueError(f"omega must exceed {FEWER_ORDERS[0]}, got {self.omega!r}")

        # Between the orders R is at most its value at the next one: the ratio is taken against the one before.
        def rho(loss: Loss) -> float:
            ends = [loss.renyi(alpha).upper for alpha in orders]
            return max(end / before for end, before in zip(ends, [1.0, *orders[:-1]], strict=True))

        total = math.fsum(n * rho(loss) for loss, n in parts) * ABOVE_128
        return rdp_curve_to_epsilon(lambda alpha: total * alpha, delta, orders)


class GDP(Accountant):
    """Gaussian losses: mu^2 adds up, exact. Reference: Dong, Roth and Su 2022, Corollary 3.3."""

    name = "gdp"

    def epsilon(self, parts: list[tuple[Loss, int]], delta: float) -> float:
        if not all(isinstance(loss, GaussianLoss) for loss, _ in parts):
            raise ValueError("mu-GDP is exact for Gaussian losses only: use 'pld', or 'clt' for an approximation")
        return compose(parts).epsilon(delta).upper


class CLT(Accountant):
    """mu = rate sqrt(T (e^(mu_0^2) - 1)) for subsampled Gaussians: an approximation that can under-report.

    Reference: Bu, Dong, Long and Su 2020, Corollary 4. Never certifies.
    """

    name = "clt"
    certifies = False

    def epsilon(self, parts: list[tuple[Loss, int]], delta: float) -> float:
        total = 0.0
        for loss, n in parts:
            rate, base = (loss.rate, loss.base) if isinstance(loss, SubsampledLoss) else (1.0, loss)
            if not isinstance(base, GaussianLoss):
                raise ValueError("the central limit approximation is kept for (subsampled) Gaussian losses")
            total += n * (rate * rate * math.expm1(base.mu**2) if rate < 1 else base.mu**2)
        return GaussianLoss(math.sqrt(total)).epsilon(delta).upper


class Basic(Accountant):
    """Epsilons and deltas add up. Reference: Dwork and Roth 2014, Theorem 3.16."""

    name = "basic"

    def epsilon(self, parts: list[tuple[Loss, int]], delta: float) -> float:
        total = sum(n for _, n in parts)
        each = delta / total * BELOW_8192
        return math.fsum(n * loss.epsilon(each).upper for loss, n in parts) * ABOVE_128


class Optimal(Accountant):
    """Kairouz, Oh and Viswanath's optimum over mechanisms of which only (epsilon, delta) is known."""

    name = "kov"

    def epsilon(self, parts: list[tuple[Loss, int]], delta: float) -> float:
        if not all(isinstance(loss, BareLoss) for loss, _ in parts):
            raise ValueError("optimal composition is for bare (epsilon, delta) guarantees: use 'pld' for known losses")
        return compose(parts).epsilon(delta).upper


ACCOUNTANTS: dict[str, Accountant] = {
    kind.name: kind() for kind in (Exact, Renyi, ZCDP, TCDP, GDP, CLT, Basic, Optimal)
}


def optimal_homogeneous(epsilon: float, delta: float, times: int, index: int) -> tuple[float, float]:
    """((T - 2 i) epsilon, delta'): the optimal T-fold composition of (epsilon, delta)-DP, rounded up.

    delta' = 1 - (1 - delta)^T (1 - sum_{l < i} C(T, l) (e^((T-l) eps) - e^((T-2i+l) eps))/(1 + e^eps)^T).
    Reference: Kairouz, Oh and Viswanath 2017, Theorem 3.3.

    Example:
        >>> epsilon, delta = optimal_homogeneous(0.1, 0.0, times=10, index=2)
        >>> round(epsilon, 3), round(delta, 4)
        (0.6, 0.0031)
    """
    epsilon, delta = nonnegative("epsilon", epsilon), probability("delta", delta)
    times, index = count("times", times), count("index", index, least=0, most=_TERMS)
    if 2 * index > times:
        raise ValueError(f"index must be at most times/2 = {times / 2:g}, got {index}")
    norm = times * (epsilon + math.log1p(math.exp(-epsilon)))
    terms = []
    for chosen in range(index):
        log_binomial = math.lgamma(times + 1) - math.lgamma(chosen + 1) - math.lgamma(times - chosen + 1)
        gap = -math.expm1((2 * chosen - 2 * index) * epsilon)
        terms.append(math.exp(log_binomial + (times - chosen) * epsilon - norm) * gap)
    finite = math.fsum(terms) * (1 + ROUNDINGS_8192 * (1 + times * (1 + epsilon)))
    certain = -math.expm1(times * math.log1p(-delta))
    return (times - 2 * index) * epsilon * ABOVE_128, min((certain + (1 - certain) * finite) * ABOVE_128, 1.0)


def he_theorem_3(epsilon: float, delta: float, times: int, constant: float) -> tuple[float, float]:
    """(epsilon', delta') of a T-fold composition as published, for reproduction: it certifies nothing.

    Its delta' can lie below Kairouz, Oh and Viswanath's optimum, which no valid rule can: (0.05, 1e-9) composed 1000
    times gives 9.89e-7 where the optimum is 1.00e-6.

    With E = e^eps, m = ceil(eps'/eps), a = delta/(1 + E) and a free constant 0 < c < 1:
        eps' = T eps tanh(eps/2) + eps sqrt(2 T log(1/c)),
        delta' = 2 - (1 - E a)^m (1 - a)^(T-m) - (1 - a)^T + d'',
        d'' = e^((eps' + T eps)/2) (2 T eps/((1 + E)(T eps - eps')))^T
              ((T eps + eps')/(T eps - eps'))^(-(eps' + T eps)/(2 eps)).
    Reference: He et al. 2021, Theorem 3, as the product-noise paper cites it (two misprints mended).

    Example:
        >>> round(he_theorem_3(0.1, 1e-6, times=10, constant=1e-6)[0], 3)
        1.0
    """
    epsilon, delta, times = positive("epsilon", epsilon), probability("delta", delta), count("times", times)
    constant = positive("constant", constant)
    if not constant < 1:
        raise ValueError(f"constant must be below 1, got {constant!r}")
    total = times * epsilon
    composed = total * math.tanh(epsilon / 2) + epsilon * math.sqrt(2 * times * math.log(1 / constant))
    if composed >= total:
        return total, -math.expm1(times * math.log1p(-delta))  # basic composition is better there
    share = delta / (1 + math.exp(epsilon))
    above = math.ceil(composed / epsilon)
    first = -math.expm1(above * math.log1p(-math.exp(epsilon) * share) + (times - above) * math.log1p(-share))
    second = -math.expm1(times * math.log1p(-share))
    half = (composed + total) / 2
    log_tail = half + times * (math.log(2 * total) - math.log1p(math.exp(epsilon)) - math.log(total - composed))
    log_tail -= half / epsilon * math.log((total + composed) / (total - composed))
    return composed * ABOVE_128, min((first + second + math.exp(min(log_tail, 0.0))) * ABOVE_128, 1.0)
