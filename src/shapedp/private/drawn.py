"""Quantiles and the most frequent values of groups: exact draws among public candidates, from exact counts.

A quantile a/b of a group with n rows, C(j) of them in the cells 0 .. j of a public grid. Cell j holds it where
b C(j - 1) < a n <= b C(j); how far it is from that,

    missed(j) = max(b C(j - 1) - t, t - b C(j), 0),  t = a n,

is minus its utility. A row more changes t by a, b C by 0 or b: all utilities change by amounts of [-s, s],
s = max(a, b - a). So r rows of a person, wherever they are, change the log-probabilities of all groups together within
an interval of length 2 s r rate: the groups of one draw add up to r rows. (An interval of length x + y holds the
losses of a pair whose parts have intervals x and y, and `SelectionLoss` is the worst of all pairs within an interval; a
purely private draw adds up in the same way.) A person who is exchanged takes r rows away and brings r.

Ends of an interval. The lower end is drawn with t = a n - b d, and with one more candidate below the grid, which misses
by max(t, 0). Some candidate then misses by 0. A cell above the one of the quantile has b C(j - 1) >= a n, so it misses
by b d at least, and is drawn with probability e^(-rate b d) at most: with d = log(cells/p)/(rate b) the end is above
the quantile with probability p at most. The upper end is alike, with one candidate above. Numbers beyond the grid count
in its outermost cells; infinite ones are missing.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from shapedp.mechanisms.base import Rng
from shapedp.mechanisms.selection import Selection
from shapedp.mechanisms.selection.choose import Integers, fraction_below
from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import BELOW_8192
from shapedp.privacy.losses.selected import rounded_up
from shapedp.private.engine import counted
from shapedp.private.layout import layout
from shapedp.private.questions import Aggregate, Question
from shapedp.private.table import PrivateTable
from shapedp.sensitivity import Adjacency
from shapedp.workloads import Attribute

ENDS = 0.15  # of a quantile's share, for each end of its interval
_USUAL = 400  # steps of a grid that nobody named
_FAR = 1e300  # beyond every grid
Columns = dict[str, list[Any]]


def rows_of_a_person(table: PrivateTable) -> int:
    """How many rows of one person count at most, in all groups together."""
    return table.rows * (table.groups_touched or 1)


def in_all(table: PrivateTable) -> PrivateTable:
    """The table with one bound on a person's rows, wherever they are: a cell of a grid is no group."""
    return replace(table, rows=rows_of_a_person(table), groups_touched=None)


def selection(
    candidates: int, epsilon: float, moved: int, monotone: bool, method: str, adjacency: Adjacency, times: int = 1
) -> Selection:
    """`times` choices of this epsilon together, for utilities that one person moves by at most `moved`."""
    if adjacency == "replace":
        moved, monotone = moved if monotone else 2 * moved, False
    distance = moved if monotone else 2 * moved
    rate = fraction_below(Fraction(epsilon * BELOW_8192) / (distance * times))  # so that sums of shares stay below 1
    claimed = rounded_up(rate * distance * times)
    return Selection(candidates, rate.as_integer_ratio(), claimed, 0.0, moved, monotone, method, times, adjacency)


def grid_of(ask: Aggregate, table: PrivateTable) -> Floats:
    """The values that a quantile may have."""
    if isinstance(ask.grid, tuple):
        return np.array(ask.grid)
    if ask.column not in table.measures:  # bounds that are unknown yet: only the number of values is known
        return np.arange((ask.grid or _USUAL) + 1.0)
    measure = table.measures[str(ask.column)]
    low, high = measure.low, measure.high
    declared = ask.column not in table.unknown_bounds
    if ask.grid is None and declared and low % 1 == 0 and high % 1 == 0 and high - low <= _USUAL:
        return np.arange(low, high + 1)
    points = np.linspace(low, high, (ask.grid or _USUAL) + 1)
    if not (np.diff(points) > 0).all():
        raise ValueError(f"the bounds of {ask.column!r} are too close for a grid of so many steps: name fewer")
    return points


def cells_around(points: Floats, name: str) -> Attribute:
    """Cells of the values nearest to each point; the outermost reach to the ends of all numbers."""
    middle = points[:-1] + np.diff(points) / 2
    return Attribute.of(name, {"edges": [-_FAR, *middle.tolist(), _FAR]})


