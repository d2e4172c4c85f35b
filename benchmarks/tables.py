"""Errors in the tasks of a statistician beside OpenDP, diffprivlib and Tumult Analytics, at equal guarantees.

Every library starts from the same parquet file and ends with numbers. The claim is (1, 1e-6) for one row more or less
of Adult and one person more or less of the visits, (1, 0) for quantiles, (3, 1e-5) for three weeks. Peers release with
epsilon alone, which is their best at these claims (see `peers/tables.py`).

Errors: mean absolute error of counts, means and totals; for quantiles the distance in ranks, where values that others
draw between whole hours are rounded to whole hours. Nobody drops a row of the visits: no person has more than 3. A bar
leaves room for four standard errors: a false alarm has a probability of 3e-5.

Needs SHAPEDP_DATA; the files are described in docs. Tumult Analytics needs Java and `make tumult`. `table_times.py`
measures the times of all seven tasks.
"""

from __future__ import annotations

import contextlib
import gzip
import math
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import shapedp as sdp
from _harness import Peers, Result
from shapedp.ledger import Ledger
from shapedp.private.drawn import group_counts

CLAIM = {"epsilon": 1.0, "delta": 1e-6, "noise": "least"}
SEXES, TOWNS, LEVELS = ["Female", "Male"], ["A", "B", "C"], (0.5, 0.9)
PEERS = {"OpenDP": ".venv-peers", "diffprivlib": ".venv-diffprivlib", "Tumult": ".venv-tumult"}
COLUMNS = {"histogram": ["count"], "means": ["hours"], "total": ["sum"], "visits": ["visits", "cost"]}
# Task, what its errors are of, releases of ours and of a peer.
ERRORS = (
    ("histogram", ("counts by education and sex",), 500, 200),
    ("means", ("mean hours by sex",), 2000, 1000),
    ("quantiles", ("median and p90 of hours",), 60, 60),
    ("quantiles by group", ("median and p90 by education and sex",), 40, 20),
    ("total", ("total hours",), 4000, 3000),
    ("visits", ("visits by town", "mean cost by town"), 1500, 100),
)
ROWS = 100_000  # of the visits whose errors are measured
ROOM = 4  # standard errors
CANNOT = (
    "diffprivlib, quantiles: it fails on ties; every row's hours were moved by up to 0.49, and the result rounded.",
    "diffprivlib, visits: its tools know neither persons nor a bound on the rows of one.",
    "OpenDP, diffprivlib, Tumult, intervals of means: none of them states one (OpenDP: of sums and counts).",
    "OpenDP, diffprivlib, Tumult, a page for the officer: none of them makes one.",
)
Floats = np.ndarray[Any, np.dtype[np.float64]]


def adult() -> pd.DataFrame:
    """Education, sex and weekly hours."""
    path = Path(os.environ.get("SHAPEDP_DATA", "shared/data")) / "adult" / "adult.data.gz"
    with gzip.open(path, "rt") as lines:
        found = pd.read_csv(lines, header=None, skipinitialspace=True).iloc[:, [3, 9, 12]]
    return found.set_axis(["education", "sex", "hours"], axis=1)


def visits(rows: int) -> pd.DataFrame:
    """One to three visits of each person, in random order, with a town and a cost each."""
    rng = np.random.default_rng(0)
    ids = np.repeat(np.arange(rows), rng.integers(1, 4, rows))[:rows]
    towns, cost = rng.choice(TOWNS, rows, p=[0.6, 0.3, 0.1]), rng.gamma(2.0, 60.0, rows)
    return pd.DataFrame({"id": rng.permutation(ids), "town": towns, "cost": cost})


def rank_error(hours: Floats, value: float, level: float) -> float:
    """How many ranks a value is from the quantile; 0 for every value whose rows hold it."""
    wanted = level * hours.size
    return float(max((hours < value).sum() - wanted, wanted - (hours <= value).sum(), 0.0))


