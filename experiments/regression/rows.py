"""Why `hessian-mixing` loses to its published counterpart on "positive 10000 x 20" at epsilon 3: sketches are short.

    python experiments/regression/rows.py     # half a minute; into results/rows.json

Medians of 50 runs: three rounds without any noise, with sketches of 6 d and of 24 d rows, and with a ridge of half the
least eigenvalue in each; then the private solvers. Expected: with 6 d rows a ridge lowers the error, so that more noise
does; with 24 d rows neither, and ours does not lose.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from sets import Set, generated
from table import plain_sums

from shapedp.learn.solvers.linear import SOLVERS, Draws, Problem

EPSILON, DELTA, RUNS = 3.0, 1e-5, 50
RESULTS = Path(__file__).parent / "results" / "rows.json"


def plain(one: Set, rows: int, ridge: float, rng: Any) -> float:
    """The error of three rounds without noise."""
    x, y = one.rows[:, :-1], one.rows[:, -1]
    root = np.linalg.cholesky(x.T @ x + ridge * np.eye(one.order)).T
    weights = np.zeros(one.order)
    for _ in range(3):
        sketch = rng.standard_normal((rows, one.order)) @ root
        weights = weights + np.linalg.solve(sketch.T @ sketch / rows, x.T @ np.clip(y - x @ weights, -1.0, 1.0))
    return one.error(weights)


def private(one: Set, solver: str, rows: int | None, rng: Any) -> float:
    """The error of a private fit."""
    problem = Problem(one.moments.records, one.order, one.moments.bounds, EPSILON, DELTA, sketch_rows=rows)
    with plain_sums(one):
        made = SOLVERS[solver].mechanisms(problem)
        return one.error(SOLVERS[solver].solve(one.moments, made, Draws(rng, unsafe=True)).weights)


def main() -> None:
    one = generated("positive", 10_000, 20, seed=11)  # as in `table.py`
    rng, few, many = np.random.default_rng(0), 6 * one.order, 24 * one.order
    least = float(np.linalg.eigvalsh(one.moments.design)[0])
    found: dict[str, float] = {"not private": one.baseline()}
    for rows in (few, many):
        for ridge in (0.0, least / 2):
            name = f"no noise, {rows} rows, ridge {ridge:.3g}"
            found[name] = float(np.median([plain(one, rows, ridge, rng) for _ in range(RUNS)]))
    for solver, rows in (("hessian-mixing-paper", None), ("hessian-mixing", None), ("hessian-mixing", many)):
        name = f"{solver}, {'default' if rows is None else rows} rows"
        found[name] = float(np.median([private(one, solver, rows, rng) for _ in range(RUNS)]))
    text = json.dumps({name: float(f"{value:.4g}") for name, value in found.items()}, indent=1)
    RESULTS.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
