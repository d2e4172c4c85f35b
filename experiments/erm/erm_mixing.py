"""Figures 3 and 5 of the mixing paper: logistic regression on two classes of images, mixing against objective
perturbation, on features of a network trained with DP (as in the paper) and on fixed random ones.

Features, their training and their settings: erm_features.py. k is ours (the default) instead of a grid search, and
records are scaled to unit length one by one instead of by the largest norm: both choices of the paper touch the data.
`epsilon` is the regression's, at delta 1e-5. `in all` is the epsilon of the network and the regression together, at
2e-5, for a record against a blank one, which counts as no gradient and as a row of zeros; random features cost nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import erm_features as features
import numpy as np
from sklearn.linear_model import LogisticRegression as Plain

from shapedp.accounting import BareLoss, Plan, compose
from shapedp.learn import LogisticRegression
from shapedp.papers.datasets import MissingDataError
from shapedp.papers.register.harness import ABSENT, Progress, Table

EPSILONS = (0.1, 0.3, 1.0, 3.0)
DELTA = 1e-5
SOLVERS = ("mixing", "kifer", "objective")
FIGURES = {"Fashion-MNIST": 3, "CIFAR-100": 3, "MNIST": 5, "CIFAR-10": 5}
HEADERS = ("figure", "data set", "features", "epsilon", "solver", "accuracy", "sd", "seconds", "in all")
KINDS = ("random", "CNN")
Trained = tuple[features.Part, features.Part, Plan]


def fit(solver: str, epsilon: float, x: np.ndarray, y: np.ndarray, seed: int) -> tuple[LogisticRegression, float]:
    """A fitted model and the seconds of processor time it took."""
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
    start = time.process_time()
    model.fit(x, y)
    return model, time.process_time() - start


def together(plan: Plan, epsilon: float) -> float:
    """The epsilon, at twice DELTA, of a network's training and any (epsilon, DELTA)-DP regression on its features."""
    steps = [(step.loss, step.count) for step in plan.steps]
    return compose([*steps, (BareLoss(epsilon, DELTA), 1)]).epsilon(2 * DELTA).upper


def study(name: str, kind: str, *, epsilons: tuple[float, ...], repeats: int, trained: Callable[[str], Trained]) -> Any:
    """Rows under HEADERS: mean and deviation of the test accuracy over `repeats` draws of the regression's noise,
    median processor seconds of a fit; epsilon infinity is without noise on the regression."""
    train, test, plan = trained(name) if kind == "CNN" else (*features.random_features(name), None)
    plain = Plain(C=1e6, fit_intercept=False, max_iter=2000).fit(train.x, train.y)
    rows: list[tuple[Any, ...]] = [
        (FIGURES[name], name, kind, np.inf, "scikit-learn", plain.score(test.x, test.y), np.nan, np.nan, np.inf)
    ]
    for epsilon in epsilons:
        spent = epsilon if plan is None else together(plan, epsilon)
        for solver in SOLVERS:
            fit(solver, epsilon, train.x, train.y, 0)  # calibration is cached: the fits alone are timed
            found = []
            for seed in range(repeats):
                model, seconds = fit(solver, epsilon, train.x, train.y, seed)
                found.append((model.score(test.x, test.y), seconds))
            accuracy, seconds = np.array(found).T
            rows.append((FIGURES[name], name, kind, epsilon, solver, float(accuracy.mean()),
                         float(accuracy.std(ddof=1)), float(np.median(seconds)), spent))  # fmt: skip
    return rows


def ratios(rows: list[tuple[Any, ...]], solver: str) -> str:
    """How long a solver takes compared with mixing, at the largest epsilon, for each set and kind of features."""
    top = max(row[3] for row in rows if np.isfinite(row[3]))
    seconds = {(*row[1:3], row[4]): row[7] for row in rows if row[3] == top}
    pairs = dict.fromkeys(key[:2] for key in seconds)
    return ", ".join(f"{seconds[*pair, solver] / seconds[*pair, 'mixing']:.2f} ({' '.join(pair)})" for pair in pairs)


def table(full: bool, progress: Progress) -> Table:
    """Every set and both kinds of features; quickly: the smallest set, one epsilon, a network trained for 2 epochs."""
    names = tuple(FIGURES) if full else ("CIFAR-100",)
    trained = features.kept_features if full else lambda name: features.trained_features(name, epochs=2)
    rows: list[tuple[Any, ...]] = []
    for done, name in enumerate(names):
        try:
            for kind in KINDS:
                rows += study(name, kind, epsilons=EPSILONS if full else (1.0,), repeats=20 if full else 3,
                              trained=trained)  # fmt: skip
        except MissingDataError as problem:
            return Table(("data",), ((str(problem),),), state=ABSENT)
        progress(done + 1, len(names), name)
    curves = tuple(
        (f"{name}, {kind}, {solver}", *zip(*((r[3], r[5]) for r in rows if (r[1], r[2], r[4]) == (name, kind, solver)),
                                          strict=True))
        for name in names for kind in KINDS for solver in SOLVERS
    )  # fmt: skip
    others = "; ".join(f"{solver} {ratios(rows, solver)}" for solver in SOLVERS[1:])
    note = f"processor seconds of a fit at the largest epsilon over those of mixing: {others}"
    return Table(HEADERS, tuple(rows), curves, ("epsilon of the regression", "test accuracy"), (True, False), note)
