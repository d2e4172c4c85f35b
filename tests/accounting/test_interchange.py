"""Round trips through other libraries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import shapedp as sdp
from shapedp.accounting import (
    BareLoss,
    Plan,
    Step,
    compose,
    from_dp_accounting,
    from_event,
    from_opendp,
    subsample,
    to_dp_accounting,
    to_event,
    to_opendp,
)
from shapedp.privacy import GaussianLoss, LaplaceLoss


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # raised inside the other library
def test_interchange() -> None:
    pytest.importorskip("dp_accounting")
    loss = subsample(GaussianLoss(1.0), 0.3)
    theirs = to_dp_accounting(loss, step=1e-3)
    back = from_dp_accounting(theirs)
    for epsilon in (0.0, 0.2, 1.0):
        exact = loss.delta(epsilon)
        assert theirs.get_delta_for_epsilon(epsilon) >= exact.lower * (1 - 1e-9)
        assert theirs.get_delta_for_epsilon(epsilon) == pytest.approx(exact.upper, rel=1e-4)
        assert back.delta(epsilon).upper == pytest.approx(exact.upper, rel=1e-4)
    composed = compose([(back, 10)]).delta(1.0).upper
    assert composed == pytest.approx(theirs.self_compose(10).get_delta_for_epsilon(1.0), rel=1e-4)
    assert composed >= compose([(loss, 10)], accuracy=1e-3).delta(1.0).lower


def test_a_plan_becomes_an_event_and_comes_back() -> None:
    dp = pytest.importorskip("dp_accounting")
    plan = Plan((Step(GaussianLoss(0.8), 0.01, 200), Step(LaplaceLoss(0.1), 1.0, 2)))
    event = to_event(plan)
    accountant = dp.pld.PLDAccountant().compose(event)
    ours, back = plan.loss.epsilon(1e-5), from_event(event).epsilon(1e-5)
    assert ours.lower <= back.upper <= ours.upper * (1 + 1e-6)  # the event is exact: its lower end guides the grid
    assert back.relative_gap < 1e-4
    assert ours.lower * (1 - 1e-3) <= accountant.get_epsilon(1e-5) <= ours.upper * (1 + 1e-3)


def test_events_of_one_mechanism() -> None:
    pytest.importorskip("dp_accounting")
    gaussian = sdp.calibrate("gaussian", sdp.L2(3.0, dim=4), epsilon=1.0, delta=1e-6)
    back, mu = from_event(to_event(gaussian)), GaussianLoss.calibrate(1.0, 1e-6).mu
    assert isinstance(back, GaussianLoss)
    assert mu * (1 - 1e-9) <= back.mu == pytest.approx(mu, rel=1e-9)
    box = sdp.calibrate("laplace", sdp.Box([1.0, 2.0]), epsilon=1.0, delta=1e-6)
    with pytest.raises(TypeError, match="to_dp_accounting"):
        to_event(box)
    with pytest.raises(TypeError, match="to_dp_accounting"):
        to_event(BareLoss(1.0, 1e-6))


def test_events_of_theirs() -> None:
    from_library = pytest.importorskip("dp_accounting")
    response = from_event(from_library.RandomizedResponseDpEvent(0.5, 2))
    assert response.epsilon(0.0).upper == pytest.approx(math.log(3))
    assert from_event(from_library.SelfComposedDpEvent(from_library.RandomizedResponseDpEvent(0.5, 2), 3)).epsilon(
        0.0
    ).upper == pytest.approx(3 * math.log(3))
    zcdp = from_event(from_library.ZCDpEvent(0.5, 0.0))
    exact = GaussianLoss(1.0)
    for epsilon in (0.5, 2.0, 4.0):
        assert exact.delta(epsilon).upper <= zcdp.delta(epsilon).upper <= 6 * exact.delta(epsilon).upper
    with pytest.raises(TypeError, match="NonPrivateDpEvent"):
        from_event(from_library.NonPrivateDpEvent())


@pytest.fixture
def dp() -> Any:
    prelude = pytest.importorskip("opendp.prelude")
    prelude.enable_features("contrib", "honest-but-curious")
    return prelude


@pytest.mark.parametrize(("family", "ball"), [("gaussian", sdp.L2(2.0, dim=3)), ("laplace", sdp.L1(2.0, dim=3))])
def test_our_mechanism_as_a_measurement_and_back(dp: Any, family: str, ball: sdp.Sensitivity) -> None:
    mechanism = sdp.calibrate(family, ball, epsilon=1.0, delta=1e-6)
    measurement = to_opendp(mechanism, delta=1e-6)
    released = np.array(measurement([10.0, 20.0, 30.0]))
    assert released.shape == (3,)
    assert np.abs(released - [10, 20, 30]).max() < 12 * mechanism.law.marginal_scales().max()
    stated = measurement.map(2.0)
    assert stated == (mechanism.loss.epsilon(1e-6).upper, 1e-6)
    assert measurement.map(1.0)[0] < stated[0]
    assert measurement.map(0.0) == (0.0, 0.0)
    chained = dp.c.make_composition([measurement, measurement])
    assert chained.map(2.0) == pytest.approx((2 * stated[0], 2e-6))
    back = from_opendp(measurement, 2.0)
    assert back.epsilon(1e-6 * (1 + 1e-9)).upper == pytest.approx(stated[0])
    twice, exact = compose([(back, 2)]).epsilon(3e-6).upper, compose([(mechanism, 2)]).epsilon(3e-6).upper
    assert exact <= twice <= 2 * stated[0] * (1 + 1e-9)


def test_their_measurements(dp: Any) -> None:
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=2)
    gaussian = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=2.0)
    loss, exact = from_opendp(gaussian, 1.0), GaussianLoss(0.5)
    assert exact.delta(1.0).upper <= loss.delta(1.0).upper <= 6 * exact.delta(1.0).upper
    laplace = dp.m.make_laplace(domain, dp.l1_distance(T=float), scale=2.0)
    assert from_opendp(laplace, 1.0).epsilon(0.0).upper == pytest.approx(0.5)
    stated = from_opendp(dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian), delta=1e-6), 1.0)
    assert stated.epsilon(1e-6).upper >= exact.epsilon(1e-6).upper
    both = compose([loss, from_opendp(laplace, 1.0)], accuracy=1e-2).delta(2.0)
    true = compose([exact, LaplaceLoss(0.5)], accuracy=1e-2).delta(2.0)
    assert true.lower <= both.upper <= 20 * true.upper


def test_sets_without_a_metric_are_refused(dp: Any) -> None:
    box = sdp.calibrate("gaussian", sdp.Box([1.0, 2.0]), epsilon=1.0, delta=1e-6)
    with pytest.raises(TypeError, match="no metric"):
        to_opendp(box, delta=1e-6)
    refuted = sdp.recipes.classic_gaussian(dim=3, sensitivity=1.0, epsilon=10.0, delta=1e-5)
    with pytest.raises(sdp.RefutedError):
        to_opendp(refuted, delta=1e-5)