class Tasks:
    """The tasks in this library: one release as a user makes it, many for their errors, and what is true."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.people, self.visits, self.folder = adult(), visits(min(rows, ROWS)), folder
        self.degrees = sorted(self.people.education.unique())
        self.pairs = [(one, sex) for one in self.degrees for sex in SEXES]
        self.people.to_parquet(self.file("adult"))
        self.visits.to_parquet(self.file("visits"))
        visits(rows).to_parquet(self.file("many visits"))

    def file(self, task: str) -> str:
        """The file of a task."""
        return str(self.folder / (task if "visits" in task else "adult")) + ".parquet"

    def question(self, task: str, interval: bool = False) -> tuple[Any, dict[str, float]]:
        """What is asked, and the claim."""
        if "visits" in task:
            bounds, domains = {"cost": (0, 500)}, {"town": TOWNS}
            t = sdp.table(self.file(task), person="id", rows=3, bounds=bounds, domains=domains)
            t = t.drop_missing("cost")  # one number of rows for both questions
            return t.group_by("town").agg(visits=sdp.count(), cost=sdp.mean("cost")), CLAIM
        both = {"education": self.degrees, "sex": SEXES}
        t = sdp.table(self.file(task), person=None, bounds={"hours": (0, 100)}, domains=both)
        if task.startswith("quantiles"):
            asked = {f"q{level:g}": sdp.quantile("hours", level, interval=interval) for level in LEVELS}
            return (t if task == "quantiles" else t.group_by(*both)).agg(**asked), {"epsilon": 1.0, "delta": 0.0}
        if task == "means":
            return t.group_by("sex").agg(hours=sdp.mean("hours")), CLAIM
        return (t.sum("hours") if task == "total" else t.group_by(*both).count()), CLAIM

    def release(self, task: str) -> Any:
        """One release, from the file."""
        asked, claim = self.question(task, interval=True)
        if task == "report":
            return asked.release(**claim).report(title="Adult", author="A. Statistician").save(self.folder / "a.html")
        if task != "weeks":
            return asked.release(**claim)
        with tempfile.TemporaryDirectory() as place:
            book = {"dataset": "adult", "epsilon": 3.0, "delta": 1e-5, "adjacency": "add-remove"}
            budget = Ledger.create(str(Path(place) / "weeks.db"), **book)
            return [asked.release(**claim, ledger=budget, dataset="adult") for _ in range(3)]

    def draws(self, task: str, count: int, interval: bool = False) -> Iterator[dict[str, list[Any]]]:
        """The columns of many releases of the same rows."""
        asked, claim = self.question(task, interval)
        plan = asked.table.plan(asked, **claim)
        if task.startswith("quantiles"):
            counted = [(part, group_counts(part, plan.table, plan.questions[part.question])) for part in plan.drawn]
            for _ in range(count):  # as a release draws them, from rows that are counted once
                yield {
                    name: values
                    for part, exact in counted
                    for name, values in part.columns(exact, plan.table, None).items()
                }
            return
        tables = plan.exact_tables()
        for _ in range(count):
            yield dict(plan.answers(plan.mechanism.release(tables)).columns)

    def truth(self, task: str) -> Floats:
        """What a release is about, without noise."""
        if task == "visits":
            by = self.visits.assign(cost=self.visits.cost.clip(0, 500)).groupby("town").cost
            return np.concatenate([by.size()[TOWNS], by.mean()[TOWNS]])
        if task == "means":
            return np.asarray(self.people.groupby("sex").hours.mean()[SEXES])
        if task == "total":
            return np.array([float(self.people.hours.sum())])
        size = self.people.groupby(["education", "sex"]).size()
        return np.array([float(size.get(pair, 0)) for pair in self.pairs])

    def errors(self, task: str, released: list[list[float]]) -> Floats:
        """The mean error of every release: a column for each kind of number."""
        if not task.startswith("quantiles"):
            far = np.abs(np.array(released) - self.truth(task))
            return np.stack([part.mean(axis=1) for part in np.split(far, len(COLUMNS[task]), axis=1)], axis=1)
        groups = [self.people.hours.to_numpy()]
        if task != "quantiles":
            grouped = self.people.groupby(["education", "sex"]).hours
            groups = [grouped.get_group(pair).to_numpy() for pair in self.pairs]
        places = [(group, level) for level in LEVELS for group in groups]
        found = [
            [rank_error(group, round(value), level) for value, (group, level) in zip(one, places, strict=True)]
            for one in released
        ]
        return np.array(found).mean(axis=1, keepdims=True)

    def own_errors(self, task: str, count: int, interval: bool = False) -> Floats:
        """Those of this library."""
        names = COLUMNS.get(task, [f"q{level:g}" for level in LEVELS])
        drawn = self.draws(task, count, interval)
        return self.errors(task, [[value for name in names for value in one[name]] for one in drawn])


def coverage(tasks: Tasks, count: int) -> tuple[float, float]:
    """How often the 95% intervals of mean hours by sex hold, and half their width."""
    truth, held, wide = tasks.truth("means"), [], []
    for one in tasks.draws("means", count):
        low, high = np.array(one["hours_low"]), np.array(one["hours_high"])
        held.append(((low <= truth) & (truth <= high)).mean())
        wide.append(((high - low) / 2).mean())
    return float(np.mean(held)), float(np.mean(wide))


def compared(result: Result, what: str, name: str, own: Floats, theirs: Floats) -> None:
    """Their error over ours, or for ranks, which may be 0, ours less theirs; never to our disadvantage."""
    sizes = [float(one.mean()) for one in (theirs, own)]
    spread = [float(one.std(ddof=1)) / math.sqrt(one.size) for one in (theirs, own)]
    if "p90" in what:
        room = ROOM * math.hypot(*spread)
        result.figure(f"{what}: rank error, ours less {name}'s ({sizes[0]:.3g})", sizes[1] - sizes[0], at_most=room)
        return
    far = sizes[0] / sizes[1]
    room = ROOM * math.hypot(*(s / size for s, size in zip(spread, sizes, strict=True)))
    result.ratio(f"{what}: error of {name} / ours", far, at_least=round(1 - room, 3))


@contextlib.contextmanager
def others(result: Result, quick: bool) -> Iterator[dict[str, Peers]]:
    """The peers that are there; a quick run leaves out Spark, which takes minutes."""
    with contextlib.ExitStack() as stack:
        found: dict[str, Peers] = {}
        for name, environment in PEERS.items():
            if quick and name == "Tumult":
                continue
            try:
                found[name] = stack.enter_context(Peers(environment))
            except FileNotFoundError as absent:
                if name != "Tumult":
                    raise
                result.notes.append(f"Tumult Analytics is not compared: {absent}".replace("make peers", "make tumult"))
        for one in found.values():
            result.peers |= one.versions
        yield found


def run(quick: bool) -> Result:
    result = Result("tables", what=f"tasks on Adult and {ROWS:,} visits: errors", notes=list(CANNOT))
    with tempfile.TemporaryDirectory() as place, others(result, quick) as peers:
        tasks = Tasks(Path(place), ROWS)
        for row in ERRORS:
            errors(tasks, peers, result, 4 if quick else 1, *row)
        intervals(tasks, result, 4 if quick else 1)
        return result


def errors(
    tasks: Tasks,
    peers: dict[str, Peers],
    result: Result,
    fewer: int,
    task: str,
    kinds: tuple[str, ...],
    many: int,
    some: int,
) -> None:
    """The errors of a task beside those of every peer that can do it."""
    own = tasks.own_errors(task, max(many // fewer, 8))
    for name, peer in peers.items():
        if (task, name) == ("visits", "diffprivlib"):
            continue
        given = {"task": task, "file": tasks.file(task), "degrees": tasks.degrees, "draws": max(some // fewer, 8)}
        theirs = tasks.errors(task, peer.value(f"{name.lower()}_table", **given))
        for place, what in enumerate(kinds):
            compared(result, what, name, own[:, place], theirs[:, place])
    for place, what in enumerate(kinds):
        result.figure(f"{what}: our error", float(own[:, place].mean()))
    if task.startswith("quantiles"):
        also = tasks.own_errors(task, max(many // fewer, 8), interval=True)
        result.figure(f"{kinds[0]}: our rank error beside intervals", float(also.mean()))


def intervals(tasks: Tasks, result: Result, fewer: int) -> None:
    """How often those of means hold."""
    held, wide = coverage(tasks, 2000 // fewer)
    result.figure("mean hours by sex: 95% intervals that hold", held, at_least=0.95 - (0.04 if fewer > 1 else 0.011))
    result.figure("mean hours by sex: half their width", wide)
