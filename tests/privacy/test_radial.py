"""The radial loss against interval arithmetic, a 30-digit double integral, Monte Carlo and the Gaussian loss."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from flint import arb
from scipy import stats
from tests.reference.radial_reference import double_integral, enclosure

from shapedp.noise.radial import Radial
from shapedp.privacy.losses import GaussianLoss
from shapedp.privacy.losses.radial import RadialLoss, ReleasedRadialLoss

FALSE_ALARM = 1e-6


def product_ratio(dim: int, epsilon: float, k: float = 1e5) -> float:
    square = 2 * k ** (4 / dim) * (dim / 4 + 1.5) ** (1 + 4 / dim) * math.exp(-(1 + 2 / dim))
    return epsilon / math.sqrt(2 * square)


@pytest.mark.parametrize(
    ("dim", "epsilon", "exact"),
    [(14, 0.1, 0.0308), (100, 1.0, 0.6235), (1000, 1.0, 0.7310), (10**6, 1.0, 0.7441)],
)
def test_golden_values_of_product_noise(dim, epsilon, exact):
    bracket = RadialLoss(dim, 1.0, 2.0, product_ratio(dim, epsilon)).delta(epsilon)
    assert abs(bracket.lower - exact) < 5e-5
    assert abs(bracket.upper - exact) < 5e-5
    assert bracket.relative_gap <= 1e-6


def test_the_gaussian_member_is_the_gaussian_loss():
    rng = np.random.default_rng(1)
    checked = 0
    while checked < 500:
        dim = round(10 ** rng.uniform(math.log10(2), 9))
        mu, epsilon = 10 ** rng.uniform(-3, 0.7), 10 ** rng.uniform(-3, 1.2)
        truth = GaussianLoss(mu).delta(epsilon)
        if truth.lower < 1e-30:
            continue
        found = RadialLoss(dim, float(dim), 2.0, mu / math.sqrt(2), 1e-9).delta(epsilon)
        assert found.lower <= truth.upper
        assert truth.lower <= found.upper
        if truth.lower >= 1e-12:
            assert found.relative_gap <= 1e-6  # rounding: small mu cancels
            assert abs((found.lower + found.upper) / (truth.lower + truth.upper) - 1) <= 1e-9, (dim, mu, epsilon)
        checked += 1


@pytest.mark.parametrize(
    ("dim", "b", "ratio", "epsilon"),
    [
        (3, 2.0, 0.5, 1.0),
        (3, 1.0, 0.8, 0.5),
        (3, 1.0, 0.8, 0.79),
        (3, 2.0, 0.01, 0.02),
        (5, 1.5, 0.4, 0.3),
        (5, 2.0, 0.3, 4.0),
        (7, 3.0, 0.3, 0.5),
        (7, 2.0, 0.02, 0.01),
    ],
)
def test_brackets_hold_an_interval_arithmetic_enclosure(dim, b, ratio, epsilon):
    truth = enclosure(dim, b, ratio, epsilon)
    for gap in (1e-5, 1e-7, 1e-9):
        bracket = RadialLoss(dim, float(dim), b, ratio, gap).delta(epsilon)
        assert arb(bracket.lower) <= truth
        assert truth <= arb(bracket.upper)


POINTS = [
    (2, 1.5, 2.0, 0.5, 0.7),
    (2, 1.99, 1.01, 0.9, 0.8),
    (2, 1.0, 2.0, 0.05, 0.1),
    (2, 2.0, 4.0, 0.3, 0.3),
    (3, 2.5, 1.2, 0.5, 0.5),
    (3, 1.0, 2.0, 0.1, 1.0),
    (3, 2.99, 1.0, 1.0, 0.98),
    (5, 4.95, 1.03, 1.0, 0.9),
    (5, 3.0, 2.0, 0.2, 0.5),
    (7, 7.0, 1.0, 0.5, 0.3),
    (14, 10.5, 2.0, 0.2, 1.0),
    (14, 13.7, 1.085, 0.6, 0.5),
    (14, 1.0, 2.0, 0.02, 0.1),
    (50, 48.8, 1.116, 0.3, 0.2),
    (50, 40.0, 2.0, 0.2, 0.5),
    (100, 97.6, 1.12, 0.5, 0.2),
    (1000, 900.0, 2.0, 0.5, 0.5),
    (1000, 990.0, 1.5, 0.6, 0.5),
    (10**5, 9e4, 2.0, 0.4, 0.5),
    (10**6, 9e5, 1.5, 3.0, 0.5),
]


@pytest.mark.parametrize(
    "point", [pytest.param(p, marks=() if i % 5 == 0 else pytest.mark.slow) for i, p in enumerate(POINTS)]
)
def test_brackets_hold_a_thirty_digit_double_integral(point):
    dim, a, b, ratio, epsilon = point
    truth, coarse = double_integral(*point, n=32), double_integral(*point, n=24)
    error = max(abs(truth - coarse), 1e-13 * truth)
    assert error <= 1e-8 * truth
    bracket = RadialLoss(dim, a, b, ratio, 1e-8).delta(epsilon)
    assert bracket.lower - error <= truth <= bracket.upper + error
    assert bracket.relative_gap <= 2e-8


@pytest.mark.parametrize("point", POINTS[::2], ids=str)
def test_brackets_hold_monte_carlo(point):
    """4 million draws of (radius, cosine); a correct bracket fails with probability at most 1e-6 per point."""
    dim, a, b, ratio, epsilon = point
    rng = np.random.default_rng(11)
    n = 4_000_000
    r = rng.gamma(a / b, size=n) ** (1 / b)
    x = np.sqrt(rng.beta(0.5, (dim - 1) / 2, n)) * rng.choice([-1.0, 1.0], n)
    log_ratio = 0.5 * np.log1p((ratio**2 + 2 * r * ratio * x) / r**2)
    loss = (dim - a) * log_ratio + r**b * np.expm1(b * log_ratio)
    terms = -np.expm1(np.minimum(epsilon - loss, 0.0))
    bracket = RadialLoss(dim, a, b, ratio).delta(epsilon)
    slack = stats.norm.isf(FALSE_ALARM / 2) * max(terms.std(), math.sqrt(bracket.upper / n)) / math.sqrt(n)
    assert bracket.lower - slack <= terms.mean() <= bracket.upper + slack
    wrong = RadialLoss(dim, a, b, ratio * 1.02).delta(epsilon)
    if bracket.upper > 1e-3:
        assert not wrong.lower - slack <= terms.mean()


def test_the_full_shift_is_the_worst_at_every_epsilon():
    epsilons = np.linspace(-4, 4, 41)
    for dim, a, b in ((2, 1.2, 2.0), (3, 2.9, 1.0), (14, 10.5, 2.0), (50, 50.0, 3.0)):
        previous = np.zeros(epsilons.size)
        for ratio in np.array([0.1, 0.3, 0.6, 0.9, 1.0]) * 2 * (a / b) ** (1 / b) / math.sqrt(dim):
            lower, upper = RadialLoss(dim, a, b, float(ratio)).hockey_stick(epsilons)
            assert (upper >= previous).all()
            previous = lower


def test_shapes_that_rise_away_from_zero_are_refused():
    with pytest.raises(ValueError, match="a must be at most dim"):
        RadialLoss(2, 100.0, 2.0, 1.0)


def test_multivariate_laplace_is_pure():
    loss = RadialLoss(5, 5.0, 1.0, 0.7)
    assert loss.delta(0.7).upper == 0
    assert loss.delta(0.7 - 1e-9).upper <= 2e-9
    assert loss.delta(0.69).lower > 0
    assert loss.pure == pytest.approx(0.7)


@pytest.mark.parametrize("shape", [(2, 2.0, 1.0), (3, 2.9, 1.2), (14, 10.5, 2.0), (10**6, 9e5, 2.0), (10**9, 1e9, 2.0)])
def test_calibration_is_private_and_tight(shape):
    loss = RadialLoss.calibrate(*shape, 1.0, 1e-5)
    assert loss.delta(1.0).upper <= 1e-5
    assert loss.delta(1.0).lower >= 1e-5 * (1 - 1e-6)
    bracket = loss.epsilon(1e-5)
    assert bracket.lower <= 1.0 <= bracket.upper * (1 + 1e-7)
    assert loss.delta(bracket.upper).upper <= 1e-5


def test_renyi_of_the_gaussian_member_and_where_it_ends():
    mu = 0.7
    for alpha in (1.5, 2.0, 8.0):
        bracket = RadialLoss(20, 20.0, 2.0, mu / math.sqrt(2)).renyi(alpha)
        assert bracket.lower <= alpha * mu**2 / 2 <= bracket.upper
        assert bracket.relative_gap < 5e-3
    assert RadialLoss(20, 18.0, 2.0, 0.5).renyi(9.9).upper < math.inf
    assert RadialLoss(20, 18.0, 2.0, 0.5).renyi(10.0).lower == math.inf


def test_profile_falls_and_both_ends_of_the_tail_hold():
    loss = RadialLoss(14, 10.5, 2.0, 0.2)
    epsilons = np.concatenate([[0.0, 1e-12, 1e-6], np.linspace(0.01, 30, 60), [1e3, 1e5]])
    lower, upper = loss.profile(epsilons)
    assert (lower[1:] <= upper[:-1]).all()
    assert (lower >= 0).all()
    assert upper[-1] < 1e-250
    assert 0 < lower[0] < 1


def test_a_release_costs_little_more_than_its_law():
    law = Radial(14, 10.5, 2.0, 4.0)
    base = RadialLoss(14, 10.5, 2.0, 0.25)
    released = ReleasedRadialLoss(base, *law.slip)
    ideal, actual = base.delta(1.0), released.delta(1.0)
    assert ideal.lower == actual.lower
    assert ideal.upper < actual.upper < ideal.upper * 1.001


def test_delta_at_any_epsilon_is_bracketed() -> None:
    loss = RadialLoss(100, 1.0, 2.0, 0.1)
    ends = [loss.delta(epsilon) for epsilon in (1e3, 1e4, 3e4, 1e5, 1e6)]
    assert all(later.upper <= earlier.upper for earlier, later in itertools.pairwise(ends))
    assert ends[2].lower > 0.999 * ends[2].upper
    assert [end.lower for end in ends[3:]] == [0.0, 0.0]
