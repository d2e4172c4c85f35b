"""The released noise: its law, and what its low-order bits tell."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr
from tests.sampling.helpers import band, largest_gap

from shapedp.sampling import SecureSource, grid_for, rounded_sum


def laplace_cdf(x):
    return np.where(x < 0, np.exp(-np.abs(x)) / 2, 1 - np.exp(-np.abs(x)) / 2)


CDF = {"gaussian": ndtr, "laplace": laplace_cdf}


@pytest.mark.parametrize("law", CDF)
@pytest.mark.parametrize("fineness", [1.0, 2.0**13])
def test_distribution(law, fineness):
    """Kolmogorov-Smirnov (DKW) at false-alarm rate 1e-6; scales 2% off are rejected.

    P(y <= g k) = F((g k + g/2 - x)/scale) exactly, so a coarse grid is tested as sharply as a fine one.
    """
    scale, x = 3.7, 0.37
    grid = float(grid_for(scale)) * fineness
    y = rounded_sum(np.full(3_000_000, x), law, scale, grid, SecureSource())

    def gap(factor):
        return largest_gap(y, lambda v: CDF[law]((v + grid / 2 - x) / (scale * factor)))

    assert gap(1.0) < band(y.size)
    assert gap(1.02) > band(y.size)
    assert gap(0.98) > band(y.size)


def naive_laplace(x: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """The textbook release in float64: x + sign * log(u)."""
    sign = rng.choice([-1.0, 1.0], n)
    return x + sign * np.log(rng.integers(1, 2**53, n) * 2.0**-53)


def low_bits(y: np.ndarray) -> np.ndarray:
    """Code what low-order bits say: whether log(u) reaches y, place of the last set bit, bits above it."""
    guess = np.rint(np.exp(-np.abs(y)) * 2.0**53)
    reached = np.zeros(y.size, dtype=bool)
    for shift in range(-3, 4):
        u = np.clip(guess + shift, 1, 2.0**53) * 2.0**-53
        reached |= np.log(u) == -np.abs(y)
    mantissa, exponent = np.frexp(y)
    integer = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = integer & -integer
    place = exponent - 53 + np.round(np.log2(np.maximum(lowest, 1))).astype(int)
    place = np.clip(place, -64, -9)  # nothing above 2^-9 of the scale: that part may be told apart
    above = integer // np.maximum(lowest, 1) >> 1 & 7
    return (reached * 56 + (place + 64)) * 8 + np.where(place == -9, 0, above) + 1024 * np.signbit(y) * (y == 0)


def accuracy(at_zero: np.ndarray, at_other: np.ndarray) -> float:
    """Learn a table of codes on the first half, return its accuracy on the second."""
    half = at_zero.size // 2
    codes = [low_bits(y) for y in (at_zero, at_other)]
    counts = [np.bincount(c[:half], minlength=4096) for c in codes]
    says_other = counts[1] > counts[0]
    right = (~says_other[codes[0][half:]]).sum() + says_other[codes[1][half:]].sum()
    return float(right / (2 * (at_zero.size - half)))


@pytest.mark.parametrize("other", [1e-4, 1e-3, 1e-2])
def test_low_order_bits_tell_a_naive_release_apart_and_not_ours(other):
    """False-alarm rate 1e-6 (Hoeffding) for ours.

    At scale 1 no test of the ideal noise exceeds accuracy 1 - exp(-other/2)/2, here at most 0.5025; the
    naive release is told apart with accuracy above 0.75 by its low-order bits alone.
    """
    n = 400_000
    rng = np.random.default_rng(8)
    assert accuracy(naive_laplace(0.0, n, rng), naive_laplace(other, n, rng)) > 0.75
    allowed = band(n) + (1 - np.exp(-other / 2)) / 2
    for law in CDF:
        ours = [rounded_sum(np.full(n, x), law, 1.0, None, SecureSource()) for x in (0.0, other)]
        assert abs(accuracy(*ours) - 0.5) < allowed
