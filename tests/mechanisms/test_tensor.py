"""Calibration over tensors: closed forms against an optimiser, when direction helps, symmetries, releases."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from shapedp.mechanisms import Additive, DoesNotApplyError, advise, calibrate
from shapedp.noise import TensorGaussian
from shapedp.privacy import GaussianLoss, RefutedError
from shapedp.sensitivity import L1, L2, Blocks, Box, Slices

CLAIM = {"epsilon": 1.0, "delta": 1e-6}
MU = GaussianLoss.calibrate(1.0, 1e-6).mu


def searched(radii: np.ndarray, sums: np.ndarray) -> float:
    """Least sum_m W_m s_m^2 subject to sum_m C_m^2/s_m^2 = mu^2, over log s, the constraint met by scaling."""

    def error(logs: np.ndarray) -> float:
        squares = np.exp(2 * logs)
        return math.log(float(sums @ squares) * float((radii**2 / squares).sum()))

    found = optimize.minimize(error, np.zeros(radii.size), method="BFGS", options={"gtol": 1e-10})
    return math.exp(found.fun) / MU**2


@pytest.mark.parametrize("family", ["tensor", "gaussian"])
def test_slices_meet_a_general_optimiser(family):
    """100 random cases each: shapes, modes, bounds over two decades, weights."""
    rng = np.random.default_rng(17)
    for case in range(100):
        shape = tuple(int(n) for n in rng.integers(1, 6, size=int(rng.integers(2, 4))))
        mode = int(rng.integers(len(shape)))
        radii = 10.0 ** rng.uniform(-1, 1, size=shape[mode])
        weights = None if case % 2 else 10.0 ** rng.uniform(-1, 1, size=shape)
        m = calibrate(family, Slices(radii, shape, mode), weights=weights, **CLAIM)
        each = np.ones(shape) if weights is None else weights
        sums = np.moveaxis(each, mode, 0).reshape(shape[mode], -1).sum(axis=1)
        found = m.law.weighted_second_moment(each.reshape(-1))
        assert found == pytest.approx(searched(radii, sums), rel=1e-6)
        closed = float((radii * np.sqrt(sums)).sum()) ** 2 / MU**2
        assert found == pytest.approx(closed, rel=1e-8)


def test_no_covariance_does_better_on_slices():
    """Random full covariances scaled to the same mu, and small changes of the optimum: never less error."""
    rng = np.random.default_rng(3)
    radii = np.array([1.0, 0.2])
    m = calibrate("tensor", Slices(radii, (2, 2), 0), **CLAIM)
    angles = np.linspace(0, 2 * math.pi, 181)
    circle = np.stack([np.cos(angles), np.sin(angles)])
    first, second = np.meshgrid(np.arange(181), np.arange(181), indexing="ij")
    points = np.vstack([radii[0] * circle[:, first.ravel()], radii[1] * circle[:, second.ravel()]])
    best = np.diag(m.law.variances())
    for spread in (1.0, 0.1, 0.01):
        for _ in range(20):
            noise = rng.normal(size=(4, 4)) * spread
            root = (np.eye(4) + noise) @ np.sqrt(best)
            covariance = root.T @ root
            mu2 = (points * np.linalg.solve(covariance, points)).sum(axis=0).max()
            assert np.trace(covariance) * mu2 / MU**2 >= m.expected_squared_error * (1 - 1e-3)


def test_direction_helps_where_slices_differ():
    """Slice bounds k^-1.5 over 64 channels: 13.8 times less squared error than isotropic noise, exactly calibrated."""
    radii, shape = np.arange(1.0, 65) ** -1.5, (28, 28, 64)
    shaped = calibrate("tensor", Slices(radii, shape, 2), **CLAIM)
    even = calibrate("tensor", L2(float(np.linalg.norm(radii)), shape=shape), **CLAIM)
    gain = even.expected_squared_error / shaped.expected_squared_error
    assert gain == pytest.approx(64 * (radii**2).sum() / radii.sum() ** 2, rel=1e-6)
    assert gain > 5
    isotropic = Additive(even.law, shaped.sensitivity, **CLAIM)
    assert isotropic.certificate.verdict == "certified"
    weaker = Additive(TensorGaussian(even.law.modes, scale=0.999), shaped.sensitivity, **CLAIM)
    assert weaker.certificate.verdict == "refuted"


def test_direction_cannot_help_against_a_ball():
    """Any directional noise at the same mu has at least the isotropic error, whatever the weights."""
    rng = np.random.default_rng(4)
    ball, weights = L2(1.0, shape=(4, 3)), rng.uniform(0.1, 10, size=12)
    even = calibrate("tensor", ball, weights=weights, **CLAIM)
    for _ in range(20):
        factors = [np.eye(n) + rng.normal(size=(n, n)) * rng.choice([0.01, 1.0]) for n in (4, 3)]
        turned = calibrate("tensor", ball, factors=factors, **CLAIM)
        assert turned.law.weighted_second_moment(weights) >= even.law.weighted_second_moment(weights)
        assert turned.certificate.verdict == "certified"
        assert turned.loss.mu == pytest.approx(MU, rel=2e-5)


def test_equal_ranges_gain_from_weights_only():
    """A box of equal bounds: isotropic without weights, shaped by a product of weights."""
    box = Box(np.full((4, 3), 0.5))
    even = calibrate("tensor", box, **CLAIM)
    assert np.ptp(even.law.scales) < 1e-9
    weights = np.multiply.outer([1.0, 10.0, 100.0, 0.1], [1.0, 2.0, 3.0])
    shaped = calibrate("tensor", box, weights=weights, **CLAIM)
    plain = calibrate("gaussian", box, weights=weights, **CLAIM)
    np.testing.assert_allclose(shaped.law.scales, plain.law.scales, rtol=1e-8)
    flat = even.law.weighted_second_moment(weights.reshape(-1))
    assert shaped.law.weighted_second_moment(weights.reshape(-1)) < 0.7 * flat


radii_of = st.lists(st.floats(0.01, 100), min_size=2, max_size=6)


@settings(max_examples=40, deadline=None)
@given(radii_of, st.integers(0, 2), st.floats(0.01, 100), st.randoms(use_true_random=False))
def test_symmetries(values, mode, factor, random):
    """Never worse than isotropic; permuting slices permutes the noise; scaling the query scales it."""
    radii = np.array(values)
    shape = tuple(radii.size if k == mode else 2 for k in range(3))
    m = calibrate("tensor", Slices(radii, shape, mode), **CLAIM)
    even = calibrate("gaussian", L2(float(np.linalg.norm(radii)), shape=shape), **CLAIM)
    assert m.expected_squared_error <= even.expected_squared_error * (1 + 1e-9)
    order = list(range(radii.size))
    random.shuffle(order)
    moved = calibrate("tensor", Slices(radii[order], shape, mode), **CLAIM)
    np.testing.assert_allclose(
        moved.law.scales.reshape(shape), np.take(m.law.scales.reshape(shape), order, axis=mode), rtol=1e-9
    )
    larger = calibrate("tensor", Slices(radii * factor, shape, mode), **CLAIM)
    np.testing.assert_allclose(larger.law.scales, factor * m.law.scales, rtol=1e-9)


def test_slices_nobody_can_change():
    base = Slices([1.0, 0.0, 2.0], (3, 4), 0)
    with pytest.raises(ValueError, match="exact_zeros"):
        calibrate("tensor", base, **CLAIM)
    m = calibrate("tensor", base, exact_zeros=True, **CLAIM)
    x = np.random.default_rng(0).normal(size=(3, 4))
    value = m.release(x).value
    assert np.array_equal(value[1], x[1])
    assert (value[[0, 2]] != x[[0, 2]]).all()


@pytest.mark.parametrize("factors", [None, [np.array([[1.0, 0.4], [0.0, 2.0]]), np.array([1.0, 2.0, 3.0])]])
def test_releases_keep_the_shape(factors):
    m = calibrate("tensor", L2(1.0, shape=(2, 3)), factors=factors, **CLAIM)
    x = np.arange(6.0).reshape(2, 3)
    y = m.release(x)
    low, high = y.interval(0.95)
    assert y.value.shape == y.standard_error.shape == low.shape == high.shape == (2, 3)
    assert np.asarray(y).shape == (2, 3)
    many = m.release(np.stack([x] * 4), batch=4)
    assert many.value.shape == (4, 2, 3)
    assert many.interval(0.5)[0].shape == (4, 2, 3)
    assert many.spends == 4
    assert m.release(x.astype(np.float32)).value.dtype == np.float32
    for bad in (x.reshape(-1), x.T, np.zeros((2, 2, 3))):
        with pytest.raises(ValueError, match="shape"):
            m.release(bad)
    again = Additive.from_json(json.loads(json.dumps(m.to_json())))
    assert again.certificate.bracket == m.certificate.bracket
    assert again.shape == (2, 3)


def test_other_families_keep_the_shape():
    for family, base in (("gaussian", Box(np.ones((2, 3)))), ("laplace", L1(1.0, shape=(2, 3)))):
        m = calibrate(family, base, **CLAIM)
        assert m.release(np.zeros((2, 3))).value.shape == (2, 3)
    weighted = calibrate("gaussian", Box(np.ones((2, 3))), weights=np.full((2, 3), 2.0), **CLAIM)
    assert weighted.law.dim == 6


@pytest.mark.parametrize(
    ("base", "options", "word"),
    [
        (L2(1.0, 6), {}, "vector"),
        (Blocks([1.0, 2.0], [3, 3]), {}, "vector"),
        (Box(np.array([[1.0, 2.0], [3.0, 4.0]])), {}, "product"),
        (L2(1.0, shape=(2, 3)), {"factors": [3, 2]}, "shape"),
        (L2(1.0, shape=(2, 3)), {"factors": [np.ones((2, 1)), 3]}, "without noise"),
    ],
)
def test_what_is_not_served_is_refused_with_the_reason(base, options, word):
    with pytest.raises(DoesNotApplyError, match=word):
        calibrate("tensor", base, **options, **CLAIM)
    with pytest.raises(DoesNotApplyError, match="delta = 0"):
        calibrate("tensor", base, epsilon=1.0, delta=0.0)


def test_a_singular_covariance_is_refused():
    m = Additive(TensorGaussian([np.ones((2, 1)), 3]), L2(1.0, shape=(2, 3)), **CLAIM)
    with pytest.raises(RefutedError):
        m.release(np.zeros((2, 3)))


def test_advice_for_slices():
    ranked = advise(Slices([1.0, 0.1, 0.01], (4, 3), 1), **CLAIM)
    assert {a.family for a in ranked[:3]} == {"gaussian", "laplace", "tensor"}
    by_name = {a.family: a.expected_error for a in ranked}
    assert by_name["tensor"] == pytest.approx(by_name["gaussian"], rel=1e-8)
