"""Noise on whole numbers for a workload: on each answer, or on the cells of the whole table.

A record in a cell adds to a group of queries the product, along its attributes, of the columns of their matrices, times
the value that is summed. What two records add has |v a - w b|_1 = |v| |a| + |w| |b| - 2 sum min(|v a_i|, |w b_i|), the
sum over entries of one sign, and |a - b|_2^2 = |a|^2 + |b|^2 - 2 a'b. For products the sum of minima is at least the
product of those along each attribute (with min(|v|, |w|)), and equal for zeros and ones. Laplace noise, on a grid of
which the shift is a multiple, then has a loss of at most the sum of |d_i|/scale; that is reached where every noise is
at most 0. Gaussian noise is rounded after it was added: post-processing, which may hide much; what it shows at least is
whether one answer reaches a threshold between two integers. A person with several rows moves at most so
many times as much.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from shapedp_check.additive import Bounds
from shapedp_check.balls import Ball, ball, exact, normal_cdf, tick
from shapedp_check.files import NotDescribed, adjacency, entry, few, known, number, numbers, only, whole
from shapedp_check.pairs import Event, Gaussian, Response
from shapedp_check.workload import Table, per_person, read_table

_PAIRS = 1 << 16  # pairs of cells that are looked at
_SHOWN = 1000  # answers whose noise is looked at together for the lower end
_NOTE = "many cells: bounded above by every group at its largest"


@dataclass(frozen=True)
class Along:
    """What a group asks along an attribute: the columns of rows of its own, or those of a shape of zeros and ones."""

    shape: str
    size: int
    branch: int = 2
    columns: tuple[tuple[int, ...], ...] = ()

    @property
    def binary(self) -> bool:
        """Whether every entry is 0 or 1."""
        return all(value in (0, 1) for column in self.columns for value in column)

    def shared(self, cell: int, other: int, order: int) -> int:
        """sum min(a, b) over entries of one sign, or a'b: for zeros and ones how many rows hold both cells."""
        if self.shape == "rows":
            both = zip(self.columns[cell], self.columns[other], strict=True)
            return sum(x * y if order == 2 else min(abs(x), abs(y)) * (x * y > 0) for x, y in both)
        low, high = min(cell, other), max(cell, other)
        if self.shape == "cells":
            return int(low == high)
        if self.shape == "prefixes":  # row i holds the cells 0 ... i
            return self.size - high
        if self.shape == "ranges":
            return (low + 1) * (self.size - high)
        width, found = 1, 1  # the whole; then the nodes of every width below it
        while width < self.size:
            found += low // width == high // width
            width *= self.branch
        return found

    def length(self, cell: int, order: int) -> int:
        """|a|_1 or |a|_2^2 of a column."""
        tick()
        return self.shared(cell, cell, order)


def _along(written: Any, size: int) -> Along:
    only(written, ("shape", "branch", "rows"), "a factor")
    shape = known(entry(written, "shape"), ("cells", "prefixes", "ranges", "hierarchy", "rows"), "the shape")
    branch = whole(written.get("branch", 2), "branch", least=2)
    if shape != "rows":
        if "rows" in written:
            raise NotDescribed("only a factor of rows has rows")
        return Along(shape, size, branch)
    flat = numbers(entry(written, "rows"), "rows")
    if len(flat) % size or any(one != math.floor(one) for one in flat):
        raise NotDescribed("rows must be whole, and as long as their attribute has cells")
    rows = [[int(one) for one in flat[start : start + size]] for start in range(0, len(flat), size)]
    return Along(shape, size, branch, tuple(zip(*rows, strict=True)))


@dataclass(frozen=True)
class Group:
    """Queries that are alike: 1/scale (or its square) of all together, and what they ask."""

    weight: Ball
    chance: Ball  # that one noise is at most 0
    along: dict[int, Along]  # the attributes of which not all ask each cell alone
    plain: bool  # whether other attributes tell records apart
    measure: int
    count: int  # how many groups are alike

    @property
    def binary(self) -> bool:
        """Whether every entry is 0 or 1."""
        return all(one.binary for one in self.along.values())

    def length(self, cell: dict[int, int], order: int) -> int:
        """|a|_1 or |a|_2^2."""
        return math.prod(one.length(cell[k], order) for k, one in self.along.items())

    def shared(self, cell: dict[int, int], other: dict[int, int], order: int) -> int:
        """What two columns share, from below (order 1), or a'b."""
        return math.prod(one.shared(cell[k], other[k], order) for k, one in self.along.items())


@dataclass(frozen=True)
class Term:
    """A group as the file has it."""

    factors: dict[int, Along]
    measure: int


