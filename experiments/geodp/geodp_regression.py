"""Softmax regression on MNIST with clipped per-example gradients, one noisy step at a time (figure 1).

The text gives C = 0.1, B, beta and, for panel (c), sigma. Sigma of panels (a) and (b) and the learning rate are not in
it: those are chosen here. Windowed angles release the mean norm, which does not shrink where gradients cancel, and
take a smaller rate.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.mechanisms import Additive, AngleWindows, MeanAngles
from shapedp.mechanisms.angles import polar
from shapedp.noise import Gaussian
from shapedp.numerics.hyperspherical import from_angles
from shapedp.papers.datasets import load_mnist
from shapedp.papers.geodp.recipes import geodp
from shapedp.privacy import GaussianLoss
from shapedp.sensitivity import L2

Floats = NDArray[np.float64]
CLIP, DELTA, CLASSES = 0.1, 1e-5, 10
RATE, WINDOW_RATE, AUTHORS_RATE = 10.0, 1.0, 0.1


class Regression:
    """MNIST with a constant column, weights of shape (10, 785): d = 7850."""

    def __init__(self) -> None:
        data = load_mnist()
        train = data.splits["train"]
        pixels = data.x[train].reshape(-1, 784) / 255.0
        self.x = np.hstack([pixels, np.ones((len(pixels), 1))])
        self.y = data.y[train].astype(np.int64)
        self.norms = np.linalg.norm(self.x, axis=1)
        self.dim = CLASSES * self.x.shape[1]

    def errors(self, weights: Floats, rows: NDArray[np.int64]) -> tuple[Floats, float]:
        """p - y of each record, and the mean cross-entropy."""
        scores = self.x[rows] @ weights.T
        scores -= scores.max(axis=1, keepdims=True)
        scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
        loss = -float(scores[np.arange(len(rows)), self.y[rows]].mean())
        found = np.exp(scores)
        found[np.arange(len(rows)), self.y[rows]] -= 1
        return found, loss

    def clipped_sum(self, errors: Floats, rows: NDArray[np.int64]) -> Floats:
        """The sum of gradients e x^T clipped to C, without laying them out."""
        sizes = np.linalg.norm(errors, axis=1) * self.norms[rows]
        return ((errors / np.maximum(sizes / CLIP, 1.0)[:, None]).T @ self.x[rows]).reshape(-1)

    def gradients(self, errors: Floats, rows: NDArray[np.int64]) -> Floats:
        """The gradients themselves, one per row."""
        return (errors[:, :, None] * self.x[rows][:, None, :]).reshape(len(rows), -1)


@cache
def digits() -> tuple[Floats, Floats]:
    """The digits 0 and 1 with a constant column, d = 785, and which they are."""
    data = load_mnist()
    train = data.splits["train"]
    chosen = data.y[train] <= 1
    x = np.column_stack([data.x[train][chosen].reshape(-1, 784) / 255.0, np.ones(chosen.sum())])
    return x, data.y[train][chosen].astype(float)


def as_run(method: str, *, batch: int, sigma: float, beta: float, steps: int) -> list[float]:
    """Losses as in the authors' code: two digits, the gradient of all records, rate 0.1.

    There "DP" clips the mean gradient to C = 0.1 and "GeoDP" clips nothing; "GeoDP, clipped" clips it alike. B only
    divides the noise, and noisy angles are clamped to their ranges.
    """
    (x, y), rng, losses = digits(), np.random.default_rng(1), []
    d = x.shape[1]
    weights, half = np.zeros(d), np.append(np.full(d - 2, np.pi / 2), np.pi)
    spread = np.append(CLIP, np.full(d - 1, np.sqrt(d + 2) * beta * np.pi)) * sigma / batch
    for _ in range(steps + 1):
        scores = x @ weights
        losses.append(float(np.logaddexp(0, scores).mean() - (y * scores).mean()))
        mean = x.T @ (1 / (1 + np.exp(-scores)) - y) / len(y)
        if method in ("DP", "clip only", "GeoDP, clipped"):
            mean /= max(1.0, float(np.linalg.norm(mean)) / CLIP)
        if method == "DP":
            mean += spread[0] * rng.standard_normal(d)
        if method.startswith("GeoDP"):
            norm, *angles = polar(mean) + spread * rng.standard_normal(d)
            mean = np.asarray(from_angles(norm, np.clip(angles, -half, half)))
        weights -= AUTHORS_RATE * mean
    return losses[1:]


def mechanism(problem: Regression, method: str, *, batch: int, sigma: float, beta: float) -> Any:
    """What releases a step, at the exact epsilon of DP-SGD with noise multiplier sigma; None without noise."""
    claim = {"epsilon": GaussianLoss(1 / sigma).epsilon(DELTA).upper * (1 + 1e-6), "delta": DELTA}
    size = {"dim": problem.dim, "batch": batch, **claim}
    if method == "no noise":
        return None
    if method == "DP":
        return Additive(Gaussian(CLIP * sigma, problem.dim), L2(CLIP, problem.dim, adjacency="add-remove"), **claim)
    if method == "GeoDP":
        return geodp(sensitivity=CLIP, beta=beta, sigma=sigma, **size)
    return {"mean-angles": MeanAngles, "angle-windows": AngleWindows}[method].calibrate(clip=CLIP, **size)


def train(problem: Regression, method: str, noisy: Any, *, batch: int, steps: int) -> list[float]:
    """Losses of one training, each step released by `noisy`; all methods see the same batches."""
    batches, rng = np.random.default_rng(0), np.random.default_rng(1)
    weights = np.zeros((CLASSES, problem.x.shape[1]))
    rate = WINDOW_RATE if method == "angle-windows" else RATE
    losses = []
    for _ in range(steps):
        rows = batches.choice(len(problem.y), batch, replace=False)
        errors, loss = problem.errors(weights, rows)
        losses.append(loss)
        if method == "angle-windows":
            step = noisy.release(problem.gradients(errors, rows), rng=rng).value
        else:
            step = _step(method, noisy, problem.clipped_sum(errors, rows), batch, rng)
        weights -= rate * np.asarray(step).reshape(weights.shape)
    return losses


def _step(method: str, noisy: Any, total: Floats, batch: int, rng: np.random.Generator) -> Floats:
    """The step that a method makes of the sum of clipped gradients."""
    if method == "no noise":
        return total / batch
    if method == "DP":
        return np.asarray(noisy.release(total, rng=rng)) / batch
    if method == "GeoDP":
        return noisy.release_mean(total / batch, rng=rng, unsafe=True).value
    return noisy.release_query(polar(total), rng=rng).value
