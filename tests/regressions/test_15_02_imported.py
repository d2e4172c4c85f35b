"""Bare and imported losses: lower ends that were not lower, and questions that were not answered.

Randomised response over four answers had delta(0) = 0.889 (it is 0.8), an OpenDP measurement refuted true claims about
itself, BareLoss(1, 1e-6) did not meet (1, 1e-6), events without noise divided by zero, a Laplace event had the lower
end 0, a Laplace mechanism was no event for a rounding, and a radial loss asked for 1e9 nodes as a distribution.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import shapedp as sdp
from shapedp.accounting import BareLoss, compose, from_event, from_opendp, to_dp_accounting, to_event, trade_off
from shapedp.accounting.response import ResponseLoss
from shapedp.privacy import AdjustedLoss, GaussianLoss, LaplaceLoss
from shapedp.privacy.losses.radial import ReleasedRadialLoss

EPSILONS = (0.0, 0.01, 0.3, 1.0, 2.5, 6.0)


@pytest.fixture
def events() -> Any:
    return pytest.importorskip("dp_accounting")


@pytest.mark.parametrize("answers", [2, 3, 4, 1000])
@pytest.mark.parametrize("noise", [0.0, 1e-6, 0.2, 0.9, 1.0])
def test_randomised_response_is_exact(events: Any, noise: float, answers: int) -> None:
    loss = from_event(events.RandomizedResponseDpEvent(noise, answers))
    true, other = 1 - noise + noise / answers, noise / answers
    for epsilon in EPSILONS:
        found, exact = loss.delta(epsilon), max(true - math.exp(epsilon) * other, 0.0)
        assert found.lower - 1e-15 <= exact <= found.upper + 1e-15
        assert found.gap <= 1e-13
    if 0 < noise < 1:
        order = 3.0
        moment = true**order * other ** (1 - order) + other**order * true ** (1 - order) + (answers - 2) * other
        assert loss.renyi(order).lower <= math.log(moment) / (order - 1) * (1 + 1e-12)
        assert loss.renyi(order).upper == pytest.approx(math.log(moment) / (order - 1), rel=1e-9, abs=1e-12)


def test_randomised_response_composes() -> None:
    """Two of them by enumeration: (a, b) at the answers that differ, equal masses elsewhere."""
    loss = ResponseLoss(0.2, 4)
    p, q = np.array([0.85, 0.05, 0.05, 0.05]), np.array([0.05, 0.85, 0.05, 0.05])
    both, other = np.outer(p, p), np.outer(q, q)
    for epsilon in EPSILONS:
        exact = float(np.maximum(both - math.exp(epsilon) * other, 0.0).sum())
        found = compose([(loss, 2)]).delta(epsilon)
        assert found.lower - 1e-12 <= exact <= found.upper + 1e-12
        assert found.gap <= 1e-5


def test_an_imported_guarantee_refutes_nothing() -> None:
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=1)
    imported = from_opendp(dp.m.make_laplace(domain, dp.l1_distance(T=float), scale=1.0), 1.0)
    exact = LaplaceLoss(1.0, np.ones(1), worst=True)
    for epsilon in EPSILONS:
        assert imported.delta(epsilon).lower <= exact.delta(epsilon).lower
        assert imported.delta(epsilon).upper >= exact.delta(epsilon).lower
    claim = {"epsilon": 0.5, "delta": exact.delta(0.5).upper * 1.001}
    assert sdp.certify(exact, **claim).verdict == "certified"
    assert sdp.certify(imported, **claim).verdict == "undecided"
    assert sdp.certify(compose([(imported, 2)]), epsilon=0.9, delta=0.3).verdict != "refuted"


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-300), (3.0, 0.25), (1e-3, 0.0), (0.7, 0.9)])
def test_a_bare_guarantee_meets_itself(epsilon: float, delta: float) -> None:
    loss = BareLoss(epsilon, delta)
    assert loss.delta(epsilon).upper == delta
    assert loss.epsilon(delta).upper == pytest.approx(epsilon, rel=1e-9)
    assert sdp.certify(loss, epsilon=epsilon, delta=delta).verdict == "certified"
    assert compose([loss]).epsilon(delta).upper == pytest.approx(epsilon, rel=1e-9)
    more = delta + (loss.delta(0.0).upper - delta) / 2
    assert loss.delta(loss.epsilon(more).upper).upper <= more
    assert loss.epsilon(more).gap <= 1e-9 * epsilon
    assert loss.epsilon(delta / 2).upper == (math.inf if delta else epsilon)


def test_events_without_noise(events: Any) -> None:
    sampled = events.PoissonSampledDpEvent(0.1, events.GaussianDpEvent(0.0))
    for event in (events.GaussianDpEvent(0.0), events.LaplaceDpEvent(0.0), events.RandomizedResponseDpEvent(0.0, 3)):
        for one in (event, events.SelfComposedDpEvent(event, 3)):
            assert from_event(one).delta(5.0).lower >= 1 - 1e-12
            assert from_event(one).epsilon(0.5).upper == math.inf
    mixed = events.ComposedDpEvent([events.GaussianDpEvent(0.0), events.LaplaceDpEvent(1.0)])
    assert from_event(mixed).delta(5.0).lower == 1.0
    assert from_event(events.SelfComposedDpEvent(sampled, 3)).delta(5.0).upper == pytest.approx(1 - 0.9**3)
    nothing = events.ComposedDpEvent([events.NoOpDpEvent(), events.LaplaceDpEvent(1.0)])
    assert from_event(nothing).delta(0.5).upper == pytest.approx(-math.expm1(-0.25))
    with pytest.raises(TypeError, match="no event at all"):
        to_event(GaussianLoss(0.0))


def test_events_of_noise_are_exact(events: Any) -> None:
    for multiplier in (0.3, 1.0, 7.7):
        laplace, gaussian = (from_event(kind(multiplier)) for kind in (events.LaplaceDpEvent, events.GaussianDpEvent))
        for epsilon in EPSILONS:
            exact = max(-math.expm1((epsilon - 1 / multiplier) / 2), 0.0)
            assert laplace.delta(epsilon).lower <= exact * (1 + 1e-12)
            assert laplace.delta(epsilon).upper >= exact * (1 - 1e-12)
            assert laplace.delta(epsilon).gap <= 1e-12
            assert gaussian.delta(epsilon).gap <= 1e-12


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("radius", [0.1, 1 / 3, 1.0, 7.3])
def test_laplace_on_one_coordinate_is_an_event(events: Any, radius: float, delta: float) -> None:
    mechanism = sdp.calibrate("laplace", sdp.L1(radius, dim=1, adjacency="add-remove"), epsilon=0.7, delta=delta)
    back = from_event(to_event(mechanism))
    for epsilon in (0.0, 0.1, 0.5, 0.69):
        assert back.delta(epsilon).upper >= mechanism.loss.delta(epsilon).lower * (1 - 1e-12)
        assert back.delta(epsilon).upper <= mechanism.loss.delta(epsilon).upper * (1 + 1e-9)


@pytest.mark.parametrize(("steps", "shift"), [(0.5, 1), (1.0, 3), (2.0, 2), (3.7, 10), (40.0, 25)])
def test_continuous_laplace_dominates_laplace_on_a_grid(steps: float, shift: int) -> None:
    """By summation: 1/(4 steps^2) more ratio is enough, and the same ratio is not."""
    k = np.arange(-int(60 * steps) - shift, int(60 * steps) + 2 * shift)
    mass = np.exp(-np.abs(k) / steps) * math.tanh(0.5 / steps)
    moved = np.exp(-np.abs(k - shift) / steps) * math.tanh(0.5 / steps)
    short = []
    for epsilon in np.linspace(0.0, shift / steps, 60):
        exact = float(np.maximum(mass - math.exp(epsilon) * moved, 0.0).sum())
        assert exact <= -math.expm1((epsilon - shift / steps - 0.25 / steps**2) / 2) + 1e-12
        short.append(exact > -math.expm1((epsilon - shift / steps) / 2) + 1e-12)
    assert any(short)


@pytest.mark.parametrize("kind", [AdjustedLoss, ReleasedRadialLoss])
def test_a_loss_with_a_sampler_error_becomes_a_distribution(events: Any, kind: Any) -> None:
    """Its upper end never falls below 4e-19, so no interval held all but 1e-20 of it."""
    errors = {"slip": 1e-6, "total_variation" if kind is AdjustedLoss else "missed": 1e-20}
    loss = kind(GaussianLoss(0.3), **errors)
    theirs = to_dp_accounting(loss)
    for epsilon in (0.0, 0.5, 1.0):
        ours = loss.delta(epsilon)
        assert ours.lower <= theirs.get_delta_for_epsilon(epsilon) <= ours.upper * 1.01


def test_the_trade_off_of_two_bare_losses_is_quick() -> None:
    """It took 53 s: epsilons beyond the sum of both, where delta is what failures leave, were asked of a grid."""
    composed = compose([BareLoss(1.0, 1e-6), BareLoss(0.5, 1e-7)])
    assert composed.delta(1.6).upper == pytest.approx(1.1e-6, rel=1e-6)
    assert len(composed._views) == 0  # type: ignore[attr-defined]
    assert trade_off(composed, [0.1])[0] == pytest.approx(0.5517, abs=1e-3)
