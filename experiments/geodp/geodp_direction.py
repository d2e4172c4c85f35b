"""What each noise does to the direction of a mean gradient at one certified claim (Definition 4, and the cosine)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shapedp.mechanisms import AngleWindows, MeanAngles, calibrate
from shapedp.numerics.hyperspherical import to_angles
from shapedp.papers.geodp.recipes import direction_mse, geodp
from shapedp.sensitivity import L2

Floats = NDArray[np.float64]
CLIP = 1.0


def gradients(batch: int, dim: int, rng: np.random.Generator) -> Floats:
    """Records that share a direction of length 1 and differ by noise of length 2."""
    shared = rng.standard_normal(dim)
    return shared / np.linalg.norm(shared) + rng.standard_normal((batch, dim)) * 2 / np.sqrt(dim)


def compare(batch: int, dim: int, runs: int, *, epsilon: float, delta: float) -> list[tuple[str, float, float, str]]:
    """Method, cosine with the mean of the clipped gradients, direction MSE, verdict."""
    rng = np.random.default_rng(0)
    rows = gradients(batch, dim, rng)
    clipped = L2(CLIP, dim).clip(rows, adjacency="add-remove")[0].sum(axis=0) / batch
    claim, size = {"epsilon": epsilon, "delta": delta}, {"dim": dim, "clip": CLIP, "batch": batch}
    ball = calibrate("gaussian", L2(CLIP, dim, adjacency="add-remove"), **claim)
    found = [("flat", [np.asarray(ball.release(clipped * batch, rng=rng)) / batch for _ in range(runs)], "certified")]
    for name, kind, options in (
        ("mean-angles", MeanAngles, {}),
        ("angle-windows, width 3", AngleWindows, {"width": 3.0}),
        ("angle-windows, width 1", AngleWindows, {"width": 1.0}),
    ):
        m = kind.calibrate(**size, **claim, **options)
        answer = m.query(rows)
        values = [m.release_query(answer, rng=rng).value for _ in range(runs)]
        found.append((name, values, m.certificate.verdict))
    for beta in (1.0, 0.1):
        m = geodp(dim=dim, sensitivity=CLIP, batch=batch, beta=beta, **claim)
        values = [m.release_mean(clipped, rng=rng, unsafe=True).value for _ in range(runs)]
        found.append((f"GeoDP as published, beta {beta:g}", values, m.certificate.verdict))
    return [(name, *_scores(np.stack(values), clipped), verdict) for name, values, verdict in found]


def _scores(values: Floats, mean: Floats) -> tuple[float, float]:
    cosine = values @ mean / (np.linalg.norm(values, axis=1) * np.linalg.norm(mean))
    angles = np.broadcast_to(to_angles(mean)[1], (len(values), mean.size - 1))
    return float(cosine.mean()), direction_mse(to_angles(values)[1], angles)
