"""How often 95 percent intervals of coefficients hold the true ones: 2,000 fits on each of eight generated sets.

    python experiments/regression/coverage.py [--full]

Every fit draws new residuals and new noise; sums of residuals are taken in plain floats.
Expected: 93.5 to 96.5 percent on each of the eight; where noise hides the size of the residuals (a ninth set) most fits
refuse to give intervals.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

sys.path.insert(0, str(Path(__file__).parent))

from sets import Set, unit_rows
from table import FOLDER, plain_sums

from shapedp.learn.moments import Bounds, Moments
from shapedp.learn.regressors import RESOLVED
from shapedp.learn.solvers.linear import AUTO, SOLVERS, Draws, Problem

BOUNDS = Bounds(1.0, 1.0)
SETS = (  # design, records, columns, standard deviation of the residual, epsilon
    ("isotropic", 5_000, 2, 0.15, 1.0),
    ("isotropic", 20_000, 3, 0.1, 1.0),
    ("isotropic", 20_000, 5, 0.1, 2.0),
    ("positive", 20_000, 3, 0.1, 1.0),
    ("correlated", 20_000, 4, 0.15, 2.0),
    ("correlated", 20_000, 3, 0.12, 1.0),
    ("indicators", 20_000, 4, 0.1, 1.0),
    ("indicators", 10_000, 3, 0.2, 3.0),
)
HIDDEN = ("correlated", 20_000, 3, 0.05, 1.0)  # noise hides how small the residuals are: mostly refused


def design(name: str, n: int, d: int) -> tuple[Any, Any]:
    """Rows in the unit ball, and weights whose predictions stay within [-1/2, 1/2]."""
    rng = np.random.default_rng([9, n, d])
    x = {
        "isotropic": lambda: rng.standard_normal((n, d)),
        "positive": lambda: rng.uniform(0, 1, (n, d)),
        "correlated": lambda: rng.standard_normal((n, d)) + rng.standard_normal((n, 1)),
        "indicators": lambda: (rng.random((n, d)) < 0.3).astype(float),
    }[name]()
    x = unit_rows(x / np.linalg.norm(x, axis=1).max())
    weights = rng.standard_normal(d)
    return x, weights / (2 * np.abs(x @ weights).max())


def covered(name: str, n: int, d: int, spread: float, epsilon: float, fits: int) -> dict[str, Any]:
    """The share of coefficients of all fits that lie in their intervals, of the fits that give any."""
    x, true = design(name, n, d)
    rng, square = np.random.default_rng([3, n, d]), x.T @ x
    solver, z = SOLVERS[AUTO], special.ndtri(0.975)
    made = solver.mechanisms(Problem(n, d, BOUNDS, epsilon, 1e-6))
    hits = given = 0
    for _ in range(fits):
        y = np.clip(x @ true + spread * rng.standard_normal(n), -1, 1)
        cross = x.T @ y
        moments = Moments(np.block([[square, cross[:, None]], [cross[None], np.array([[y @ y]])]]), n, BOUNDS)
        with plain_sums(Set(name, moments, np.column_stack([x, y]), None)):
            found = solver.solve(moments, made, Draws(rng))
        if found.resolved >= RESOLVED and found.covariance is not None:
            given += 1
            hits += int((np.abs(found.weights - true) <= z * np.sqrt(np.diag(found.covariance))).sum())
    named = {"design": name, "n": n, "d": d, "residual": spread, "epsilon": epsilon, "fits": fits}
    return named | {"intervals given": given / fits, "coverage": hits / max(given * d, 1)}


if __name__ == "__main__":
    full = "--full" in sys.argv
    rows = []
    for one in (*SETS, HIDDEN) if full else (SETS[1], HIDDEN):
        rows.append(covered(*one, 2000 if full else 100))
        print(rows[-1], flush=True)
    if full:
        (FOLDER / "coverage.json").write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
