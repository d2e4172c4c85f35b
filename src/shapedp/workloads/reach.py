"""What one record can change of all answers together, in the norms of order 1 and 2: for noise on each answer.

A record in a cell adds a column of every group's matrix: the product of its columns along the attributes. For columns
of zeros and ones |a - b|_1 = |a|_1 + |b|_1 - 2 sum min(a, b), and the sum is a product over the attributes, too; for
other whole entries the product is at most the sum, so the distance is bounded from above. Attributes of which every
group asks each cell (plain) only agree or differ, and records that differ there are farthest apart.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ABOVE_8192, BELOW_8192, ROUNDINGS_2
from shapedp.workloads.schema import Schema
from shapedp.workloads.workload import Factor, Term

CELLS = 1 << 12  # cells of all special attributes together, of which all pairs are looked at
_SINGLE = 1 << 22  # and of which each alone is


@dataclass(frozen=True, eq=False)
class Moved:
    """Bounds on the largest weighted sum over groups of |d|_1 (order 1) or |d|_2^2 (order 2).

    `shown` is what each group adds to it at a difference that exists, unweighted: how many answers move by one.
    """

    low: float
    high: float
    shown: tuple[float, ...]


@lru_cache(maxsize=32)
def _lengths(factor: Factor, order: int) -> Floats:
    """|a|_1 or |a|_2^2 of every column."""
    if factor.shape == "rows":
        return np.asarray((np.abs(factor.matrix) ** order).sum(axis=0))
    return np.ones(factor.size) if factor.shape == "cells" else factor.gram.diagonal().copy()


@lru_cache(maxsize=32)
def _common(factor: Factor, order: int) -> Floats:
    """What any two columns have in common: sum min(a, b) where signs agree, or a'b."""
    if factor.shape != "rows" or order == 2:
        return factor.gram
    matrix = factor.matrix
    common = [
        np.where(matrix * one[:, None] > 0, np.minimum(np.abs(matrix), np.abs(one)[:, None]), 0) for one in matrix.T
    ]
    return np.array([one.sum(axis=0) for one in common])


def special_attributes(terms: Sequence[Term]) -> tuple[int, ...]:
    """The attributes along which some group asks something else than each cell."""
    return tuple(sorted({k for term in terms for k, factor in term.factors if factor.shape != "cells"}))


@dataclass(frozen=True, eq=False)
class _Group:
    """Groups alike: their weight, what they ask along special attributes, whether plain ones tell cells apart."""

    places: list[int]
    weight: float
    factors: dict[int, Factor]
    measure: int
    plain: bool


def _groups(terms: Sequence[Term], weights: Floats, schema: Schema, special: tuple[int, ...]) -> list[_Group]:
    found: dict[Any, list[int]] = defaultdict(list)
    for place, term in enumerate(terms):
        chosen = tuple((k, factor.key) for k, factor in term.factors if k in special)
        plain = any(k not in special and schema.sizes[k] > 1 for k, _ in term.factors)
        found[chosen, term.measure, plain].append(place)
    made = []
    for (_, measure, plain), places in found.items():
        factors = {k: factor for k, factor in terms[places[0]].factors if k in special}
        made.append(_Group(places, float(weights[places].sum()), factors, measure, plain))
    return made


def _spread(group: _Group, special: tuple[int, ...], schema: Schema, order: int) -> tuple[Floats, Floats]:
    """The columns of a group over all special cells, and what pairs of them have in common."""
    one: Any = np.ones(1)
    both: Any = np.ones((1, 1))
    for k in special:
        size = schema.sizes[k]
        column, common = (np.ones(size), np.ones((size, size)))
        if k in group.factors:
            column, common = _lengths(group.factors[k], order), _common(group.factors[k], order)
        one, both = np.kron(one, column), np.kron(both, common)
    return one, both


def moved(terms: Sequence[Term], weights: Floats, schema: Schema, exchange: bool, order: int) -> Moved:
    """Bounds on what a record can change; `exchange` where it may be replaced.

    A record outside the domains adds nothing. Rows must be whole, so that only the weighted sums round; order 2 is for
    counts.
    """
    special = special_attributes(terms)
    cells = math.prod(schema.sizes[k] for k in special)
    groups = _groups(terms, weights, schema, special)
    if cells > (CELLS if exchange else _SINGLE):
        return _apart(groups, schema, exchange, order)
    if exchange:
        return _exchanged(groups, len(terms), special, schema, order)
    columns = [_single(group, special, schema, order) * _bound(group, schema) for group in groups]
    return _largest(groups, len(terms), columns)


