"""The Laplace loss: pure privacy, one coordinate in closed form, several by exact convolution, grids by brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb
from scipy.signal import fftconvolve
from tests.reference.gaussian import precision

from shapedp import L1, L2, Box, DiscreteLaplace, Laplace, LaplaceLoss, calibrate
from shapedp.numerics.arrays import Floats
from shapedp.privacy import loss_of


def closed_form(ratio: float, epsilon: float) -> arb:
    """1 - e^((epsilon - ratio)/2) below the ratio, else 0."""
    with precision(200):
        return 1 - ((arb(epsilon) - arb(ratio)) / 2).exp() if epsilon < ratio else arb(0)


def test_one_coordinate_against_the_closed_form() -> None:
    rng = np.random.default_rng(1)
    for _ in range(1000):
        ratio = float(10 ** rng.uniform(-6, 2))
        epsilon = float(rng.choice([0.0, ratio * rng.uniform(0, 1.2), ratio * (1 - 10 ** rng.uniform(-15, -1))]))
        bracket, truth = LaplaceLoss(ratio, [ratio], worst=True).delta(epsilon), closed_form(ratio, epsilon)
        assert arb(bracket.lower) <= truth <= arb(bracket.upper)
        assert bracket.gap <= 1e-13 * bracket.upper + 2e-15 * ratio


def sums(ratios: Floats, step: float) -> tuple[Floats, Floats, Floats]:
    """Loss values and masses of the sum with every loss rounded up, and the lowest rounded-down offset per point."""
    masses, lowest, width = np.ones(1), 0, 0
    for ratio in ratios:
        low, high = math.floor(-ratio / step), math.ceil(ratio / step)
        edges = np.arange(low, high + 1) * step
        cdf = np.where(edges >= ratio, 1.0, np.where(edges < -ratio, 0.0, 0.5 * np.exp((edges - ratio) / 2)))
        masses = fftconvolve(masses, np.append(cdf[0], np.diff(cdf)))
        lowest, width = lowest + low, width + 1
    values = (lowest + np.arange(masses.size)) * step
    return values, masses, np.array([width * step])


def enclosure(ratios: Floats, epsilon: float, step: float = 2.0**-11) -> tuple[float, float]:
    """Bounds on delta from rounding every coordinate's loss up, or down, to a grid."""
    values, masses, slack = sums(ratios, step)
    high = float((masses * np.maximum(-np.expm1(epsilon - values), 0)).sum())
    low = float((masses * np.maximum(-np.expm1(epsilon - (values - slack)), 0)).sum())
    return low - 1e-12, high + 1e-12


def test_the_oracle_itself() -> None:
    low, high = enclosure(np.array([1.3]), 0.4)
    assert low <= float(closed_form(1.3, 0.4)) <= high
    assert high - low < 1e-3


def test_several_coordinates_against_convolution() -> None:
    rng = np.random.default_rng(2)
    for _ in range(10):
        ratios = rng.uniform(0.05, 1.5, rng.integers(2, 5))
        epsilon = float(rng.uniform(0, ratios.sum()))
        low, high = enclosure(ratios, epsilon)
        for worst in (True, False):
            bracket = LaplaceLoss(float(ratios.sum()) * (1 + 2.0**-50), ratios, worst=worst).delta(epsilon)
            assert bracket.lower <= high
            assert low <= bracket.upper
            if worst:
                assert bracket.upper <= high + 1e-9
                assert bracket.lower >= low - 1e-9


def test_no_difference_in_the_ball_exceeds_the_upper_end() -> None:
    """Random differences of an L2 ball, of which no vertex is the worst."""
    rng = np.random.default_rng(3)
    law, ball = Laplace(1.0, 3), L2(1.5, 3)
    loss = loss_of(law, ball)
    for _ in range(10):
        v = rng.standard_normal(3)
        v *= 1.5 / np.linalg.norm(v)
        epsilon = float(rng.uniform(0, 2))
        assert enclosure(np.abs(v), epsilon)[0] <= loss.delta(epsilon).upper


def test_a_vertex_is_the_worst_of_the_cross_polytope() -> None:
    rng = np.random.default_rng(4)
    loss = loss_of(Laplace(1.0, 4), L1(2.0, 4))
    for _ in range(30):
        v = 2.0 * rng.dirichlet(np.ones(4))
        epsilon = float(rng.uniform(0, 2))
        assert enclosure(v, epsilon)[0] <= loss.delta(epsilon).upper


