"""The shape of the noise: closed forms against numerical optimisers, symmetries, formulas, and cost."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from shapedp.mechanisms import calibrate
from shapedp.noise.request import optimal_scales
from shapedp.sensitivity import L1, L2, Blocks, Box

EPSILON, DELTA, MU = 1.0, 1e-6, 0.2367043806634  # MU: the reference root of the Gaussian profile
SETS = ("l2", "ellipsoid", "l1", "box", "blocks")
CLAIMS = {"gaussian": {"epsilon": EPSILON, "delta": DELTA}, "laplace": {"epsilon": EPSILON, "delta": 0.0}}
ROUNDING = {"gaussian": 1e-9, "laplace": 1e-5}  # pure noise lies on a grid, which costs up to 2^-18


def random_set(kind: str, rng: np.random.Generator):
    dim = int(rng.integers(2, 7))
    lengths = np.exp(rng.normal(size=dim))
    if kind == "blocks":
        cut = int(rng.integers(1, dim))
        return Blocks(lengths[:2], [cut, dim - cut])
    return {
        "l2": lambda: L2(lengths[0], dim),
        "ellipsoid": lambda: L2(lengths[0], dim, scales=np.exp(rng.normal(size=dim))),
        "l1": lambda: L1(lengths[0], dim),
        "box": lambda: Box(lengths),
    }[kind]()


def axes_of(base) -> np.ndarray:
    """The largest entry of each coordinate."""
    if isinstance(base, Box):
        return base.profile
    if isinstance(base, Blocks):
        return np.repeat(base.radii, base.sizes)
    return base.radius * (np.ones(base.dim) if getattr(base, "scales", None) is None else base.scales)


def groups_of(base) -> np.ndarray:
    return np.repeat(np.arange(len(base.sizes)), base.sizes)


def least_error(family: str, base, weights: np.ndarray) -> float:
    """min sum w_i s_i^2 over scales s whose reach over the set is 1, by an optimiser over log s.

    Where the reach is smooth: unconstrained, since error times squared reach does not depend on the unit.
    Where it is a maximum: each piece a constraint, the blocks' smallest scales being variables too.
    """
    axes, dim = axes_of(base), base.dim

    def log_error(z):
        return math.log(float(weights @ np.exp(2 * z[:dim])))

    start = np.log(axes)
    pointed = isinstance(base, L1) or (family == "gaussian" and isinstance(base, L2))
    if pointed:
        found = optimize.minimize(
            log_error,
            start + 1,
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-14},
            constraints={"type": "ineq", "fun": lambda z: z - start},
        )
        return math.exp(found.fun)
    if family == "gaussian" and isinstance(base, Blocks):
        groups, radii = groups_of(base), base.radii
        found = optimize.minimize(
            log_error,
            np.concatenate([start + 1, np.log(radii) + 1]),
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-14},
            constraints=[
                {"type": "ineq", "fun": lambda z: z[:dim] - z[dim:][groups]},
                {"type": "ineq", "fun": lambda z: 1 - float((radii**2) @ np.exp(-2 * z[dim:]))},
            ],
        )
        return math.exp(found.fun)

    def log_reach(z):
        ratio = axes * np.exp(-z)
        if isinstance(base, Box):
            return math.log(ratio.sum()) if family == "laplace" else 0.5 * math.log(ratio @ ratio)
        if isinstance(base, Blocks):
            return math.log(np.sqrt(np.bincount(groups_of(base), ratio**2)).sum())
        return 0.5 * math.log(ratio @ ratio)

    found = optimize.minimize(
        lambda z: log_error(z) + 2 * log_reach(z), start, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9}
    )
    return math.exp(found.fun)


def unit_error(family: str, error: float) -> float:
    """What a calibrated law's error would be at reach 1."""
    return error * MU**2 if family == "gaussian" else error * EPSILON**2 / 2


