"""The quantile functions: float64 accuracy as assumed, integer tails exact."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from shapedp.sampling import GAUSSIAN, LAPLACE

LAWS = [GAUSSIAN, LAPLACE]
ASSUMED = 2.0**-44


def tail(law, x):
    return mp.erfc(x / mp.sqrt(2)) / 2 if law is GAUSSIAN else mp.exp(-x) / 2


def density(law, x):
    return mp.npdf(x) if law is GAUSSIAN else mp.exp(-x) / 2


def points() -> np.ndarray:
    """u of [2^-24, 1/2]: log-uniform, uniform, near 1/2, and both sides of ndtri's branch points."""
    rng = np.random.default_rng(3)
    branch = [np.exp(-2.0), np.exp(-32.0), 0.5, 2.0**-24]
    near = [b * (1 + s * 2.0**-j) for b in branch for s in (-1, 1) for j in range(5, 53)]
    some = [
        2.0 ** -rng.uniform(1, 24, 2000),
        rng.uniform(0, 0.5, 1000),
        0.5 - 2.0 ** -rng.uniform(2, 54, 500),
    ]
    all_points = np.concatenate([*some, near])
    return all_points[(all_points >= 2.0**-24) & (all_points <= 0.5)]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_magnitude_is_sixteen_times_better_than_assumed(law):
    """One Newton step from the float: tail(x) - u over the density bounds the error, at 40 digits."""
    u = points()
    found = u.copy()
    law.magnitude(found)
    worst = 0.0
    with mp.workdps(40):
        for probability, value in zip(u, np.abs(found), strict=True):
            x = mpf(float(value))
            worst = max(worst, float(abs(tail(law, x) - mpf(float(probability))) / density(law, x)))
    assert worst < ASSUMED / 16


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_relative_change_of_u_moves_the_magnitude_as_stated(law):
    with mp.workdps(40):
        for x in np.linspace(0, 40, 400):
            assert tail(law, mpf(x)) / density(law, mpf(x)) <= mpf("1.2534")


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_tail_encloses_the_truth(law):
    draw = random.Random(11)
    for _ in range(800):
        bits = draw.choice([64, 128, 192, 640])
        size = draw.choice([1e-9, 1e-3, 1.0, 5.0, 40.0, 1e6])
        bound = Fraction(draw.random() * size) * Fraction(draw.randint(1, 999), draw.randint(1, 999))
        if not bound:
            continue
        low, high = law.tail(bound, bits)
        with mp.workprec(3 * bits + 400):
            truth = mp.ldexp(tail(law, mpf(bound.numerator) / bound.denominator), bits)
            assert low <= truth <= high
        assert 0 <= low <= high <= low + 2
