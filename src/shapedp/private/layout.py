"""Questions as one workload: attributes, sums of features of a row, and the tables that answer each question.

A question about rows that others leave out, or about a column that may be missing, has a count of its own: a feature
that is 1 for its rows and 0 for all others. What all questions leave out is filtered before anything is counted.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from shapedp.private.conditions import Condition, col
from shapedp.private.questions import Aggregate, Question
from shapedp.private.table import PrivateTable
from shapedp.workloads import Attribute, Measure, Schema, Workload

NONE = "all rows"  # the attribute of a workload without groups
_COUNTS = 1 / 3  # weight of a count in a mean: the mean square of (mean - centre) over half the range
Keys = frozenset[str]


@dataclass(frozen=True, eq=False)
class Feature:
    """What a row adds to a sum: 1, or a power of a clipped value less its centre; 0 where a condition does not hold."""

    measure: Measure
    needs: Keys  # conditions beyond those that every row meets
    column: str | None = None
    bounds: tuple[float, float] = (0.0, 1.0)
    centre: float = 0.0
    power: int = 1
    shift: float = 0.0


@dataclass(frozen=True)
class Parts:
    """Where an aggregate finds its numbers: 0 is the count of rows, k the k-th feature, None not needed."""

    ask: Aggregate
    count: int | None = None
    total: int | None = None
    squares: int | None = None


@dataclass(frozen=True, eq=False)
class Layout:
    """A workload that answers questions, and how rows become what it counts."""

    workload: Workload
    columns: dict[str, str]  # the column of each attribute
    hidden: frozenset[str]  # attributes whose last cell, (other), is not shown
    conditions: dict[str, Condition]
    base: Keys
    features: tuple[Feature, ...]
    groups: tuple[tuple[str, ...], ...]  # the attributes of each question
    parts: tuple[dict[str, Parts], ...]  # the aggregates of each question


class _Builder:
    """Gathers what the questions share."""

    def __init__(self, table: PrivateTable, questions: Sequence[Question]) -> None:
        self.table = table
        self.conditions: dict[str, Condition] = {}
        self.features: dict[Any, Feature] = {}
        self.weights: dict[tuple[tuple[str, ...], int], float] = {}
        asked = [(question, one) for question in questions for one in question.asked.values()]
        self.summed = {one.column for _, one in asked if one.verb == "sum"}
        self.base = frozenset.intersection(*(self._needs(question, one) for question, one in asked))

    def _needs(self, question: Question, one: Aggregate) -> Keys:
        """The conditions of the rows that an aggregate counts."""
        limits = question.table.conditions
        found = {repr(limit): limit for limit in limits}
        known = frozenset().union(*(limit.known() for limit in limits), self.table.source.complete)
        if one.column is not None and one.verb != "sum" and one.column not in known:
            present = ~col(one.column).is_null()
            found[repr(present)] = present
        self.conditions |= found
        return frozenset(found)

    def _feature(self, name: str, ends: tuple[float, float], needs: Keys, partial: bool, **how: Any) -> int:
        """The place of a feature; where it is `partial` some rows add 0 to its sums."""
        key = (name, needs)
        if key not in self.features:
            ends = (min(ends[0], 0.0), max(ends[1], 0.0)) if partial else ends
            label = name + (f" where {' & '.join(sorted(needs))}" if needs else "")
            self.features[key] = Feature(Measure.of(label, ends), needs, **how)
        return 1 + list(self.features).index(key)

    def parts(self, question: Question, one: Aggregate, by: tuple[str, ...]) -> Parts:
        """The counts and sums of an aggregate, with their weights."""
        place = None
        if one.verb != "sum":
            needs = self._needs(question, one) - self.base
            place = self._feature("count(*)", (0.0, 1.0), needs, True) if needs else 0
            self._weigh(by, place, 1.0 if one.column is None else _COUNTS)
        if one.column is None:
            return Parts(one, count=place)
        measure = self.table.measures[one.column]
        limits = frozenset(map(repr, question.table.conditions)) - self.base
        present = frozenset().union(*(self.conditions[name].known() for name in self.base), self.table.source.complete)
        partial = bool(limits) or one.column not in present  # a missing value adds 0 by itself
        centre = 0.0 if one.column in self.summed else (measure.low + measure.high) / 2
        ends = (measure.low - centre, measure.high - centre)
        how = {"column": one.column, "bounds": (measure.low, measure.high), "centre": centre}
        total = self._feature(f"sum({one.column})", ends, limits, partial, **how)
        self._weigh(by, total, 1.0)
        if one.verb != "variance":
            return Parts(one, place, total)
        half = max(abs(end) for end in ends) ** 2 / 2
        squares = self._feature(f"squares({one.column})", (-half, half), limits, partial, **how, power=2, shift=half)
        self._weigh(by, squares, 1.0)
        return Parts(one, place, total, squares)

    def _weigh(self, by: tuple[str, ...], place: int, weight: float) -> None:
        key = (tuple(sorted(by)), place)
        self.weights[key] = self.weights.get(key, 0.0) + weight


def _attributes(questions: Sequence[Question]) -> tuple[dict[str, Attribute], dict[str, str], set[str], list[Any]]:
    """The attributes of all questions by name, their columns, those with a hidden cell, and the names by question.

    Rows outside a domain are in no group of the questions that group by it, but others count them: such an attribute
    gets an (other) cell, which is not shown. Where all questions group by it, those rows are left out.
    """
    named: dict[str, Attribute] = {}
    columns: dict[str, str] = {}
    books: dict[tuple[str, str], str] = {}
    groups = []
    for question in questions:
        names = []
        for one in question.by:
            key = (one.name, repr(one.to_json()))
            if key not in books:
                taken = {*named, *(other.name for each in questions for other in each.by if other.name != one.name)}
                numbered = (f"{one.name} ({number})" for number in itertools.count(2))
                books[key] = one.name if one.name not in taken else next(n for n in numbered if n not in taken)
                named[books[key]], columns[books[key]] = replace(one, name=books[key]), one.name
            names.append(books[key])
        groups.append(tuple(names))
    hidden = {n for n, one in named.items() if not one.other and not all(n in names for names in groups)}
    for name in hidden:
        named[name] = replace(named[name], other=True)
    return named or {NONE: Attribute.of(NONE, 1)}, columns, hidden, groups


def layout(table: PrivateTable, questions: Sequence[Question]) -> Layout:
    """The workload of these questions."""
    built = _Builder(table, questions)
    attributes, columns, hidden, groups = _attributes(questions)
    parts = tuple(
        {name: built.parts(question, one, by) for name, one in question.asked.items()}
        for question, by in zip(questions, groups, strict=True)
    )
    features = tuple(built.features.values())
    if len(features) > 6:
        raise ValueError(
            f"these questions need {len(features)} sums of each row, more than 6 that one workload holds: ask about "
            "fewer columns at a time, under fewer different conditions, or after drop_missing(...)"
        )
    measures = {one.measure.name: (one.measure.low, one.measure.high) for one in features}
    if len(measures) < len(features):  # "x) where (y > 1" is a name, too
        raise ValueError("two sums of these questions have one name: rename a column that is called like a condition")
    schema = Schema.of({name: one.to_json() for name, one in attributes.items()}, measures)
    made = Workload(schema, max_rows=table.rows, max_groups=table.groups_touched)
    for (by, place), weight in built.weights.items():
        named = features[place - 1].measure.name if place else ""
        made = made.sums(named, *by, weight=weight) if place else made.marginal(*by, weight=weight)
    return Layout(made, columns, frozenset(hidden), built.conditions, built.base, features, tuple(groups), parts)
