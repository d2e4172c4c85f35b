"""Neighbouring tables, replayed: one after the other with all that a user sees, or many in one table, pair by pair."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from tests.private import people

import shapedp as sdp
from shapedp.private import engine, unknown
from shapedp.private.drawn import group_counts
from shapedp.private.layout import layout
from shapedp.workloads.counting import Counted

CHANGES = ("add", "remove", "replace")
KEY = "a key that both see"
FAR = 10_000  # between the ids of two pairs


@contextmanager
def one_key() -> Iterator[None]:
    """Both neighbours choose rows by the same key."""
    before = engine.fresh_key, unknown.fresh_key
    engine.fresh_key = unknown.fresh_key = lambda: KEY
    try:
        yield
    finally:
        engine.fresh_key, unknown.fresh_key = before


def pair(rng: np.random.Generator, change: str) -> list[list[dict[str, Any]]]:
    """Two neighbours: a person added, removed, or replaced."""
    crowd = [people.rows_of_a_person(rng, name) for name in range(12)]
    place = int(rng.integers(len(crowd)))
    other = list(crowd)
    if change == "replace":
        other[place] = people.rows_of_a_person(rng, place)
        for row in other[place]:
            row["id"] = place
        for row in crowd[place]:
            row["id"] = place
    else:
        for row in crowd[place]:
            row["id"] = place  # a row without a person is nobody's
        other[place] = []
    flat = [[row for rows in each for row in rows] for each in (crowd, other)]
    return flat if change != "add" else flat[::-1]


def relation(change: str) -> str:
    """The neighbour relation under which such a change is certified."""
    return "replace" if change == "replace" else "add-remove"


def drawn(t: sdp.PrivateTable, **options: Any) -> sdp.MixedPlan:
    """Quantiles by group and a most frequent value."""
    asked = t.group_by("sex").agg(q=sdp.quantile("hours", 0.25, grid=16)), t.top_k("sex", 1)
    return t.plan(*asked, epsilon=1.0, delta=0.0, **options)


def shown(answers: sdp.Answers) -> list[Any]:
    """Names, types and lengths of all columns."""
    return [(list(one), one.dtypes.astype(str).tolist(), len(one)) for one in answers.frames]


def seen(kind: str, rows: list[dict[str, Any]], folder: Path, related: str) -> tuple[Any, Any]:
    """What is exact, and everything else that a user of one table sees."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        t = people.private(kind, rows, folder)
        plan, other = people.plan(t, adjacency=related), drawn(t, adjacency=related)
        tables = plan.exact_tables()
        counts = [group_counts(part, t, other.questions[part.question]) for part in other.drawn]
        frames = [shown(plan.answers(plan.mechanism.release(tables))), shown(other.release())]
        hidden = replace(t, conditions=())
        coarse, keys = unknown._coarse(hidden, "hours"), unknown.key_counts(hidden, "sex")
    theirs = (DeprecationWarning, ResourceWarning)  # of other libraries; the latter name ports
    said = [str(one.message) for one in heard if one.category not in theirs]
    facts = (frames, plan.mechanism.to_json(), plan.scope, other.certificate.to_json(), said)
    return (plan, tables, [*counts, coarse], keys), facts


def replayed(kind: str, change: str, rng: np.random.Generator, folder: Path) -> float:
    """One pair with all that is seen; how far its sums are apart, as a share of what is certified."""
    (one, facts), (other, its_facts) = (seen(kind, rows, folder, relation(change)) for rows in pair(rng, change))
    assert facts == its_facts
    moved = people.apart(one[0].mechanism, one[1], other[1])
    assert moved <= one[0].mechanism.loss.mu
    most = 4 if change == "replace" else 2  # rows of a person
    for counts, its_counts in zip(one[2], other[2], strict=True):
        check_counts(counts, its_counts, most, change)
    check_keys(one[3], other[3], most, change)
    return moved / one[0].mechanism.loss.mu


def check_counts(one: np.ndarray, other: np.ndarray, most: int, change: str) -> int:
    """Counts move by at most so many rows; by one person who comes or goes, all in one direction."""
    moved = np.asarray(one) - np.asarray(other)
    far = int(np.abs(moved).sum())
    assert far <= most
    assert change == "replace" or far == abs(int(moved.sum()))
    return far