def test_pure_privacy_is_exactly_zero() -> None:
    for loss in (LaplaceLoss(1.0, [1.0]), LaplaceLoss(1.0, [0.5, 0.5]), LaplaceLoss(1.0, [0.5], continuous=False)):
        assert loss.delta(1.0).upper == 0.0
        assert loss.delta(math.nextafter(1.0, 0)).upper > 0
    exact = LaplaceLoss(1.0, [1.0]).epsilon(0.0)
    assert exact.upper == pytest.approx(1.0, rel=1e-12)
    assert exact.upper >= 1.0


def grid_delta(steps: Floats, shift: Floats, epsilon: float) -> float:
    """The hockey stick of discrete Laplace noise moved by whole steps, by summing over a box of integers."""
    masses, losses = np.ones(1), np.zeros(1)
    for s, m in zip(steps, shift, strict=True):
        k = np.arange(-60 * int(s), 60 * int(s) + 1)
        mass = math.tanh(0.5 / s) * np.exp(-np.abs(k) / s)
        loss = (np.abs(k + m) - np.abs(k)) / s
        values, where = np.unique(loss.round(12), return_inverse=True)
        gathered = np.bincount(where, weights=mass)
        masses, losses = np.outer(masses, gathered).ravel(), np.add.outer(losses, values).ravel()
    return float((masses * np.maximum(-np.expm1(epsilon - losses), 0)).sum())


def test_noise_on_a_grid_by_brute_force() -> None:
    """Inputs move by the profile and are rounded: at most one step more, at least the whole steps."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        steps, grid = rng.integers(3, 12, 2).astype(float), np.array([0.25, 0.5])
        profile = rng.uniform(0.3, 2.0, 2)
        loss = loss_of(DiscreteLaplace(steps, grid, 2), Box(profile))
        epsilon = float(rng.uniform(0, 1))
        whole, most = np.floor(profile / grid), np.floor(profile / grid) + 1
        assert loss.delta(epsilon).lower <= grid_delta(steps, whole, epsilon) + 1e-12
        assert grid_delta(steps, most, epsilon) <= loss.delta(epsilon).upper + 1e-12
        assert grid_delta(steps, most, loss.pure) <= 1e-12


def test_pure_calibration_is_certified_at_zero() -> None:
    for sensitivity in (L1(1.0, 3), L2(2.0, 3), Box([1.0, 0.1, 3.0])):
        mechanism = calibrate("laplace", sensitivity, epsilon=0.7, delta=0.0)
        assert mechanism.certificate.verdict == "certified"
        assert mechanism.loss.delta(0.7).upper == 0.0
        assert mechanism.loss.epsilon(0.0).upper == pytest.approx(0.7, rel=1e-5)


def test_infinite_ratio() -> None:
    """No noise at all: every output tells."""
    loss = loss_of(Laplace([0.0, 1.0]), Box([1.0, 1.0]))
    assert loss.delta(5.0).upper == 1.0
    assert loss.delta(5.0).lower > 0.25


def test_renyi_dominates_the_integral() -> None:
    """R(alpha) of one coordinate: log of alpha/(2 alpha - 1) e^((alpha-1) r) + (alpha-1)/(2 alpha - 1) e^(-alpha r)."""
    rng = np.random.default_rng(6)
    for _ in range(200):
        r, alpha = float(10 ** rng.uniform(-3, 1)), float(1 + 10 ** rng.uniform(-1, 1.3))
        ra, a = arb(r), arb(alpha)
        truth = (a / (2 * a - 1) * ((a - 1) * ra).exp() + (a - 1) / (2 * a - 1) * (-a * ra).exp()).log() / (a - 1)
        for worst in (True, False):
            bracket = LaplaceLoss(r, [r], worst=worst).renyi(alpha)
            assert arb(bracket.lower) <= truth <= arb(bracket.upper)


def test_a_ball_costs_no_more_than_its_cross_polytope() -> None:
    """Below randomised response, (1 - e^(epsilon - pure))/(1 + e^-pure), at every epsilon."""
    loss = loss_of(Laplace(1.0, 3), L2(1.0, 3))
    for epsilon in (0.0, 0.3, 1.0):
        response = -math.expm1(epsilon - loss.pure) / (1 + math.exp(-loss.pure))
        assert loss.delta(epsilon).upper < response
        assert loss.delta(epsilon).upper == pytest.approx(float(closed_form(loss.pure, epsilon)), rel=1e-9)
