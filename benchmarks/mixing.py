"""A private sketch through the Gram matrix, against the Gram matrix alone and the sketch as written."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from _harness import Result, measure, ratio
from shapedp.mechanisms import Mixing
from shapedp.mechanisms.mixing import draw_sketch
from shapedp.numerics.gram import gram
from shapedp.privacy.losses import MixingLoss
from shapedp.sampling import SecureSource

RELEASE, SAMPLE, BLOCKED = "shapedp, release", "shapedp, Gram and sample", "threaded Gram, blocks of 16384"
SKETCH, EXACT, REPLACE = "explicit sketch, numpy normals", "exact gamma, zero-out", "exact gamma, replace"


def _blocked(x: np.ndarray) -> np.ndarray:
    total = np.zeros((x.shape[1], x.shape[1]))
    for start in range(0, len(x), 1 << 14):
        part = x[start : start + (1 << 14)]
        total += part.T @ part
    return total


def _explicit(x: np.ndarray, k: int, sigma: float, rng: np.random.Generator) -> np.ndarray:
    """S X + sigma xi in blocks of records, so that S is never held whole."""
    y = sigma * rng.standard_normal((k, x.shape[1]))
    for start in range(0, len(x), 1 << 13):
        part = x[start : start + (1 << 13)]
        y += rng.standard_normal((k, len(part))) @ part
    return y


def run(quick: bool) -> Result:
    n, d, k = (20_000, 50, 200) if quick else (200_000, 100, 500)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d)) / np.sqrt(4 * d)
    m = Mixing.calibrate(rows=k, row_bound=1.0, epsilon=1.0, delta=1e-6, records=n, dim=d)
    variance = m.noise_variance
    cases: dict[str, Callable[[], object]] = {
        RELEASE: lambda: m.release(x),
        SAMPLE: lambda: draw_sketch(gram(x), k, variance, variance / 2, SecureSource()),
        BLOCKED: lambda: _blocked(x),
        SKETCH: lambda: _explicit(x, k, float(np.sqrt(variance)), rng),
    }
    result = Result("mixing", what=f"a sketch of {k} rows of {n} x {d} data; calibration at (1, 1e-6), k = 1000")
    result.timings = measure(cases, rounds=3 if quick else 5)
    result.timings |= measure(
        {
            EXACT: lambda: MixingLoss.calibrate(1000, 1.0, 1e-6),
            REPLACE: lambda: MixingLoss.calibrate(1000, 1.0, 1e-6, neighbours="replace"),
        },
        rounds=3 if quick else 7,
    )
    result.ratio(
        "explicit sketch / Gram and sample", ratio(result.timings, SKETCH, SAMPLE), at_least=None if quick else 5
    )
    result.ratio("Gram and sample / threaded Gram", ratio(result.timings, SAMPLE, BLOCKED))
    result.ratio("release, with the exact clip / Gram and sample", ratio(result.timings, RELEASE, SAMPLE))
    result.notes.append("The release also clips every row exactly; Gram blocks of 512 rows bound its rounding.")
    return result
