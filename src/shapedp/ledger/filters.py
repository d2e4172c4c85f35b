"""Privacy filters: rules that stop adaptively chosen spends in time. A dataset keeps one, frozen."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from shapedp.boundary.refusals import refusal
from shapedp.boundary.values import plain
from shapedp.ledger.charges import gaussian_mu, pure_epsilon, renyi_curve, split
from shapedp.ledger.errors import SpendRefusedError
from shapedp.ledger.fixed import NEVER, Charge, as_float, units_down, units_up
from shapedp.mechanisms import Mechanism
from shapedp.numerics.checks import one_of, positive, probability
from shapedp.numerics.outward import BELOW_8, ROUNDINGS_128
from shapedp.privacy.losses import GaussianLoss

_EXP_LIMIT = 700.0
_ORDER_FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True)
class Filter(ABC):
    """A cap (epsilon, delta) and the totals that may not pass it.

    Guarantee: whatever an analyst chooses from earlier answers, as long as every spend was admitted the whole
    interaction is (epsilon, delta)-DP. Concurrent spends included: a mechanism is fixed when it is reserved,
    so the order of the reservations is an adaptive sequence (Haney et al. 2023 prove the interactive case).

    Parameters
    ----------
    epsilon, delta
        The cap.
    failure_share
        The part of delta kept for events on which nothing is promised.
    capacities, failure_capacity
        What the totals may not pass, in units of 2^-192. `make_filter` computes them from the cap.
    orders
        The Renyi orders, one per capacity, where the rule has any.

    Examples
    --------
    >>> budget = make_filter(epsilon=1.0, delta=1e-6)
    >>> isinstance(budget, Filter), budget.rule
    (True, 'either')
    """

    rule: ClassVar[str]
    epsilon: float
    delta: float
    failure_share: float
    capacities: tuple[int, ...]
    failure_capacity: int
    orders: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        plain(self)

    @classmethod
    def build(cls, epsilon: float, delta: float, failure_share: float, orders: Iterable[float] | None) -> Filter:
        """The filter of a cap, its capacities rounded down."""
        cap = positive("epsilon", epsilon), probability("delta", delta)
        return cls._built(*cap, probability("failure_share", failure_share), orders)

    @classmethod
    @abstractmethod
    def _built(cls, epsilon: float, delta: float, failure_share: float, orders: Iterable[float] | None) -> Filter:
        """What `build` returns, of numbers that were checked."""

    @abstractmethod
    def charge(self, mechanism: Mechanism) -> Charge:
        """What one release costs, rounded up. Raises SpendRefusedError where it has no price here."""

    def admits(self, totals: Charge) -> bool:
        """Whether these totals are within the cap: some line is, and the failure probability is."""
        lines = zip(totals.amounts, self.capacities, strict=True)
        return totals.failure <= self.failure_capacity and any(total <= cap for total, cap in lines)

    def affords(self, totals: Charge, charge: Charge) -> int | None:
        """How many more such charges are admitted; None where they cost nothing."""
        lines = zip(totals.amounts, charge.amounts, self.capacities, strict=True)
        failures = _room(totals.failure, charge.failure, self.failure_capacity)
        most = min(max(_room(*line) for line in lines), failures)
        return None if most == math.inf else int(most)

    def spent(self, totals: Charge) -> float:
        """The share of the cap that is used, rounded for showing."""
        lines = [as_float(t) / as_float(c) for t, c in zip(totals.amounts, self.capacities, strict=True) if c > 0]
        failure = as_float(totals.failure) / as_float(self.failure_capacity) if self.failure_capacity else 0.0
        return max(min(lines), failure)

    @abstractmethod
    def describe(self, totals: Charge) -> dict[str, Any]:
        """Totals and capacities in the filter's own currency, as floats."""

    def _failures(self, totals: Charge) -> dict[str, float]:
        return {"failure": as_float(totals.failure), "failure_cap": as_float(self.failure_capacity)}

    def to_json(self) -> dict[str, Any]:
        """The frozen filter; `filter_from_json` restores an equal one, whatever the defaults are by then."""
        kept = {"capacities": [str(c) for c in self.capacities], "failure_capacity": str(self.failure_capacity)}
        return {**vars(self), "rule": self.rule, "orders": list(self.orders), **kept}

    def _failure(self, failure: Fraction, variation: Fraction) -> int:
        """A sampler's total variation costs 1 + e^epsilon times its size at the cap's epsilon: the whole
        interaction with the true law is within the sum of the variations of the one that was accounted."""
        if (failure or variation) and not self.failure_capacity:
            raise SpendRefusedError(refusal("ledger", "failure-not-kept", rule=self.rule))
        if variation and self.epsilon > _EXP_LIMIT:
            return units_up(math.inf)
        factor = Fraction(math.exp(self.epsilon)) * (1 + Fraction(1, 2**50)) + 1 if variation else 0
        return units_up(failure + factor * variation)


