"""Losses whose compositions are finite sums, and those sums in 60 digits."""

from __future__ import annotations

from dataclasses import dataclass

import mpmath as mp
import numpy as np

from shapedp.numerics.arrays import Floats
from shapedp.privacy import Loss


@dataclass(frozen=True)
class ScalarLaplace(Loss):
    """One Laplace coordinate with ratio v/b: delta(e) = 1 - e^((e - ratio)/2) below the ratio."""

    ratio: float

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        value = -np.expm1(np.minimum(epsilon - self.ratio, 0.0) / 2)
        return value * (1 - 2.0**-50), np.where(value > 0, value * (1 + 2.0**-50), 0.0)


def response_delta(pure: float, failure: float, times: int, epsilon: float) -> mp.mpf:
    """Randomised response with mass `failure` at infinity, composed: a binomial sum."""
    with mp.workdps(60):
        e, f, target = mp.mpf(pure), mp.mpf(failure), mp.mpf(epsilon)
        p = 1 / (1 + mp.exp(-e))
        total = mp.mpf(0)
        for j in range(times + 1):
            loss = (2 * j - times) * e
            if loss > target:
                total += mp.binomial(times, j) * p**j * (1 - p) ** (times - j) * (1 - mp.exp(target - loss))
        return 1 - (1 - f) ** times * (1 - total)


def laplace_delta(ratio: float, times: int, epsilon: float) -> mp.mpf:
    """The Laplace loss composed: mass 1/2 at ratio, e^-ratio/2 at -ratio, density e^((x - ratio)/2)/4 between.

    With j atoms above, i below and n = times - i - j continuous parts the loss is ratio (2 j + n - times + ...) and the
    sum of n parts, exponentially tilted uniforms on [-ratio, ratio]: E_P e^(x/2) factors out and Irwin-Hall remains.
    """
    with mp.workdps(60 + 2 * times):
        r, target = mp.mpf(ratio), mp.mpf(epsilon)
        total = mp.mpf(0)
        scale = mp.exp(-r / 2)
        for n in range(times + 1):
            for j in range(times - n + 1):
                i = times - n - j
                weight = mp.factorial(times) / (mp.factorial(n) * mp.factorial(j) * mp.factorial(i))
                weight *= mp.mpf(2) ** -(i + j) * mp.exp(-r * i) * (scale / 4) ** n
                offset = r * (j - i)
                if offset + n * r <= target:
                    continue
                total += weight * _tilted_uniforms(n, r, target - offset)
        return total


def _tilted_uniforms(n: int, r: mp.mpf, target: mp.mpf) -> mp.mpf:
    """Integral over |x_i| <= r, s = sum x_i > target, of e^(s/2) (1 - e^(target - s))."""
    if n == 0:
        return 1 - mp.exp(target)
    # s has the density sum_k (-1)^k C(n, k) (s + n r - 2 r k)_+^(n-1)/(n-1)!; substitute y = n r - s downward.
    total = mp.mpf(0)
    span = n * r - target
    for k in range(n + 1):
        width = span - 2 * r * k
        if width <= 0:
            break
        # by symmetry of the density: s = n r - 2 r k - z, z in (0, width), z^(n-1)/(n-1)!
        start = n * r - 2 * r * k
        half = mp.mpf(1) / 2
        first = mp.exp(start / 2) * _lower_gamma(n, half, width)
        second = mp.exp(target - start / 2) * _lower_gamma(n, -half, width)
        total += (-1) ** k * mp.binomial(n, k) * (first - second)
    return total


def _lower_gamma(n: int, rate: mp.mpf, width: mp.mpf) -> mp.mpf:
    """Integral of z^(n-1)/(n-1)! e^(-rate z) over (0, width)."""
    x = rate * width
    tail = mp.mpf(0)
    term = mp.mpf(1)
    for m in range(n):
        if m:
            term *= x / m
        tail += term
    return (1 - mp.exp(-x) * tail) / rate**n


def gaussian_delta(epsilon: float, *terms: tuple[float, int]) -> mp.mpf:
    """Gaussians with (mu, count), composed: Phi(mu/2 - e/mu) - e^e Phi(-mu/2 - e/mu), mu^2 = sum n mu_i^2."""
    with mp.workdps(120):
        mu = mp.sqrt(sum(n * mp.mpf(each) ** 2 for each, n in terms))
        e = mp.mpf(epsilon)
        return mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu)
