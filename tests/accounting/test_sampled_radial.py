"""Sampled radial and Laplace noise over thousands of steps: certified, tight and quick, in any dimension."""

from __future__ import annotations

import math

import numpy as np
import pytest

import shapedp as sdp
from shapedp.accounting import Plan, Step, compose, subsample
from shapedp.noise.radial import DEVIATIONS, Radial, gaussian
from shapedp.privacy import AdjustedLoss, Bracket, GaussianLoss, LaplaceLoss, loss_of
from shapedp.privacy.losses.radial import RadialLoss, ReleasedRadialLoss

RATE = 256 / 60000  # MNIST with batches of 256


def sampled(loss: sdp.Loss, steps: int, rate: float = RATE, accuracy: float | None = 1e-2) -> sdp.Loss:
    return compose([(subsample(loss, rate, adjacency="add-remove"), steps)], accuracy=accuracy)


def overlap(one: Bracket, other: Bracket) -> bool:
    return one.lower <= other.upper and other.lower <= one.upper


@pytest.mark.parametrize(("dim", "steps"), [(2, 1000), (50, 1000), (1000, 4000), (26_010, 2000)])
def test_the_gaussian_member_costs_what_the_gaussian_does(dim: int, steps: int) -> None:
    law = gaussian(1.3, dim)
    released = loss_of(law, sdp.L2(1.0, dim=dim, adjacency="add-remove"))
    truth = sampled(GaussianLoss(1 / 1.3), steps, accuracy=1e-4).epsilon(1e-5)
    found = sampled(released, steps).epsilon(1e-5)
    assert overlap(found, truth)
    assert found.relative_gap < 1e-2
    assert not overlap(sampled(loss_of(gaussian(1.3 / 1.02, dim), sdp.L2(1.0, dim=dim)), steps).epsilon(1e-5), truth)


def test_a_plan_of_radial_steps_is_certified() -> None:
    dim = 26_010
    ball = sdp.L2(1.0, dim=dim, adjacency="add-remove")
    size = math.sqrt(Radial(dim, 25_000.0, 1.9, 1.0).mean_squared_radius / dim)
    mechanism = sdp.Additive(Radial(dim, 25_000.0, 1.9, 1.1 / size), ball, 8.0, 1e-5)
    plan = Plan((Step(mechanism, RATE, 500),))
    bracket = plan.epsilon(1e-5)
    assert bracket.lower > 0.01
    assert bracket.relative_gap < 1e-2
    assert sdp.certify(plan, epsilon=bracket.upper * 1.001, delta=1e-5).verdict == "certified"
    assert sdp.certify(plan, epsilon=bracket.lower * 0.98, delta=1e-5).verdict == "refuted"


def test_a_shape_near_the_gaussian_keeps_its_bracket() -> None:
    """[1.61194, 1.61201] is what the loss itself gives, asked at every node of every grid: minutes."""
    found = sampled(RadialLoss(50, 48.8, 1.116, 4.0), 1000, 0.01, 5e-3).epsilon(1e-5)
    assert overlap(found, Bracket(1.61194, 1.61201))
    assert found.relative_gap < 2e-3


def test_laplace_noise_on_many_values_is_nearly_gaussian() -> None:
    """K terms of ratio m/sqrt(K): the loss is nearly that of N(m, 1), and never that of a smaller m."""
    dim = 26_010
    loss = LaplaceLoss(math.sqrt(dim) * 0.8 * (1 + 1e-12), np.full(dim, 0.8 / math.sqrt(dim)), worst=True)
    found = sampled(loss, 2000).epsilon(1e-5)
    assert found.relative_gap < 1e-2
    assert found.upper == pytest.approx(sampled(GaussianLoss(0.8), 2000).epsilon(1e-5).upper, rel=1e-2)
    assert found.lower > sampled(GaussianLoss(0.78), 2000).epsilon(1e-5).upper


def test_laplace_noise_on_an_l1_ball_is_that_of_one_coordinate() -> None:
    ball = sdp.L1(1.0, dim=26_010, adjacency="add-remove")
    found = sampled(loss_of(sdp.noise.Laplace(1.5, 26_010), ball), 2000).epsilon(1e-5)
    one = sampled(LaplaceLoss(1 / 1.5, np.array([1 / 1.5]), worst=True), 2000).epsilon(1e-5)
    assert (found.lower, found.upper) == pytest.approx((one.lower, one.upper), rel=1e-9)
    assert found.lower > 0
    assert found.relative_gap < 1e-2


@pytest.mark.parametrize("steps", [1, 30, 3000])
def test_slips_of_many_releases_add_up_in_squares(steps: int) -> None:
    """N(mu, 1) against N(0, 1), each moved by e towards worse: Gaussian again, mu + 2 e, and within a slip of 38 e."""
    mu, e = 1 / math.sqrt(steps), 2e-3 / math.sqrt(steps)
    item = AdjustedLoss(GaussianLoss(mu), slip=DEVIATIONS * e)
    found = compose([(item, steps)])
    truth = compose([(GaussianLoss(mu + 2 * e), steps)])
    assert found.delta(1.0).upper >= truth.delta(1.0).upper
    assert found.epsilon(1e-5).upper < truth.epsilon(1e-5).upper + 2 * 1.001 * DEVIATIONS * 2e-3
    assert found.slip == pytest.approx(DEVIATIONS * 2e-3, rel=1e-4)
    assert compose([(item, steps), (item, 3 * steps)]).slip == pytest.approx(2 * found.slip, rel=1e-3)


def test_what_a_sampler_misses_is_paid_in_every_run() -> None:
    """Sampling does not make a sampler's error rarer: it adds up at the full rate, and the bracket stays tight."""
    clean, times = sampled(GaussianLoss(1.0), 1000), 1000
    for missed in (1e-17, 1e-12, 1e-9):
        noisy = sampled(GaussianLoss(1.0).with_failure(0.0, total_variation=missed), times)
        at = 0.8
        extra = noisy.delta(at).upper - clean.delta(at).upper
        assert extra == pytest.approx(times * missed * (1 + math.exp(at)), rel=0.05, abs=1e-14)
    failing = sampled(GaussianLoss(1.0).with_failure(1e-9), times)
    assert failing.delta(0.8).upper - clean.delta(0.8).upper == pytest.approx(1e-6, rel=0.05)


def test_one_release_is_the_released_loss() -> None:
    base = RadialLoss(400, 380.0, 2.0, 0.4)
    released = ReleasedRadialLoss(base, 1e-4, 1e-16)
    assert compose([released]).delta(1.0).upper == pytest.approx(released.delta(1.0).upper, rel=1e-6)
    assert compose([released]).delta(1.0).upper >= base.delta(1.0).upper
    assert sdp.compose([(released, 4)]).epsilon(1e-6).relative_gap < 1e-2


@pytest.mark.slow
@pytest.mark.parametrize("steps", [400, 2000])
def test_planning_radial_noise_is_conservative_and_close(steps: int) -> None:
    dim = 26_010
    ball = sdp.L2(1.0, dim=dim, adjacency="add-remove")
    got = sdp.plan(
        epsilon=2.0, delta=1e-5, sampling_rate=RATE, steps=steps, relative=3e-3,
        family=lambda scale: loss_of(gaussian(scale, dim), ball),
    )  # fmt: skip
    assert got.delta.upper <= 1e-5
    assert got.delta.lower > 0.9e-5
    assert got.scale == pytest.approx(
        sdp.plan(epsilon=2.0, delta=1e-5, sampling_rate=RATE, steps=steps, relative=1e-3).scale, rel=4e-3
    )