def _single(group: _Group, special: tuple[int, ...], schema: Schema, order: int) -> Floats:
    one: Any = np.ones(1)
    for k in special:
        one = np.kron(one, _lengths(group.factors[k], order) if k in group.factors else np.ones(schema.sizes[k]))
    return np.asarray(one)


def _bound(group: _Group, schema: Schema) -> float:
    """The largest magnitude of what a record adds up, in whole steps."""
    return float(max(abs(end) for end in schema.measures[group.measure - 1].ends)) if group.measure else 1.0


def _largest(groups: list[_Group], number: int, parts: list[Floats], exact: bool = True, low: float = 0.0) -> Moved:
    """The largest sum of the parts of all groups, weighted."""
    total = sum((group.weight * part for group, part in zip(groups, parts, strict=True)), np.zeros(1))
    best = np.unravel_index(int(total.argmax()), total.shape)
    shown = np.zeros(number)
    for group, part in zip(groups, parts, strict=True):
        shown[group.places] = part[best]
    high, adding = float(total[best]), len(groups) * ROUNDINGS_2
    least = high * (1 - adding) if exact else low
    return Moved(least * BELOW_8192, high * (1 + adding) * ABOVE_8192, tuple(shown) if exact else ())


def _exchanged(groups: list[_Group], number: int, special: tuple[int, ...], schema: Schema, order: int) -> Moved:
    """All pairs of special cells, and of the ends of every measure; one record more for a record in no cell."""
    parts, exact = [np.zeros((1, 1))] * len(groups), True
    singles = []
    measures: dict[int, list[tuple[int, Floats, Floats]]] = defaultdict(list)
    for place, group in enumerate(groups):
        one, common = _spread(group, special, schema, order)
        rows = sum(factor.shape == "rows" and not _binary(factor) for factor in group.factors.values())
        asked = sum(factor.shape != "cells" for factor in group.factors.values())
        exact &= order == 2 or not rows or asked == 1
        exact &= not (group.plain and (common < 0).any())
        shared = np.minimum(common, 0.0) if group.plain else common
        singles.append(one[:, None] * _bound(group, schema))
        if group.measure:
            measures[group.measure].append((place, one, shared))
        else:
            parts[place] = one[:, None] + one - 2 * shared
    for measure, asked_ in measures.items():
        ends = schema.measures[measure - 1].ends
        tried = [[_weighed(one, shared, *pair) for _, one, shared in asked_] for pair in product(ends, repeat=2)]
        weights = [groups[place].weight for place, *_ in asked_]
        best = np.argmax([np.tensordot(weights, np.array(parts_), axes=1) for parts_ in tried], axis=0)
        for k, (place, *_) in enumerate(asked_):
            parts[place] = np.choose(best, [one[k] for one in tried])
    alone = _largest(groups, number, singles)
    pair = _largest(groups, number, parts, exact, alone.low)
    return alone if alone.high >= pair.high else pair


def _binary(factor: Factor) -> bool:
    return bool(((factor.matrix == 0) | (factor.matrix == 1)).all())


def _weighed(one: Floats, shared: Floats, value: int, other: int) -> Floats:
    """|v a - w b|_1 from above: |v| |a| + |w| |b| - 2 min(|v|, |w|) (what a and b share), nothing shared by signs."""
    both = min(abs(value), abs(other)) if value * other > 0 else 0
    return np.asarray(abs(value) * one[:, None] + abs(other) * one - 2.0 * both * shared)


def _apart(groups: list[_Group], schema: Schema, exchange: bool, order: int) -> Moved:
    """Too many cells to look at each: every group at its largest, twice for two records (four times in squares)."""
    tops = []
    for group in groups:
        top = math.prod(float(_lengths(factor, order).max()) for factor in group.factors.values())
        tops.append(group.weight * top * _bound(group, schema))
    high = math.fsum(tops) * (2**order if exchange else 1)
    return Moved(max(tops) * BELOW_8192, high * ABOVE_8192, ())
