"""The exact profile of many Laplace coordinates: oracles, brackets, the worst point of a box, speed."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from scipy import integrate
from tests.reference import laplace as reference

from shapedp.accounting import compose
from shapedp.noise import Gaussian, Laplace, Mixed
from shapedp.numerics.inversion import stop_loss
from shapedp.numerics.laplace_sums import LaplaceSum, _compress, _factor, _log_factor, _turns
from shapedp.privacy.losses import GaussianLoss, LaplaceLoss, MixedLoss, loss_of
from shapedp.sensitivity import L1, L2, Blocks, Box


def exact(ratios) -> LaplaceLoss:
    ratios = np.asarray(ratios, dtype=float)
    return LaplaceLoss(float(ratios.sum()), ratios, worst=True)


@pytest.mark.parametrize(
    ("ratios", "epsilons"),
    [
        ([1.0, 1.0], [0.0, 0.3, 1.0, 1.9, 1.9999]),
        ([0.7, 0.05], [0.0, 0.6, 0.66, 0.74]),
        ([3.0, 2.0], [0.5, 4.9]),
        ([0.5, 0.5, 0.5], [0.5, 1.4]),
    ],
)
def test_brackets_hold_the_quadrature(ratios, epsilons):
    loss = exact(ratios)
    for epsilon in epsilons:
        bracket, truth = loss.delta(epsilon), float(reference.delta(ratios, epsilon, 20))
        assert bracket.lower * (1 - 1e-12) <= truth <= bracket.upper * (1 + 1e-12)
        assert bracket.relative_gap < 1e-6
    together = loss.profile(np.array(epsilons))
    for lower, upper, epsilon in zip(*together, epsilons, strict=True):
        assert lower <= float(reference.delta(ratios, epsilon, 20)) * (1 + 1e-12)
        assert upper >= float(reference.delta(ratios, epsilon, 20)) * (1 - 1e-12)


def test_one_coordinate_by_inversion_equals_the_closed_form():
    rng = np.random.default_rng(3)
    for _ in range(25):
        a = float(np.exp(rng.uniform(-5, 3)))
        epsilon = a * float(rng.uniform(0, 1))
        lower, upper = stop_loss(LaplaceSum.of(np.array([a])), np.array([epsilon]), nodes=2**14)
        truth = -math.expm1((epsilon - a) / 2)
        assert lower[0] <= truth * (1 + 1e-13)
        assert truth * (1 - 1e-13) <= upper[0]
        assert upper[0] - lower[0] < 1e-3 * upper[0]


@pytest.mark.parametrize(
    ("count", "ratio", "epsilon"), [(5, 0.3, 0.8), (40, 0.06, 1.0), (400, 0.0118, 1.0), (100, 0.05, 3.5)]
)
def test_agrees_with_composition_on_a_grid(count, ratio, epsilon):
    """Two engines: inversion of the transform, and convolution of discretised losses."""
    here = exact(np.full(count, ratio)).delta(epsilon)
    there = compose([(LaplaceLoss(ratio, np.array([ratio]), worst=True), count)]).delta(epsilon)
    assert here.lower <= there.upper
    assert there.lower <= here.upper
    assert here.relative_gap < 1e-5


def test_deep_tails_stay_bracketed():
    """Equal coordinates at the far end: only all-up and all-but-one-up count; P(all up) = 2^-K gives the scale."""
    loss = exact(np.full(20, 0.25))
    for epsilon in (4.9, 4.99, 4.999999):
        bracket = loss.delta(epsilon)
        assert bracket.upper >= 2.0**-20 * -math.expm1(epsilon - 5) * (1 - 1e-12)
        assert bracket.lower <= bracket.upper
        assert bracket.relative_gap < 1e-4
    assert loss.delta(5.0).upper == 0
    assert 0 < exact(np.full(1000, 0.004)).delta(3.9).upper < 1e-250


def test_gap_of_400_equal_coordinates():
    bracket = exact(np.full(400, 0.0119)).delta(1.0)
    assert bracket.relative_gap <= 1e-6
    assert 8e-7 < bracket.lower < 1.2e-6


def test_a_million_distinct_ratios_in_seconds():
    values = 10 ** np.random.default_rng(0).uniform(-4, 0, 10**6)
    values *= 0.2367 / np.sqrt((values**2).sum())
    start = time.perf_counter()
    bracket = loss_of(Laplace(1 / values), Box(np.ones(values.size))).delta(1.0)
    assert time.perf_counter() - start < 5
    assert bracket.relative_gap <= 1e-3
    # nearly Gaussian: mu = 0.2367 alone would give 1e-6
    assert 0.98e-6 < bracket.lower < 1.02e-6


def test_grouping_by_interpolation_changes_nothing():
    rng = np.random.default_rng(5)
    values = np.sort(10 ** rng.uniform(-3, -1.5, 3000))
    counts = np.ones(values.size)
    nodes, weights, *_ = _compress(values, counts)
    for t in (0.5, 3.0, 20.0):
        frequency = np.array([t])
        full = sum(complex(_log_factor(float(a), 7.0, frequency)[0]) for a in values)
        short = sum(w * complex(_log_factor(float(a), 7.0, frequency)[0]) for a, w in zip(nodes, weights, strict=True))
        assert abs(full - short) < 1e-9
        assert LaplaceSum.grouped(values, counts)._interpolation(abs(7.5 + 1j * t)) < 1e-6


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_large_and_small_ratios_together(power):
    """A few large ratios beside very many small ones: the former one by one, the latter by interpolation."""
    values = np.arange(1.0, 20001) ** -power
    values *= 0.25 / np.sqrt((values**2).sum())
    epsilon = min(1.0, 0.7 * float(values.sum()))
    bracket = exact(values).delta(epsilon)
    assert bracket.lower > 0
    assert bracket.relative_gap < 1e-4
    # rounding every ratio to 60 values from either side must bracket it
    edges = np.geomspace(values[-1] * (1 - 1e-12), values[0] * (1 + 1e-12), 60)
    place = np.clip(np.searchsorted(edges, values), 1, 59)
    assert exact(edges[place - 1]).delta(epsilon).lower <= bracket.upper
    assert bracket.lower <= exact(edges[place]).delta(epsilon).upper


def test_transform_of_one_coordinate():
    a, tilt = 0.8, 2.0

    def mgf(theta: complex) -> complex:
        inner = [
            integrate.quad(lambda x, part=part: part(np.exp(theta * x + (x - a) / 2) / 4), -a, a)[0]
            for part in (np.real, np.imag)
        ]
        return np.exp(theta * a) / 2 + np.exp(-a * (1 + theta)) / 2 + complex(*inner)

    t = np.array([0.0, 0.7, 5.0, 40.0])
    truth = np.array([mgf(tilt + 1j * x) / mgf(tilt) for x in t])
    inner = 0.25 / (tilt + 0.5 + 1j * t)
    rows, tips = _factor(np.array([a]), tilt, _turns(np.array([a]), t, None), inner, True)
    assert tips is not None
    whole, ends = rows[0], tips[0]
    np.testing.assert_allclose(whole, truth, rtol=1e-10)
    theta = tilt + 1j * t
    at_ends = (np.exp(theta * a) + np.exp(-a * (1 + theta))) / 2
    np.testing.assert_allclose(ends, at_ends / mgf(tilt), rtol=1e-10)
    np.testing.assert_allclose(np.exp(_log_factor(a, tilt, t)), truth, rtol=1e-10)
    value, first, second = LaplaceSum.of(np.array([a])).cumulants(tilt)
    step = 1e-4
    near = [math.log(mgf(tilt + d).real) for d in (-step, 0.0, step)]
    assert value == pytest.approx(near[1], rel=1e-10)
    assert first == pytest.approx((near[2] - near[0]) / (2 * step), rel=1e-6)
    assert second == pytest.approx((near[2] - 2 * near[1] + near[0]) / step**2, rel=1e-5)


def test_the_corner_is_the_worst_point_of_a_box():
    rng = np.random.default_rng(11)
    for _ in range(12):
        k = int(rng.integers(2, 6))
        corner = rng.uniform(0.05, 1.0, k)
        inside = corner * rng.uniform(0, 1, k)
        epsilon = float(rng.uniform(0, corner.sum()))
        assert exact(inside).delta(epsilon).lower <= exact(corner).delta(epsilon).upper


def test_a_vertex_is_the_worst_point_of_an_l1_ball():
    rng = np.random.default_rng(12)
    for _ in range(12):
        share = rng.dirichlet(np.ones(3))
        radius, epsilon = 1.5, float(rng.uniform(0, 1.5))
        worst = loss_of(Laplace(1.0, 3), L1(radius, 3)).delta(epsilon)
        assert exact(radius * share).delta(epsilon).lower <= worst.upper
        assert worst.relative_gap < 1e-12


def test_sets_without_a_known_worst_point_keep_the_pure_bound():
    for base in (L2(1.0, 3), Blocks([1.0, 0.5], [2, 1])):
        loss = loss_of(Laplace(1.0, 3), base)
        assert not loss.worst
        bracket = loss.delta(0.5)
        assert bracket.lower < bracket.upper
        assert bracket.upper == pytest.approx(-math.expm1((0.5 - loss.pure) / 2), rel=1e-12)


def test_epsilon_inverts_delta():
    loss = exact(np.full(100, 0.02))
    bracket = loss.epsilon(1e-5)
    assert loss.delta(bracket.upper).upper <= 1e-5
    assert bracket.relative_gap < 1e-6
    assert exact([0.1, 0.1]).epsilon(0.5).upper == 0


def test_renyi_of_one_coordinate():
    """Mironov 2017, Proposition 6: log(a/(2a-1) e^((a-1) x) + (a-1)/(2a-1) e^(-a x))/(a-1)."""
    x, alpha = 0.7, 3.5
    closed = math.log(
        alpha / (2 * alpha - 1) * math.exp((alpha - 1) * x) + (alpha - 1) / (2 * alpha - 1) * math.exp(-alpha * x)
    ) / (alpha - 1)
    bracket = exact([x]).renyi(alpha)
    assert bracket.lower <= closed <= bracket.upper
    assert bracket.relative_gap < 1e-10
    assert exact([x, x]).renyi(alpha).upper == pytest.approx(2 * closed, rel=1e-10)


def test_mixed_loss_joins_both_ends():
    epsilon = 1.0
    only = MixedLoss(np.zeros(1), 0.3).delta(epsilon)
    truth = GaussianLoss(0.3).delta(epsilon)
    assert only.lower <= truth.upper
    assert truth.lower <= only.upper
    assert only.relative_gap < 1e-9
    few = MixedLoss(np.array([0.5]), 0.2)
    # E over the Laplace coordinate of the Gaussian profile, by quadrature
    base = GaussianLoss(0.2)

    def tail(e: float) -> float:
        return float(base.hockey_stick(np.array([e]))[0][0])

    inner = integrate.quad(lambda x: math.exp((x - 0.5) / 2) / 4 * tail(epsilon - x), -0.5, 0.5, epsabs=1e-14)[0]
    value = tail(epsilon - 0.5) / 2 + math.exp(-0.5) / 2 * tail(epsilon + 0.5) + inner
    assert few.delta(epsilon).lower == pytest.approx(value, rel=1e-8)
    assert few.delta(epsilon).upper == pytest.approx(value, rel=1e-8)
    law = Mixed([2.0, 5.0], [False, True])
    assert loss_of(law, Box([1.0, 1.0])).delta(1.0).upper == MixedLoss(np.array([0.5]), 0.2).delta(1.0).upper
    with pytest.raises(TypeError, match="boxes"):
        loss_of(law, L2(1.0, 2))
    assert loss_of(Gaussian(1.0, 2), Box([1.0, 1.0])).mu == pytest.approx(math.sqrt(2))


def test_epsilons_far_beyond_the_inverted_window_pass_without_warnings():
    """Such a point lies hundreds of units right of the last node; delta there is 0 to any precision that matters."""
    scales = np.full(1000, 75.0)
    loss = loss_of(Mixed(scales, np.arange(1000) > 500), Box(np.geomspace(1.0, 0.1, 1000)))
    lower, upper = loss.profile(np.array([0.0, 0.05, 2.0, 400.0, 3000.0, 1e20]))
    assert (lower <= upper).all()
    assert (np.diff(upper) <= 0).all()
    assert upper[3] < 1e-100


@pytest.mark.parametrize("top", [0.02, 0.05])
def test_frequencies_that_are_left_out_have_a_product_below_what_counts(top):
    total, tilt = LaplaceSum.of(np.linspace(top / 5, top, 220)), 3.0
    t = 0.7 * np.arange(6000, dtype=np.float64)
    bound = total._faintness(tilt, t, 0)
    true = sum(np.real(_log_factor(float(a), tilt, t)) for a in total.values)
    assert (np.log(bound) >= np.maximum(true, -700) - 1e-9).all()
    assert 0.2 < (bound < 1e-22).mean() < 1  # most of them are left out, and some are not


def test_an_even_grid_of_frequencies_changes_nothing():
    rng = np.random.default_rng(5)
    for counts in (np.ones(20), np.r_[np.ones(19), 3.0]):
        total, tilt = LaplaceSum.grouped(np.sort(rng.uniform(0.01, 0.5, 20)), counts), 2.0
        even = 0.31 * np.arange(9000, dtype=np.float64)
        uneven = np.sort(np.append(even, rng.uniform(0, even[-1], 300)))
        whole, error = total.spectrum(tilt, even)
        other, other_error = total.spectrum(tilt, uneven)
        at = np.searchsorted(uneven, even)
        assert (np.abs(whole - other[at]) <= error + other_error[at]).all()
        log = sum(n * _log_factor(float(a), tilt, even) for a, n in zip(total.values, counts, strict=True))
        assert (np.abs(whole - np.exp(log)) <= error).all()
        assert error.max() < 1e-9
