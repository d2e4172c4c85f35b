"""Radial noise: one delta(eps), calibration at a fixed shape, the best shape, and 10,000 values of eps."""

from __future__ import annotations

import math
import statistics
import time

import numpy as np

from _harness import Result
from shapedp.noise.radial import best_shape
from shapedp.privacy.losses.radial import RadialLoss

DIMS = (2, 3, 5, 14, 50, 100, 1000, 10**6, 10**9)


def median_delta(gap: float, rounds: int) -> dict[str, float]:
    """Median and largest milliseconds of delta(eps) over dimensions, shapes and eps, at a relative gap."""
    times, gaps = [], []
    for dim in DIMS:
        for share, b in ((1.0, 2.0), (0.98, 1.1), (0.75, 2.0), (1 / dim, 2.0)):
            a = share * dim
            for epsilon in (0.1, 1.0):
                ratio = 0.8 * epsilon * (a / b) ** (1 / b) / math.sqrt(dim)
                loss = RadialLoss(dim, a, b, ratio, gap)
                best = math.inf
                for _ in range(rounds):
                    start = time.perf_counter()
                    bracket = loss.delta(epsilon)
                    best = min(best, time.perf_counter() - start)
                times.append(best)
                if bracket.lower >= 1e-12:
                    gaps.append(bracket.relative_gap)
    return {
        "median_ms": 1e3 * statistics.median(times),
        "largest_ms": 1e3 * max(times),
        "largest_relative_gap": max(gaps),
        "cases": len(times),
    }


def calibration(rounds: int) -> dict[str, float]:
    """Milliseconds of calibration at a fixed shape, by dimension."""
    out = {}
    for dim in DIMS:
        best = math.inf
        for _ in range(rounds):
            start = time.perf_counter()
            RadialLoss.calibrate(dim, 0.98 * dim, 1.1, 1.0, 1e-5)
            best = min(best, time.perf_counter() - start)
        out[f"dim {dim:g}"] = 1e3 * best
    return out


def shapes(dims: tuple[int, ...]) -> dict[str, float]:
    """Seconds of the search for the best shape."""
    out = {}
    for dim in dims:
        start = time.perf_counter()
        best_shape(dim, 1.0, 1e-5)
        out[f"dim {dim:g}"] = time.perf_counter() - start
    return out


def run(quick: bool) -> Result:
    rounds = 1 if quick else 3
    result = Result(
        "radial", what="radial noise: one delta(eps) for M up to 1e9, calibration, the best shape", peers={}
    )
    for gap, limit in ((1e-6, 10.0), (1e-8, 200.0)):
        found = median_delta(gap, rounds)
        result.figure(f"delta(eps) at {gap:g} relative, median ms", found["median_ms"], at_most=limit)
        result.figure(f"delta(eps) at {gap:g} relative, largest ms", found["largest_ms"])
        result.figure(f"largest relative gap where delta >= 1e-12, {gap:g} asked", found["largest_relative_gap"])
    fixed = calibration(rounds)
    result.figure("calibration at a fixed shape, largest ms over M", max(fixed.values()), at_most=300)
    for name, seconds in shapes((14,) if quick else (2, 3, 5, 14, 100)).items():
        result.figure(f"best shape, {name}, s", seconds, at_most=10)
    loss = RadialLoss(50, 48.8, 1.116, 0.2)
    many = 1000 if quick else 10_000
    start = time.perf_counter()
    loss.profile(np.linspace(0.0, 5.0, many))
    result.figure(f"{many} values of eps at once, s", time.perf_counter() - start)
    return result
