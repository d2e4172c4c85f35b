"""Noise for whole numbers: exact sums of integers, integers out or a grid finer than one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from shapedp.boundary.values import plain
from shapedp.noise.gaussian import normal_half_width
from shapedp.numerics.checks import count, one_of, positive, probability
from shapedp.sampling import Source, discrete_laplace, rounded_sum

LAWS = ("laplace", "gaussian")
MOST_STEPS = 1 << 40
_FINE = 30  # bits of a scale in steps of its grid
_FLAT = 4.0  # from this scale on rounding adds 1/12 to the variance, up to 1e-100


@dataclass(frozen=True)
class WholeNoise:
    """Noise for integers: Laplace on the grid 2^-bits, or on the integers where `whole`; Gaussian, rounded exactly.

    Guarantee: a Laplace draw k has probability proportional to exp(-|k|/scale) on its grid, exactly; Gaussian noise is
    drawn and the sum rounded exactly, which is post-processing. A shift by d costs |d|/scale, as continuous noise does.

    Parameters: `law`, "laplace" or "gaussian"; `scale`, for Laplace noise a whole number of steps of 2^-bits.
    """

    law: str
    scale: float
    bits: int = 0
    whole: bool = True

    def __post_init__(self) -> None:
        plain(self)
        one_of("law", self.law, LAWS)
        positive("scale", self.scale)
        if count("bits", self.bits, least=0) > 40:
            raise ValueError(f"bits must be at most 40, got {self.bits}")
        if self.law == "gaussian" and not (self.whole and self.bits == 0 and 2.0**-20 <= self.scale <= 2.0**30):
            raise ValueError("Gaussian noise for whole numbers has a scale of 2^-20 to 2^30, and gives whole numbers")
        steps = self.scale * 2.0**self.bits
        if self.law == "laplace" and not (steps == math.floor(steps) and 1 <= steps <= MOST_STEPS):
            raise ValueError("the scale must be a whole number of steps, at most 2^40")

    @classmethod
    def above(cls, law: str, scale: float, whole: bool, room: int) -> WholeNoise:
        """Noise of at least this scale; `room` bits are left between the largest sum and 2^61."""
        if not scale <= MOST_STEPS:
            raise ValueError(
                f"noise of scale {scale:g} is beyond what exact draws are made for: claim a larger epsilon"
            )
        if law == "gaussian":
            return cls(law, max(scale, 2.0**-20))
        bits = min(max(_FINE - math.frexp(scale)[1], 0), 40 if whole else max(room, 0))
        steps = max(math.ceil(math.ldexp(scale, bits)), 1)
        return cls(law, math.ldexp(float(steps), -bits), bits, whole)

    @property
    def grid(self) -> float:
        """The grid of what is released."""
        return 1.0 if self.whole else 2.0**-self.bits

    def add_to(self, x: NDArray[np.int64], source: Source) -> NDArray[Any]:
        """x + noise: integers where `whole`, floats on the grid otherwise."""
        if self.law == "gaussian":
            noisy = rounded_sum(x.astype(np.float64), "gaussian", self.scale, 1.0, source)
            return np.asarray(noisy).astype(np.int64)
        steps, parts = int(math.ldexp(self.scale, self.bits)), 1 << self.bits
        if self.whole:
            return x + discrete_laplace(steps, x.shape, source, parts=parts)
        return (x * parts + discrete_laplace(steps, x.shape, source)) * self.grid

    @property
    def variance(self) -> float:
        """g^2/(2 sinh^2(g/(2 scale))) on a grid g; sigma^2 + 1/12 for a Gaussian that is not tiny."""
        if self.law == "laplace":
            return self.grid**2 / (2 * math.sinh(min(self.grid / (2 * self.scale), 300.0)) ** 2)
        if self.scale >= _FLAT:
            return self.scale**2 + 1 / 12
        k = np.arange(1, 80)
        return float(2 * (np.square(k) * (ndtr((k + 0.5) / self.scale) - ndtr((k - 0.5) / self.scale))).sum())

    def half_width(self, confidence: float) -> float:
        """The smallest c on the grid with P(|n| <= c) >= confidence."""
        level = probability("confidence", confidence)
        if self.law == "gaussian":
            return max(math.ceil(self.scale * normal_half_width(level) - 0.5), 0)
        q_log = -self.grid / self.scale
        return max(math.ceil(math.log((1 - level) * (1 + math.exp(q_log)) / 2) / q_log - 1), 0) * self.grid
