"""Error measures: closed forms against an optimiser, and what every shaped calibration must respect."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, optimize

from shapedp.mechanisms import DoesNotApplyError, calibrate
from shapedp.noise import DiscreteLaplace, Gaussian, Laplace, Mixed, Staircase
from shapedp.noise.errors import Measure, measure_of
from shapedp.privacy import loss_of
from shapedp.sensitivity import L2, Blocks, Box

EPSILON, DELTA, MU = 1.0, 1e-6, 0.2367043806634


def least(base, weights, power: float, order: int) -> float:
    """min sum w_i b_i^p over scales of reach 1, by an optimiser over log b: error times reach^p has no unit.

    Gaussian blocks (order 2) have one scale per block, since only the smallest of a block counts.
    """
    groups = np.arange(base.dim) if isinstance(base, Box) else np.repeat(np.arange(base.sizes.size), base.sizes)
    bounds = base.profile if isinstance(base, Box) else base.radii
    tied = isinstance(base, Blocks) and order == 2
    expand = groups if tied else np.arange(base.dim)

    def value(z):
        ratio = np.exp(-z)
        if tied or isinstance(base, Box):
            reach = float(((bounds * ratio) ** order).sum()) ** (1 / order)
        else:
            reach = float(bounds @ np.sqrt(np.bincount(groups, ratio**2)))
        return math.log(float(weights @ np.exp(power * z[expand]))) + power * math.log(reach)

    start = np.log(bounds if tied else bounds[groups])
    found = optimize.minimize(value, start, method="BFGS", options={"gtol": 1e-10, "maxiter": 2000})
    return math.exp(found.fun)


def random_case(rng):
    dim = int(rng.integers(2, 7))
    bounds = np.exp(rng.normal(size=dim))
    if rng.random() < 0.5:
        base = Box(bounds)
    else:
        cut = int(rng.integers(1, dim))
        base = Blocks(bounds[:2], [cut, dim - cut])
    weights = np.exp(rng.normal(size=dim)) if rng.random() < 0.7 else None
    return base, weights, float(rng.choice([1.0, 1.5, 2.0, 3.0, 4.0]))


@pytest.mark.parametrize("seed", range(10))
def test_closed_forms_equal_a_numerical_optimiser(seed):
    """20 random cases per seed: weighted, l_p, box and blocks, both families."""
    rng = np.random.default_rng([5, seed])
    for _ in range(10):
        base, weights, power = random_case(rng)
        ones = np.ones(base.dim) if weights is None else weights
        claim = {"epsilon": EPSILON, "weights": weights, "error": ("lp", power)}
        gaussian = calibrate("gaussian", base, delta=DELTA, **claim)
        moment = Gaussian(1.0, 1).expected_error(("lp", power))
        closed = gaussian.expected_error(("lp", power), weights) / moment * MU**power
        assert closed == pytest.approx(least(base, ones, power, 2), rel=1e-6)
        laplace = calibrate("laplace", base, delta=DELTA, **claim)
        closed = laplace.expected_error(("lp", power), weights) / math.gamma(power + 1) * EPSILON**power
        assert closed == pytest.approx(least(base, ones, power, 1), rel=1e-6)


@pytest.mark.parametrize("family", ["gaussian", "laplace"])
@pytest.mark.parametrize("base", [Box([1.0, 0.2, 3.0]), Blocks([1.0, 0.4], [2, 1]), L2(1.0, 3, scales=[1.0, 2.0, 0.5])])
def test_the_worst_coordinate_is_the_limit_of_large_powers(family, base):
    weights = np.array([1.0, 4.0, 0.3])
    claim = {"epsilon": EPSILON, "delta": DELTA}
    best = calibrate(family, base, weights=weights, error="max", **claim)
    value = best.expected_error("max", weights)
    assert value == max(weights * best.law.variances())
    for power in (1.0, 2.0, 8.0):
        other = calibrate(family, base, weights=weights, error=("lp", power), **claim)
        assert value <= other.expected_error("max", weights) * (1 + 1e-9)


@pytest.mark.parametrize("p", [1.0, 2.0, 3.5])
def test_moments_against_quadrature(p):
    makers = (Gaussian, Laplace, lambda s: Mixed(s, [True]), lambda s: Mixed(s, [False]))
    for make in makers:
        law = make([0.7])

        def moment(x, law=law):
            return x**p * math.exp(float(law.log_density(np.array([x]))))

        assert law.absolute_moments(p)[0] == pytest.approx(2 * integrate.quad(moment, 0, 80)[0], rel=1e-7)
    lattice = DiscreteLaplace(7, 0.5, 1)
    k = np.arange(-2000, 2001)
    mass = np.exp(-np.abs(k) / 7)
    truth = float((mass / mass.sum()) @ np.abs(k * 0.5) ** p)
    assert lattice.expected_error(("lp", p)) == pytest.approx(truth, rel=1e-9)
    assert DiscreteLaplace(2**20, 2.0**-20, 3).expected_error(("lp", p)) == pytest.approx(
        3 * math.gamma(p + 1), rel=1e-9
    )


def test_measures_are_read_and_named():
    assert measure_of("l1") == measure_of("absolute") == measure_of(("lp", 1)) == Measure(1.0)
    assert measure_of("l2").name == "squared"
    assert measure_of(("lp", 2.5)).name == "l2.5"
    assert measure_of(measure_of("max").name).maximum
    for wrong in ("l0.5", "cubed", ("lp", 0.9), ("lp", math.nan), 3, "linf"):
        with pytest.raises((ValueError, TypeError)):
            measure_of(wrong)
    with pytest.raises(ValueError, match="error must be"):
        calibrate("gaussian", Box([1.0]), epsilon=1.0, delta=1e-6, error="cubed")


profiles = st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=6).map(np.array)
FAMILIES = st.sampled_from(["gaussian", "laplace"])
ERRORS = st.sampled_from(["squared", "absolute", "l3", "max"])


@settings(max_examples=60, deadline=None)
@given(profiles, FAMILIES, ERRORS, st.integers(0, 2**32 - 1))
def test_shaped_noise_is_never_worse_than_one_scale_and_follows_symmetries(bounds, family, error, seed):
    claim = {"epsilon": 0.7, "delta": 1e-6, "error": error}
    shaped = calibrate(family, Box(bounds), **claim)
    reach = bounds.sum() / 0.7 if family == "laplace" else np.sqrt(bounds @ bounds) / MU07
    same = (Laplace if family == "laplace" else Gaussian)(reach, bounds.size)
    assert loss_of(same, Box(bounds)).delta(0.7).lower <= 1e-6 * (1 + 1e-6)
    assert shaped.expected_error(error) <= same.expected_error(error) * (1 + 1e-9)
    order = np.random.default_rng(seed).permutation(bounds.size)
    permuted = calibrate(family, Box(bounds[order]), **claim)
    np.testing.assert_allclose(permuted.law.scales, shaped.law.scales[order], rtol=1e-9)
    scaled = calibrate(family, Box(bounds * 37.0), **claim)
    np.testing.assert_allclose(scaled.law.scales, shaped.law.scales * 37.0, rtol=1e-9)


MU07 = calibrate("gaussian", L2(1.0, 1), epsilon=0.7, delta=1e-6).loss.mu


@pytest.mark.parametrize("family", ["gaussian", "laplace", "mixed"])
@pytest.mark.parametrize("error", ["squared", "l3", "max"])
def test_zero_sensitivity_means_zero_noise_only_if_asked(family, error):
    bounds = np.concatenate([[1.0, 0.0], np.full(60, 0.01)])
    claim = {"epsilon": 1.0, "delta": 1e-6, "error": error}
    with pytest.raises(ValueError, match="exact_zeros"):
        calibrate(family, Box(bounds), **claim)
    try:
        mechanism = calibrate(family, Box(bounds), exact_zeros=True, **claim)
    except DoesNotApplyError:
        assert family == "mixed"
        return
    variances = np.broadcast_to(mechanism.law.variances(), bounds.size)
    assert variances[1] == 0
    assert (np.delete(variances, 1) > 0).all()
    x = np.arange(62.0)
    assert mechanism.release(x, rng=np.random.default_rng(0)).value[1] == 1.0


def test_families_without_the_measure_say_so():
    with pytest.raises(DoesNotApplyError, match="worst coordinate"):
        calibrate("staircase", Box([1.0]), epsilon=1.0, delta=0.0, error="max")
    assert isinstance(calibrate("staircase", Box([1.0]), epsilon=1.0, delta=0.0).law, Staircase)
