"""Figures 1, 2 and 4 of the mixing paper, the number of sketch rows, and what the rule of `auto` was frozen on.

    shapedp reproduce gaussian-mixing/figure-2-tecator [--full]

Expected: see gamma_curves.py, mixing_regression.py and auto_rule.py. The paper prints no numbers beside its curves.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from shapedp.papers.datasets import MissingDataError
from shapedp.papers.register.harness import ABSENT, Item, Progress, Table

sys.path.insert(0, str(Path(__file__).parent))

import as_run
import auto_rule
from gamma_curves import epsilons, gammas, grid
from mixing_data import case
from mixing_regression import EPSILONS, METHODS, errors, line

ROWS = (100, 1000)
NOTE = "the paper's scaling by largest norms, and k by grid, touch private data"
FIGURES = {
    "figure-2": ("communities-crime", "tecator", "gaussian", "mlp"),
    "figure-4": ("boston", "wine", "bike", "uniform"),
    "figure-4-beyond": ("california",),
}


def figure_1(full: bool, progress: Progress) -> Table:
    """epsilon against gamma, delta = 1e-6."""
    rows, curves = [], []
    for done, k in enumerate(ROWS):
        x = grid(25 if full else 7)
        found = [epsilons(k, gamma) for gamma in x]
        rows += [
            (k, gamma, *three, three[0] / three[1], three[2] / three[1]) for gamma, three in zip(x, found, strict=True)
        ]
        for i, name in enumerate(("Sheffet 2019", "Lemma 1", "exact")):
            curves.append((f"{name}, k = {k}", tuple(x), tuple(three[i] for three in found)))
        progress(done + 1, len(ROWS), f"k = {k}")
    note = "; ".join(f"k = {k}: gamma at (1, 1e-6) {' / '.join(f'{g:.5g}' for g in gammas(k))}" for k in ROWS)
    return Table(
        headers=("k", "gamma", "Sheffet 2019", "Lemma 1", "exact", "Sheffet over Lemma 1", "exact over Lemma 1"),
        rows=tuple(rows),
        curves=tuple(curves),
        axes=("(lambda_min + sigma^2)/C^2", "epsilon at delta = 1e-6"),
        note=note,
    )


def absent(run: Callable[[bool, Progress], Table]) -> Callable[[bool, Progress], Table]:
    """The same item, saying so where its files are missing."""

    def guarded(full: bool, progress: Progress) -> Table:
        try:
            return run(full, progress)
        except MissingDataError as missing:
            return Table(headers=("missing",), rows=((str(missing),),), state=ABSENT)

    return guarded


def figure(name: str, full: bool, progress: Progress) -> Table:
    """Median test errors over epsilon, each in units of the largest |y| squared."""
    found: list[dict[str, Any]] = []
    wanted = EPSILONS if full else (1.0,)
    for done, epsilon in enumerate(wanted):
        found.append(line(name, "paper", epsilon, runs=50 if full else 3, pilot=5 if full else 1, small=not full))
        progress(done + 1, len(wanted), f"epsilon {epsilon:g}")
    x = tuple(one["epsilon"] for one in found)
    by = {method: tuple(one["solvers"][method]["median"] for one in found) for method in METHODS}
    return Table(
        headers=("epsilon", "not private", *METHODS),
        rows=tuple(
            (one["epsilon"], one["not private"], *(one["solvers"][method]["median"] for method in METHODS))
            for one in found
        ),
        curves=tuple((method, x, values) for method, values in by.items()),
        axes=("epsilon", "median squared error on the test part"),
        note=NOTE,
    )


def sketch_rows(full: bool, progress: Progress) -> Table:
    """Median errors at (1, 1e-5) against k, for Algorithm 2 as printed and for the exact sketch; then our default k."""
    one = case("gaussian", "paper", small=not full)
    factors: list[float | None] = [1.5, 3.0, 5.0, 7.5, 10.0, None] if full else [1.5, 5.0, None]
    rows = []
    for done, factor in enumerate(factors):
        k = None if factor is None else int(factor * (one.order + 1))
        exact, made = errors(one, "mixing", 1.0, 30 if full else 3, k)
        printed = errors(one, "mixing-paper", 1.0, 30 if full else 3, made[0].rows)[0]
        rows.append(
            (made[0].rows, "default" if k is None else "grid", float(np.median(printed)), float(np.median(exact)))
        )
        progress(done + 1, len(factors), f"k = {made[0].rows}")
    ordered = sorted(rows)
    x = tuple(float(row[0]) for row in ordered)
    return Table(
        headers=("k", "chosen by", "mixing-paper", "mixing"),
        rows=tuple(rows),
        curves=tuple((name, x, tuple(row[i] for row in ordered)) for i, name in ((2, "mixing-paper"), (3, "mixing"))),
        axes=("rows k of the sketch", "median squared error on the test part"),
        note=NOTE,
    )


def authors(full: bool, progress: Progress) -> Table:
    """Mean test errors as the authors ran figures 2 and 4, and with every method as it is meant."""
    rows, curves, ahead, crossings = [], [], 0, []
    epsilons = as_run.EPSILONS if full else as_run.EPSILONS[2:3]
    for done, name in enumerate(as_run.SETS):
        found = as_run.study(name, 50 if full else 2, epsilons)
        for epsilon, by in found:
            first = min(list(by)[:3], key=by.__getitem__)
            ahead += first == "mixing, as run" and epsilon in as_run.EPSILONS[1:5]
            rows.append((name, epsilon, *by.values(), first, min(by, key=by.__getitem__)))
        overtaken = as_run.crossing(found, "AdaSSP, 0.05", "mixing, as run")
        crossings.append(f"{name} {'never' if overtaken is None else f'from epsilon {overtaken:.2g}'}")
        x = tuple(epsilon for epsilon, _ in found)
        curves += [
            (f"{name}, {method}", x, tuple(by[method] for _, by in found))
            for method in ("mixing, as run", "AdaSSP, 0.05")
        ]
        progress(done + 1, len(as_run.SETS), name)
    points = f"{ahead} of {len(as_run.SETS) * len(set(epsilons) & set(as_run.EPSILONS[1:5]))} points"
    note = f"as run, mixing is ahead at {points} of epsilon 0.22 to 9.1; AdaSSP at 0.05 overtakes it: "
    return Table(
        headers=("set", "epsilon", *found[0][1], "least as run", "least of all"),
        rows=tuple(rows),
        curves=tuple(curves),
        axes=("epsilon", "mean squared error on the test part"),
        note=note + ", ".join(crossings),
    )


def auto(full: bool, progress: Progress) -> Table:
    """Errors of four solvers on synthetic regressions, in units of predicting 0."""
    found = auto_rule.study(full, progress)
    return Table(headers=tuple(found[0]), rows=tuple(tuple(row.values()) for row in found))


ITEMS = (
    Item("figure-1", "epsilon against gamma: Sheffet, Lemma 1, exact", figure_1),
    *(
        Item(f"{prefix}-{name}", f"Linear regression on {name}", absent(partial(figure, name)))
        for prefix, names in FIGURES.items()
        for name in names
    ),
    Item("authors-settings", "Figures 2 and 4 as the authors ran them, and as meant", absent(authors)),
    Item("sketch-rows", "The number of sketch rows, by grid and by default", sketch_rows),
    Item("auto-rule", "Which solver is best where, on synthetic data", auto),
)