def _terms(data: Any, table: Table) -> list[Term]:
    listed = entry(data, "terms")
    if not isinstance(listed, list) or not listed:
        raise NotDescribed("a workload has terms")
    found = []
    for one in listed:
        only(one, ("name", "factors", "measure", "weight"), "a term")
        number(entry(one, "weight"), "weight", above=0.0)
        factors = entry(one, "factors")
        if not isinstance(factors, list) or any(not isinstance(f, list) or len(f) != 2 for f in factors):
            raise NotDescribed("factors must be pairs of a place and what is asked")
        places = [whole(place, "a place", least=0) for place, _ in factors]
        measure = whole(entry(one, "measure"), "measure", least=0)
        if places != sorted(set(places)) or any(k >= len(table.sizes) for k in places) or measure > len(table.ends):
            raise NotDescribed("a term names an attribute twice, or one that does not exist, or such a measure")
        found.append(
            Term({k: _along(one, table.sizes[k]) for k, (_, one) in zip(places, factors, strict=True)}, measure)
        )
    return found


def _noise(data: Any, count: int) -> tuple[str, list[float], list[int], bool]:
    law = known(entry(data, "law"), ("laplace", "gaussian"), "the law")
    scales, integers = numbers(entry(data, "scales"), "scales", least=0.0), entry(data, "whole")
    bits = [whole(one, "bits", least=0) for one in numbers(entry(data, "bits"), "bits", least=0.0)]
    if len(scales) != count or len(bits) != count or not isinstance(integers, bool):
        raise NotDescribed("every group that gets noise has a scale and bits; whole is true or false")
    for scale, bit in zip(scales, bits, strict=True):
        steps = exact(scale) * (1 << min(bit, 64))
        good = steps.denominator == 1 and 1 <= steps <= 1 << 40 and bit <= 40
        if not (good if law == "laplace" else integers and bit == 0 and 2.0**-20 <= scale <= 2.0**30):
            raise NotDescribed("a scale is no whole number of steps, or beyond what is drawn exactly")
    return law, scales, bits, integers


def _groups(terms: list[Term], table: Table, noise: tuple[str, list[float], list[int], bool]) -> list[Group]:
    """Terms that are alike under noise, together."""
    law, scales, bits, integers = noise
    odd = {k for term in terms for k, one in term.factors.items() if one.shape != "cells"}
    made: dict[Any, Group] = {}
    for term, scale, bit in zip(terms, scales, bits, strict=True):
        tick()
        if term.measure and integers:
            raise NotDescribed("whole numbers are for counts, not for sums of measures")
        asked = tuple((k, one) for k, one in term.factors.items() if k in odd)
        plain = any(k not in odd and table.sizes[k] > 1 for k in term.factors)
        weight = 1 / exact(scale)
        grain = weight if integers else weight / (1 << bit)
        one = ball(weight) if law == "laplace" else ball(weight) ** 2
        chance = 1 / (1 + (-ball(grain)).exp())
        key = (asked, term.measure, plain)
        if key in made:
            old = made[key]
            joined = old.weight + one, old.chance * chance, old.count + 1
            made[key] = Group(joined[0], joined[1], old.along, plain, term.measure, joined[2])
        else:
            made[key] = Group(one, chance, dict(asked), plain, term.measure, 1)
    return list(made.values())


def _cells(groups: list[Group], table: Table, exchange: bool) -> list[dict[int, int]] | None:
    """All cells of the attributes that matter; None where they, or under exchange their pairs, are too many."""
    used = sorted({k for group in groups for k in group.along})
    if math.prod(table.sizes[k] for k in used) ** (1 + exchange) > _PAIRS:
        return None
    return [dict(zip(used, cell, strict=True)) for cell in product(*(range(table.sizes[k]) for k in used))]


def _values(group: Group, table: Table) -> list[int]:
    return list(table.ends[group.measure - 1]) if group.measure else [1]


@dataclass(frozen=True)
class Change:
    """A bound on the weighted sum over groups at one difference, whether it is exact, and what it moves per group."""

    total: Ball
    tight: bool
    moves: tuple[tuple[Group, int], ...]  # groups of zeros and ones: how many answers of each move by one


