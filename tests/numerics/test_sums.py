"""Sums and their error bounds, against exact rational sums."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapedp.numerics import sum_bounds


def exact(terms: np.ndarray) -> Fraction:
    return sum(map(Fraction, terms.tolist()), Fraction(0))


def check(terms: np.ndarray, relative: float = 0.0, slip: np.ndarray | None = None) -> tuple[float, float]:
    lower, upper = sum_bounds(terms, relative)
    truth = exact(terms)
    if slip is not None:
        truth += sum(
            (
                Fraction(t) * Fraction(relative) * Fraction(s)
                for t, s in zip(terms.tolist(), slip.tolist(), strict=True)
            ),
            Fraction(0),
        )
    assert Fraction(lower) <= truth <= Fraction(upper)
    return lower, upper


@settings(deadline=None, max_examples=300)
@given(st.lists(st.floats(-1e300, 1e300, allow_subnormal=True), max_size=60))
def test_short_sums(terms: list[float]) -> None:
    lower, upper = check(np.array(terms, dtype=np.float64))
    magnitude = sum(abs(t) for t in terms)
    assert upper - lower <= 2.0**-50 * magnitude + 1e-320


@settings(deadline=None, max_examples=300)
@given(st.lists(st.floats(0, 1e10), min_size=1, max_size=40), st.sampled_from([2.0**-53, 2.0**-52, 2.0**-50, 1e-6]))
def test_terms_that_are_off(terms: list[float], relative: float) -> None:
    """Every term off by as much as allowed, all the same way."""
    array = np.array(terms)
    for sign in (-1.0, 1.0):
        check(array, relative, np.full(array.size, sign))


@pytest.mark.parametrize("kind", ["uniform", "wild", "signed", "equal"])
def test_long_sums(kind: str) -> None:
    rng = np.random.default_rng(1)
    size = 50_001
    terms = {
        "uniform": rng.random(size),
        "wild": 10 ** rng.uniform(-20, 20, size),
        "signed": rng.standard_normal(size),
        "equal": np.full(size, 0.1),
    }[kind]
    lower, upper = check(terms)
    assert upper - lower <= 1e-13 * float(np.abs(terms).sum())


def test_strided_and_empty() -> None:
    check(np.random.default_rng(2).random(20_000)[::2])
    assert sum_bounds(np.empty(0)) == (0.0, 0.0)
    assert sum_bounds(np.zeros(5000)) == (0.0, 0.0)
    check(np.full(3, 5e-324))


@pytest.mark.parametrize("size", [2, 5000])
def test_overflow_gives_infinite_bounds(size: int) -> None:
    lower, upper = sum_bounds(np.full(size, 1e308))
    assert upper == math.inf
    assert 1e308 < lower < math.inf
    lower, upper = sum_bounds(np.concatenate([np.full(size, 1e308), np.full(size, -1e308)]))
    assert lower <= 0 <= upper


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("size", [3, 5000])
def test_refuses_what_is_not_finite(bad: float, size: int) -> None:
    terms = np.ones(size)
    terms[1] = bad
    with pytest.raises(ValueError, match="terms must be finite"):
        sum_bounds(terms)
