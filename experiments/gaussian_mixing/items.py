"""Figures 1, 2 and 4 of the mixing paper, the number of sketch rows, and which one-pass solver is best where.

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
    rows, curves, crossings = [], [], []
    standings: dict[str, list[str]] = {"AdaSSP and Sheffet": [], "Sheffet (ours)": []}
    epsilons = as_run.EPSILONS if full else as_run.EPSILONS[2:3]
    for done, name in enumerate(as_run.SETS):
        found = as_run.study(name, 50 if full else 1, epsilons)
        for one in found:
            against = [one.standing(as_run.BASELINES), one.standing(("Sheffet (ours), as run",))]
            rows.append((name, one.epsilon, *one.errors.values(), *against, *one.gaps[as_run.FAIR], one.ahead))
            if one.epsilon in as_run.EPSILONS[1:5]:
                for seen, standing in zip(standings.values(), against, strict=True):
                    seen.append(standing)
        overtaken = as_run.crossing(found)
        crossings.append(f"{name} {'never' if overtaken is None else f'from epsilon {overtaken:.2g}'}")
        x = tuple(one.epsilon for one in found)
        curves += [
            (f"{name}, {method}", x, tuple(one.errors[method] for one in found)) for method in (as_run.OWN, as_run.FAIR)
        ]
        progress(done + 1, len(as_run.SETS), name)
    counts = [
        f"against {others} " + ", ".join(f"{word} at {seen.count(word)}" for word in ("ahead", "level", "behind"))
        for others, seen in standings.items()
    ]
    note = (
        f"mixing as run, at {len(standings['Sheffet (ours)'])} points of epsilon 0.22 to 9.1: "
        f"{'; '.join(counts)}. AdaSSP at 0.05 overtakes it: {', '.join(crossings)}. "
        f"Ahead and behind are by more than two standard errors of the mean over {as_run.SPLITS} splits"
    )
    against = ("mixing to AdaSSP, Sheffet", "mixing to Sheffet (ours)")
    gap = ("AdaSSP, 0.05 less mixing", "standard error", f"of {as_run.SPLITS} splits, AdaSSP ahead")
    return Table(
        headers=("set", "epsilon", *found[0].errors, *against, *gap),
        rows=tuple(rows),
        curves=tuple(curves),
        axes=("epsilon", "mean squared error on the test part"),
        note=note,
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
