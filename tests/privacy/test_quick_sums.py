"""Calibration on sums of losses: estimates lead, the exact bracket decides, and what is kept is what was computed."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import shapedp as sdp
from shapedp.noise import DoesNotApplyError
from shapedp.noise.logistic import Logistic
from shapedp.noise.tilted import guided
from shapedp.numerics.inversion import best_tilt, estimate, stop_loss
from shapedp.numerics.laplace_sums import LaplaceSum
from shapedp.privacy.losses import LaplaceLoss, sums
from shapedp.privacy.losses.logistic import LogisticLoss

RNG = np.random.default_rng(24)
BOXES = [RNG.uniform(0.05, 1, n) for n in (2, 14)] + [np.ones(5), np.r_[1.0, np.full(50, 0.02)]]


@pytest.mark.parametrize("deviation", [0.0, 0.2])
@pytest.mark.parametrize("dim", [3, 14, 200])
def test_estimates_lie_where_the_brackets_do(dim, deviation):
    ratios = np.sort(RNG.uniform(0.2, 1, dim)) * 3 / math.sqrt(dim)
    total = LaplaceSum.of(ratios, deviation)
    for x in (0.3, 1.0, 2.0):
        lower, upper = (float(end[0]) for end in stop_loss(total, np.array([x])))
        found = math.exp(estimate(total, x))
        assert lower * (1 - 1e-4) <= found <= upper * (1 + 1e-4)
        tilted = estimate(total, x, tilt=1.2 * best_tilt(total, x))
        assert math.exp(tilted) == pytest.approx(found, rel=1e-3)


@pytest.mark.parametrize("family", ["laplace", "logistic", "mixed"])
@pytest.mark.parametrize("bounds", BOXES, ids=len)
def test_the_exact_bracket_meets_the_claim_and_leaves_little_of_it(family, bounds):
    for epsilon, delta in ((1.0, 1e-5), (3.0, 1e-3)):
        try:
            made = sdp.calibrate(family, sdp.Box(bounds), epsilon=epsilon, delta=delta)
        except DoesNotApplyError:
            assert family == "mixed"
            continue
        sums._kept.cache_clear()
        upper = made.law.loss(made.sensitivity).delta(epsilon).upper
        assert upper <= delta
        pure = made.law.loss(made.sensitivity).pure
        assert pure <= epsilon * (1 + 1e-9) or math.log(delta / upper) < 5e-6


def test_both_shapes_of_logistic_noise_are_weighed():
    box, epsilon, delta = sdp.Box([1.0, 0.1]), 1.0, 1e-5
    made = sdp.calibrate("logistic", box, epsilon=epsilon, delta=delta)
    for order in (1, 2):
        shape = box.profile ** (order / (2 + order))
        factor = 3.0
        assert Logistic(shape * factor).loss(box).delta(epsilon).upper <= delta
        while Logistic(shape * factor).loss(box).delta(epsilon).upper <= delta:
            factor *= 0.9
        assert made.expected_squared_error <= Logistic(shape * factor / 0.9).second_moment * 1.001


def test_what_is_kept_is_what_a_fresh_computation_gives():
    sums._kept.cache_clear()
    losses = [LaplaceLoss(9.0, [0.5, 0.25, 0.125], worst=True), LaplaceLoss(9.0, [0.5, 0.25, 0.1250000001], worst=True)]
    losses += [LogisticLoss(9.0, [0.5, 0.25, 0.125], worst=True)]
    fresh = []
    for loss in losses:
        for epsilon in (0.2, 0.5):
            sums._kept.cache_clear()
            fresh.append(loss.delta(epsilon))
    again = [loss.delta(epsilon) for loss in losses for epsilon in (0.2, 0.5)]
    kept = [loss.delta(epsilon) for loss in losses for epsilon in (0.2, 0.5)]
    assert fresh == again == kept
    assert len(set(fresh)) == len(fresh)
    assert sums._kept.cache_info().hits >= 4


def test_what_is_kept_cannot_be_changed_from_outside():
    loss = LaplaceLoss(9.0, [0.5, 0.25, 0.125], worst=True)
    lower, upper = loss.sum_profile(np.array([0.2]))
    before = float(upper[0])
    lower[0] = upper[0] = 0.0
    assert float(loss.sum_profile(np.array([0.2]))[1][0]) == before


def test_threads_calibrate_what_one_calibrates():
    boxes = [sdp.Box(bounds) for bounds in BOXES[:3]]

    def made(box: sdp.Box) -> list[float]:
        return sdp.calibrate("laplace", box, epsilon=1.0, delta=1e-5).law.scales.tolist()

    alone = [made(box) for box in boxes]
    sums._kept.cache_clear()
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(made, boxes * 2)) == alone * 2


def test_a_loss_that_is_no_sum_is_not_guessed():
    box = sdp.Box([1.0])
    request = sdp.noise.Request(box, 1.0, 1e-5)
    assert guided(box, request, lambda x: sdp.Gaussian([3.0 / x]), 10.0) is None
