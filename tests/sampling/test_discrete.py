"""Exact discrete Laplace draws against their probabilities."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.stats import chi2
from tests.sampling.helpers import FALSE_ALARM, Refusing, band, largest_gap

from shapedp.sampling import (
    SecureSource,
    SimulatedSource,
    discrete_laplace,
    exponential_coins,
    geometric,
    source,
)

N = 500_000


def chi_square(sample: np.ndarray, t: float) -> float:
    """Return the p-value of the sample against P(k) ~ exp(-|k|/t), cells of at least 100 expected draws."""
    n = sample.size
    width = max(1, int(t / 8))
    ratio = np.exp(-1 / t)
    last = int(t * np.log(n * width / t / 100))
    edges = np.arange(-last, last + 1, width) - 0.5
    index = np.ceil(edges)  # P(k < edge) = P(k <= index - 1)
    below = np.where(index <= 0, ratio ** (1 - index) / (1 + ratio), 1 - ratio**index / (1 + ratio))
    cells = np.diff(np.concatenate([[0.0], below, [1.0]])) * n
    seen = np.diff(np.concatenate([[0], np.searchsorted(np.sort(sample), edges), [n]]))
    assert cells.min() > 20
    return float(chi2.sf(((seen - cells) ** 2 / cells).sum(), cells.size - 1))


@pytest.mark.parametrize("t", [1, 2, 3, 17, 1000])
def test_probabilities(t):
    """False-alarm rate 1e-6; a scale 2% off is rejected."""
    sample = discrete_laplace(t, N, SecureSource())
    assert chi_square(sample, t) > FALSE_ALARM
    assert chi_square(sample, 1.02 * t) < FALSE_ALARM
    assert chi_square(sample, 0.98 * t) < FALSE_ALARM


@pytest.mark.parametrize("t", [2**40 + 1, 2**50])
def test_large_steps(t):
    """False-alarm rate 1e-6 (Kolmogorov-Smirnov, DKW); a scale 2% off is rejected."""
    sample = discrete_laplace(t, 4 * N, SecureSource()) / t

    def cdf(scale):
        return lambda x: np.where(x < 0, np.exp(-np.abs(x / scale)) / 2, 1 - np.exp(-np.abs(x / scale)) / 2)

    assert largest_gap(sample, cdf(1.0)) < band(sample.size)
    assert largest_gap(sample, cdf(1.02)) > band(sample.size)
    assert largest_gap(sample, cdf(0.98)) > band(sample.size)


def test_low_bits_are_fair():
    """False-alarm rate 1e-6 for each of 16 bits and the sign."""
    sample = discrete_laplace(2**45, N, SecureSource())
    for bit in range(16):
        assert abs(float((sample >> bit & 1).mean()) - 0.5) < band(N)
    assert abs(float((sample > 0).mean()) - 0.5) < band(N)


def test_each_lane_has_its_own_steps():
    """False-alarm rate 1e-6 per column."""
    steps = np.array([1, 5, 100, 2**30])
    sample = discrete_laplace(steps, (200_000, 4), SecureSource())
    assert sample.shape == (200_000, 4)
    assert sample.dtype == np.int64
    for column, t in zip(sample.T[:3], steps[:3], strict=True):
        assert chi_square(column, float(t)) > FALSE_ALARM
    heavy = np.mean(np.abs(sample[:, 3]) > 2**30)
    assert abs(heavy - np.exp(-1)) < band(200_000)


def test_simulation_repeats_its_seed():
    first, second = (discrete_laplace(9, 70_000, SimulatedSource(np.random.default_rng(1))) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("shape", [0, (0, 3), (), 1, (2, 3), [4], np.int64(3)])
def test_shapes(shape):
    wanted = np.empty(shape).shape
    assert discrete_laplace(3, shape, SecureSource()).shape == wanted
    assert discrete_laplace(np.array(3), shape, SecureSource()).shape == wanted


def test_a_source_that_is_not_random_is_noticed():
    class Zeros:
        secure = False

        def words(self, n):
            return np.zeros(n, dtype=np.uint64)

    with pytest.raises(OverflowError, match="not random"):
        discrete_laplace(2**50, 3, Zeros())


BAD = [
    (0, 3, ValueError, "steps"),
    (-1, 3, ValueError, "steps"),
    (2**50 + 1, 3, ValueError, "steps"),
    (1.0, 3, TypeError, "steps"),
    (True, 3, TypeError, "steps"),
    (np.nan, 3, TypeError, "steps"),
    ("2", 3, TypeError, "steps"),
    (None, 3, TypeError, "steps"),
    (np.array([1, 0, 2]), 3, ValueError, "steps"),
    (np.array([1, 2]), 3, ValueError, "steps"),
    (np.array([2**63 + 5], dtype=np.uint64), 1, ValueError, "steps"),
    (1, -3, ValueError, "shape"),
    (1, (2, -1), ValueError, "shape"),
    (1, 2.0, TypeError, "shape"),
    (1, (2.0,), TypeError, "shape"),
    (1, None, TypeError, "shape"),
]


@pytest.mark.parametrize(("steps", "shape", "error", "name"), BAD)
def test_bad_calls_draw_nothing(steps, shape, error, name):
    with pytest.raises(error, match=f"^{name} must"):
        discrete_laplace(steps, shape, Refusing())


@pytest.mark.parametrize("steps", [1, 7, 1000])
def test_geometric_draws_follow_their_law(steps):
    """P(y >= q steps) = e^-q and the parity of y; false-alarm rate 1e-6; a scale 2% off is rejected."""
    n = 400_000
    draws = geometric(steps, n, source(np.random.default_rng(3)))
    assert draws.min() == 0
    for q in (1, 2, 4):
        hits = int((draws >= q * steps).sum())
        assert stats.binomtest(hits, n, math.exp(-q)).pvalue > FALSE_ALARM / 4
        for factor in (0.98, 1.02):
            assert q == 4 or stats.binomtest(hits, n, math.exp(-q * factor)).pvalue < FALSE_ALARM
    odd = int((draws % 2 == 1).sum())
    assert stats.binomtest(odd, n, 1 / (1 + math.exp(1 / steps))).pvalue > FALSE_ALARM / 4


def test_exponential_coins_have_their_chance():
    """e^-(numerator/denominator) for ratios below and above one; false-alarm rate 1e-6 each."""
    n = 400_000
    for numerator in (0, 3, 10, 25):
        heads = int(exponential_coins(np.full(n, numerator), 10, source(np.random.default_rng(numerator))).sum())
        assert stats.binomtest(heads, n, math.exp(-numerator / 10)).pvalue > FALSE_ALARM
        assert stats.binomtest(heads, n, math.exp(-numerator / 10) * 0.96).pvalue < FALSE_ALARM
