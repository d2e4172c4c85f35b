"""Staircase noise: exact errors, privacy of every neighbouring pair, draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from shapedp.mechanisms import calibrate
from shapedp.noise import L1Staircase, Mixed, Staircase, law_from_json
from shapedp.noise.staircase import UNITS, best_gamma, radial_moments
from shapedp.privacy import loss_of
from shapedp.sampling import source
from shapedp.sensitivity import L1, Box


def test_one_dimension_has_the_published_optimum():
    """E |n| = e^(eps/2)/(e^eps - 1); E n^2 = (2^(-2/3) b^(2/3) (1 + b)^(2/3) + b)/(1 - b)^2, b = e^-eps."""
    for epsilon in (0.3, 1.0, 3.0, 8.0):
        b = math.exp(-epsilon)
        mass, total = radial_moments(1, epsilon, best_gamma(1, epsilon, 1.0), 1.0)
        assert total / mass == pytest.approx(math.exp(epsilon / 2) / math.expm1(epsilon), rel=1e-9)
        mass, total = radial_moments(1, epsilon, best_gamma(1, epsilon, 2.0), 2.0)
        squared = (2 ** (-2 / 3) * b ** (2 / 3) * (1 + b) ** (2 / 3) + b) / (1 - b) ** 2
        assert total / mass == pytest.approx(squared, rel=1e-7)


def test_no_shift_within_the_width_beats_epsilon():
    law = Staircase(5, 2, UNITS, 1.0)
    k = np.arange(-60, 61, dtype=float)
    log_p = np.array([float(law.log_density(np.array([x]))) for x in k])
    assert math.fsum(np.exp(log_p)) == pytest.approx(1.0, abs=1e-4)
    for shift in range(6):
        gap = np.abs(log_p[: log_p.size - shift] - log_p[shift:])
        assert gap.max() <= 1.0 + 1e-12
    assert np.abs(log_p[6:] - log_p[:-6]).max() > 1.5


def test_draws_follow_the_density():
    """Chi-square over 41 cells; false-alarm rate 1e-6; a law with inner 3 instead of 2 is rejected."""
    law = Staircase(5, 2, UNITS // 2, 0.25)
    draws = np.rint(law.sample(40000, source(np.random.default_rng(1)))[:, 0] / 0.25).astype(int)
    cells = np.clip(draws, -20, 20) + 20
    seen = np.bincount(cells, minlength=41)

    def p_value(reference: Staircase) -> float:
        k = np.arange(-400, 401, dtype=float) * 0.25
        mass = np.exp([float(reference.log_density(np.array([x]))) for x in k])
        expected = np.bincount(np.clip(np.arange(-400, 401), -20, 20) + 20, weights=mass) * draws.size
        return float(stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue)

    assert p_value(law) > 1e-6
    assert p_value(Staircase(5, 3, UNITS // 2, 0.25)) < 1e-6


@pytest.mark.parametrize("error", ["absolute", "squared", "l3"])
def test_calibrated_staircases_are_pure_and_never_worse_than_laplace(error):
    base = Box([1.0, 0.2, 5.0])
    for epsilon in (0.5, 2.0, 9.0):
        staircase = calibrate("staircase", base, epsilon=epsilon, delta=0.0, error=error)
        assert staircase.certificate.verdict == "certified"
        laplace = calibrate("laplace", base, epsilon=epsilon, delta=0.0, error=error)
        assert staircase.expected_error(error) < laplace.expected_error(error)
        assert staircase.release([0.0, 1.0, 2.0]).value.shape == (3,)


def test_the_two_dimensional_law():
    law = L1Staircase(1.0, 2.0, 2)
    assert law.expected_error("absolute") == pytest.approx(0.9546, abs=5e-5)
    total = integrate.dblquad(lambda y, x: math.exp(float(law.log_density(np.array([x, y])))), 0, 6, 0, 6, epsabs=2e-2)[
        0
    ]
    assert 4 * total == pytest.approx(1.0, abs=2e-2)
    draws = law.sample(100000, source(np.random.default_rng(0)))
    radius = np.abs(draws).sum(axis=1)
    assert radius.mean() == pytest.approx(law.expected_error("absolute"), abs=5 * radius.std() / 316)
    assert (draws**2).sum(axis=1).mean() == pytest.approx(law.second_moment, rel=0.03)
    assert loss_of(law, L1(1 - 2.0**-45, 2)).pure == pytest.approx(2.0, rel=1e-12)
    assert loss_of(law, L1(1.0 + 4e-13, 2)).pure > 3.9  # a little wider is a level more
    assert loss_of(law, L1(1.5, 2)).pure == pytest.approx(4.0, rel=1e-12)
    with pytest.raises(ValueError, match="simulate"):
        law.add_to(np.zeros(2), source())


def test_laws_round_trip_through_json():
    for law in (
        Staircase([5, 9], [2, 4], [2**20, 2**28], [0.5, 2.0]),
        L1Staircase(2.0, 1.5, 3),
        Mixed([1.0, 2.0], [True, False]),
    ):
        again = law_from_json(law.to_json())
        np.testing.assert_array_equal(again.variances(), law.variances())
        assert again.kind == law.kind


def test_wrong_parameters_are_refused():
    for arguments in (
        (5, 6, 1, 1.0),
        (5, 0, 1, 1.0),
        (5.5, 2, 1, 1.0),
        (5, 2, 0, 1.0),
        (5, 2, 1, 0.3),
        ([5, 5], 2, 1, 1.0),
    ):
        with pytest.raises(ValueError, match=r"width|inner|grid|units"):
            Staircase(*arguments)
    with pytest.raises(ValueError, match="gamma"):
        L1Staircase(1.0, 1.0, 2, gamma=1.5)
    with pytest.raises(ValueError, match="one boolean per scale"):
        Mixed([1.0, 2.0], [True])


def test_draws_that_would_leave_the_integers_are_refused():
    with pytest.raises(ValueError, match="width is too large beside units"):
        Staircase([2**50], [1], [1], [1.0])
    assert Staircase([2**30], [1], [2**20], [1.0]).dim == 1
