"""Which one-pass solver is best where, on synthetic regressions: what made `suffstats` the solver of one pass.

    python experiments/gaussian_mixing/auto_rule.py [--full]

Expected: `suffstats` has the least median error in 40 of the 48 cells of (n, d, epsilon), geometric mean over the
designs, and is at most 4.4 percent behind in the others: the rule is `suffstats` throughout.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from mixing_data import Case
from mixing_results import write
from mixing_simulated import simulated

from shapedp.learn.moments import Bounds, moments
from shapedp.learn.solvers.linear import SOLVERS, Draws, Problem
from shapedp.numerics.gram import gram
from shapedp.tables import InMemory

DELTA = 1e-5
DESIGNS = ("isotropic", "decaying", "positive", "low rank")
NOISES = (0.1, 1.0)  # standard deviation of the residual in units of the signal's
COMPARED = ("suffstats", "mixing", "adassp-joint", "adassp")
TEST = 2000


def drawn(design: str, n: int, d: int, noise: float, rng: np.random.Generator) -> Case:
    """One synthetic regression, rows within the unit ball, y within [-1, 1]: about one in a thousand is clipped."""
    rows = n + TEST
    x = {
        "isotropic": lambda: rng.standard_normal((rows, d)),
        "decaying": lambda: rng.standard_normal((rows, d)) / np.arange(1, d + 1),
        "positive": lambda: rng.uniform(0, 1, (rows, d)),
        "low rank": lambda: (
            rng.standard_normal((rows, 3)) @ rng.standard_normal((3, d)) + 0.05 * rng.standard_normal((rows, d))
        ),
    }[design]()
    signal = x @ rng.standard_normal(d)
    y = signal / signal.std() + noise * rng.standard_normal(rows)
    x, y = x / np.quantile(np.linalg.norm(x, axis=1), 0.999), y / np.quantile(np.abs(y), 0.999)
    x /= np.maximum(1, np.linalg.norm(x, axis=1))[:, None]
    y = np.clip(y, -1, 1)
    train = moments(InMemory(x[:n], y[:n]), Bounds(1.0, 1.0))
    return Case(design, "synthetic", train, gram(np.column_stack([x[n:], y[n:]])), TEST)


def cell(n: int, d: int, epsilon: float, runs: int, seed: int) -> dict[str, float]:
    """The median error of each solver over runs, its geometric mean over the designs, in units of predicting 0."""
    logs: dict[str, list[float]] = {name: [] for name in COMPARED}
    for i, (design, noise) in enumerate((design, noise) for design in DESIGNS for noise in NOISES):
        one = drawn(design, n, d, noise, np.random.default_rng([seed, i, n, d]))
        problem = Problem(n, d, one.train.bounds, epsilon, DELTA)
        for name in COMPARED:
            made, rng = SOLVERS[name].mechanisms(problem), np.random.default_rng([seed, i])
            with simulated(rng):
                errors = [one.error(SOLVERS[name].solve(one.train, made, Draws(rng)).weights) for _ in range(runs)]
            logs[name].append(np.log(np.median(errors) / one.zero))
    return {name: float(np.exp(np.mean(values))) for name, values in logs.items()}


def study(full: bool, progress: Any = None) -> list[dict[str, Any]]:
    """All cells."""
    sizes = [(n, d) for n in (100, 1000, 10_000, 100_000) for d in (2, 5, 20, 100)] if full else [(300, 3), (3000, 10)]
    cells = [(n, d, epsilon) for n, d in sizes for epsilon in ((0.3, 1.0, 3.0) if full else (1.0,))]
    found = []
    for done, (n, d, epsilon) in enumerate(cells):
        found.append({"n": n, "d": d, "epsilon": epsilon, **cell(n, d, epsilon, 25 if full else 5, seed=7)})
        if progress is not None:
            progress(done + 1, len(cells), f"n {n}, d {d}, epsilon {epsilon:g}")
    return found


if __name__ == "__main__":
    full = "--full" in sys.argv
    rows = study(full, lambda done, total, what: print(f"{done}/{total} {what}", flush=True))
    for row in rows:
        print(" ".join(f"{key} {value:.4g}" for key, value in row.items()))
    if full:
        print("wrote", write("auto_rule", {"delta": DELTA, "designs": DESIGNS, "noises": NOISES, "rows": rows}))