@dataclass(frozen=True)
class GaussianFilter(Filter):
    """The sum of mu^2 stays at most that of the cap.

    Guarantee: mu_i-GDP spends with sum mu_i^2 <= mu^2 are together mu-GDP, mu_i chosen adaptively; mu is the
    largest that meets (epsilon, (1 - failure_share) delta).
    Reference: Smith and Thakurta 2022; Koskela, Tobaben and Honkela 2023 (fully adaptive Gaussian DP).

    Examples
    --------
    >>> import shapedp as sdp
    >>> mechanism = sdp.calibrate("gaussian", sdp.L2(1.0, dim=1), epsilon=0.1, delta=1e-7)
    >>> budget = make_filter(epsilon=1.0, delta=1e-6, rule="gaussian")
    >>> budget.affords(Charge((0,)), budget.charge(mechanism))
    95
    """

    rule: ClassVar[str] = "gaussian"

    @classmethod
    def _built(cls, epsilon: float, delta: float, failure_share: float, orders: Iterable[float] | None) -> Filter:
        kept, failure = _shares(delta, failure_share)
        mu = GaussianLoss.calibrate(epsilon, kept).mu
        return cls(epsilon, delta, failure_share, (units_down(Fraction(mu) ** 2),), failure)

    def charge(self, mechanism: Mechanism) -> Charge:
        core, failure, variation = split(mechanism.loss)
        return Charge((units_up(Fraction(gaussian_mu(core)) ** 2),), self._failure(failure, variation))

    def describe(self, totals: Charge) -> dict[str, Any]:
        mu, cap = (math.sqrt(as_float(amount)) for amount in (*totals.amounts, *self.capacities))
        return {"mu": mu, "mu_cap": cap, **self._failures(totals)}


@dataclass(frozen=True)
class RenyiFilter(Filter):
    """At one order at least, the sum of Renyi divergences stays at most what that order allows.

    Guarantee: orders a_1..a_m are fixed at creation; spends are admitted while total(a) <= B(a) at some a,
    B(a) = epsilon + log(a delta/m)/(a - 1) - log(1 - 1/a). For one order this is the Renyi filter followed by
    the improved conversion. For several, the order left at the end depends on the answers, so "some order" is
    not a valid filter at the full delta of each; every order is given delta/m: exp((a-1)(L - total(a))) is a
    supermartingale under P, and (1 - e^(epsilon-L))_+ <= c(a) e^((a-1)(L-epsilon)) with
    c(a) = (1 - 1/a)^(a-1)/a, so the transcripts that end at order a contribute at most delta/m.
    Reference: Feldman and Zrnic 2021, Theorem 3.1; Lecuyer 2021; Canonne, Kamath and Steinke 2020,
    Proposition 12 (conversion).

    Examples
    --------
    >>> import shapedp as sdp
    >>> mechanism = sdp.calibrate("gaussian", sdp.L2(1.0, dim=1), epsilon=0.1, delta=1e-7)
    >>> budget = make_filter(epsilon=1.0, delta=1e-6, rule="renyi", orders=[20, 40])
    >>> budget.affords(Charge((0, 0)), budget.charge(mechanism))
    76
    """

    rule: ClassVar[str] = "renyi"

    @classmethod
    def _built(cls, epsilon: float, delta: float, failure_share: float, orders: Iterable[float] | None) -> Filter:
        kept, failure = _shares(delta, failure_share)
        grid = _default_orders(epsilon, kept) if orders is None else _checked_orders(orders)
        caps = tuple(_renyi_capacity(order, epsilon, kept / len(grid) * BELOW_8) for order in grid)
        if max(caps) <= 0:
            raise ValueError(refusal("ledger", "orders-leave-no-room", epsilon=epsilon, delta=delta, orders=grid))
        return cls(epsilon, delta, failure_share, tuple(units_down(c) for c in caps), failure, grid)

    def charge(self, mechanism: Mechanism) -> Charge:
        core, failure, variation = split(mechanism.loss)
        curve = renyi_curve(core, self.orders)
        return Charge(tuple(units_up(value) for value in curve), self._failure(failure, variation))

    def describe(self, totals: Charge) -> dict[str, Any]:
        used, caps = (list(map(as_float, amounts)) for amounts in (totals.amounts, self.capacities))
        return {"orders": list(self.orders), "renyi": used, "renyi_cap": caps, **self._failures(totals)}


