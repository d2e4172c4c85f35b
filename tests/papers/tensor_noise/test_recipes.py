"""Tensor recipes: printed formulas, how loose they are, their optimum against a search, reshaping, sampling lemma."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize

from shapedp.mechanisms import calibrate
from shapedp.papers.recipes import RECIPES, idn, mvg, tvg, udn
from shapedp.sensitivity import L2

CLAIM = {"epsilon": 1.0, "delta": 1e-5}


def bound(total: int, epsilon: float, delta: float) -> float:
    zeta = math.sqrt(-2 * math.log(delta) + 2 * math.sqrt(-total * math.log(delta)) + total)
    return -zeta + math.sqrt(zeta**2 + 2 * epsilon)


@pytest.mark.parametrize(("total", "ratio"), [(100, 1.38e3), (10**4, 7.69e6), (10**6, 7.23e10)])
def test_theorem_1_is_loose(total, ratio):
    """Isotropic variance over the exactly calibrated one; certified, whatever the shape."""
    exact = calibrate("gaussian", L2(1.0, total), **CLAIM)
    for shape in ((total,), (total // 10, 10), (10, total // 100, 10)):
        m = tvg(shape=shape, sensitivity=1.0, **CLAIM)
        assert m.certificate.verdict == "certified"
        assert m.expected_squared_error / exact.expected_squared_error == pytest.approx(ratio, rel=5e-3)
    assert tvg(dim=total, sensitivity=1.0, **CLAIM).expected_squared_error == pytest.approx(
        m.expected_squared_error, rel=1e-12
    )


def test_the_optimum_of_theorem_1():
    """(24)-(25): the constraint is met with equality, and a search over all scales finds nothing less."""
    rng = np.random.default_rng(2)
    for _ in range(10):
        shape = tuple(int(n) for n in rng.integers(2, 5, size=2))
        weights = [10.0 ** rng.uniform(-1, 1, size=n) for n in shape]
        m = tvg(shape=shape, sensitivity=1.7, epsilon=0.8, delta=1e-4, weights=weights)
        limit = (bound(math.prod(shape), 0.8, 1e-4) / 1.7) ** 2
        inverse = math.prod(float((mode.scales**-2.0).sum()) for mode in m.law.modes)
        assert inverse == pytest.approx(limit, rel=1e-9)
        error = math.prod(float(w @ mode.scales**2) for w, mode in zip(weights, m.law.modes, strict=True))
        assert error == pytest.approx(math.prod(float(np.sqrt(w).sum()) for w in weights) ** 2 / limit, rel=1e-9)

        def searched(logs, weights=weights, shape=shape):
            parts = np.split(np.exp(2 * logs), np.cumsum(shape)[:-1])
            return sum(math.log(float(w @ s) * float((1 / s).sum())) for w, s in zip(weights, parts, strict=True))

        found = optimize.minimize(searched, np.zeros(sum(shape)), options={"gtol": 1e-9})
        assert error == pytest.approx(math.exp(found.fun) / limit, rel=1e-6)


def test_directions_change_neither_error_nor_claim():
    rng = np.random.default_rng(6)
    turns = [np.linalg.qr(rng.normal(size=(n, n)))[0] for n in (4, 3)]
    weights = [[1.0, 2.0, 3.0, 4.0], [1.0, 0.1, 5.0]]
    plain = tvg(shape=(4, 3), sensitivity=1.0, weights=weights, **CLAIM)
    turned = tvg(shape=(4, 3), sensitivity=1.0, weights=weights, directions=turns, **CLAIM)
    assert turned.law.second_moment == pytest.approx(plain.law.second_moment, rel=1e-6)
    assert turned.certificate.verdict == plain.certificate.verdict == "certified"
    assert turned.loss.mu == pytest.approx(plain.loss.mu, rel=1e-4)


def test_reshaping_keeps_the_recipe():
    """Corollary 2: the error depends on the entries' weights, not on the modes they are arranged in."""
    first, second = np.array([1.0, 3.0]), np.array([0.2, 5.0, 1.0])
    apart = tvg(shape=(2, 3), sensitivity=1.0, weights=[first, second], **CLAIM)
    flat = tvg(dim=6, sensitivity=1.0, weights=[np.outer(first, second).reshape(-1)], **CLAIM)
    np.testing.assert_allclose(apart.law.scales, flat.law.scales, rtol=1e-9)
    assert apart.loss.delta(1.0).upper == pytest.approx(flat.loss.delta(1.0).upper, rel=1e-3)


