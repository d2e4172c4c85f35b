"""Quantiles on a public grid: by recursion with the exponential mechanism, or from noisy prefix counts.

Recursion. The middle one of the quantiles wanted is drawn first; records below it serve the quantiles below, the
others those above. Each record takes part in one draw per level, and m quantiles need about log2 m levels.

One draw: n records, a target a/b of their ranks. A point z has the utility -|b c(z) - a n|, c(z) the number of records
below z. When a record joins, b c - a n falls by a left of it and rises by b - a right of it, so that all utilities
change by amounts of [-max(a, b - a), max(a, b - a)]: an interval of length 2 max(a, b - a), that is one rank for a
median. An exchanged record takes part in one draw of a level twice or in two draws once: the range of losses is at most
twice as long.

Records in one cell of the grid get secret random places in it (`_FINER` bits each, drawn alone for each record, so that
no record moves another one): a quantile may fall into a cell that holds many records.
Reference: Smith 2011; Kaplan, Schnapp and Stemmer 2022 (the recursion).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from shapedp.boundary.values import boolean
from shapedp.mechanisms.base import Claimed, Rng
from shapedp.mechanisms.calibrate import calibrate
from shapedp.mechanisms.selection.choose import MOST, Integers, calibrated_rate
from shapedp.mechanisms.selection.prefixes import (
    PREFIX_CELLS,
    SHORT,
    Prefixes,
    QuantileRelease,
    counts_of,
    targets_of,
)
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, entries, one_of, positive, probability, vector
from shapedp.privacy.losses.selected import SelectionLoss
from shapedp.sampling import Source
from shapedp.sampling.choice import Bits, exponential_choice
from shapedp.sensitivity import ADJACENCIES, Adjacency, Hull

_FINER = 20  # bits of the places within a cell
_CELLS = 1 << 40
_SHORT = 1 << 20  # denominators of the targets of single draws
_PER_LEVEL = 1.3  # ranks by which a level of the recursion misses, times reach, about; it only chooses the method
_LANES = 1 << 22
_RECORDS = 1 << 40
METHODS = ("best", "recursion", "prefix")


@dataclass(frozen=True, eq=False)
class Quantiles(Claimed):
    """Cells of a public grid in which quantiles lie, by recursion with the exponential mechanism.

    Guarantee: every draw is exact; the loss is that of one selection of range `reach` per level (twice that where a
    record is exchanged).

    Parameters
    ----------
    cells: how many cells the grid has; public.
    targets: fractions (a, b), rising: a/b of the records lie below.
    reach: two integers (a, b), the epsilon of one level.
    epsilon, delta, adjacency: the claim.
    records: how many records one person has at most.

    Examples
    --------
    >>> m = Quantiles.calibrate(100, [0.25, 0.5, 0.75], epsilon=1.0, delta=0.0, adjacency="add-remove")
    >>> m.levels, m.reach, m.certificate.verdict
    (2, (1, 2), 'certified')
    >>> counts = np.full(100, 1000)
    >>> bool(np.abs(m.release(counts).value - [25, 50, 75]).max() <= 2)
    True
    """

    kind: ClassVar[str] = "quantiles"
    cells: int
    targets: tuple[tuple[int, int], ...]
    reach: tuple[int, int]
    epsilon: float
    delta: float
    adjacency: Adjacency
    records: int = 1

    def __post_init__(self) -> None:
        self._plain(positive, "epsilon")
        self._plain(probability, "delta")
        self._plain(count, "cells", "records")
        one_of("adjacency", self.adjacency, ADJACENCIES)
        if not 2 <= self.cells <= _CELLS:
            raise ValueError(f"a grid has between 2 and 2^40 cells, got {self.cells}")
        object.__setattr__(self, "targets", tuple(_pair("target", one) for one in entries("targets", self.targets)))
        object.__setattr__(self, "reach", _pair("reach", self.reach))
        levels = [Fraction(*one) for one in self.targets]
        if not levels or not all(a < b for a, b in zip([Fraction(0), *levels], [*levels, Fraction(1)], strict=True)):
            raise ValueError("targets must be fractions between 0 and 1, each larger than the one before")
        if max(b for _, b in self.targets) > SHORT:
            raise ValueError("the denominators of targets must be at most 10^6")

    @property
    def levels(self) -> int:
        """The depth of the recursion."""
        return len(self.targets).bit_length()

    @cached_property
    def loss(self) -> SelectionLoss:
        """The privacy loss of all levels."""
        entered = entries_of(self.adjacency, self.records)
        return SelectionLoss("exponential", Fraction(*self.reach), entered, self.levels, 0).under(self.adjacency)

    @classmethod
    def calibrate(
        cls, cells: int, q: ArrayLike, *, epsilon: float, delta: float, adjacency: Adjacency, records: int = 1
    ) -> Self:
        """The recursion of the largest reach per level that meets the claim; `q` are numbers between 0 and 1."""
        targets = targets_of(q)
        rate = level_rate(targets, epsilon, delta, adjacency, records)
        pairs = tuple(one.as_integer_ratio() for one in targets)
        return cls(cells, pairs, rate.as_integer_ratio(), epsilon, delta, adjacency, records)

    def release(self, x: ArrayLike, *, rng: Rng = None, unsafe: bool = False) -> QuantileRelease:
        """x holds how many records are in each cell. What is released: the cells of the quantiles."""
        unsafe, counts = boolean("unsafe", unsafe), counts_of(x, self.cells)
        drawn = self._drawn(counts, lambda source: self._held(counts, source), rng, unsafe)
        return QuantileRelease(drawn.value, None, drawn.certificate, unsafe=drawn.unsafe, plan=self)

    def _held(self, counts: Integers, source: Source) -> Integers:
        """The descent, if memory holds all records; numpy's own refusal would name their number."""
        if sum(counts.tolist()) <= _RECORDS:
            with suppress(MemoryError):
                return self._descend(counts, source)
        raise MemoryError("the recursion needs 8 bytes of memory per record, several times over")

    def _descend(self, counts: Integers, source: Source) -> Integers:
        places = np.sort(_places(counts, source))
        found: dict[int, int] = {}
        levels = [Fraction(*one) for one in self.targets]
        bits, reach = Bits(source), Fraction(*self.reach)
        nodes = [(0, len(levels), Fraction(0), Fraction(1), places, 0, self.cells << _FINER)]
        while nodes:
            first, last, below, above, inside, start, end = nodes.pop()
            if first == last:
                continue
            middle = (first + last) // 2
            target = (levels[middle] - below) / (above - below)
            point, under = _draw(inside, start, end, target, reach, bits) if start < end else (start, 0)
            found[middle] = min(point >> _FINER, self.cells - 1)
            nodes.append((first, middle, below, levels[middle], inside[:under], start, point))
            nodes.append((middle + 1, last, levels[middle], above, inside[under:], point, end))
        return np.array([found[k] for k in range(len(levels))], dtype=np.int64)

    def interval(self, noisy: Floats, confidence: float) -> tuple[Floats, Floats]:
        """None: what the values of other cells are is not released."""
        raise ValueError("the recursion gives no interval of values: ask for ranks(), or for method='prefix'")

    def ranks(self, confidence: float) -> Floats:
        """A draw misses by d with probability at most (number of points) e^(-rate d); levels add up.

        Records that share a place on the finer grid are not told apart, and are not counted here.
        """
        missed = 1 - probability("confidence", confidence)
        if not missed > 0:
            return np.full(len(self.targets), math.inf)
        levels, reach = [Fraction(*one) for one in self.targets], float(Fraction(*self.reach))
        whole = math.log(self.cells) + _FINER * math.log(2) + math.log(len(levels) / missed)
        found = np.zeros(len(levels))
        nodes = [(0, len(levels), Fraction(0), Fraction(1), 0.0)]
        while nodes:
            first, last, below, above, before = nodes.pop()
            if first < last:
                middle = (first + last) // 2
                target = (levels[middle] - below) / (above - below)
                own = whole * 2 * float(max(target, 1 - target)) / reach + 1
                found[middle] = before + own
                nodes.append((first, middle, below, levels[middle], before + own))
                nodes.append((middle + 1, last, levels[middle], above, before + own))
        return found


