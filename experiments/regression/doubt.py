"""How much `refined` doubts its first estimate: what WARY in `suffstats` was frozen on, on generated sets of seed 7.

    python experiments/regression/doubt.py [--full]

Two families: sets with a signal (residuals half as large), and hopeless ones, where the residual is up to ten times
the signal, or y uses a third of its range. A ratio is the median error over that of `refined` whose first estimate is
as calm as its later ones. Chosen is the candidate with the least error on hopeless sets among those that do not raise
the error of sets with a signal on average. Expected: p = 2, t = 1, which lowers the error of hopeless sets by a sixth;
in single cells it raises it by a third.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from sets import TEST, Set, generated, made, unit_rows
from table import EPSILONS, FOLDER, errors

from shapedp.learn.solvers.linear import refined, suffstats

DELTA = 1e-5
CANDIDATES = ((0.5, 2.0), (1.0, 1.0), (1.0, 0.5), (2.0, 1.0), (2.0, 0.5))  # p and t
SIGNAL = ("isotropic", "decaying", "positive", "low rank", "heavy"), ((200, 20), (1000, 5), (600, 60), (1500, 20))
HOPELESS = ("isotropic", "decaying", "low rank"), ((100, 8), (500, 10), (5000, 20))
SPREADS = ((0.5, 1), (2.0, 1), (10.0, 1), (0.5, 3), (2.0, 3))  # residual over signal, range of y over what it uses


def hopeless(design: str, n: int, d: int, residual: float, unused: float) -> Set:
    """A set scaled by its largest row and largest |y|, as sets in papers are."""
    rng = np.random.default_rng([7, n, d, int(10 * residual)])
    rows = n + TEST
    x = rng.standard_normal((rows, d))
    if design == "decaying":
        x = x / np.arange(1, d + 1)
    if design == "low rank":
        x = x[:, :3] @ rng.standard_normal((3, d)) + 0.05 * rng.standard_normal((rows, d))
    signal = x @ rng.standard_normal(d)
    y = signal / signal.std() + residual * rng.standard_normal(rows)
    x, y = unit_rows(x / np.linalg.norm(x, axis=1).max()), y / (np.abs(y).max() * unused)
    return made(f"{design} {n} x {d}, {residual:g}, {unused:g}", x[:n], y[:n], x[n:], y[n:], intercept=False)


def families(quick: bool) -> Iterator[tuple[str, Set]]:
    """The sets, with the name of their family."""
    few = 1 if quick else None
    for name in SIGNAL[0][:few]:
        yield from (("signal", generated(name, n, d, 7)) for n, d in SIGNAL[1][:few])
    for name in HOPELESS[0][:few]:
        for n, d in HOPELESS[1][:few]:
            yield from (("hopeless", hopeless(name, n, d, *spread)) for spread in SPREADS)


def medians(one: Set, epsilon: float, runs: int) -> list[float]:
    """The median error of the calm first estimate, then of each candidate: the same noise in all."""
    calm = partial(suffstats.shrunk, wary=False)
    with mock.patch.object(refined, "shrunk", lambda noisy, **_: calm(noisy)):
        found = [float(np.median(errors(one, "refined", epsilon, DELTA, runs)))]
    for candidate in CANDIDATES:
        with mock.patch.object(suffstats, "WARY", candidate):
            found.append(float(np.median(errors(one, "refined", epsilon, DELTA, runs))))
    return found


def study(quick: bool, runs: int) -> list[dict[str, Any]]:
    """Ratios of each cell."""
    rows = []
    for family, one in families(quick):
        for epsilon in EPSILONS:
            first, *others = medians(one, epsilon, runs)
            ratios = [round(other / first, 4) for other in others]
            rows.append({"family": family, "set": one.name, "epsilon": epsilon, "ratios": ratios})
    return rows


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The geometric mean and the largest ratio of each candidate in each family."""
    found = []
    for i, (p, t) in enumerate(CANDIDATES):
        line: dict[str, Any] = {"p": p, "t": t}
        for family in ("signal", "hopeless"):
            logs = np.log([row["ratios"][i] for row in rows if row["family"] == family])
            line[family] = {"mean": round(float(np.exp(logs.mean())), 4), "most": round(float(np.exp(logs.max())), 3)}
        found.append(line)
    return found


if __name__ == "__main__":
    full = "--full" in sys.argv
    cells = study(not full, 20 if full else 5)
    for line in summary(cells):
        print(line, flush=True)
    if full:
        found = {"summary": summary(cells), "cells": cells}
        (FOLDER / "doubt.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
