"""A ledger and a composition took a loss apart in two ways: the ledger dropped `slip`.

Radial noise was refused by a Renyi ledger as a mechanism and priced without its rounding as a plan.
"""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace

import pytest

import shapedp as sdp
from shapedp.accounting import BareLoss, Plan, Step, compose
from shapedp.ledger.charges import pure_epsilon, renyi_curve, split
from shapedp.ledger.filters import make_filter
from shapedp.noise.radial import Radial
from shapedp.privacy import AdjustedLoss, GaussianLoss, LaplaceLoss
from shapedp.privacy.losses.radial import ReleasedRadialLoss

SLIPPED = {
    "adjusted": AdjustedLoss(GaussianLoss(0.1), slip=0.01),
    "released": ReleasedRadialLoss(GaussianLoss(0.1), 0.01, 1e-12),  # type: ignore[arg-type]
    "everything": AdjustedLoss(LaplaceLoss(0.2), log_ratio=0.1, failure=1e-9, total_variation=1e-12, slip=0.02),
}


@pytest.mark.parametrize("name", SLIPPED)
def test_a_slip_is_charged(name: str) -> None:
    """Both laws are within e^s: a Renyi divergence grows by (2 a - 1)/(a - 1) s, and not by nothing."""
    loss = SLIPPED[name]
    core, failure, variation = split(loss)
    orders = (1.5, 4.0, 32.0)
    for order, found in zip(orders, renyi_curve(core, orders), strict=True):
        parts = sum(n * part.renyi(order).upper for part, n in loss.pieces().parts)
        least = min(parts, *(part.pure for part, _ in core.parts)) if name == "everything" else parts
        assert found >= least + (2 * order - 1) / (order - 1) * loss.pieces().slip
    grown = Fraction(math.exp(loss.pieces().slip + loss.pieces().log_ratio))
    assert failure >= Fraction(loss.pieces().failure) * grown
    assert variation >= Fraction(loss.pieces().total_variation)


@pytest.mark.parametrize("name", SLIPPED)
def test_a_plan_costs_what_its_mechanism_does(name: str) -> None:
    cap = make_filter(epsilon=8.0, delta=1e-5, rule="renyi", failure_share=0.5)
    loss = SLIPPED[name]
    alone = cap.charge(SimpleNamespace(loss=loss))
    planned = cap.charge(SimpleNamespace(loss=Plan((Step(loss, 1.0, 2),)).loss))
    for one, two in zip(alone.amounts, planned.amounts, strict=True):
        assert one * 1.2 < two <= 2 * one * (1 + 1e-9)  # slips add up by their squares
    assert 2 * alone.failure <= planned.failure * (1 + 1e-9) <= 2.5 * alone.failure + 1


def test_a_radial_mechanism_is_taken_apart_as_in_a_plan() -> None:
    mechanism = sdp.Additive(Radial(8, 8.0, 1.0, 3.0), sdp.L2(1.0, dim=8, adjacency="add-remove"), 1.0, 1e-6)
    (core, _, once), (plan, _, twice) = split(mechanism.loss), split(compose([(mechanism, 2)]))
    assert core.parts[0][0] == plan.parts[0][0] == mechanism.loss.base  # type: ignore[attr-defined]
    assert 0 < core.slip * 1.4 < plan.slip < core.slip * 1.5
    assert 0 < 2 * once <= twice


def test_pure_and_failures_are_read_off_the_same_pieces() -> None:
    assert pure_epsilon(LaplaceLoss(0.5)) == 0.5
    assert pure_epsilon(AdjustedLoss(LaplaceLoss(0.5), slip=0.1)) >= 0.7
    assert pure_epsilon(compose([(LaplaceLoss(0.5), 3)])) == pytest.approx(1.5)
    assert pure_epsilon(compose([(BareLoss(0.5, 1e-9), 3)])) == math.inf
    _, failure, _ = split(compose([(BareLoss(0.5, 1e-9), 3)]))
    assert failure == pytest.approx(3e-9)
    assert AdjustedLoss(LaplaceLoss(0.5), slip=0.1).pure == pytest.approx(0.7)
    assert GaussianLoss(0.5).pure == math.inf