def quantiles(
    counts: ArrayLike,
    grid: ArrayLike,
    q: ArrayLike,
    *,
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    records: int = 1,
    method: str = "best",
    rng: Rng = None,
) -> QuantileRelease:
    """Quantiles of records counted on a public grid.

    Parameters
    ----------
    counts: how many records lie in each cell, exact integers.
    grid: the value of each cell, public and rising.
    q: numbers between 0 and 1, each once.
    epsilon, delta, adjacency: the claim.
    records: how many records one person has at most.
    method: "recursion", "prefix" (noisy prefix counts; delta > 0, at most 512 cells) or "best": the one of less
        expected rank error, chosen before any count is looked at.
    rng: None for secure randomness.

    Returns
    -------
    A release with the values, the certificate, `ranks(confidence)` and, from prefix counts, `interval(confidence)`.

    Examples
    --------
    >>> made = quantiles([900, 50, 50], [1, 2, 3], [0.5], epsilon=1.0, delta=0.0, adjacency="add-remove")
    >>> made.value
    array([1.])
    """
    points = vector("grid", grid)
    if not (np.diff(points) > 0).all():
        raise ValueError("grid must rise from cell to cell")
    exact, targets = counts_of(counts, points.size), targets_of(q)
    how = chosen_method(method, points.size, targets, epsilon, delta, adjacency, records)
    if how == "prefix":
        plan = Prefixes.calibrate(points, q, epsilon=epsilon, delta=delta, adjacency=adjacency, records=records)
        return plan.release(exact, rng=rng)
    made = Quantiles.calibrate(points.size, q, epsilon=epsilon, delta=delta, adjacency=adjacency, records=records)
    found = made.release(exact, rng=rng)
    values = points[found.value.astype(np.int64)]
    return QuantileRelease(values, None, found.certificate, unsafe=found.unsafe, plan=made)


