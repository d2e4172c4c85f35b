"""Whole-number queries were charged for a rounding that does not happen: geometric noise on counts at up to twice its
epsilon, and (1 + dim) times it in higher dimension."""

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

import shapedp as sdp
from shapedp.mechanisms import Additive
from shapedp.noise import DiscreteLaplace, Gaussian
from shapedp.noise.staircase import Staircase
from shapedp.sensitivity import L1, L2, Box
from shapedp.sensitivity.io import sensitivity_from_json


def brute(steps, difference, epsilon, terms=400):
    """sum over k of (p(k) - e^eps p(k - v))_+ for independent geometric noise, one coordinate at a time exactly."""
    axes = []
    for step, v in zip(steps, difference, strict=True):
        k = np.arange(-terms, terms + 1)
        mass = np.tanh(0.5 / step) * np.exp(-np.abs(k) / step)
        other = np.tanh(0.5 / step) * np.exp(-np.abs(k - v) / step)
        axes.append((mass, other))
    p, q = axes[0]
    for mass, other in axes[1:]:
        p, q = np.multiply.outer(p, mass).ravel(), np.multiply.outer(q, other).ravel()
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def test_geometric_noise_on_counts_costs_one_over_steps():
    region = L1(1.0, dim=8, adjacency="add-remove").of_integers()
    mechanism = Additive(DiscreteLaplace(2.0, 1.0, 8), region, 0.5 * (1 + 1e-9), 0.0)
    assert mechanism.certificate.verdict == "certified"
    assert mechanism.loss.epsilon(0.0).upper == pytest.approx(0.5, rel=1e-12)
    same = Additive(DiscreteLaplace(2.0, 1.0, 8), L1(1.0, dim=8, adjacency="add-remove"), 0.5, 0.0)
    assert same.loss.epsilon(0.0).upper == pytest.approx(4.5, rel=1e-9)  # reals: every coordinate may round apart


@pytest.mark.parametrize("bounds", [(1.0,), (2.0,), (1.0, 2.0), (3.7,)])
def test_profile_holds_brute_force_over_all_integer_differences(bounds):
    region = Box(list(bounds), adjacency="replace").of_integers()
    steps = [1.0, 3.0][: len(bounds)]
    mechanism = Additive(DiscreteLaplace(steps, [1.0] * len(bounds), len(bounds)), region, 1.0, 0.0)
    differences = list(itertools.product(*(range(-int(b), int(b) + 1) for b in bounds)))
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        worst = max(brute(steps, v, epsilon, 60 if len(bounds) > 1 else 400) for v in differences)
        found = mechanism.loss.delta(epsilon)
        assert found.lower * (1 - 1e-9) - 1e-12 <= worst <= found.upper * (1 + 1e-9) + 1e-12


def test_a_grid_above_one_is_still_charged():
    region = Box([2.0]).of_integers()
    law = DiscreteLaplace([1.0], [2.0], 1)
    assert Additive(law, region, 1.0, 0.0).loss.epsilon(0.0).upper == pytest.approx(2.0)  # 1 and 3 round to 0 and 4


def test_staircase_on_counts():
    law = Staircase([1.0], [1.0], [2.0**30], [1.0])
    assert Additive(law, Box([1.0]).of_integers(), 1.0, 0.0).loss.epsilon(0.0).upper == pytest.approx(1.0)
    assert Additive(law, Box([1.0]), 1.0, 0.0).loss.epsilon(0.0).upper > 1.9


def test_only_integer_arrays_are_released():
    mechanism = sdp.calibrate("laplace", L1(1.0, dim=3, adjacency="add-remove").of_integers(), epsilon=1.0, delta=0.0)
    assert mechanism.release([4, 5, 6]).value.shape == (3,)
    for wrong in ([4.0, 5.0, 6.0], np.array([4.5, 5, 6]), np.array([4, 5, 6], dtype=np.float32)):
        with pytest.raises(TypeError, match="whole numbers"):
            mechanism.release(wrong)


def test_the_set_goes_through_json_and_nothing_else_becomes_whole():
    region = L1(1.7, dim=2, adjacency="replace").of_integers()
    assert region.radius == 1.0
    assert region.whole
    assert sensitivity_from_json(region.to_json()).to_json() == region.to_json()
    assert "whole" not in L1(1.0, dim=2).to_json()
    assert not region.scaled(2.0, None).whole
    for bad in (
        {**region.to_json(), "radius": 1.5},
        {**region.to_json(), "whole": "yes"},
        {**region.to_json(), "whole": 1},
    ):
        with pytest.raises((ValueError, TypeError)):
            sensitivity_from_json(bad)
    with pytest.raises(ValueError, match="L1 balls and boxes"):
        L2(1.0, dim=2).of_integers()
    with pytest.raises(ValueError, match="at least 1"):
        L1(0.5, dim=2).of_integers()


def test_the_independent_checker_agrees():
    check = pytest.importorskip("shapedp_check").check
    for region, law in (
        (Box([1.0, 2.0]).of_integers(), DiscreteLaplace([2.0, 5.0], [1.0, 0.5], 2)),
        (L1(3.0, dim=4).of_integers(), DiscreteLaplace(7.0, 0.25, 4)),
        (Box([1.0]).of_integers(), Staircase([1.0], [1.0], [2.0**29], [1.0])),
        (Box([2.0]).of_integers(), Gaussian(3.0, 1)),
    ):
        for epsilon in (0.1, 0.5, 1.0, 2.0):
            made = sdp.certify(Additive(law, region, epsilon, 1e-3), epsilon=epsilon, delta=1e-3)
            answer = check(json.loads(json.dumps(made.to_json())))
            assert made.bracket.upper >= answer.lower
            assert made.bracket.lower <= answer.upper
            assert {made.verdict, answer.verdict} != {"certified", "refuted"}


def test_counts_keep_their_exact_epsilon_in_many_dimensions():
    """The smallest noise for 1,000 counts is that of one count."""
    region = L1(1.0, dim=1000, adjacency="add-remove").of_integers()
    mechanism = sdp.calibrate("laplace", region, epsilon=1.0, delta=0.0)
    assert float(mechanism.law.scales.max()) <= 1 + 2.0**-18
    assert Fraction(float(mechanism.law.grid.max())) <= 1
