"""Tails in log space against 50 digits."""

from __future__ import annotations

import math
from collections.abc import Iterator

import mpmath as mp
import numpy as np
import pytest

from shapedp.numerics import laplace_log_tail, log1mexp, log_difference, mills, normal_log_density, normal_log_tail


@pytest.fixture(autouse=True)
def _fifty_digits() -> Iterator[None]:
    with mp.workdps(50):
        yield


def close(value: float, truth: mp.mpf, relative: float = 2e-15, absolute: float = 0.0) -> bool:
    return bool(abs(mp.mpf(float(value)) - truth) <= relative * abs(truth) + absolute)


POINTS = np.concatenate(
    [
        np.random.default_rng(1).uniform(-8, 40, 200),
        10.0 ** np.linspace(-300, 1, 40),
        -(10.0 ** np.linspace(-300, 0.9, 40)),
        [0.0],
    ]
)


def log_tail(x: float) -> mp.mpf:
    if x < 0:
        return mp.log1p(-mp.erfc(-mp.mpf(x) / mp.sqrt(2)) / 2)
    return mp.log(mp.erfc(mp.mpf(x) / mp.sqrt(2)) / 2)


@pytest.mark.parametrize("x", POINTS)
def test_normal_log_tail(x: float) -> None:
    assert close(normal_log_tail(x), log_tail(x), 1e-13)


@pytest.mark.parametrize("x", [1e2, 1e4, 1e8, 1e150])
def test_normal_log_tail_far_out(x: float) -> None:
    """log(1/x - 1/x^3) - x^2/2 - log sqrt(2 pi)."""
    big = mp.mpf(x)
    truth = -big * big / 2 - mp.log(mp.sqrt(2 * mp.pi)) + mp.log((1 - 1 / big**2 + 3 / big**4 - 15 / big**6) / big)
    assert close(normal_log_tail(x), truth, 1e-13)


@pytest.mark.parametrize("x", POINTS)
def test_mills_and_density(x: float) -> None:
    big = mp.mpf(x)
    density = mp.exp(-big * big / 2) / mp.sqrt(2 * mp.pi)
    assert close(normal_log_density(x), mp.log(density), 4e-16)
    if x > -7:
        assert close(mills(x), mp.erfc(big / mp.sqrt(2)) / 2 / density, 3e-15 * (1 + x * x))


@pytest.mark.parametrize("x", POINTS)
def test_laplace_log_tail(x: float) -> None:
    big = mp.mpf(x)
    truth = -mp.log(2) - big if x >= 0 else mp.log1p(-mp.exp(big) / 2)
    assert close(laplace_log_tail(x), truth)


@pytest.mark.parametrize("x", -np.concatenate([10.0 ** np.linspace(-300, 2.8, 120), [math.log(2)]]))
def test_log1mexp(x: float) -> None:
    truth = mp.log(-mp.expm1(mp.mpf(x))) if x > -1 else mp.log1p(-mp.exp(mp.mpf(x)))
    assert close(log1mexp(x), truth)


def test_log1mexp_ends() -> None:
    assert log1mexp(0.0) == -math.inf
    assert log1mexp(-math.inf) == 0.0


def test_log_difference() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        larger, gap = float(rng.uniform(-2000, 2000)), float(10 ** rng.uniform(-10, 3))
        smaller = larger - gap
        truth = mp.mpf(larger) + mp.log(-mp.expm1(mp.mpf(smaller) - mp.mpf(larger)))
        assert close(log_difference(larger, smaller), truth, 3e-16 * max(1, abs(larger)), 1e-14)
    assert log_difference(1.0, 1.0) == -math.inf
    assert log_difference(1.0, -math.inf) == 1.0
    assert log_difference(-math.inf, -math.inf) == -math.inf