@dataclass(frozen=True)
class BasicFilter(Filter):
    """The sums of epsilon and of delta stay at most the cap's.

    A pure loss costs its epsilon; any other costs the (epsilon, delta) its certificate proves.
    Guarantee: basic composition holds when the parameters are chosen adaptively.
    Reference: Rogers, Roth, Ullman and Vadhan 2016, section 3; Whitehouse et al. 2023.

    Examples
    --------
    >>> import shapedp as sdp
    >>> mechanism = sdp.calibrate("gaussian", sdp.L2(1.0, dim=1), epsilon=0.1, delta=1e-7)
    >>> budget = make_filter(epsilon=1.0, delta=1e-6, rule="basic")
    >>> budget.affords(Charge((0,)), budget.charge(mechanism))
    9
    """

    rule: ClassVar[str] = "basic"

    @classmethod
    def _built(cls, epsilon: float, delta: float, failure_share: float, orders: Iterable[float] | None) -> Filter:
        return cls(epsilon, delta, failure_share, (units_down(epsilon),), units_down(delta))

    def charge(self, mechanism: Mechanism) -> Charge:
        claim = mechanism.certificate
        pure = min(pure_epsilon(mechanism.loss), math.inf if claim.delta else float(claim.epsilon))
        if pure <= claim.epsilon or (self.delta == 0 and pure < math.inf):
            return Charge((units_up(pure),))
        if self.delta == 0:
            raise SpendRefusedError(refusal("ledger", "pure-cap", kind=type(mechanism.loss).__name__))
        return Charge((units_up(float(claim.epsilon)),), units_up(float(claim.delta)))

    def describe(self, totals: Charge) -> dict[str, Any]:
        epsilon, delta = as_float(totals.amounts[0]), as_float(totals.failure)
        return {"epsilon": epsilon, "epsilon_cap": self.epsilon, "delta": delta, "delta_cap": self.delta}


@dataclass(frozen=True)
class EitherFilter(Filter):
    """Spends are admitted while plain addition, or the Gaussian rule, or the first spend alone is within the cap.

    Half of delta is for the sum of deltas of plain addition, the rest for the Gaussian rule and failures.
    Guarantee: let T be the whole interaction, and T_r the same interaction stopped before rule r is exceeded. T_r is
    (epsilon, delta_r)-DP by rule r for adaptive spends. Totals only grow, so a transcript of T that ends within rule r
    is a transcript of T_r too, with the same probabilities. Its part of the integral of (P - e^epsilon Q)_+ is at most
    delta_r; every transcript ends within one of the rules, and the shares of delta add up to delta. A first spend that
    only its own claim admits is the whole interaction: nothing is admitted after it.
    Reference: as `BasicFilter` and `GaussianFilter`.

    Examples
    --------
    >>> import shapedp as sdp
    >>> pure = sdp.calibrate("laplace", sdp.L1(1.0, dim=1), epsilon=0.5, delta=0.0)
    >>> budget = make_filter(epsilon=2.0, delta=1e-6)
    >>> budget.affords(Charge((0,) * 5), budget.charge(pure))
    4
    """

    rule: ClassVar[str] = "either"

    @classmethod
    def _built(cls, epsilon: float, delta: float, failure_share: float, orders: Iterable[float] | None) -> Filter:
        half = delta / 2
        gaussian = GaussianFilter.build(epsilon, half, failure_share, None)
        caps = (units_down(epsilon), units_down(half), *gaussian.capacities, gaussian.failure_capacity, 1)
        return cls(epsilon, delta, failure_share, caps, gaussian.failure_capacity)

    def charge(self, mechanism: Mechanism) -> Charge:
        """Costs by each rule; above every capacity where a rule has none. Refused where no rule has one."""
        parts: list[tuple[int, ...]] = []
        refused: SpendRefusedError | None = None
        basic = BasicFilter(self.epsilon, self.delta, 0.0, (), 0)
        gaussian = GaussianFilter(self.epsilon, self.delta, self.failure_share, (), self.failure_capacity)
        for part in (basic, gaussian):
            try:
                own = part.charge(mechanism)
                parts.append((*own.amounts, own.failure))
            except SpendRefusedError as reason:
                refused = reason
                parts.append((NEVER, NEVER))
        claim = mechanism.certificate
        alone = 1 if claim.epsilon <= self.epsilon and claim.delta <= self.delta else NEVER
        if refused is not None and all(part[0] == NEVER for part in parts) and alone == NEVER:
            raise refused
        return Charge((*parts[0], *parts[1], alone))

    def _lines(self, *amounts: tuple[int, ...]) -> list[list[tuple[int, ...]]]:
        """What each rule counts, beside its capacities: plain addition, the Gaussian rule, one spend alone."""
        columns = list(zip(*amounts, self.capacities, strict=True))
        return [columns[:2], columns[2:4], columns[4:]]

    def admits(self, totals: Charge) -> bool:
        return any(all(total <= cap for total, cap in line) for line in self._lines(totals.amounts))

    def affords(self, totals: Charge, charge: Charge) -> int | None:
        most = max(min(_room(*column) for column in line) for line in self._lines(totals.amounts, charge.amounts))
        return None if most == math.inf else int(most)

    def spent(self, totals: Charge) -> float:
        def share(total: int, cap: int) -> float:
            return as_float(total) / as_float(cap) if cap else math.inf if total else 0.0

        found = min(max(share(*column) for column in line) for line in self._lines(totals.amounts)[:2])
        return min(found, 1.0) if self.admits(totals) else found

    def describe(self, totals: Charge) -> dict[str, Any]:
        used, caps = (list(map(as_float, amounts)) for amounts in (totals.amounts, self.capacities))
        plain = {"epsilon": used[0], "epsilon_cap": caps[0], "delta": used[1], "delta_cap": caps[1]}
        mu = {"mu": math.sqrt(used[2]), "mu_cap": math.sqrt(caps[2])}
        return {**plain, **mu, "failure": used[3], "failure_cap": caps[3]}