@pytest.mark.parametrize("family", ["gaussian", "laplace"])
@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("weighted", [False, True])
def test_closed_form_equals_the_optimiser(family, kind, weighted):
    rng = np.random.default_rng([len(family), SETS.index(kind), weighted])
    for _ in range(8):
        base = random_set(kind, rng)
        weights = np.exp(rng.normal(size=base.dim) * 1.5) if weighted else None
        mechanism = calibrate(family, base, **CLAIMS[family], weights=weights)
        ones = np.ones(base.dim) if weights is None else weights
        closed = unit_error(family, mechanism.law.weighted_second_moment(ones))
        assert closed == pytest.approx(least_error(family, base, ones), rel=2e-6 + ROUNDING[family])
        if weights is None:
            assert mechanism.expected_squared_error == mechanism.law.weighted_second_moment(None)


@st.composite
def requests(draw):
    dim = draw(st.integers(1, 8))
    sizes = st.floats(1e-4, 1e4)
    lists = st.lists(sizes, min_size=dim, max_size=dim)
    kind = draw(st.sampled_from(SETS))
    if kind == "box":
        base = Box(draw(lists))
    elif kind == "blocks":
        cuts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
        base = Blocks(draw(st.lists(sizes, min_size=len(cuts), max_size=len(cuts))), cuts)
    elif kind == "l1":
        base = L1(draw(sizes), dim)
    else:
        base = L2(draw(sizes), dim, scales=draw(lists) if kind == "ellipsoid" else None)
    weights = draw(st.none() | st.lists(sizes, min_size=base.dim, max_size=base.dim))
    return draw(st.sampled_from(["gaussian", "laplace"])), base, None if weights is None else np.array(weights)


@settings(max_examples=150, deadline=None)
@given(requests())
def test_never_worse_than_isotropic_at_the_same_claim(request):
    family, base, weights = request
    mechanism = calibrate(family, base, **CLAIMS[family], weights=weights)
    assert mechanism.certificate.verdict == "certified"
    reach = (base.l2_reach if family == "gaussian" else base.l1_reach)(np.ones(1))[1]
    total = base.dim if weights is None else float(weights.sum())
    isotropic = total * reach**2 * (1 / MU**2 if family == "gaussian" else 2 / EPSILON**2)
    assert mechanism.law.weighted_second_moment(weights) <= isotropic * (1 + ROUNDING[family])


@settings(max_examples=80, deadline=None)
@given(requests(), st.floats(1e-6, 1e6))
def test_scaling_the_query_scales_the_noise_and_the_unit_of_the_weights_is_free(request, factor):
    family, base, weights = request
    claim = CLAIMS[family]
    here = calibrate(family, base, weights=weights, **claim).law.scales
    there = calibrate(family, base.scaled(factor, None), weights=weights, **claim).law.scales
    np.testing.assert_allclose(there, here * factor, rtol=ROUNDING[family])
    if weights is not None:
        again = calibrate(family, base, weights=weights * factor, **claim).law.scales
        np.testing.assert_allclose(again, here, rtol=ROUNDING[family])


@pytest.mark.parametrize("family", ["gaussian", "laplace"])
@pytest.mark.parametrize("weighted", [False, True])
def test_permuting_coordinates_permutes_the_noise(family, weighted):
    rng = np.random.default_rng(2)
    profile, scales = np.exp(rng.normal(size=(2, 9)))
    weights = np.exp(rng.normal(size=9)) if weighted else None
    order = rng.permutation(9)

    def noise(base, weights):
        law = calibrate(family, base, **CLAIMS[family], weights=weights).law
        return np.broadcast_to(law.scales, law.dim)

    turned = None if weights is None else weights[order]
    boxes = noise(Box(profile), weights), noise(Box(profile[order]), turned)
    balls = noise(L2(2.0, 9, scales=scales), weights), noise(L2(2.0, 9, scales=scales[order]), turned)
    for here, there in (boxes, balls):
        np.testing.assert_allclose(there, here[order], rtol=ROUNDING[family])
        assert not np.allclose(there, here)
    sizes, radii = np.array([2, 3, 4]), np.array([0.5, 2.0, 1.0])
    per_block = np.array([1.0, 2.0, 0.3])
    w = np.repeat(per_block, sizes) if weighted else None
    u = np.repeat(per_block[::-1], sizes[::-1]) if weighted else None
    here, there = noise(Blocks(radii, sizes), w), noise(Blocks(radii[::-1], sizes[::-1]), u)
    np.testing.assert_allclose(there, here[::-1], rtol=ROUNDING[family])


