"""Hyperspherical coordinates of a long vector, there and back, against a copy of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from _harness import Result, measure, ratio
from shapedp.numerics.hyperspherical import from_angles, to_angles

COPY, INTO, FORTH, BACK, NOISY = "copy", "copy into place", "to angles", "from angles", "from angles, noise 0.01"
PLAIN = "plain, as printed"


def _plain(x: NDArray[np.float64]) -> Callable[[], object]:
    """The formulas as printed: theta by arctan2 of tails, x by a cumulative product of sines."""

    def run() -> object:
        tails = np.sqrt(np.cumsum(np.square(x[::-1])))[::-1]
        theta = np.arctan2(tails[1:], x[:-1])
        products = np.cumprod(np.sin(theta))
        return np.concatenate([[1.0], products[:-1]]) * np.cos(theta)

    return run


def run(quick: bool) -> Result:
    d = 10**6 if quick else 10**7
    rng = np.random.default_rng(0)
    x = rng.standard_normal(d)
    norm, angles = to_angles(x)
    noisy = angles + 0.01 * rng.standard_normal(d - 1)
    place = np.empty_like(x)
    cases: dict[str, Callable[[], object]] = {
        COPY: lambda: x.copy(),
        INTO: lambda: np.copyto(place, x),
        FORTH: lambda: to_angles(x),
        BACK: lambda: from_angles(norm, angles),
        NOISY: lambda: from_angles(norm, noisy),
        PLAIN: _plain(x),
    }
    result = Result("hyperspherical", what=f"hyperspherical coordinates of {d:g} numbers")
    result.timings = measure(cases, rounds=5 if quick else 15)
    there = ratio(result.timings, FORTH, COPY)
    back = ratio(result.timings, BACK, COPY)
    result.ratio("round trip / copy", there + back, at_most=None if quick else 25.0)
    result.ratio("round trip / copy into place", ratio(result.timings, FORTH, INTO) + ratio(result.timings, BACK, INTO))
    result.ratio("noisy angles back / copy", ratio(result.timings, NOISY, COPY))
    result.ratio("plain formulas / copy", ratio(result.timings, PLAIN, COPY))
    error = float(np.abs(from_angles(norm, angles) / x - 1).max())
    result.figure("largest relative error of the round trip", error, at_most=1e-12)
    result.notes.append(
        "Both conversions allocate what they return, as x.copy() does; the other copy writes into memory at hand."
    )
    result.notes.append(
        "Nothing compiled: numpy on pieces of 65536 numbers, running sums as small matrix products, a thread per core."
    )
    return result