def _changes(groups: list[Group], table: Table, exchange: bool, order: int) -> Iterator[Change]:
    """One record alone, in every cell; under exchange two, in all pairs of cells and with all values of measures.

    Records that differ in a plain attribute share nothing; where shared entries have opposite signs they are counted
    as shared, which is from above.
    """
    cells = _cells(groups, table, exchange)
    assert cells is not None
    for cell in cells:
        tick()
        sizes = [group.length(cell, order) * max(abs(v) for v in _values(group, table)) ** order for group in groups]
        total = sum((group.weight * size for group, size in zip(groups, sizes, strict=True)), ball(0))
        shown = [(g, size) for g, size in zip(groups, sizes, strict=True) if g.binary and not g.measure and size]
        yield Change(total, True, tuple(shown))
    if not exchange:
        return
    for one, other in product(cells, repeat=2):
        tick()
        total, tight, shown = ball(0), True, []
        sums: dict[int, dict[tuple[int, int], Ball]] = {}
        for group in groups:
            sizes, shared = [group.length(cell, order) for cell in (one, other)], group.shared(one, other, order)
            if group.plain:
                tight &= shared >= 0
                shared = min(shared, 0)
            tight &= order == 2 or group.binary or len(group.along) == 1
            if not group.measure:
                apart = sum(sizes) - 2 * shared
                total += group.weight * apart
                shown += [(group, apart)] if group.binary and apart else []
                continue
            for v, w in product(_values(group, table), repeat=2):
                both = min(abs(v), abs(w)) if v * w > 0 else 0
                part = group.weight * (abs(v) * sizes[0] + abs(w) * sizes[1] - 2 * both * shared)
                before = sums.setdefault(group.measure, {})
                before[v, w] = before.get((v, w), ball(0)) + part
        for tried in sums.values():
            best = ball(0)
            for part in tried.values():
                best = best.max(part)
            total += best
        yield Change(total, tight, tuple(shown))


def _far(groups: list[Group], table: Table, exchange: bool, order: int) -> Ball:
    """Every group at its largest; two records at most double a norm."""
    total = ball(0)
    for group in groups:
        top = math.prod(max(one.length(j, order) for j in range(few(one.size))) for one in group.along.values())
        total += group.weight * top * max(abs(v) for v in _values(group, table)) ** order
    return total * (2**order if exchange else 1)


def _event(change: Change, rows: int) -> tuple[Any, int] | None:
    """All noises of the answers that move at most 0: the loss of that is known, and its chance."""
    answers = sum(moved * group.count for group, moved in change.moves)
    if not 0 < answers <= _SHOWN:
        return None
    loss, chance = ball(0), ball(1)
    for group, moved in change.moves:
        loss += rows * group.weight * moved
        chance *= group.chance**moved
    return Event(chance, loss), 1


def _threshold(terms: list[Term], scales: list[float], rows: int, aim: float) -> tuple[tuple[tuple[Event, int]], ...]:
    """One answer that so many rows move by as much: that it reaches an integer is that the sum reaches 1/2 less.

    `aim` is where epsilon is thought to be: Gaussian noise shows most near rows/2 + epsilon scale^2/rows.
    """
    moving = [s for t, s in zip(terms, scales, strict=True) if all(one.shape != "rows" for one in t.factors.values())]
    if not moving:
        return ()
    scale, first = ball(min(moving)), math.ceil(rows / 2 + min(aim, 1e6) * min(moving) ** 2 / rows)
    ends = [ball(Fraction(2 * reached - 1, 2)) for reached in (first, first + 1)]
    seen = [(normal_cdf((rows - end) / scale), normal_cdf(-end / scale)) for end in ends]
    return tuple(((Event(chance, (chance / rare).log()), 1),) for chance, rare in seen)


def answers(data: Any) -> tuple[str | None, Bounds]:
    """The neighbour relation and the worst pair of noise on whole numbers."""
    asked, relation, cells = entry(data, "workload"), adjacency(data), entry(data, "cells")
    table = read_table(asked)
    terms = _terms(asked, table)
    whole(entry(data, "records"), "records")
    if relation is None or not isinstance(cells, bool):
        raise NotDescribed("a neighbour relation is missing, or cells is not true or false")
    if cells:
        if any(term.measure for term in terms):
            raise NotDescribed("noise on the cells is for counts")
        terms = [Term({k: Along("cells", table.sizes[k]) for term in terms for k in term.factors}, 0)]
    noise = _noise(data, len(terms))
    groups, exchange, order = _groups(terms, table, noise), relation == "replace", 1 if noise[0] == "laplace" else 2
    if order == 2 and any(group.measure for group in groups):
        raise NotDescribed("Gaussian noise on whole numbers is for counts")
    notes: tuple[str, ...] = ()
    if _cells(groups, table, exchange) is None:
        above, reached, best = _far(groups, table, exchange, order), ball(0), None
        notes = (_NOTE,)
    else:
        above, reached, best = ball(0), ball(0), None
        for change in _changes(groups, table, exchange, order):
            above = above.max(change.total)
            if change.tight and change.total.lower() > reached:
                reached, best = change.total.lower(), change
    rows, several = per_person(asked, table)
    most = rows * several  # so many rows at most, which may all be alike where they are in one cell
    if order == 2:
        aim = number(entry(data, "epsilon"), "epsilon", above=0.0)
        return relation, Bounds(((Gaussian(most * above.sqrt()), 1),), _threshold(terms, noise[1], rows, aim), notes)
    event = None if best is None else _event(best, rows)
    below = () if event is None else ((event,),)
    return relation, Bounds(((Response(_above(most * above)), 1),), below, notes)


def _above(value: Ball) -> Fraction:
    """A fraction just above a ball."""
    mantissa, exponent = value.upper().man_exp()
    return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)
