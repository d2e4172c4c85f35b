"""Table III, figures 5 and 6 and table V of the i.n.i.d. noise paper.

    shapedp reproduce inid-learning/table-3 [--full]

Expected: what components.py and descent.py say. Settings that the paper does not print are ours.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from shapedp.papers.datasets import MissingDataError
from shapedp.papers.register.harness import ABSENT, Item, Progress, Table, compared

sys.path.insert(0, str(Path(__file__).parent))

import components
import descent

QUICK_PASSES = (5, 50)
SETTINGS = "settings ours: see the head of the script"


def table_3(full: bool, progress: Progress) -> Table:
    """Subspace recovery errors, computed and printed."""
    found = components.table(1000 if full else 10, (os.cpu_count() or 1) if full else 1)
    rows, pairs = [], []
    for row in found:
        key = (row["noise"], row["release"])
        printed = components.PUBLISHED.get(key, ("", "", ""))
        rows.append((*key, *row["mean"], *printed))
        if key in components.PUBLISHED:
            pairs += [
                (f"{' '.join(key)} at epsilon {epsilon:g}", mean, float(value))
                for epsilon, mean, value in zip(components.EPSILONS, row["mean"], printed, strict=True)
            ]
    progress(1, 1, "table 3")
    epsilons = tuple(f"epsilon {epsilon:g}" for epsilon in components.EPSILONS)
    return Table(
        headers=("noise", "release", *epsilons, *(f"{name}, printed" for name in epsilons)),
        rows=tuple(rows),
        note=SETTINGS,
        **compared(pairs, 0.05),
    )


def _figure(load: Callable[[], descent.Problem], full: bool, progress: Progress) -> Table:
    try:
        problem = load()
    except MissingDataError as missing:
        return Table(headers=("data",), rows=((str(missing),),), state=ABSENT)
    passes = descent.PASSES if full else QUICK_PASSES
    found = descent.figure(problem, passes, progress) if full else _quick(problem, passes, progress)
    rows = [(arm, one["passes"], one["mean"], one["deviation"]) for arm, part in found.items() for one in part]
    pairs = [(f"{arm} after 50 passes", part[-1]["mean"], descent.PUBLISHED[problem.name][arm][0])
             for arm, part in found.items()]  # fmt: skip
    return Table(
        headers=("method", "passes", "relative error, %", "standard deviation"),
        rows=tuple(rows),
        curves=tuple(
            (arm, tuple(float(one["passes"]) for one in part), tuple(one["mean"] for one in part))
            for arm, part in found.items()
        ),
        axes=("passes", "relative error of the objective, %"),
        log=(False, True),
        note=SETTINGS,
        **compared(pairs, 0.25),
    )


def _quick(problem: descent.Problem, passes: tuple[int, ...], progress: Progress) -> dict[str, list[Any]]:
    """One step and three clips."""
    found: dict[str, list[Any]] = {arm: [] for arm in descent.ARMS}
    for arm, noise in descent.ARMS.items():
        for count in passes:
            best = descent.tuned(problem, count, (1.0, 1.5, 2.0), (1.0,), noise=noise)
            found[arm].append(descent.asdict(best))
        progress(len(found[arm]), len(passes), arm)
    return found


def figure_5(full: bool, progress: Progress) -> Table:
    """LASSO on California."""
    return _figure(descent.california, full, progress)


def figure_6(full: bool, progress: Progress) -> Table:
    """Logistic regression on Electricity."""
    return _figure(descent.electricity, full, progress)


def table_5(full: bool, progress: Progress) -> Table:
    """Mean squares known, and estimated for a share of mu^2; quickly on California only."""
    rows, pairs = [], []
    for load in (descent.california, descent.electricity) if full else (descent.california,):
        try:
            problem = load()
        except MissingDataError as missing:
            return Table(headers=("data",), rows=((str(missing),),), state=ABSENT)
        found = descent.table(problem, descent.PASSES[-1] if full else 10, progress)
        for arm, part in found.items():
            printed = descent.PUBLISHED[problem.name][arm]
            for share, one, value in zip((0.0, *descent.FRACTIONS), part, printed, strict=True):
                rows.append((problem.name, arm, share, one["mean"], one["deviation"], value))
                pairs.append((f"{problem.name}, {arm}, share {share:g}", one["mean"], value))
    return Table(
        headers=("data", "method", "share", "relative error, %", "standard deviation", "printed"),
        rows=tuple(rows),
        note=SETTINGS,
        **compared(pairs, 0.25),
    )


ITEMS = (
    Item("table-3", "Subspaces recovered by private PCA", table_3),
    Item("figure-5", "DP-CD and improved DP-CD: LASSO on California", figure_5),
    Item("figure-6", "DP-CD and improved DP-CD: logistic regression on Electricity", figure_6),
    Item("table-5", "Coordinate descent with privately estimated mean squares", table_5),
)