def missed(counts: Integers, share: Fraction, margin: int = 0) -> Integers:
    """How far each cell is from holding the quantile, in ranks times the denominator; see the head of this file.

    A `margin` moves the rank wanted, down or up, and adds a candidate below or above the grid.
    """
    a, b = share.as_integer_ratio()
    upto = b * np.cumsum(counts)
    whole = int(upto[-1])
    target = a * (whole // b) + b * margin
    below = np.concatenate([[0], upto[:-1]])
    found = np.maximum(np.maximum(below - target, target - upto), 0)
    if margin < 0:
        return np.concatenate([[max(target, 0)], found])
    return np.concatenate([found, [max(whole - target, 0)]]) if margin > 0 else found


Place = tuple[int, str, Aggregate]
"""The number of a question, the name of an answer in it, and what is asked."""


class How(NamedTuple):
    """How an answer is drawn: what it may cost, the method of selection, and of which confidence its interval is."""

    epsilon: float
    method: str
    adjacency: Adjacency
    confidence: float


@dataclass(frozen=True, eq=False)
class _Part:
    """An answer that is drawn, and the mechanisms that draw it."""

    question: int
    name: str
    ask: Aggregate
    mechanisms: tuple[Selection, ...]
    confidence: float

    @property
    def names(self) -> tuple[str, ...]:
        """Of the answers that it gives."""
        return (self.name,)

    @property
    def what(self) -> str:
        """In words."""
        return repr(self.ask)


@dataclass(frozen=True, eq=False)
class QuantilePart(_Part):
    """The draws of one quantile: its value, or its value and the lower and upper end of its interval."""

    @classmethod
    def of(cls, place: Place, table: PrivateTable, cells: int, how: How) -> QuantilePart:
        """Draws that cost epsilon together."""
        ask = place[2]
        a, b = ask.fraction.as_integer_ratio()
        moved = max(a, b - a) * rows_of_a_person(table)
        shares = (1 - 2 * ENDS, ENDS, ENDS) if ask.interval else (1.0,)
        made = (
            selection(cells + bool(k), how.epsilon * share, moved, False, how.method, how.adjacency)
            for k, share in enumerate(shares)
        )
        return cls(*place, tuple(made), how.confidence)

    @property
    def margin(self) -> int:
        """By how many ranks the ends are moved, so that each holds but for half of what is missed."""
        b, end = self.ask.fraction.denominator, self.mechanisms[1]
        log = math.log(2 * end.candidates / (1 - self.confidence))
        return math.ceil(log / (float(Fraction(*end.rate)) * b) * (1 + 1e-9))

    def attribute(self, table: PrivateTable) -> Attribute:
        """The cells that are counted."""
        return cells_around(grid_of(self.ask, table), str(self.ask.column))

    def columns(self, tables: Integers, table: PrivateTable, rng: Rng) -> Columns:
        """The drawn values of every group, from the counts by group and cell."""
        points = grid_of(self.ask, table)
        draws = [self._draw(tables, 0, self.mechanisms[0], rng)]
        ends = [np.zeros(len(tables), np.int64), np.full(len(tables), points.size - 1)]
        if len(self.mechanisms) > 1:
            low = self._draw(tables, -self.margin, self.mechanisms[1], rng) - 1
            high = self._draw(tables, self.margin, self.mechanisms[2], rng)
            ends = [np.maximum(low, 0), np.minimum(high, points.size - 1)]
        value = points[draws[0]]
        low, high = points[np.minimum(ends[0], draws[0])], points[np.maximum(ends[1], draws[0])]
        error = (high - low) / 2
        named = zip(("", "_error", "_low", "_high"), (value, error, low, high), strict=True)
        return {self.name + end: column.tolist() for end, column in named}

    def _draw(self, tables: Integers, margin: int, mechanism: Selection, rng: Rng) -> Integers:
        share = self.ask.fraction
        return np.array([mechanism.release(-missed(counts, share, margin), rng=rng).index for counts in tables])


@dataclass(frozen=True, eq=False)
class TopPart(_Part):
    """The most frequent values of a column in every group."""

    @classmethod
    def of(cls, place: Place, table: PrivateTable, how: How) -> TopPart:
        """Choices that cost epsilon together. A person moves counts in one direction, by all rows that count."""
        ask, moved = place[2], rows_of_a_person(table)
        size = table.attributes[str(ask.column)].size
        made = selection(size, how.epsilon, moved, True, how.method, how.adjacency, ask.k or 1)
        return cls(*place, (made,), how.confidence)

    def attribute(self, table: PrivateTable) -> Attribute:
        """The candidates."""
        return table.attributes[str(self.ask.column)]

    def columns(self, tables: Integers, table: PrivateTable, rng: Rng) -> Columns:
        """`k` rows per group: rank, value, and how far below the best one left it is at most."""
        (mechanism,) = self.mechanisms
        names, found = self.attribute(table).cells(), Columns()
        chosen = [place for counts in tables for place in mechanism.release(counts, rng=rng).value.tolist()]
        found["rank"] = [1 + k for _ in tables for k in range(self.ask.k or 1)]
        found[str(self.ask.column)] = [names[place] for place in chosen]
        found["shortfall"] = [mechanism.shortfall(self.confidence)] * len(chosen)
        return found


DrawnPart = QuantilePart | TopPart


def group_counts(part: Any, table: PrivateTable, question: Question) -> Integers:
    """The exact counts by group (rows) and candidate (columns); they go into a draw, not out."""
    own, table = part.attribute(table), in_all(table)
    made = layout(table, [replace(question, by=(*question.by, own), asked={"n": Aggregate("count")})])
    axes = tuple(range(len(made.workload.schema.attributes)))
    cells = counted(table, made, [axes]).tables[axes][..., 0]
    names = [one.name for one in made.workload.schema.attributes]
    order = [names.index(name) for name in made.groups[0]]
    return np.ascontiguousarray(cells.transpose(order)).reshape(-1, own.size)


def group_columns(by: tuple[Attribute, ...], repeat: int = 1) -> Columns:
    """The groups of a question, in the order of its answers, each `repeat` times."""
    rows = list(itertools.product(*(one.cells() for one in by)))
    return {one.name: [row[k] for row in rows for _ in range(repeat)] for k, one in enumerate(by)}
