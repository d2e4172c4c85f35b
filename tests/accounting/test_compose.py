"""Composition on grids against closed forms and 60-digit sums: the truth is inside, and the bracket is tight."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.reference.pairs import ScalarLaplace, gaussian_delta, laplace_delta, response_delta

from shapedp.accounting import BareLoss, compose, subsample
from shapedp.privacy import GaussianLoss

DELTAS = (1e-1, 1e-3, 1e-6, 1e-12, 1e-18, 1e-25)


def check(mu: float, times: int, delta: float, most: float) -> None:
    """A composition of Gaussians through the grids, at the epsilon where it meets delta."""
    each = mu / math.sqrt(times)
    truth = compose([(GaussianLoss(each), times)])
    epsilon = truth.epsilon(delta).upper
    exact = gaussian_delta(epsilon, (each, times))
    bracket = compose([(GaussianLoss(each), times)], closed_forms=False).delta(epsilon)
    assert bracket.lower <= exact <= bracket.upper, (mu, times, delta)
    assert bracket.relative_gap <= most, (mu, times, delta, bracket.relative_gap)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize(("mu", "times"), [(1.0, 1), (0.2, 3), (3.0, 10), (1.0, 100)])
def test_gaussians_up_to_100(mu: float, times: int, delta: float) -> None:
    check(mu, times, delta, 1e-6)


@pytest.mark.parametrize("delta", [1e-1, 1e-5, 1e-12])
@pytest.mark.parametrize(("mu", "times"), [(1.0, 1000), (0.3, 100_000)])
def test_gaussians_up_to_100_000(mu: float, times: int, delta: float) -> None:
    check(mu, times, delta, 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("times", [1, 2, 5, 20, 50, 100])
@pytest.mark.parametrize("mu", [0.01, 0.1, 0.5, 2.0, 6.0])
def test_gaussians_up_to_100_all(mu: float, times: int, delta: float) -> None:
    check(mu, times, delta, 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("delta", DELTAS[:4])
@pytest.mark.parametrize("times", [200, 1000, 10_000, 100_000])
@pytest.mark.parametrize("mu", [0.01, 0.1, 1.0, 5.0])
def test_gaussians_up_to_100_000_all(mu: float, times: int, delta: float) -> None:
    check(mu, times, delta, 1e-4)


@pytest.mark.parametrize("delta", [1e-18, 1e-25])
def test_long_compositions_still_bracket_tiny_deltas(delta: float) -> None:
    check(1.0, 100_000, delta, 1e-3)


def test_epsilon_is_on_the_private_side() -> None:
    for delta in (1e-2, 1e-6, 1e-20):
        composed = compose([(GaussianLoss(0.1), 50)], closed_forms=False)
        bracket = composed.epsilon(delta)
        exact = compose([(GaussianLoss(0.1), 50)]).epsilon(delta)
        assert bracket.lower <= exact.upper
        assert exact.lower <= bracket.upper
        assert composed.delta(bracket.upper).upper <= delta
        assert bracket.relative_gap <= 1e-5


def test_heterogeneous_gaussians() -> None:
    parts = [(GaussianLoss(0.5), 3), (GaussianLoss(0.02), 200), (GaussianLoss(1.3), 1)]
    exact = compose(parts)
    bracket = compose(parts, closed_forms=False).epsilon(1e-8)
    truth = exact.epsilon(1e-8)
    assert bracket.lower <= truth.upper <= bracket.upper * (1 + 1e-12)
    assert bracket.relative_gap <= 1e-5


def test_a_profile_over_many_epsilons_at_once() -> None:
    epsilon = np.linspace(0.0, 12.0, 400)
    lower, upper = compose([(GaussianLoss(0.1), 100)], closed_forms=False, accuracy=1e-4).profile(epsilon)
    low, high = GaussianLoss(math.sqrt(100 * 0.1**2)).profile(epsilon)
    assert (lower <= high).all()
    assert (low <= upper).all()
    assert (upper - lower <= 1e-3 * upper).all()


@pytest.mark.parametrize(
    ("ratio", "times", "epsilon"),
    [(0.3, 1, 0.1), (0.3, 5, 0.5), (1.0, 3, 0.0), (0.3, 16, 2.0), (1.0, 32, 20.0), (0.3, 64, 17.0)],
)
def test_laplace_against_exact_sums(ratio: float, times: int, epsilon: float) -> None:
    exact = laplace_delta(ratio, times, epsilon)
    bracket = compose([(ScalarLaplace(ratio), times)], closed_forms=False).delta(epsilon)
    assert bracket.lower <= exact <= bracket.upper
    assert bracket.relative_gap <= 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("times", [2, 8, 24, 40, 64])
@pytest.mark.parametrize("ratio", [0.05, 0.3, 1.0, 2.5])
def test_laplace_against_exact_sums_all(ratio: float, times: int) -> None:
    for share in (0.05, 0.3, 0.6, 0.9, 0.99):
        test_laplace_against_exact_sums(ratio, times, share * ratio * times)


@pytest.mark.parametrize("failure", [0.0, 1e-6])
@pytest.mark.parametrize("times", [1, 2, 7, 64])
@pytest.mark.parametrize("pure", [0.05, 0.3, 2.0])
def test_randomised_response_against_exact_sums(pure: float, times: int, failure: float) -> None:
    for share in (0.0, 0.1, 0.5, 0.9, 0.999):
        epsilon = share * pure * times
        exact = response_delta(pure, failure, times, epsilon)
        bracket = compose([(BareLoss(pure, failure), times)], closed_forms=False).delta(epsilon)
        assert bracket.lower <= exact <= bracket.upper, (pure, times, share)
        assert bracket.relative_gap <= 1e-6


def test_beyond_the_largest_loss_nothing_is_left() -> None:
    composed = compose([(BareLoss(0.1), 10)])
    assert composed.delta(1.0 + 1e-6).upper <= 1e-12
    assert composed.epsilon(0.0).upper == pytest.approx(1.0)
    assert compose([(BareLoss(0.1, 1e-3), 10)]).epsilon(1e-4).upper == math.inf


def test_closed_forms() -> None:
    assert compose([(GaussianLoss(0.3), 4)]) == GaussianLoss(0.6)
    assert compose([GaussianLoss(3.0), GaussianLoss(4.0)]).mu == 5.0  # type: ignore[attr-defined]
    assert compose([BareLoss(0.1)]) == BareLoss(0.1)


def test_mu_is_rounded_up() -> None:
    import fractions

    rng = np.random.default_rng(5)
    for _ in range(200):
        mus = rng.uniform(1e-3, 3, size=4)
        composed = compose([GaussianLoss(float(mu)) for mu in mus])
        exact = sum(fractions.Fraction(float(mu)) ** 2 for mu in mus)
        assert fractions.Fraction(composed.mu) ** 2 >= exact  # type: ignore[attr-defined]
        assert fractions.Fraction(math.nextafter(composed.mu, 0)) ** 2 < exact  # type: ignore[attr-defined]


def test_failures_and_shifts_add_up() -> None:
    base = GaussianLoss(0.5)
    loss = compose([(base.with_failure(1e-6), 10), (base.shift(0.01), 5)])
    plain = compose([(base, 15)])
    assert loss.delta(3.0).upper == pytest.approx(plain.delta(2.95).upper + 1e-5, rel=1e-9)


@pytest.mark.parametrize(("sigma", "steps"), [(0.5, 10), (0.63, 100), (1.0, 300)])
def test_few_sampled_steps_ruled_by_rare_losses_are_tight(sigma: float, steps: int) -> None:
    composed = compose([(subsample(GaussianLoss(1 / sigma), 256 / 60000, adjacency="add-remove"), steps)])
    bracket = composed.epsilon(1e-5)
    assert bracket.relative_gap < 2e-3
    assert composed.delta(bracket.upper).relative_gap < 1e-2


def test_the_direction_that_ends_early_does_not_spoil_delta() -> None:
    """At epsilon 7 the reverse direction of 1,000 steps has no loss left: it ends at 1000 log(1/(1 - rate)) = 4.3."""
    composed = compose([(subsample(GaussianLoss(2.0), 256 / 60000, adjacency="add-remove"), 1000)], accuracy=1e-2)
    assert composed.delta(7.0).relative_gap < 1e-2