FILTERS: dict[str, type[Filter]] = {f.rule: f for f in (EitherFilter, GaussianFilter, RenyiFilter, BasicFilter)}


def make_filter(
    *,
    epsilon: float,
    delta: float,
    rule: str | None = None,
    orders: Iterable[float] | None = None,
    failure_share: float = 0.0,
) -> Filter:
    """The filter of a cap.

    Parameters
    ----------
    epsilon, delta
        The cap.
    rule
        "either", "gaussian", "renyi" or "basic"; None: "either", and "basic" for a pure cap (delta = 0).
    orders
        The Renyi orders of the rule "renyi"; None: five around the best one for many small Gaussian spends.
    failure_share
        The part of delta kept for events on which nothing is promised.

    Returns
    -------
    Filter
        Its capacities are rounded down.

    Examples
    --------
    >>> make_filter(epsilon=1.0, delta=0.0).rule
    'basic'
    """
    epsilon, delta = positive("epsilon", epsilon), probability("delta", delta)
    failure_share = probability("failure_share", failure_share)
    chosen = one_of("rule", rule, (*FILTERS, None)) or ("either" if delta else "basic")
    if orders is not None and chosen != "renyi":
        raise ValueError(f"orders belong to rule='renyi', not to rule={chosen!r}")
    if delta == 0 and chosen != "basic":
        raise ValueError(f"delta must be > 0 for rule={chosen!r}; a pure cap (delta=0.0) needs rule='basic'")
    return FILTERS[chosen].build(epsilon, delta, failure_share, orders)


def filter_from_json(data: dict[str, Any]) -> Filter:
    """The filter that `to_json` wrote."""
    epsilon, delta, share = (float(data[name]) for name in ("epsilon", "delta", "failure_share"))
    capacities, orders = tuple(map(int, data["capacities"])), tuple(map(float, data["orders"]))
    return FILTERS[data["rule"]](epsilon, delta, share, capacities, int(data["failure_capacity"]), orders)


def _room(total: int, cost: int, cap: int) -> float:
    """How often a cost still fits under a capacity."""
    if total > cap:
        return 0
    return (cap - total) // cost if cost else math.inf


def _shares(delta: float, failure_share: float) -> tuple[float, int]:
    """What the currency may use of delta, and what failures may, together at most delta."""
    delta, failure_share = probability("delta", delta), probability("failure_share", failure_share)
    kept = math.nextafter(delta * (1 - failure_share), 0.0) if failure_share else delta
    return kept, max(units_down(Fraction(delta) - Fraction(kept)), 0)


def _renyi_capacity(order: float, epsilon: float, delta: float) -> float:
    first, second = math.log(order * delta) / (order - 1), math.log1p(-1 / order)
    return epsilon + first - second - ROUNDINGS_128 * (epsilon + abs(first) + abs(second))


def _default_orders(epsilon: float, delta: float) -> tuple[float, ...]:
    """Five orders around 1 + 2 log(1/delta)/epsilon, the best one for many small Gaussian spends."""
    if delta == 0:
        raise ValueError("delta must be > 0 for rule='renyi': a Renyi divergence bounds no delta of 0")
    centre = 2 * math.log(1 / delta) / epsilon
    orders = tuple(1 + float(f"{factor * centre:.3g}") for factor in _ORDER_FACTORS)
    if not 1 < min(orders) <= max(orders) < math.inf:
        raise ValueError(f"epsilon={epsilon!r} is too extreme for rule='renyi': use rule='gaussian' or 'basic'")
    return orders


def _checked_orders(orders: Iterable[float]) -> tuple[float, ...]:
    grid = tuple(sorted({positive("orders", order) for order in orders}))
    if not grid or not grid[0] > 1:
        raise ValueError(f"orders must be one or more numbers > 1, got {orders!r}")
    return grid
