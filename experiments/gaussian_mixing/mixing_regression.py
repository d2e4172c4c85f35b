"""Figures 2 and 4 of the mixing paper: test errors of every solver on every set, medians with confidence intervals.

    python experiments/gaussian_mixing/mixing_regression.py [--full]

The Gram matrix of a set is computed once; a run draws the noise anew (sketches: see mixing_simulated.py). The published
sketches (`mixing-paper`, `sheffet`, `sheffet-rdp`) get the best k of a grid in hindsight, which touches private data,
as does the paper's scaling; the others use public sizes only. Expected: `suffstats` is never worse than `adassp`,
`mixing-paper` and `sheffet` beyond the intervals, `adassp-joint` never worse than `adassp` and better on most lines.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

sys.path.insert(0, str(Path(__file__).parent))

from mixing_data import LOADERS, MAKERS, NAMES, SCALINGS, Case, case
from mixing_results import read, write
from mixing_simulated import simulated

from shapedp.learn.solvers.linear import SOLVERS, Draws, Problem
from shapedp.mechanisms import certify

DELTA = 1e-5
EPSILONS = (0.3, 1.0, 3.0)
TUNED = ("mixing-paper", "sheffet", "sheffet-rdp")
GRID = (1.5, 3.0, 5.0, 7.5)  # k in units of the columns
PUBLISHED = ("adassp", "mixing-paper", "sheffet")
METHODS = ("suffstats", "mixing", "adassp-joint", "adassp", *TUNED)
LEVEL = 0.95


def errors(one: Case, method: str, epsilon: float, runs: int, rows: int | None = None) -> tuple[Any, Any]:
    """Test errors of independent runs, and the mechanisms that were run."""
    problem = Problem(one.train.records, one.order, one.train.bounds, epsilon, DELTA, sketch_rows=rows)
    solver = SOLVERS[method]
    made = solver.mechanisms(problem)
    key = zlib.crc32(f"{one.name} {one.scaling} {method} {epsilon} {rows}".encode())
    rng = np.random.default_rng(key)
    with simulated(rng):
        found = [one.error(solver.solve(one.train, made, Draws(rng, unsafe=True)).weights) for _ in range(runs)]
    return np.array(found), made


def median_interval(values: Any, level: float = LEVEL) -> tuple[float, float, float]:
    """The median and its distribution-free confidence interval between two order statistics."""
    ordered = np.sort(values)
    n = len(ordered)
    low = max(int(stats.binom.ppf((1 - level) / 2, n, 0.5)) - 1, 0)
    return float(np.median(ordered)), float(ordered[low]), float(ordered[n - 1 - low])


def measured(one: Case, method: str, epsilon: float, runs: int, pilot: int) -> dict[str, Any]:
    """The median of one solver on one set, at the best k of the grid where k is tuned."""
    rows = None
    if method in TUNED:
        tried = {int(f * (one.order + 1)): 0.0 for f in GRID}
        for k in tried:
            tried[k] = float(np.median(errors(one, method, epsilon, pilot, k)[0]))
        rows = min(tried, key=tried.__getitem__)
    found, made = errors(one, method, epsilon, runs, rows)
    middle, low, high = median_interval(found)
    verdict = certify(made[0], epsilon=epsilon, delta=DELTA).verdict if len(made) == 1 else "certified"
    return {
        "median": middle,
        "low": low,
        "high": high,
        "runs": runs,
        "rows": getattr(made[0], "rows", None),
        "verdict": verdict,
    }


def line(name: str, scaling: str, epsilon: float, *, runs: int, pilot: int, small: bool = False) -> dict[str, Any]:
    """All solvers on one set at one epsilon."""
    one = case(name, scaling, small=small)
    return {
        "scaling": scaling,
        "set": name,
        "n": one.train.records,
        "d": one.order,
        "epsilon": epsilon,
        "not private": one.baseline,
        "zero": one.zero,
        "solvers": {method: measured(one, method, epsilon, runs, pilot) for method in METHODS},
    }


def verdicts(found: dict[str, Any]) -> dict[str, Any]:
    """What must hold on one line: worse only where the intervals are apart."""
    by = found["solvers"]
    return {
        "suffstats worse than": [name for name in PUBLISHED if by["suffstats"]["low"] > by[name]["high"]],
        "joint worse": by["adassp-joint"]["low"] > by["adassp"]["high"],
        "joint better": by["adassp-joint"]["high"] < by["adassp"]["low"],
    }


def study(names: tuple[str, ...] = NAMES, scalings: tuple[str, ...] = SCALINGS) -> Iterator[tuple[str, str, float]]:
    """The lines of the table."""
    return (
        (name, scaling, epsilon)
        for scaling in scalings
        for name in names
        if scaling == "paper" or name in LOADERS
        for epsilon in EPSILONS
    )


def full_study(progress: Callable[[int, int, str], None]) -> list[dict[str, Any]]:
    """Every line, 100 runs (50 with 512 columns), the wide sets last; lines already stored are kept."""
    stored = {(one["set"], one["scaling"], one["epsilon"]): one for one in read("regression").get("lines", [])}
    wanted = list(study())
    for done, key in enumerate(sorted(wanted, key=lambda one: one[0] in MAKERS)):
        if key not in stored:
            wide = case(key[0], key[1]).order > 200
            stored[key] = line(*key, runs=50 if wide else 100, pilot=4 if wide else 20)
            lines = [stored[one] for one in wanted if one in stored]
            write("regression", {"delta": DELTA, "level": LEVEL, "grid": GRID, "lines": lines})
        progress(done + 1, len(wanted), " ".join(map(str, key)))
    return [stored[key] for key in wanted]


if __name__ == "__main__":

    def show(done: int, total: int, what: str) -> None:
        print(f"{done}/{total} {what}", flush=True)

    found = full_study(show) if "--full" in sys.argv else [line("gaussian", "paper", 1.0, runs=3, pilot=1)]
    for one in found:
        print(one["scaling"], one["set"], one["epsilon"], verdicts(one))
        print("  ", {name: f"{value['median']:.4g}" for name, value in one["solvers"].items()})