def test_theorems_2_and_3():
    """One directional mode; the box makes Frobenius exact: mu^2 = (s^2/I_1) |U_1^-1|_F^2."""
    shape, weights = (5, 4, 3), np.array([1.0, 2.0, 4.0, 8.0])
    u = udn(shape=shape, sensitivity=2.0, mode=1, weights=weights, **CLAIM)
    limit = bound(60, 1.0, 1e-5)
    inverse = u.law.modes[1].scales ** -2.0
    assert inverse.sum() == pytest.approx((limit / 2.0) ** 2, rel=1e-9)
    np.testing.assert_allclose(
        u.law.modes[1].scales ** 4 * weights, (u.law.modes[1].scales ** 4 * weights)[0], rtol=1e-9
    )
    assert [mode.scales.tolist() for mode in (u.law.modes[0], u.law.modes[2])] == [[1.0] * 5, [1.0] * 3]
    i = idn(shape=shape, sensitivity=2.0, mode=1, **CLAIM)
    inverse = i.law.modes[1].scales ** -2.0
    assert inverse.sum() == pytest.approx(4 / 2.0**2 * limit**2, rel=1e-9)
    assert i.loss.mu == pytest.approx(math.sqrt(2.0**2 / 4 * inverse.sum()), rel=1e-8)
    assert i.sensitivity.profile.max() == pytest.approx(2.0 / math.sqrt(60), rel=1e-12)
    assert u.certificate.verdict == i.certificate.verdict == "certified"
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    d = udn(shape=shape, sensitivity=2.0, mode=1, weights=weights, direction=turn, **CLAIM)
    assert d.loss.mu == pytest.approx(u.loss.mu, rel=1e-3)


def test_mvg():
    """The printed condition, met with equality; looser still than tvg, and certified."""
    m = mvg(shape=(6, 4), sensitivity=0.5, bound=3.0, **CLAIM)
    harmonic, half = 1 + 1 / 2 + 1 / 3 + 1 / 4, sum(1 / math.sqrt(k) for k in range(1, 5))
    alpha = (harmonic + half) * 9 + 2 * harmonic * 3 * 0.5
    zeta = 2 * math.sqrt(-24 * math.log(1e-5)) - 2 * math.log(1e-5) + 24
    beta = 2 * 24**0.25 * zeta * harmonic * 0.5
    limit = (-beta + math.sqrt(beta**2 + 8 * alpha)) ** 2 / (4 * alpha**2)
    sigma2 = m.law.variances()[0]
    assert math.sqrt(24) / sigma2 == pytest.approx(limit, rel=1e-6)
    assert m.certificate.verdict == "certified"
    assert m.expected_squared_error > tvg(shape=(6, 4), sensitivity=0.5, **CLAIM).expected_squared_error


def test_the_sampling_lemma_is_valid_and_loose():
    """Theorem D.2: at the sampling rate it prints, the exact amplification log(1 + q (e^e* - 1)) is at most e."""
    for epsilon in (0.01, 0.1, 0.5, 1.0):
        for base in (epsilon, 2 * epsilon, 1.5, 5.0):
            if base < epsilon:
                continue
            rate = math.expm1(epsilon) / (math.exp(base) + math.exp(epsilon) - math.exp(epsilon - base) - 1)
            assert 0 < rate < 1
            assert math.log1p(rate * math.expm1(base)) <= epsilon


@pytest.mark.parametrize(
    ("recipe", "options", "word"),
    [
        ("tvg", {"shape": (2, 3), "delta": 0.0}, "delta"),
        ("tvg", {"shape": (2, 3), "weights": [[1.0, 2.0]]}, "weights"),
        ("tvg", {"shape": (2, 3), "weights": [[1.0, 0.0], [1.0] * 3]}, "weights"),
        ("tvg", {"shape": (2, 3), "directions": [None]}, "directions"),
        ("tvg", {"shape": (2, 3), "directions": [np.ones((2, 2)), None]}, "orthogonal"),
        ("tvg", {"shape": (2, 3), "dim": 6}, "dim"),
        ("udn", {"shape": (2, 3), "mode": 2}, "mode"),
        ("udn", {"shape": (2, 3), "weights": [1.0]}, "weights"),
        ("idn", {"shape": (2, 3), "sensitivity": -1.0}, "sensitivity"),
        ("mvg", {"shape": (2, 3, 4)}, "matrices"),
        ("mvg", {"shape": (2, 3), "bound": -1.0}, "bound"),
    ],
)
def test_bad_calls(recipe, options, word):
    with pytest.raises(ValueError, match=word):
        RECIPES[recipe](**{"sensitivity": 1.0, **CLAIM, **options})
