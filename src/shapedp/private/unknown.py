"""Keys and bounds that nobody declared: released before all else, with a share of the budget, never read silently.

Keys: `domains={"town": "private"}`. Which towns are published, the exact rule of `KeySelection` decides, from the
number of persons who have each; a person counts for at most `rows` towns (or `groups`, where that is given), chosen by a keyed
hash. Every name is compared byte by byte: a database that takes two texts for one would show either of them for both.

Bounds: `bounds={"hours": "private"}`. The 0.5% and the 99.5% quantile are drawn among cells between powers of two, of
both signs, and the bounds are the outer ends of the cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from shapedp.boundary.cells import is_label
from shapedp.mechanisms import KeySelection
from shapedp.mechanisms.base import Rng
from shapedp.mechanisms.selection import Selection
from shapedp.mechanisms.selection.choose import Integers
from shapedp.private.drawn import missed, rows_of_a_person, selection
from shapedp.private.engine import PERSON, counted, fresh_key
from shapedp.private.engine import _hash as keyed_hash
from shapedp.private.layout import layout
from shapedp.private.questions import Aggregate, Question
from shapedp.private.sources import ID, ibis
from shapedp.private.table import PrivateTable
from shapedp.sensitivity import Adjacency
from shapedp.workloads import Attribute, Measure

_OUTSIDE = Fraction(5, 1000)  # of the rows lie below, and above, the bounds that are drawn
_SMALL, _LARGE = -20, 60  # powers of two
_EDGES = tuple(2.0**k for k in range(_SMALL, _LARGE + 1))
EDGES = (*(-one for one in reversed(_EDGES)), 0.0, *_EDGES)
_FAR = 1e300
_EXACT = float(1 << 53)
_DELTA = 0.5  # of delta, for unknown keys


@dataclass(frozen=True, eq=False)
class UnknownKeys:
    """The choice of the values of one column that are published."""

    column: str
    mechanisms: tuple[KeySelection, ...]

    @property
    def what(self) -> str:
        """In words."""
        return f"keys of {self.column}"

    @classmethod
    def of(cls, column: str, table: PrivateTable, epsilon: float, delta: float, adjacency: Adjacency) -> UnknownKeys:
        """The choice that costs this much."""
        keys = table.groups_touched or table.rows
        made = KeySelection.calibrate(keys=keys, epsilon=epsilon, delta=delta, adjacency=adjacency)
        return cls(column, (made,))

    def released(
        self, table: PrivateTable, questions: Sequence[Question], rng: Rng, found: dict[str, Any]
    ) -> tuple[PrivateTable, tuple[Question, ...]]:
        """The table and the questions with the keys that are published."""
        names = self.mechanisms[0].release(key_counts(table, self.column), rng=rng).names or ()
        found[self.column] = list(names)
        made = Attribute(self.column, labels=tuple(names))
        known = replace(table, attributes={**table.attributes, self.column: made})
        return known, _moved(known, questions, {self.column: made})


@dataclass(frozen=True, eq=False)
class UnknownBounds:
    """Two quantiles of one column on a coarse public grid."""

    column: str
    mechanisms: tuple[Selection, ...]

    @property
    def what(self) -> str:
        """In words."""
        return f"bounds of {self.column}"

    @classmethod
    def of(cls, column: str, table: PrivateTable, epsilon: float, method: str, adjacency: Adjacency) -> UnknownBounds:
        """Draws that cost epsilon together."""
        moved = (_OUTSIDE.denominator - _OUTSIDE.numerator) * rows_of_a_person(table)
        one = selection(len(EDGES) + 1, epsilon / 2, moved, False, method, adjacency)
        return cls(column, (one, one))

    def released(
        self, table: PrivateTable, questions: Sequence[Question], rng: Rng, found: dict[str, Any]
    ) -> tuple[PrivateTable, tuple[Question, ...]]:
        """The table and the questions with the bounds that were drawn."""
        counts = _coarse(table, self.column)
        levels = (_OUTSIDE, 1 - _OUTSIDE)
        drawn = [
            one.release(-missed(counts, level), rng=rng).index
            for one, level in zip(self.mechanisms, levels, strict=True)
        ]
        ends = (2 * EDGES[0], *EDGES, 2 * EDGES[-1])
        low, high = ends[min(drawn)], ends[max(drawn) + 1]
        found[self.column] = (low, high)
        known = replace(table, measures={**table.measures, self.column: Measure.of(self.column, (low, high))})
        return known, _moved(known, questions, {})


First = UnknownKeys | UnknownBounds


def _moved(table: PrivateTable, questions: Sequence[Question], made: Mapping[str, Attribute]) -> tuple[Question, ...]:
    """The same questions to the table that knows more."""
    return tuple(
        replace(
            one,
            table=replace(one.table, measures=table.measures, attributes=table.attributes),
            by=tuple(made.get(each.name, each) for each in one.by),
        )
        for one in questions
    )


def unknown_of(table: PrivateTable, questions: Sequence[Question]) -> tuple[list[str], list[str]]:
    """The columns whose keys, and whose bounds, the questions need and nobody declared."""
    asked = [one for question in questions for one in question.asked.values()]
    grouped = {one.name for question in questions for one in question.by}
    wanted = {one.column for one in asked if not isinstance(one.grid, tuple) and one.verb != "top_k"}
    keys, bounds = sorted(grouped & table.unknown_keys), wanted & table.unknown_bounds
    if len(keys) > 1:
        raise ValueError("one column at a time may have private keys: list the values of the others in domains=")
    return keys, sorted(name for name in bounds if name is not None)


def firsts_of(
    table: PrivateTable,
    unknown: tuple[list[str], list[str]],
    epsilon: float,
    delta: float,
    method: str,
    adjacency: Adjacency,
) -> tuple[First, ...]:
    """What must be found before the questions can be answered, with even shares of this epsilon."""
    keys, bounds = unknown
    each = epsilon / max(len(keys) + len(bounds), 1)
    found: list[First] = [UnknownKeys.of(name, table, each, delta * _DELTA, adjacency) for name in keys]
    return (*found, *(UnknownBounds.of(name, table, each, method, adjacency) for name in bounds))


def _coarse(table: PrivateTable, column: str) -> Integers:
    """The rows in each cell between powers of two; they go into a draw, not out."""
    cells = Attribute.of(column, {"edges": [-_FAR, *EDGES, _FAR]})
    made = layout(table, [Question(table, (cells,), {"n": Aggregate("count")})])
    found: Integers = counted(table, made, [(0,)]).tables[(0,)][..., 0]
    return found


def key_counts(table: PrivateTable, column: str) -> dict[Any, int]:
    """How many persons have each key; it goes into a choice, not out."""
    names = {column} | {name for condition in table.conditions for name in condition.columns()}
    wanted = {f"c{i}": (name, table.kind(name)) for i, name in enumerate(sorted(names))}
    place = next(name for name, (own, _) in wanted.items() if own == column)
    if table.person is not None:
        wanted[PERSON] = (table.person, ID)
    found = table.source.computed(wanted, lambda rows: _keyed(table, wanted, place, rows), table.memory)
    labels = [_label(one, table.kind(column)) for one in found.column("name").to_pylist()]
    counts = [int(one) for one in found.column("persons").to_pylist()]
    return {label: count for label, count in zip(labels, counts, strict=True) if is_label(label)}


def _keyed(table: PrivateTable, wanted: Mapping[str, tuple[str, str]], place: str, rows: Any) -> Any:
    """Persons by key, each in at most so many of them."""
    library = ibis()
    cells = {column: rows[name] for name, (column, kind) in wanted.items() if kind != ID}
    kept = [condition.sql(cells) for condition in table.conditions]
    kept += [rows[PERSON].notnull()] if table.person is not None else []
    cell = rows[place]
    if wanted[place][1] == "number":  # whole numbers alone are keys: each has one way to be written
        whole = (cell.floor() == cell) & (cell.abs() < _EXACT)
        cell = whole.ifelse(cell, library.null("float64")).try_cast("int64")
    kept.append(cell.notnull())
    text = cell.cast("string")
    named = rows.filter(*kept).mutate(name=text, key=text.hexdigest("sha256"))
    if table.person is not None:
        own = named.group_by([PERSON, "key"]).agg(name=named.name.max())
        hashed = own.mutate(hash=keyed_hash(own, fresh_key(), ("key",)))
        order = library.window(group_by=PERSON, order_by="hash")
        most = table.groups_touched or table.rows
        named = hashed.mutate(rank=library.row_number().over(order)).filter(library._.rank < most)
    return named.group_by("key").agg(name=named.name.max(), persons=named.count())


def _label(text: str, kind: str) -> Any:
    """A key as the value that the column holds."""
    if kind == "text":
        return text
    if kind == "boolean":
        return text.lower() == "true"
    return int(text)
