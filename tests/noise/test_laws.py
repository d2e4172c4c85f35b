"""Every law of the shared list: density, moments, sampler, error bars and JSON agree with each other."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from tests.laws import ELSEWHERE, LAWS

from shapedp import noise
from shapedp.noise import law_from_json
from shapedp.sampling import SecureSource, SimulatedSource

FALSE_ALARM = 1e-6
DRAWS = 600_000
EVERY = pytest.mark.parametrize("row", LAWS, ids=lambda row: row.name)


def nodes(row, law, i):
    """Points and weights that integrate over one coordinate: grid points, or Gauss-Legendre panels about zero."""
    if row.discrete:
        marginal = row.marginal(law, i)
        last = int(-marginal.ppf(1e-8) / row.grid(law)[i])
        return np.arange(-last, last + 1) * row.grid(law)[i], np.ones(2 * last + 1)
    t, w = np.polynomial.legendre.leggauss(24)
    edges = np.sqrt(np.broadcast_to(law.variances(), law.dim)[i]) * np.array([0, 0.5, 1.5, 3, 6, 12, 24])
    x = np.concatenate([(a + b) / 2 + (b - a) / 2 * t for a, b in itertools.pairwise(edges)])
    weights = np.concatenate([(b - a) / 2 * w for a, b in itertools.pairwise(edges)])
    return np.concatenate([-x[::-1], x]), np.concatenate([weights[::-1], weights])


def test_every_registered_law_is_tested():
    here = {row.make(1.0).kind for row in LAWS}
    assert not here & ELSEWHERE.keys()
    assert set(noise.LAWS) == here | ELSEWHERE.keys()
    assert all((Path(__file__).parents[1] / path).exists() for path in ELSEWHERE.values())
    assert {family.law.kind for family in noise.FAMILIES.values()} <= here | ELSEWHERE.keys()


@EVERY
def test_density_integrates_to_one_and_to_the_marginal(row):
    law = row.make(1.0)
    axes = [nodes(row, law, i) for i in range(law.dim)]
    if law.dim > 2:  # the first two coordinates carry the test; the others stay at zero, by independence
        assert row.independent
        rest = np.zeros(law.dim - 2)
        scale = np.exp(sum(float(np.log(row.marginal(law, i).pdf(0.0))) for i in range(2, law.dim)))
    else:
        rest, scale = np.zeros(0), 1.0
    grids = np.meshgrid(*(x for x, _ in axes[:2]), indexing="ij")
    points = np.stack([*grids, *(np.full(grids[0].shape, r) for r in rest)], axis=-1)
    density = np.exp(law.log_density(points)) / scale
    assert density.shape == grids[0].shape
    marginal = density if law.dim == 1 else density @ axes[1][1]
    assert marginal @ axes[0][1] == pytest.approx(1, abs=1e-7 if row.discrete else 1e-9)
    x, reference = axes[0][0], row.marginal(law, 0)
    if row.discrete:
        np.testing.assert_allclose(np.cumsum(marginal), reference.cdf(x), rtol=0, atol=1e-7)
    else:
        np.testing.assert_allclose(marginal, reference.pdf(x), rtol=1e-9, atol=1e-30 * marginal.max())


@EVERY
def test_moments(row):
    law = row.make(1.0)
    variances = np.broadcast_to(law.variances(), law.dim)
    np.testing.assert_allclose(variances, [row.marginal(law, i).var() for i in range(law.dim)], rtol=1e-9)
    assert law.second_moment == pytest.approx(variances.sum(), rel=1e-12)
    weights = np.arange(1.0, law.dim + 1)
    assert law.weighted_second_moment(weights) == pytest.approx(weights @ variances, rel=1e-12)
    np.testing.assert_allclose(law.marginal_scales(), np.sqrt(variances), rtol=1e-12)
    assert law.marginal_scales().shape == (law.dim,)


def goodness(draws: np.ndarray, reference) -> float:
    """The p-value of a chi-square test over 24 cells of about equal probability."""
    edges = np.unique(reference.ppf(np.arange(1, 24) / 24))
    probability = np.diff(np.concatenate([[0.0], reference.cdf(edges), [1.0]]))
    counts = np.bincount(np.searchsorted(edges, draws, side="left"), minlength=edges.size + 1)
    return float(stats.chisquare(counts, probability * draws.size).pvalue)


@EVERY
def test_sampler_matches_density_and_a_scale_two_percent_off_does_not(row):
    """Chi-square at false-alarm rate 1e-6 per coordinate, each draw from secure randomness."""
    law = row.make(1.0)
    draws = law.sample(DRAWS, SecureSource())
    assert draws.shape == (DRAWS, law.dim)
    for i in range(law.dim):
        assert goodness(draws[:, i], row.marginal(law, i)) > FALSE_ALARM
        for factor in (0.98, 1.02):
            assert goodness(draws[:, i], row.marginal(row.make(factor), i)) < FALSE_ALARM
    scale = law.marginal_scales()
    squares = np.square(draws / scale)
    error = squares.std(axis=0) / np.sqrt(DRAWS)
    assert (np.abs(squares.mean(axis=0) - 1) < 5.2 * error).all()  # normal quantile of 1e-6 over both tails, bounded
    assert (5.2 * error < 0.03).all()  # it would see a scale 2% off
    total = float(np.square(draws / scale.max()).sum(axis=1).mean())
    assert total == pytest.approx(law.second_moment / scale.max() ** 2, rel=0.03)


def contingency(a: np.ndarray, b: np.ndarray) -> float:
    """The p-value of independence over a 6 by 6 table of sextiles."""

    def sextile(v):
        return np.searchsorted(np.quantile(v, np.arange(1, 6) / 6), v)

    table = np.bincount(sextile(a) * 6 + sextile(b), minlength=36).reshape(6, 6)
    return float(stats.chi2_contingency(table + 1e-9).pvalue)


@EVERY
def test_draws_are_independent_of_each_other(row):
    """From one call, rows one and two apart, and between calls; false-alarm rate 1e-6 per pair."""
    law = row.make(1.0)
    first, second = (law.sample(60_000, SecureSource()) for _ in range(2))
    pairs = [(first[1:, i], first[:-1, i]) for i in range(law.dim)]
    pairs += [(first[2:, i], first[:-2, i]) for i in range(law.dim)]
    pairs += [(first[:, i], second[:, i]) for i in range(law.dim)]
    if row.independent:
        pairs += [(first[:, i], first[:, j]) for i, j in itertools.combinations(range(law.dim), 2)]
    for a, b in pairs:
        assert contingency(a, b) > FALSE_ALARM
    scale = law.marginal_scales()[0]
    assert (
        contingency(first[:, 0], first[:, 0] + scale * 8 * np.random.default_rng(1).normal(size=60_000)) < FALSE_ALARM
    )


@EVERY
def test_draws_lie_on_the_grid_whatever_the_input(row):
    law = row.make(1.0)
    grid = row.grid(law)
    rng = np.random.default_rng(3)
    x = rng.normal(size=(500, law.dim)) * law.marginal_scales()
    before = x.copy()
    for source in (SecureSource(), SimulatedSource(rng)):
        y = law.add_to(x, source)
        assert np.array_equal(x, before)
        assert y.dtype == np.float64
        assert np.array_equal(np.rint(y / grid) * grid, y)
        assert not np.array_equal(y, np.rint(x / grid) * grid)
    same = [law.add_to(x, SimulatedSource(np.random.default_rng(9))) for _ in range(2)]
    assert np.array_equal(*same)


@EVERY
@pytest.mark.parametrize("confidence", [0.01, 0.5, 0.95, 1 - 1e-9])
def test_half_widths_cover_exactly(row, confidence):
    law = row.make(1.0)
    half = np.broadcast_to(law.half_widths(confidence), law.dim)
    for i in range(law.dim):
        marginal, grid = row.marginal(law, i), row.grid(law)[i]

        def mass(c, marginal=marginal, grid=grid):
            return 1 - 2 * marginal.cdf(-c - grid) if row.discrete else 1 - 2 * marginal.cdf(-c)

        if row.discrete:
            assert mass(half[i]) >= confidence - 1e-13
            assert half[i] == 0 or mass(half[i] - grid) < confidence
        else:
            assert mass(half[i]) == pytest.approx(confidence, rel=1e-9)
            assert 1 - mass(half[i]) == pytest.approx(1 - confidence, rel=1e-5)


@EVERY
@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, 95, float("nan"), None, "0.95", True])
def test_bad_confidence(row, bad):
    with pytest.raises((ValueError, TypeError), match="confidence"):
        row.make(1.0).half_widths(bad)


@EVERY
def test_json_restores_the_law(row):
    law = row.make(1.0)
    again = law_from_json(json.loads(json.dumps(law.to_json())))
    assert type(again) is type(law)
    assert again.to_json() == law.to_json()
    assert again.dim == law.dim
    assert np.array_equal(again.scales, law.scales)
    x = np.ones((2, law.dim)) * row.grid(law)
    assert np.array_equal(again.log_density(x), law.log_density(x))
    y = [one.add_to(x, SimulatedSource(np.random.default_rng(4))) for one in (law, again)]
    assert np.array_equal(*y)


@EVERY
def test_density_is_symmetric_and_falls(row):
    law = row.make(1.0)
    x = np.arange(1, 9)[:, None] * row.grid(law) * (1 if row.discrete else 2.0**14)
    here = law.log_density(x)
    assert here.shape == (8,)
    assert (np.diff(here) < 0).all()
    assert np.array_equal(here, law.log_density(-x))