def test_formulas_of_the_table():
    """The published forms, written out, at the reference root."""
    rng = np.random.default_rng(3)
    bound, w = np.exp(rng.normal(size=(2, 6)))
    root = np.sqrt(w)
    claim = {"epsilon": EPSILON, "delta": DELTA}

    box = calibrate("gaussian", Box(bound), weights=w, **claim).law
    np.testing.assert_allclose(np.square(box.scales), bound / root * (bound @ root) / MU**2, rtol=1e-9)
    assert box.weighted_second_moment(w) == pytest.approx((bound @ root) ** 2 / MU**2, rel=1e-9)

    sizes = np.array([1, 4, 2])
    radii, per = bound[:3], w[:3]
    roots = np.sqrt(per * sizes)
    blocks = calibrate("gaussian", Blocks(radii, sizes), weights=np.repeat(per, sizes), **claim).law
    want = radii / roots * (radii @ roots) / MU**2
    np.testing.assert_allclose(np.square(blocks.scales), np.repeat(want, sizes), rtol=1e-9)

    ball = calibrate("gaussian", L2(1.7, 6), weights=w, **claim).law
    assert ball.scales == pytest.approx([1.7 / MU], rel=1e-9)

    claim["delta"] = 0.0
    plain = calibrate("laplace", Box(bound), **claim).law
    np.testing.assert_allclose(plain.scales, np.cbrt(bound) * (bound ** (2 / 3)).sum() / EPSILON, rtol=1e-5)
    assert plain.second_moment == pytest.approx(2 * (bound ** (2 / 3)).sum() ** 3 / EPSILON**2, rel=1e-5)
    heavy = calibrate("laplace", Box(bound), weights=w, **claim).law
    np.testing.assert_allclose(
        heavy.scales * root, np.cbrt(bound * root) * ((bound * root) ** (2 / 3)).sum(), rtol=1e-5
    )
    cross = calibrate("laplace", L1(0.3, 6), **claim).law
    assert cross.scales == pytest.approx([0.3 / EPSILON], rel=1e-5)


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("epsilon", [1e-4, 1e-3, 1.0, 20.0])
@pytest.mark.parametrize("delta", [1e-25, 1e-12, 1e-6, 0.1])
def test_gaussian_claims_are_met_and_not_by_far(kind, epsilon, delta):
    """Certified, whatever rounding does at small epsilon, by a scale that is at most 1e-6 too large."""
    base = random_set(kind, np.random.default_rng(4))
    bracket = calibrate("gaussian", base, epsilon=epsilon, delta=delta).certificate.bracket
    assert delta * (1 - 1e-6) < bracket.upper <= delta


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 10.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_pure_claims_are_met_and_not_by_far(kind, epsilon, weighted):
    """delta = 0: noise on a grid, the rounding of the input included."""
    rng = np.random.default_rng(5)
    base = random_set(kind, rng)
    weights = np.exp(rng.normal(size=base.dim)) if weighted else None
    mechanism = calibrate("laplace", base, epsilon=epsilon, delta=0.0, weights=weights)
    assert mechanism.law.kind == "discrete-laplace"
    assert mechanism.certificate.bracket.upper == 0.0
    assert epsilon * (1 - 1e-5) < mechanism.loss.pure <= epsilon
    extra = float((1 / np.broadcast_to(mechanism.law.steps, base.dim)).sum())
    assert base.l1_reach(mechanism.law.scales)[0] + extra <= mechanism.loss.pure * (1 + 1e-12)


@settings(max_examples=60, deadline=None)
@given(st.floats(-5, 1.7), st.floats(-30, -0.4))
def test_rounding_never_leaves_a_calibration_undecided(log_epsilon, log_delta):
    claim = {"epsilon": 10**log_epsilon, "delta": 10**log_delta}
    assert calibrate("gaussian", Box([0.3, 1.0, 2.0]), **claim).certificate.verdict == "certified"


