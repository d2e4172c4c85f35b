"""Figures 3 and 5 of the mixing paper: logistic regression on two classes, mixing against objective perturbation.

The paper's features come from a DP-trained network; here they are fixed random ones (128 rectified projections, drawn
without the data), every record scaled to unit length. k = 10 (d + 1) instead of a grid search. Setting ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression as Plain

from shapedp import datasets
from shapedp.datasets import MissingDataError
from shapedp.learn import LogisticRegression

EPSILONS = (0.1, 0.3, 1.0, 3.0)
DELTA, FEATURES, PAIR = 1e-5, 128, (3, 8)
SOLVERS = ("mixing", "kifer", "objective")
SETS: dict[str, Callable[[], Any]] = {
    "Fashion-MNIST": datasets.load_fashion_mnist,
    "CIFAR-100": datasets.load_cifar100,
    "MNIST": datasets.load_mnist,
    "CIFAR-10": datasets.load_cifar10,
}


def two_classes(name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Random features of classes 3 and 8, and labels 0 and 1."""
    try:
        data = SETS[name]()
    except MissingDataError:
        return None
    codes = np.asarray(data.y)
    if name == "CIFAR-100":  # its two classes are all there is
        first, second = np.unique(codes)[:2]
    else:
        first, second = PAIR
    keep = np.flatnonzero((codes == first) | (codes == second))
    x = np.asarray(data.x)[keep].reshape(len(keep), -1).astype(np.float64) / 255
    rng = np.random.default_rng(0)
    z = np.maximum((x - 0.5) @ rng.normal(size=(x.shape[1], FEATURES)) / np.sqrt(x.shape[1]), 0.0)
    return z / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12), (codes[keep] == second).astype(int)


def fit(solver: str, epsilon: float, x: np.ndarray, y: np.ndarray, seed: int) -> tuple[LogisticRegression, float]:
    """A fitted model and the seconds it took."""
    model = LogisticRegression(
        epsilon=epsilon,
        delta=DELTA,
        feature_bound=1.0,
        classes=[0, 1],
        solver=solver,
        noise="gaussian",
        fit_intercept=False,
        random_state=seed,
    )
    start = time.perf_counter()
    model.fit(x, y)
    return model, time.perf_counter() - start


def study(name: str, *, epsilons: tuple[float, ...], repeats: int) -> list[tuple[Any, ...]]:
    """(set, epsilon, solver, accuracy, sd, seconds) over random 80/20 splits; epsilon infinity is without privacy."""
    found = two_classes(name)
    if found is None:
        return []
    x, y = found
    rows: list[tuple[Any, ...]] = []
    cells: dict[tuple[float, str], list[tuple[float, float]]] = {}
    for seed in range(repeats):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[: int(0.8 * len(y))], order[int(0.8 * len(y)) :]
        plain = Plain(C=1e6, fit_intercept=False, max_iter=2000).fit(x[train], y[train])
        cells.setdefault((np.inf, "scikit-learn"), []).append((plain.score(x[test], y[test]), np.nan))
        for epsilon in epsilons:
            for solver in SOLVERS:
                if seed == 0:
                    fit(solver, epsilon, x[train], y[train], 0)  # calibration is cached: time the fit alone
                model, seconds = fit(solver, epsilon, x[train], y[train], seed)
                cells.setdefault((epsilon, solver), []).append((model.score(x[test], y[test]), seconds))
    for (epsilon, solver), values in cells.items():
        accuracy, seconds = np.array(values).T
        spread = float(accuracy.std(ddof=1)) if repeats > 1 else 0.0
        rows.append((name, epsilon, solver, float(accuracy.mean()), spread, float(np.median(seconds))))
    return rows
