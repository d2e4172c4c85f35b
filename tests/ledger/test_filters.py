"""The filters: prices rounded up, caps rounded down, and the guarantee they stand for, computed."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import optimize

import shapedp as sdp
from shapedp.ledger import Charge, SpendRefusedError, make_filter
from shapedp.ledger.charges import gaussian_mu, pure_epsilon, split
from shapedp.ledger.filters import FILTERS, filter_from_json
from shapedp.ledger.fixed import BITS, NEVER, units_down, units_up
from shapedp.privacy.losses import GaussianLoss, LaplaceLoss, Loss


class Priced:
    """A mechanism that is only its loss and its claim."""

    def __init__(self, loss: Loss, epsilon: float = 1.0, delta: float = 1e-6) -> None:
        self.loss = loss
        self.certificate = sdp.certify(loss, epsilon=epsilon, delta=delta)


LOSSES = {
    "gaussian": GaussianLoss(0.01),
    "laplace": LaplaceLoss(0.05),
    "gaussian, shifted": GaussianLoss(0.01).shift(0.001),
    "gaussian, failing": GaussianLoss(0.01).with_failure(1e-12),
    "laplace, inexact sampler": LaplaceLoss(0.05).with_failure(1e-12, total_variation=1e-13),
}
CAPS = {rule: make_filter(epsilon=1.0, delta=1e-6, rule=rule, failure_share=0.01) for rule in FILTERS}


PRICED = [pair for pair in itertools.product(FILTERS, LOSSES) if pair != ("gaussian", "gaussian, shifted")]


@pytest.mark.parametrize(("rule", "name"), PRICED)
def test_count_is_that_many_copies(rule: str, name: str) -> None:
    """And totals do not depend on the order of the spends."""
    charge = CAPS[rule].charge(Priced(LOSSES[name]))
    one_by_one = Charge((0,) * len(charge.amounts))
    for _ in range(7):
        one_by_one = one_by_one.plus(charge)
    assert charge.times(7) == one_by_one
    other = CAPS[rule].charge(Priced(LOSSES["laplace"]))
    sums = {
        tuple(Charge((0,) * len(charge.amounts)).plus(a).plus(b).plus(c).amounts)
        for a, b, c in itertools.permutations([charge, other, charge.times(3)])
    }
    assert len(sums) == 1


@pytest.mark.parametrize("rule", FILTERS)
def test_json_restores_an_equal_filter(rule: str) -> None:
    assert filter_from_json(CAPS[rule].to_json()) == CAPS[rule]


def test_rounding_is_outward() -> None:
    third = Fraction(1, 3)
    assert Fraction(units_up(third), 1 << BITS) > third > Fraction(units_down(third), 1 << BITS)
    assert units_up(5e-324) == 1
    assert units_up(math.inf) == NEVER


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (8.0, 1e-5), (30.0, 1e-12)])
def test_gaussian_cap_is_what_the_loss_certifies(epsilon: float, delta: float) -> None:
    """A total right at the capacity still meets (epsilon, delta)."""
    cap = make_filter(epsilon=epsilon, delta=delta, rule="gaussian")
    mu = math.sqrt(cap.capacities[0] / (1 << BITS))
    assert GaussianLoss(mu * (1 - 1e-15)).delta(epsilon).upper <= delta
    assert GaussianLoss(mu * (1 + 1e-9)).delta(epsilon).lower > delta * (1 - 1e-6)


def test_one_release_of_the_whole_cap_fits() -> None:
    for epsilon, delta in [(1.0, 1e-6), (0.3, 1e-8), (5.0, 1e-5)]:
        mechanism = sdp.calibrate("gaussian", sdp.Box([1.0, 0.3]), epsilon=epsilon, delta=delta)
        for rule in ("either", "gaussian", "basic"):
            cap = make_filter(epsilon=epsilon, delta=delta, rule=rule)
            assert cap.affords(Charge((0,) * len(cap.capacities)), cap.charge(mechanism)) == 1


@pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 0.05, 1.0, 5.0, 40.0, 300.0])
def test_pure_loss_is_gaussian_dp(epsilon: float) -> None:
    """mu covers the exact 2 Phi^-1(e^eps/(1+e^eps)), and its profile covers randomised response everywhere."""
    with mpmath.workdps(60):
        tail = 1 / (1 + mpmath.exp(epsilon))
        exact = mpmath.findroot(
            lambda m: mpmath.log(mpmath.erfc(m / 2 / mpmath.sqrt(2)) / 2) - mpmath.log(tail),
            mpmath.mpf(min(1.2533 * epsilon, math.sqrt(8 * epsilon))),
        )
    mu = gaussian_mu(LaplaceLoss(epsilon).pieces())
    assert exact <= mu <= exact * (1 + 1e-11) + 2.0**-44
    for e in np.linspace(0.0, epsilon, 9):
        worst = -math.expm1(e - epsilon) / (1 + math.exp(-epsilon))
        assert GaussianLoss(mu).delta(float(e)).upper >= worst * (1 - 1e-9)


def test_renyi_filter_never_passes_the_cap() -> None:
    """As many equal Gaussian spends as fit, at each single order and on the grid: the exact delta is met."""
    for epsilon, delta in [(1.0, 1e-6), (4.0, 1e-9)]:
        for orders in (None, [20.0], [30.0], [10.0, 100.0]):
            cap = make_filter(epsilon=epsilon, delta=delta, rule="renyi", orders=orders)
            charge = cap.charge(Priced(GaussianLoss(0.003)))
            fits = cap.affords(Charge((0,) * len(cap.capacities)), charge)
            assert fits is not None
            assert GaussianLoss(0.003 * math.sqrt(fits)).delta(epsilon).upper <= delta
            assert cap.admits(charge.times(fits))
            assert not cap.admits(charge.times(fits + 1))


def test_more_orders_cost_their_share_of_delta() -> None:
    """One order of a grid of m may use delta/m: the union bound that an adaptive choice of order needs."""
    one = make_filter(epsilon=1.0, delta=1e-6, rule="renyi", orders=[30.0])
    many = make_filter(epsilon=1.0, delta=1e-6, rule="renyi", orders=[30.0, 40.0, 50.0, 60.0])
    lost = (one.capacities[0] - many.capacities[0]) / (1 << BITS)
    assert lost == pytest.approx(math.log(4) / 29, rel=1e-6)


def adaptive_delta(capacities: dict[float, float], epsilon: float) -> float:
    """The exact delta of an analyst who asks a randomised response, then spends all that one order has left.

    Which order depends on the answer. What is asked then has loss x with probability s, chosen so that its
    Renyi divergence at that order is exactly what is left and the conversion to delta is nearly tight.
    """
    p, q = np.array([0.6, 0.4]), np.array([0.4, 0.6])
    total = 0.0
    for answer, order in enumerate(sorted(capacities, reverse=True)):
        loss = math.log(p[answer] / q[answer])
        spent = math.log(float(p @ (p / q) ** (order - 1))) / (order - 1)
        left, target = capacities[order] - spent, epsilon - loss
        x = target + math.log(order / (order - 1))

        def excess(s: float, x: float = x, order: float = order, left: float = left) -> float:
            rest = (1 - s) ** order * (1 - s * math.exp(-x)) ** (1 - order)
            return s * math.exp((order - 1) * x) + rest - math.exp((order - 1) * left)

        s = optimize.brentq(excess, 0.0, 1.0, xtol=1e-300, rtol=1e-14)
        total += p[answer] * s * -math.expm1(target - x)
    return float(total)


def test_an_adaptive_order_needs_the_union_bound() -> None:
    """Admitting while some order fits, each at the full delta, is not a valid filter: delta is exceeded."""
    epsilon, delta, orders = 10.0, 1e-3, (2.0, 20.0)
    single = [make_filter(epsilon=epsilon, delta=delta, rule="renyi", orders=[order]) for order in orders]
    naive = {cap.orders[0]: cap.capacities[0] / (1 << BITS) for cap in single}
    assert adaptive_delta(naive, epsilon) > 1.2 * delta
    cap = make_filter(epsilon=epsilon, delta=delta, rule="renyi", orders=orders)
    kept = {order: capacity / (1 << BITS) for order, capacity in zip(cap.orders, cap.capacities, strict=True)}
    assert adaptive_delta(kept, epsilon) <= delta


def test_basic_filter_prices() -> None:
    cap = CAPS["basic"]
    assert cap.charge(Priced(LaplaceLoss(0.05))) == Charge((units_up(0.05),))
    assert cap.charge(Priced(GaussianLoss(0.01))) == Charge((units_up(1.0),), units_up(1e-6))
    pure = make_filter(epsilon=1.0, delta=0.0)
    assert pure.rule == "basic"
    assert pure.affords(Charge((0,)), pure.charge(Priced(LaplaceLoss(0.125)))) == 8
    with pytest.raises(SpendRefusedError, match="no finite epsilon"):
        pure.charge(Priced(GaussianLoss(0.01)))


def test_failures_are_charged_to_their_share() -> None:
    core, failure, variation = split(GaussianLoss(0.1).with_failure(1e-9, total_variation=1e-10))
    assert (core, failure, variation) == (GaussianLoss(0.1).pieces(), Fraction(1e-9), Fraction(1e-10))
    cap = make_filter(epsilon=1.0, delta=1e-6, rule="gaussian", failure_share=0.1)
    charge = cap.charge(Priced(GaussianLoss(0.001).with_failure(1e-9, total_variation=1e-10)))
    assert charge.failure / (1 << BITS) == pytest.approx(1e-9 + (1 + math.e) * 1e-10)
    assert cap.affords(Charge((0,)), charge) == int(1e-7 / (1e-9 + (1 + math.e) * 1e-10))
    with pytest.raises(SpendRefusedError, match="failure_share"):
        make_filter(epsilon=1.0, delta=1e-6, rule="gaussian").charge(Priced(GaussianLoss(0.001).with_failure(1e-9)))


def test_a_shift_multiplies_inner_failures() -> None:
    _, failure, _ = split(GaussianLoss(0.1).with_failure(1e-9).shift(0.5))
    assert failure >= Fraction(1e-9) * Fraction(math.exp(0.5))
    assert pure_epsilon(LaplaceLoss(0.5).shift(0.25)) >= 0.75
    assert pure_epsilon(GaussianLoss(0.1)) == math.inf


class Curveless(Loss):
    """A loss without a Renyi curve."""

    def profile(self, epsilon: np.ndarray, *, reverse: bool = False) -> tuple[np.ndarray, np.ndarray]:
        return np.full_like(epsilon, 0.0), np.full_like(epsilon, 1e-9)


@pytest.mark.parametrize(("rule", "reason"), [("gaussian", "neither"), ("renyi", "no Renyi curve")])
def test_a_loss_without_a_price_is_refused(rule: str, reason: str) -> None:
    with pytest.raises(SpendRefusedError, match="neither"):
        CAPS["gaussian"].charge(Priced(LOSSES["gaussian, shifted"]))
    with pytest.raises(SpendRefusedError, match=reason):
        CAPS[rule].charge(Priced(Curveless()))
    assert CAPS["basic"].charge(Priced(Curveless())).failure == units_up(1e-6)


@pytest.mark.parametrize(
    ("options", "error", "word"),
    [
        ({"epsilon": 0.0}, ValueError, "epsilon"),
        ({"epsilon": -1.0}, ValueError, "epsilon"),
        ({"epsilon": math.nan}, ValueError, "epsilon"),
        ({"epsilon": math.inf}, ValueError, "epsilon"),
        ({"epsilon": "1"}, TypeError, "epsilon"),
        ({"epsilon": True}, TypeError, "epsilon"),
        ({"delta": -1e-6}, ValueError, "delta"),
        ({"delta": 1.0}, ValueError, "delta"),
        ({"delta": math.nan}, ValueError, "delta"),
        ({"delta": None}, TypeError, "delta"),
        ({"delta": 0.0, "rule": "gaussian"}, ValueError, "basic"),
        ({"delta": 0.0, "rule": "renyi"}, ValueError, "basic"),
        ({"rule": "pld"}, ValueError, "rule"),
        ({"rule": "renyi", "orders": []}, ValueError, "orders"),
        ({"rule": "renyi", "orders": [1.0]}, ValueError, "orders"),
        ({"rule": "renyi", "orders": [math.nan]}, ValueError, "orders"),
        ({"rule": "renyi", "orders": [1.5]}, ValueError, "orders"),
        ({"rule": "gaussian", "orders": [8.0]}, ValueError, "orders"),
        ({"failure_share": 1.0}, ValueError, "failure_share"),
        ({"failure_share": -0.1}, ValueError, "failure_share"),
    ],
)
def test_bad_caps(options: dict[str, object], error: type[Exception], word: str) -> None:
    with pytest.raises(error, match=word):
        make_filter(**{"epsilon": 1.0, "delta": 1e-6, **options})