@pytest.mark.parametrize("unit", [1e-120, 1e-30, 1e30, 1e120])
@pytest.mark.parametrize("family", ["gaussian", "laplace"])
@pytest.mark.parametrize("kind", SETS)
def test_units_do_not_matter(family, kind, unit):
    base = random_set(kind, np.random.default_rng(6))
    here, there = (calibrate(family, b, **CLAIMS[family]).law.scales for b in (base, base.scaled(unit, None)))
    np.testing.assert_allclose(there, here * unit, rtol=ROUNDING[family])


@pytest.mark.parametrize("family", ["gaussian", "laplace"])
@pytest.mark.parametrize("unit", [1e-250, 1e250])
def test_noise_beyond_floats_is_refused(family, unit):
    with pytest.raises(ValueError, match="units"):
        calibrate(family, L2(unit, 3), **CLAIMS[family])


def test_coordinates_nobody_can_change():
    for base in (Box([1.0, 0.0, 2.0]), Blocks([1.0, 0.0], [2, 1])):
        for family, delta in (("gaussian", DELTA), ("laplace", DELTA), ("laplace", 0.0)):
            with pytest.raises(ValueError, match="exact_zeros"):
                calibrate(family, base, epsilon=EPSILON, delta=delta)
            mechanism = calibrate(family, base, epsilon=EPSILON, delta=delta, exact_zeros=True)
            quiet = mechanism.law.marginal_scales() == 0
            assert np.array_equal(quiet, base.fixed())
            x = np.array([0.1, 0.2, 0.3])
            y = mechanism.release(x).value
            assert np.array_equal(y[quiet], x[quiet])
            assert (y[~quiet] != x[~quiet]).all()
    dense = calibrate("gaussian", Box([1.0, 2.0]), epsilon=EPSILON, delta=DELTA)
    sparse = calibrate("gaussian", Box([1.0, 0.0, 2.0]), epsilon=EPSILON, delta=DELTA, exact_zeros=True)
    np.testing.assert_allclose(sparse.law.scales[[0, 2]], dense.law.scales, rtol=1e-12)


def cost(profile: np.ndarray, runs: int = 6) -> float:
    """Best time of a calibration, set included, over the best time of copying the profile, measured in turn.

    Three copies are held at a time, as many arrays as a calibration holds, so that both meet fresh memory alike.
    """
    copies, calibrations = [], []
    for _ in range(runs):
        start = time.perf_counter()
        held = [profile.copy() for _ in range(3)]
        middle = time.perf_counter()
        del held
        calibrate("gaussian", Box(profile), epsilon=EPSILON, delta=DELTA)
        calibrations.append(time.perf_counter() - middle)
        copies.append((middle - start) / 3)
    return min(calibrations) / min(copies)


@pytest.mark.slow
def test_ten_million_coordinates_cost_at_most_twenty_copies():
    profile = np.random.default_rng(7).lognormal(size=10**7)
    assert cost(profile) <= 20


@pytest.mark.parametrize("copies", [1, 7])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("top", [1e-120, 1.0, 1e120])
def test_scales_without_powers_are_those_of_the_formula(top, weighted, copies):
    rng = np.random.default_rng(24)
    bounds = np.where(rng.random(500) < 0.1, 0.0, 10.0 ** rng.uniform(-9, 0, 500)) * top
    weights = 10.0 ** rng.uniform(-6, 6, 500) if weighted else np.array([0.3])
    found = optimal_scales(bounds, weights, 2.0, 2, 0.7, copies=copies)
    relative = bounds / bounds.max()
    shape = (relative**2 / weights) ** 0.25
    reach = np.sqrt(copies * float((np.divide(relative, shape, where=shape > 0, out=np.zeros(500)) ** 2).sum()))
    assert found == pytest.approx(shape * reach * bounds.max() / 0.7, rel=1e-13)
    assert (found[bounds == 0] == 0).all()
