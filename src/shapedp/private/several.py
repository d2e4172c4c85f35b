"""Several quantiles of one column at once: all are read from the same noisy counts up to each cell of the grid.

One draw per quantile leaves each of m quantiles an m-th of the budget. Counts up to each cell cost the same for any m,
and give intervals as well. Two kinds of them:

- Gaussian noise shaped to all prefixes of all groups together, by the workload engine (delta > 0);
- a tree: sums of blocks of cells, and of cells, with Laplace noise; a prefix is a few blocks and a few cells.

Which of the three serves is decided by public numbers: m, the cells, the claim. See `chosen`.

Ends of an interval: quantile q of n rows is in cell z where C(z - 1) < q n <= C(z). The noise of C(z) - q n is within
`reach(z)` on either side but for half of what is missed; the ends are the first and the last cell that are possible.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from shapedp.mechanisms import Additive, calibrate
from shapedp.mechanisms.base import Rng
from shapedp.mechanisms.selection.choose import Integers
from shapedp.mechanisms.selection.prefixes import PREFIX_CELLS, ends_of, places_of
from shapedp.noise.gaussian import normal_half_width
from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import BELOW_8192
from shapedp.privacy import GaussianLoss
from shapedp.private.drawn import (
    ENDS,
    Columns,
    How,
    Place,
    QuantilePart,
    TopPart,
    cells_around,
    grid_of,
    rows_of_a_person,
)
from shapedp.private.planned import Planned
from shapedp.private.questions import Aggregate, Question
from shapedp.private.table import PrivateTable
from shapedp.sensitivity import L1, Adjacency
from shapedp.workloads import Attribute, Workload, WorkloadMechanism
from shapedp.workloads.answered import sum_half_width
from shapedp.workloads.counting import Counted

Asked = tuple[int, dict[str, Aggregate], float]
"""What `_Several` holds: the number of the question, what is asked in it, and the confidence."""
_GROUP, _CELL = "group", "cell"
_SLOW = 128  # cells of one group, above which noise for exchanged persons takes long to shape
_MEAN = math.sqrt(2 / math.pi)  # of |noise|, over its deviation
_PER_DRAW = 1.3  # ranks by which one draw misses, times epsilon, about


def chosen(many: int, cells: int, groups: int | None, epsilon: float, delta: float, how: tuple[bool, str]) -> str:
    """What serves so many quantiles best by about: "draws", one for each, a "tree", or shaped "prefixes".

    It weighs the error of a value and, where intervals are wanted, their length. `groups` is None where unknown.
    """
    interval, adjacency = how
    twice = 2.0 if adjacency == "replace" else 1.0
    own = epsilon / many
    value = twice * _PER_DRAW / (own * (1 - 2 * ENDS if interval else 1.0))
    cost = {"draws": value + interval * 0.75 * twice * math.log(40 * cells) / (own * ENDS)}
    if groups is not None:
        deviation = twice * math.sqrt(2.0) * Tree.best(cells).error / epsilon
        cost["tree"] = deviation * (_MEAN + interval * 1.2)
    slow = adjacency == "replace" and groups == 1 and cells > _SLOW
    if delta > 0 and cells <= PREFIX_CELLS and not slow:
        deviation = (0.7 + 0.31 * math.log(cells)) / GaussianLoss.calibrate(epsilon, delta).mu
        cost["prefixes"] = (1.35 if twice > 1 else 1.0) * deviation * (_MEAN + interval)
    return min(cost, key=lambda name: cost[name])


@dataclass(frozen=True, eq=False)
class Tree:
    """Sums of blocks of `width` cells, and of cells, each with a share of epsilon; with width 1 of cells alone."""

    cells: int
    width: int

    @classmethod
    def best(cls, cells: int) -> Tree:
        """The width of least error."""
        return min((cls(cells, width) for width in {1, max(math.isqrt(cells), 1)}), key=lambda one: one.error)

    @property
    def levels(self) -> int:
        """How many sums each row is in."""
        return 1 if self.width == 1 else 2

    @cached_property
    def rows(self) -> tuple[Floats, Floats]:
        """The blocks and the cells of which each prefix is the sum."""
        blocks, place = -(-self.cells // self.width), np.arange(self.cells)[:, None]
        full = ((place + 1) % self.width == 0) | (place == self.cells - 1)
        whole = place // self.width + full
        inner = (np.arange(self.cells) >= whole * self.width) & (np.arange(self.cells) <= place)
        return (np.arange(blocks) < whole).astype(np.float64), inner.astype(np.float64)

    @property
    def error(self) -> float:
        """sqrt(mean square noise of a prefix / 2), times epsilon, for one row of a person."""
        return self.levels * math.sqrt(float(np.mean(sum(one.sum(axis=1) for one in self.rows))))

    def sums(self, counts: Integers) -> list[Integers]:
        """The sums of blocks, and of cells where they are not the same, by group."""
        starts = np.arange(0, self.cells, self.width)
        return [np.add.reduceat(counts, starts, axis=1), counts][: self.levels]


@dataclass(frozen=True, eq=False)
class _Several(ABC):
    """Quantiles of one column and grid in one question, read from noisy prefix counts."""

    question: int
    asked: Mapping[str, Aggregate]
    confidence: float

    @property
    def ask(self) -> Aggregate:
        """The first of them, which says the column and the grid."""
        return next(iter(self.asked.values()))

    @property
    def names(self) -> tuple[str, ...]:
        """Of the answers that it gives."""
        return tuple(self.asked)

    @property
    def what(self) -> str:
        """In words."""
        return f"{len(self.asked)} quantiles of {self.ask.column}"

    @property
    def levels(self) -> Floats:
        """The shares of rows at or below the values."""
        return np.array([float(one.fraction) for one in self.asked.values()])

    def attribute(self, table: PrivateTable) -> Attribute:
        """The cells that are counted."""
        return cells_around(grid_of(self.ask, table), str(self.ask.column))

    def columns(self, tables: Integers, table: PrivateTable, rng: Rng) -> Columns:
        """The values of every group and the ends of their intervals, from the counts by group and cell."""
        points = grid_of(self.ask, table)
        noisy, reach = self._noisy(tables, rng)
        places = np.array([places_of(one, self.levels) for one in noisy])
        ends = np.array([ends_of(one, self.levels, reach) for one in noisy])
        low, high = np.minimum(ends[:, 0], places), np.maximum(ends[:, 1], places)
        found = Columns()
        for k, name in enumerate(self.asked):
            value, least, most = (points[one[:, k]] for one in (places, low, high))
            named = zip(("", "_error", "_low", "_high"), (value, (most - least) / 2, least, most), strict=True)
            found |= {name + end: column.tolist() for end, column in named}
        return found

    @abstractmethod
    def _noisy(self, tables: Integers, rng: Rng) -> tuple[Floats, Floats]:
        """Prefix counts with noise by group, and how far the noise of C(z) - q n reaches, by quantile and cell."""


@dataclass(frozen=True, eq=False)
class TreePart(_Several):
    """Quantiles from a tree of counts with Laplace noise."""

    tree: Tree
    mechanisms: tuple[Additive, ...]

    @classmethod
    def of(cls, place: Asked, sizes: tuple[int, int, int], epsilon: float, adjacency: Adjacency) -> TreePart:
        """A tree that costs epsilon; `sizes` are groups, cells and rows of a person."""
        groups, cells, rows = sizes
        tree = Tree.best(cells)
        moved = float(rows * (2 if adjacency == "replace" else 1))
        each = epsilon / tree.levels * BELOW_8192
        made = (
            calibrate("laplace", L1(moved, dim=size, adjacency=adjacency).of_integers(), epsilon=each, delta=0.0)
            for size in (groups * len(tree.rows[0].T), groups * cells)[: tree.levels]
        )
        return cls(*place, tree, tuple(made))

    def _noisy(self, tables: Integers, rng: Rng) -> tuple[Floats, Floats]:
        total = np.zeros(tables.shape)
        for exact, rows, noise in zip(self.tree.sums(tables), self.tree.rows, self.mechanisms, strict=False):
            drawn = np.asarray(noise.release(exact.reshape(-1), rng=rng).value, dtype=np.float64)
            total = total + drawn.reshape(exact.shape) @ rows.T
        return total, self._reach

    @cached_property
    def _reach(self) -> Floats:
        """From the blocks and cells of C(z) - q n, each with noise of its own."""
        spread: Any = 0.0
        largest: Any = 0.0
        for rows, noise in zip(self.tree.rows, self.mechanisms, strict=False):
            law: Any = noise.law  # alike in all coordinates
            scale = float(np.max(law.scales))
            moved = rows[None] - self.levels[:, None, None] * rows[-1]  # the last prefix is n itself
            spread = spread + np.square(moved).sum(axis=2) * scale**2
            largest = np.maximum(largest, np.abs(moved).max(axis=2) * scale)
        return sum_half_width("laplace", np.sqrt(spread), largest, self.confidence)


@dataclass(frozen=True, eq=False)
class PrefixPart(_Several):
    """Quantiles from prefix counts with shaped Gaussian noise of at most this mu; `made` where the groups are known."""

    mu: float
    sizes: tuple[int | None, int, int]  # groups, cells, rows of a person
    claim: Planned
    made: WorkloadMechanism | None

    @classmethod
    def of(cls, place: Asked, sizes: tuple[int | None, int, int], mu: float, claim: Planned) -> PrefixPart:
        """Noise of this mu."""
        made = None if sizes[0] is None else shaped(sizes[0], sizes[1], sizes[2], mu, claim.calibrated)
        return cls(*place, mu, sizes, claim, made)

    @property
    def mechanisms(self) -> tuple[Any, ...]:
        """What the certificate describes: the mechanism, or its mu where its groups are not known yet."""
        return (self.made or GaussianLoss(self.mu, 0.0, adjacency=self.claim.adjacency),)

    def _noisy(self, tables: Integers, rng: Rng) -> tuple[Floats, Floats]:
        groups, (_, cells, rows) = len(tables), self.sizes
        made = self.made or shaped(groups, cells, rows, self.mu, self.claim.calibrated)
        if not made.loss.mu <= self.mu:
            raise AssertionError("the noise of quantiles is below what was planned")
        whole = {(0, 1): tables[..., None], (1,): tables.sum(axis=0)[:, None], (0,): tables[0][:, None]}
        exact = Counted({axes: whole[axes] for axes in made.needed()}, made.workload.schema, made.workload.bounds())
        (term,) = made.workload.terms
        noisy = made.release(exact, rng=rng)[term.name].reshape(groups, cells)
        return noisy, self._reach if made is self.made else self._reach_of(made)

    @cached_property
    def _reach(self) -> Floats:
        assert self.made is not None
        return self._reach_of(self.made)

    def _reach_of(self, made: WorkloadMechanism) -> Floats:
        """From the variances of C(z) - q n."""
        cells = self.sizes[1]
        below = np.tril(np.ones((cells, cells)))
        by = [one.name for one in made.workload.schema.attributes if one.name != _CELL]
        asked = (made.workload.rows(below - level, _CELL, by=by, name="gaps").terms[-1] for level in self.levels)
        variances = np.array([made.covariances(one).reshape(-1, cells)[0] for one in asked])
        return np.asarray(normal_half_width(self.confidence) * np.sqrt(variances))


def shaped(groups: int, cells: int, rows: int, mu: float, options: Mapping[str, Any]) -> WorkloadMechanism:
    """Gaussian noise of at most this mu on the counts up to each cell of every group."""
    attributes: dict[str, Any] = {_GROUP: groups, _CELL: cells} if groups > 1 else {_CELL: cells}
    asked = Workload(attributes, max_rows=rows).prefixes(_CELL, by=[_GROUP] if groups > 1 else [])
    claimed = GaussianLoss(mu * BELOW_8192).epsilon(options["delta"]).lower * BELOW_8192
    found = asked.calibrate(epsilon=claimed, noise="gaussian", **options)
    assert isinstance(found, WorkloadMechanism)
    return found


AnyPart = QuantilePart | TopPart | TreePart | PrefixPart


@dataclass(frozen=True, eq=False)
class Unit:
    """What is drawn together: an answer alone, or several quantiles of one column and grid in one question."""

    places: tuple[Place, ...]
    groups: int | None  # None where they are not known yet
    cells: int
    rows: int  # of a person

    @property
    def weight(self) -> int:
        """How many shares it has: more quantiles cost little more."""
        return min(len(self.places), 1 + len(self.places).bit_length())

    def way(self, each: float, delta: float, adjacency: Adjacency) -> str:
        """How it is drawn at so much epsilon for each share."""
        if len(self.places) == 1:
            return "draws"
        interval = any(ask.interval for _, _, ask in self.places)
        return chosen(len(self.places), self.cells, self.groups, each * self.weight, delta, (interval, adjacency))

    def parts(self, table: PrivateTable, how: How, delta: float) -> list[AnyPart]:
        """Draws, or a tree."""
        if self.way(how.epsilon, delta, how.adjacency) == "tree" and self.groups is not None:
            sizes = (self.groups, self.cells, self.rows)
            return [TreePart.of(self._place(how.confidence), sizes, how.epsilon * self.weight, how.adjacency)]
        own = how._replace(epsilon=how.epsilon * self.weight / len(self.places))
        return [_drawn(place, table, self.cells, own) for place in self.places]

    def prefixes(self, mu: float, claim: Planned) -> PrefixPart:
        """Prefix counts with Gaussian noise."""
        return PrefixPart.of(self._place(claim.confidence), (self.groups, self.cells, self.rows), mu, claim)

    def _place(self, confidence: float) -> Asked:
        return self.places[0][0], {name: ask for _, name, ask in self.places}, confidence


def _drawn(place: Place, table: PrivateTable, cells: int, how: How) -> AnyPart:
    if place[2].verb == "top_k":
        return TopPart.of(place, table, how)
    return QuantilePart.of(place, table, cells, how)


def units_of(places: Sequence[Place], table: PrivateTable, questions: Sequence[Question]) -> list[Unit]:
    """Answers that are drawn, those together that can share counts."""
    found: dict[Any, list[Place]] = {}
    for k, name, ask in places:
        alone = name if ask.verb == "top_k" else None
        found.setdefault((k, ask.column, ask.grid, alone), []).append((k, name, ask))
    made = []
    for (k, _, _, alone), listed in found.items():
        by = questions[k].by
        known = not any(one.name in table.unknown_keys for one in by)
        groups = math.prod(one.size for one in by) if known else None
        cells = 1 if alone is not None else grid_of(listed[0][2], table).size
        made.append(Unit(tuple(listed), groups, cells, rows_of_a_person(table)))
    return made