def chosen_method(
    method: str,
    cells: int,
    targets: Sequence[Fraction],
    epsilon: float,
    delta: float,
    adjacency: Adjacency,
    records: int,
) -> str:
    """The method asked for, or the one of less expected rank error; public numbers decide."""
    if one_of("method", method, METHODS) != "best":
        return method
    if not delta or cells > PREFIX_CELLS:
        return "recursion"
    one = level_rate(targets, epsilon, delta, adjacency, records)
    recursion = _PER_LEVEL * math.sqrt(len(targets).bit_length()) / float(one)
    # prefix counts of n cells: about (0.7 + 0.31 ln n)/mu in each, at the mu of the claim
    mu = 1 / float(calibrate("gaussian", Hull([[1.0]]), epsilon=epsilon, delta=delta).law.marginal_scales()[0])
    prefix = math.sqrt(2 / math.pi) * (0.7 + 0.31 * math.log(cells)) * records / mu
    return "prefix" if prefix < recursion else "recursion"


def entries_of(adjacency: str, records: int) -> int:
    """How many records of a level differ between neighbours; those of an exchanged person leave and enter."""
    return 2 * records if adjacency == "replace" else records


def level_rate(
    targets: Sequence[Fraction], epsilon: float, delta: float, adjacency: Adjacency, records: int
) -> Fraction:
    """The largest epsilon per level and record that meets the claim."""
    entered = entries_of(one_of("adjacency", adjacency, ADJACENCIES), count("records", records))
    return calibrated_rate("exponential", epsilon, probability("delta", delta), entered, len(targets).bit_length())


def _pair(name: str, given: Any) -> tuple[int, int]:
    if not isinstance(given, list | tuple) or len(given) != 2:
        raise TypeError(f"{name} must be two integers (a, b), the fraction a/b")
    a, b = (count(f"a number of {name}", one, most=MOST) for one in given)
    if max(a, b) > MOST or any(int(float(one)) != one for one in (a, b)):
        raise ValueError(f"the numbers of {name} must be integers up to 2^62 that a float holds")
    return a, b


def local(target: Fraction) -> Fraction:
    """A target with few digits, strictly between 0 and 1: its multiples by counts are whole 64-bit numbers."""
    least = Fraction(1, _SHORT)
    return min(max(target.limit_denominator(_SHORT), least), 1 - least)


def _places(counts: Integers, source: Source) -> Integers:
    """A place on the finer grid for every record: its cell, and random bits of its own."""
    cells = np.repeat(np.arange(counts.size, dtype=np.int64), counts)
    for start in range(0, cells.size, _LANES):
        part = cells[start : start + _LANES]
        part <<= _FINER
        part |= (source.words(part.size) >> np.uint64(64 - _FINER)).astype(np.int64)
    return cells


def _draw(places: Integers, start: int, end: int, target: Fraction, reach: Fraction, bits: Bits) -> tuple[int, int]:
    """A point of [start, end) near the target's rank among sorted places, and how many of these lie below it."""
    a, b = local(target).as_integer_ratio()
    gaps = np.abs(b * np.arange(places.size + 1, dtype=np.int64) - a * places.size)
    ends = np.append(places, end - 1)
    sizes = np.diff(ends, prepend=start - 1)  # points with so many places below them
    held = np.flatnonzero(sizes > 0)
    missed, back = np.unique(gaps[held], return_inverse=True)
    weights = np.zeros(missed.size, dtype=np.int64)
    np.add.at(weights, back, sizes[held])
    group = exponential_choice((missed - missed[0]).tolist(), weights.tolist(), reach / (2 * max(a, b - a)), bits)
    members = held[back == group]
    rest = bits.below(int(weights[group]))
    for below in members.tolist():
        if rest < sizes[below]:
            return int(ends[below] - sizes[below]) + 1 + rest, int(below)
        rest -= int(sizes[below])
    raise AssertionError("the sizes add up to their sum")
