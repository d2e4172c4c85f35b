"""Plans, planning, other accountants and risks."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from scipy import stats
from tests.reference.pairs import ScalarLaplace, response_delta

import shapedp as sdp
from shapedp.accounting import (
    ACCOUNTANTS,
    BareLoss,
    Plan,
    PlanningError,
    Step,
    bayes_risk,
    compose,
    membership_advantage,
    optimal_homogeneous,
    plan,
    subsample,
    trade_off,
)
from shapedp.privacy import GaussianLoss


def test_a_plan_is_its_composition_and_survives_json() -> None:
    made = Plan((Step(GaussianLoss(0.5), 0.1, 50), Step(BareLoss(0.1, 1e-8)), Step(GaussianLoss(0.2), count=3)))
    again = Plan.from_json(json.loads(json.dumps(made.to_json())))
    assert again == made
    same = compose([(subsample(GaussianLoss(0.5), 0.1), 50), BareLoss(0.1, 1e-8), (GaussianLoss(0.2), 3)])
    assert made.epsilon(1e-5) == same.epsilon(1e-5)
    with pytest.raises(ValueError, match="schema"):
        Plan.from_json({"steps": []})


@pytest.mark.parametrize("family", [lambda s: GaussianLoss(1 / s), lambda s: ScalarLaplace(1 / s)])
def test_planning_is_conservative_and_close(family: object) -> None:
    got = plan(epsilon=1.0, delta=1e-5, sampling_rate=0.05, steps=30, family=family, relative=1e-2)  # type: ignore[arg-type]
    assert got.delta.upper <= 1e-5
    assert got.loss.delta(1.0).upper <= 1e-5
    tighter = compose([(subsample(family(got.scale / 1.03), 0.05), 30)], accuracy=1e-3)  # type: ignore[operator]
    assert tighter.delta(1.0).lower > 1e-5


def test_planning_without_sampling_is_the_closed_form() -> None:
    got = plan(epsilon=1.0, delta=1e-5, sampling_rate=1.0, steps=16, relative=1e-3)
    exact = 4 / GaussianLoss.calibrate(1.0, 1e-5).mu
    assert exact <= got.scale <= exact * 1.0011


def test_planning_fails_clearly_and_in_time() -> None:
    with pytest.raises(PlanningError, match="cannot be met"):
        plan(epsilon=0.1, delta=1e-5, sampling_rate=1.0, steps=1000, largest=10.0)
    with pytest.raises(PlanningError, match="cannot be met"):
        plan(epsilon=1.0, delta=0.0, sampling_rate=0.5, steps=2, largest=10.0)
    with pytest.raises(PlanningError, match="within"):
        plan(epsilon=1.0, delta=1e-5, sampling_rate=0.01, steps=100, seconds=1e-9)


def test_certifying_accountants_are_never_below_the_exact_one() -> None:
    items = [(GaussianLoss(0.3), 10), (GaussianLoss(0.1), 5)]
    exact = compose(items).epsilon(1e-6)
    for name in ("pld", "renyi", "zcdp", "tcdp", "gdp", "basic"):
        answer = ACCOUNTANTS[name].answer(items, 1e-6)
        assert answer.certifies
        assert answer.epsilon >= exact.lower, name
    assert not ACCOUNTANTS["clt"].certifies


@pytest.mark.parametrize(("epsilon", "delta", "times"), [(0.1, 1e-6, 64), (1.0, 0.0, 10), (0.5, 1e-3, 5)])
def test_optimal_composition(epsilon: float, delta: float, times: int) -> None:
    for index in range(times // 2 + 1):
        at, value = optimal_homogeneous(epsilon, delta, times, index)
        exact = response_delta(epsilon, delta, times, (times - 2 * index) * epsilon)
        assert float(exact) * (1 - 1e-15) <= value
        assert value == pytest.approx(float(exact), rel=1e-8, abs=1e-300)
        assert at == pytest.approx((times - 2 * index) * epsilon)


def test_heterogeneous_optimal_composition_against_all_subsets() -> None:
    pures = [0.1, 0.25, 0.4, 0.7]
    target = 0.5
    total = 0.0
    for bits in range(2 ** len(pures)):
        loss, mass = 0.0, 1.0
        for i, pure in enumerate(pures):
            up = bits >> i & 1
            loss += pure if up else -pure
            mass *= 1 / (1 + math.exp(-pure if up else pure))
        total += mass * max(0.0, 1 - math.exp(target - loss))
    bracket = compose([BareLoss(pure) for pure in pures]).delta(target)
    assert bracket.lower <= total * (1 + 1e-12)
    assert total * (1 - 1e-12) <= bracket.upper
    assert bracket.relative_gap <= 1e-3


def test_risks_of_a_gaussian() -> None:
    mu = 1.0
    loss = GaussianLoss(mu)
    alpha = np.linspace(0.001, 0.999, 50)
    exact = stats.norm.cdf(stats.norm.isf(alpha) - mu)
    curve = trade_off(loss, alpha)
    assert (curve <= exact + 1e-12).all()
    np.testing.assert_allclose(curve, exact, atol=1e-3)
    assert membership_advantage(loss).upper == pytest.approx(2 * stats.norm.cdf(mu / 2) - 1)
    risk = bayes_risk(loss, 0.5)
    assert risk.lower <= stats.norm.cdf(-mu / 2) <= risk.upper + 1e-12
    skewed = bayes_risk(loss, 0.1)
    cut = mu / 2 + math.log(9) / mu
    assert skewed.lower - 1e-12 <= 0.1 * stats.norm.cdf(cut - mu) + 0.9 * stats.norm.sf(cut) <= skewed.upper + 1e-12


def test_the_certificate_of_a_plan_of_different_mechanisms_is_recomputed() -> None:
    ball = sdp.L2(1.0, dim=3, adjacency="zero-out")
    gaussian = sdp.calibrate("gaussian", ball, epsilon=0.5, delta=1e-6)
    mixing = sdp.Mixing.calibrate(rows=50, row_bound=1.0, epsilon=0.5, delta=1e-6)
    certificate = sdp.certify(sdp.Plan((Step(gaussian), Step(mixing))), epsilon=1.0, delta=1e-6)
    again = sdp.verify(sdp.Certificate.from_json(json.loads(json.dumps(certificate.to_json()))))
    assert (again.verdict, again.adjacency) == ("certified", "zero-out")
    false = dataclasses.replace(certificate, bracket=sdp.Bracket(0.0, certificate.bracket.lower / 2))
    with pytest.raises(ValueError, match="contradicts"):
        sdp.verify(false)
