"""Keys and bounds that nobody declared: released before all else, with a share of the budget, never read silently.

Keys: `domains={"town": "private"}`. Which towns are published, the exact rule of `KeySelection` decides, from the
number of persons who have each. A person counts for at most `rows` towns (or `groups`, where that is given), chosen by
a keyed hash. Names are compared byte by byte: a database that takes two texts for one would show either for both.

Bounds: `bounds={"hours": "private"}`. The rows between powers of two, of both signs, are counted with Laplace noise.
The bounds are the outer ends of the outermost cells whose counts are above what noise alone reaches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from shapedp.boundary.cells import is_label
from shapedp.mechanisms import Additive, KeySelection, calibrate
from shapedp.mechanisms.base import Rng
from shapedp.mechanisms.selection.choose import Integers
from shapedp.numerics.outward import BELOW_8192
from shapedp.private.drawn import in_all, rows_of_a_person
from shapedp.private.engine import PERSON, counted, fresh_key
from shapedp.private.layout import layout
from shapedp.private.questions import Aggregate, Question
from shapedp.private.sources import ID, ibis, is_whole
from shapedp.private.table import PrivateTable
from shapedp.sensitivity import L1, Adjacency
from shapedp.workloads import Attribute, Measure

_CHANCE = 0.01  # that an empty cell seems to hold rows
_SMALL, _LARGE = -20, 60  # powers of two
_EDGES = tuple(2.0**k for k in range(_SMALL, _LARGE + 1))
EDGES = (*(-one for one in reversed(_EDGES)), 0.0, *_EDGES)
_FAR = 1e300
_EXACT = float(1 << 53)
_DELTA = 0.5  # of delta, for unknown keys


@dataclass(frozen=True, eq=False)
class _Unknown:
    """What is found out about one column before it is asked."""

    noun: ClassVar[str]
    column: str

    @property
    def what(self) -> str:
        """In words."""
        return f"{self.noun} of {self.column}"


@dataclass(frozen=True, eq=False)
class UnknownKeys(_Unknown):
    """The choice of the values of one column that are published."""

    noun = "keys"
    mechanisms: tuple[KeySelection, ...]

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
class UnknownBounds(_Unknown):
    """The number of rows of one column in each cell of a coarse public grid, with Laplace noise."""

    noun = "bounds"
    mechanisms: tuple[Additive, ...]

    @classmethod
    def of(cls, column: str, table: PrivateTable, epsilon: float, adjacency: Adjacency) -> UnknownBounds:
        """Counts that cost epsilon. A person adds as many rows as count, wherever they are; an exchanged one twice."""
        moved = rows_of_a_person(table) * (2 if adjacency == "replace" else 1)
        reach = L1(float(moved), dim=len(EDGES) + 1, adjacency=adjacency)
        return cls(column, (calibrate("laplace", reach, epsilon=epsilon * BELOW_8192, delta=0.0),))

    def released(
        self, table: PrivateTable, questions: Sequence[Question], rng: Rng, found: dict[str, Any]
    ) -> tuple[PrivateTable, tuple[Question, ...]]:
        """The table and the questions with the bounds that the noisy counts show."""
        (noise,) = self.mechanisms
        noisy = np.asarray(noise.release(_coarse(table, self.column).astype(np.float64), rng=rng).value)
        above = np.flatnonzero(noisy > np.max(noise.law.half_widths(1 - 2 * _CHANCE / noisy.size)))
        seen = above if above.size else np.array([noisy.argmax()])
        ends = (2 * EDGES[0], *EDGES, 2 * EDGES[-1])
        low, high = ends[int(seen[0])], ends[int(seen[-1]) + 1]
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
    adjacency: Adjacency,
) -> tuple[First, ...]:
    """What must be found before the questions can be answered, with even shares of this epsilon."""
    keys, bounds = unknown
    each = epsilon / max(len(keys) + len(bounds), 1)
    found: list[First] = [UnknownKeys.of(name, table, each, delta * _DELTA, adjacency) for name in keys]
    return (*found, *(UnknownBounds.of(name, table, each, adjacency) for name in bounds))


def _coarse(table: PrivateTable, column: str) -> Integers:
    """The rows in each cell between powers of two; they go into a draw, not out."""
    cells, table = Attribute.of(column, {"edges": [-_FAR, *EDGES, _FAR]}), in_all(table)
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
        whole = (cell.abs() < _EXACT) & is_whole(cell, _EXACT)
        cell = whole.ifelse(cell, library.null("float64")).try_cast("int64")
    kept.append(cell.notnull())
    text = cell.cast("string")
    named = rows.filter(*kept).mutate(name=text, key=text.hexdigest("sha256"))
    if table.person is not None:
        own = named.group_by([PERSON, "key"]).agg(name=named.name.max())
        said = library.literal(f"{fresh_key()}|") + own[PERSON].cast("string") + "|" + own.key
        hashed = own.mutate(hash=said.hexdigest("sha256"))
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
