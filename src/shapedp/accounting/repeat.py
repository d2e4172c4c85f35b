"""The best of a random number of runs: what choosing among hyper-parameters costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cached_property
from typing import Any

import numpy as np

from shapedp.accounting.compose import loss_from
from shapedp.accounting.plan import Plan, Step
from shapedp.boundary.documents import described
from shapedp.boundary.values import plain
from shapedp.mechanisms.certify import KINDS
from shapedp.numerics import last_true
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import probability, real
from shapedp.numerics.outward import ABOVE_8192, ROUNDINGS_8192, WIDE
from shapedp.privacy import Bracket, GaussianLoss, Loss, one_relation
from shapedp.privacy.conversions import ORDERS, rdp_to_delta
from shapedp.privacy.losses.base import adjacency_of, renyi_order, with_sampler_error
from shapedp.sampling import Source

SCHEMA = 1
HATS = tuple(order for order in ORDERS if order < 1000)  # orders of the second term
LEAST_GAMMA = 1e-4
MOST_RUNS = 10**6  # (1 - gamma)^MOST_RUNS is below 2^-140
SAMPLER = 2.0**-100  # what the drawn number of runs may be off its law, in total variation


def expected_runs(gamma: float) -> float:
    """E K = (1/gamma - 1)/log(1/gamma) of the logarithmic law P(K = k) ~ (1 - gamma)^k/k."""
    return (1 / gamma - 1) / math.log(1 / gamma)


def gamma_for(runs: float) -> float:
    """The gamma at which about `runs` runs are expected."""
    mean = real("repeats", runs)
    if not 1 < mean <= 1000:
        raise ValueError(f"repeats must lie in (1, 1000], got {runs!r}")
    return last_true(lambda gamma: expected_runs(gamma) >= mean, LEAST_GAMMA, 1 - 1e-9, relative=ROUNDINGS_8192)


def draw_runs(gamma: float, source: Source) -> int:
    """K by inversion of its distribution function in 60 digits, from 128 uniform bits.

    Guarantee: within `SAMPLER` of the law in total variation; more than 10^6 runs are cut off.
    """
    first, second = (int(word) for word in source.words(2))
    with localcontext() as context:
        context.prec = 60
        uniform = (Decimal(first * 2**64 + second) + Decimal("0.5")) / Decimal(2**128)
        kept = 1 - Decimal(gamma)
        total, power = Decimal(0), 1 / -Decimal(gamma).ln()
        for k in range(1, MOST_RUNS):
            power *= kept
            total += power / k
            if uniform < total:
                return k
    return MOST_RUNS


@dataclass(frozen=True)
class RepeatedLoss(Loss):
    """The best of K runs of a mechanism, K from the logarithmic law with parameter gamma, only the best shown.

    `orders`: those at which a run is known to stay within R; without them it does at every order. `missed`: each run is
    within this total variation of one that does.

    Guarantee: an upper bound; with R the Renyi divergence of one run and any order h >= 1,
    R'(a) <= R(a) + (1 - 1/h) R(h) + log(1/gamma)/h + log(E K)/(a - 1); the lower end is 0. Runs that are off by
    `missed` make all of them together off by E K times that, whatever is shown of them.
    Reference: Papernot and Steinke 2022, Theorem 2 with eta = 0.

    Example:
        >>> from shapedp import GaussianLoss
        >>> round(RepeatedLoss(GaussianLoss(0.1), 0.1).epsilon(1e-6).upper, 2)
        0.67
    """

    run: Loss
    gamma: float
    orders: tuple[float, ...] | None = None
    missed: float = 0.0

    def __post_init__(self) -> None:
        self._inherit([self.run])
        if self.orders is not None:
            object.__setattr__(self, "orders", tuple(map(renyi_order, self.orders)))
        object.__setattr__(self, "missed", probability("missed", self.missed))
        if not LEAST_GAMMA <= real("gamma", self.gamma) < 1:
            raise ValueError(f"gamma must lie in [{LEAST_GAMMA:g}, 1), got {self.gamma!r}")

    @property
    def settled(self) -> bool:  # type: ignore[override]
        return self.run.settled

    @cached_property
    def _extra(self) -> float:
        """The least (1 - 1/h) R(h) + log(1/gamma)/h over a grid of orders h; h = 1 costs log(1/gamma)."""
        whole = math.log(1 / self.gamma)
        hats = HATS if self.orders is None else self.orders
        found = [(1 - 1 / h) * self.run.renyi(h).upper + whole / h for h in hats]
        return min(whole, *found) * ABOVE_8192

    def renyi(self, alpha: float) -> Bracket:
        order = renyi_order(alpha)
        if self.missed or (self.orders is not None and order not in self.orders):
            raise ValueError("the runs are bounded at some orders only, or up to a total variation")
        return self._bound(order)

    def _bound(self, order: float) -> Bracket:
        runs = max(math.log(expected_runs(self.gamma)), 0.0)
        return Bracket(0.0, (self.run.renyi(order).upper + self._extra + runs / (order - 1)) * ABOVE_8192)

    @cached_property
    def _curve(self) -> list[tuple[float, float]]:
        """(order, Renyi divergence from above)."""
        return [(a, self._bound(a).upper) for a in (ORDERS if self.orders is None else self.orders)]

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        at = np.asarray(epsilon, dtype=np.float64)

        def bound(points: Floats) -> Floats:
            found = [min(rdp_to_delta(a, value, float(e)) for a, value in self._curve) for e in points.reshape(-1)]
            return np.array(found).reshape(points.shape)

        off = SAMPLER + self.missed * max(expected_runs(self.gamma), 1.0) * ABOVE_8192
        return np.zeros(at.shape), with_sampler_error(bound, at, off)


@dataclass(frozen=True)
class Repetition:
    """Runs of one subject (a mechanism, a plan's step, a Gaussian loss), the best of K of them shown.

    Guarantee: every run spends at most what `subject` does, in Renyi divergence of every order, or of the `orders`
    named, up to a total variation of `missed`.

    Example:
        >>> from shapedp import GaussianLoss
        >>> search = Repetition(GaussianLoss(0.1), 0.1, "add-remove")
        >>> search.loss.epsilon(1e-6).upper < 3
        True
    """

    subject: Any
    gamma: float
    adjacency: str | None = None
    orders: tuple[float, ...] | None = None
    missed: float = 0.0

    def __post_init__(self) -> None:
        plain(self)
        object.__setattr__(self, "adjacency", one_relation([self.adjacency, adjacency_of(self.subject)]))

    @cached_property
    def loss(self) -> Loss:
        """The loss of all runs together."""
        run = loss_from(self.subject)
        return RepeatedLoss(run, self.gamma, self.orders, self.missed, adjacency=self.adjacency)

    def to_json(self) -> dict[str, Any]:
        """A JSON object from which `from_json` restores an equal repetition."""
        run = Step(self.subject).to_json()
        plain = {"schema": SCHEMA, "kind": "repetition", "run": run, "gamma": self.gamma, "adjacency": self.adjacency}
        plain |= {} if self.orders is None else {"orders": list(self.orders)}
        return plain | ({"missed": self.missed} if self.missed else {})

    @classmethod
    @described
    def from_json(cls, data: Any) -> Repetition:
        """What `to_json` wrote."""
        if not isinstance(data, dict) or data.get("kind") != "repetition" or data.get("schema") != SCHEMA:
            raise ValueError(f"not a repetition of schema {SCHEMA}")
        try:
            plan = Plan.from_json({"schema": 1, "steps": [data["run"]]})
            run = plan.steps[0]
            if (run.sampling_rate, run.count, run.scheme, run.batches) != (1, 1, "poisson", 1):
                raise ValueError("a repetition describes one run that is not sampled")
            orders = data.get("orders")
            if not isinstance(orders, list | None):
                raise ValueError("orders must be a list of numbers above 1")
            named = None if orders is None else tuple(orders)
            return cls(run.subject, data["gamma"], data.get("adjacency"), named, data.get("missed", 0.0))
        except KeyError as missing:
            raise ValueError(f"repetition lacks the field {missing}") from None


KINDS["repetition"] = Repetition  # certificates of searches can be recomputed


def gaussian_run(gamma: float, epsilon: float, delta: float) -> GaussianLoss:
    """The largest mu of one run at which the best of K runs meets (epsilon, delta)."""

    def holds(mu: float) -> bool:
        return RepeatedLoss(GaussianLoss(mu), gamma).delta(epsilon).upper <= delta

    return GaussianLoss(last_true(holds, 1e-9, 1e6, relative=WIDE))


def deciding_orders(run: GaussianLoss, gamma: float, epsilon: float) -> tuple[float, ...]:
    """The two orders at which the bound on the best of K runs is least at epsilon: what a run is at others is free."""
    curve = RepeatedLoss(run, gamma)._curve
    whole = math.log(1 / gamma)
    first = min(curve, key=lambda point: rdp_to_delta(point[0], point[1], epsilon))[0]
    second = min(HATS, key=lambda h: (1 - 1 / h) * run.renyi(h).upper + whole / h)
    return tuple(sorted({first, second}))