def check_keys(one: dict[str, int], other: dict[str, int], most: int, change: str) -> None:
    """The number of persons who have a key moves by one, for at most so many keys."""
    moved = [one.get(key, 0) - other.get(key, 0) for key in {*one, *other}]
    assert max(map(abs, moved), default=0) <= 1
    assert sum(map(abs, moved)) <= most
    assert change == "replace" or len(set(moved) - {0}) <= 1


class Batch:
    """Many pairs in one table per side: ids differ between pairs, and every question is asked by pair."""

    def __init__(self, pairs: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.changes = [CHANGES[n % 3] for n in range(pairs)]
        both = [pair(rng, change) for change in self.changes]
        self.sides = [[_told(row, n) for n, one in enumerate(both) for row in one[side]] for side in (0, 1)]

    def exact(self, kind: str, side: int, folder: Path) -> tuple[Any, ...]:
        """The sums of one side by pair, the counts of quantiles by pair, the persons by pair and key."""
        size = len(self.changes)
        types = {"tag": "text"} if kind in ("csv", "objects") else {}
        listed = {"sex": ["F", "M"], "pair": size}
        t = sdp.table(
            people.source(kind, self.sides[side], folder),
            person="id",
            rows=2,
            bounds={"hours": (0, 80)},
            domains=listed,
            types={**people.TYPES.get(kind, {}), **types},
        )
        own = t.attributes["pair"]
        asked = [replace(one, by=(own, *one.by)) for one in people.questions(t)]
        made = layout(t, asked)
        names = [one.name for one in made.workload.schema.attributes]
        axes = tuple(range(len(names)))
        sums = engine.counted(t, made, [axes]).tables[axes]
        sums = np.moveaxis(sums, names.index("pair"), 0)
        question = t.group_by("pair", "sex").quantile("hours", 0.25, grid=16)
        (part,) = t.plan(question, epsilon=1.0, delta=0.0).drawn
        counts = group_counts(part, t, question).reshape(size, 2, -1)
        return [name for name in names if name != "pair"], sums, counts, unknown.key_counts(t, "tag")

    def checked(self, kind: str, folder: Path) -> list[float]:
        """How far the sums of each pair are apart, as a share of what is certified; all else is asserted."""
        (names, one, counts, keys), (_, other, its_counts, its_keys) = (self.exact(kind, k, folder) for k in (0, 1))
        plans = {
            related: people.plan(people.private("arrow", [], folder), adjacency=related)
            for related in ("add-remove", "replace")
        }
        found = []
        for n, change in enumerate(self.changes):
            plan = plans[relation(change)]
            moved = people.apart(plan.mechanism, *(_counted(plan, names, side[n]) for side in (one, other)))
            assert moved <= plan.mechanism.loss.mu
            found.append(moved / plan.mechanism.loss.mu)
            most = 4 if change == "replace" else 2
            check_counts(counts[n], its_counts[n], most, change)
            check_keys(_of_pair(keys, n), _of_pair(its_keys, n), most, change)
        return found


def _told(row: dict[str, Any], number: int) -> dict[str, Any]:
    """A row that says of which pair it is."""
    own = None if row["id"] is None else row["id"] + FAR * number
    tag = None if row["sex"] is None else f"{number}|{row['sex']}"
    return {**row, "id": own, "pair": number, "tag": tag}


def _of_pair(keys: dict[str, int], number: int) -> dict[str, int]:
    return {key: count for key, count in keys.items() if key.startswith(f"{number}|")}


def _counted(plan: sdp.TablePlan, names: list[str], cells: np.ndarray) -> Counted:
    """The tables that a plan needs, from the cells of all attributes."""
    schema = plan.mechanism.workload.schema
    order = [one.name for one in schema.attributes]
    cells = np.moveaxis(cells, [names.index(name) for name in order], range(len(order)))
    tables = {
        axes: cells.sum(axis=tuple(k for k in range(len(order)) if k not in axes)) for axes in plan.mechanism.needed()
    }
    return Counted(tables, schema, plan.mechanism.workload.bounds())
