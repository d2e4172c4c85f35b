"""Means, spreads and quantiles of columns, released: what private scaling and imputation rest on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from shapedp.accounting import Plan
from shapedp.accounting.plan import Step
from shapedp.learn.public import within
from shapedp.learn.solvers.base import Draws
from shapedp.learn.solvers.cd import MOST_RECORDS
from shapedp.mechanisms import calibrate
from shapedp.mechanisms.selection.choose import calibrated_rate
from shapedp.mechanisms.selection.prefixes import targets_of
from shapedp.mechanisms.selection.recursion import Quantiles, entries_of
from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ABOVE_8, BELOW_512
from shapedp.sensitivity import Adjacency, Box
from shapedp.tables.sources import CHUNK

CELLS = 1024  # of the grid on which quantiles are looked for

Ends = tuple[Floats, Floats]


@dataclass(frozen=True)
class Claim:
    """What a release of statistics of that many columns may cost."""

    epsilon: float
    delta: float
    adjacency: Adjacency
    columns: int


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over records of u, of u^2 (`spread`) and of 1 (`counted`) for the cells that are there, column by column.

    u runs from -1 at the low end of a column's range to 1 at the high end; a missing cell adds nothing.
    """

    claim: Claim
    spread: bool
    counted: bool

    @property
    def mechanism(self) -> Any:
        """Gaussian noise for the box of what a record moves: u by 1 (replaced: by 2), the others by 1."""
        return _noise(self.claim, self.spread, self.counted)

    def query(self, rows: Floats, ends: Ends) -> Floats:
        """The sums, exact: every term is on a grid of 2^-30, and there are at most 2^23 records."""
        if len(rows) > MOST_RECORDS:
            raise ValueError(f"at most 2^23 records, whose sums are exact, got {len(rows)}")
        parts = self.claim.columns * (1 + self.spread + self.counted)
        unit, total = Box(np.ones(parts)), np.zeros(parts)
        for start in range(0, len(rows), CHUNK):
            u = 2 * within(rows[start : start + CHUNK], ends) - 1
            there = ~np.isnan(u)
            u = np.where(there, u, 0.0)
            terms = [u, *([u * u] if self.spread else []), *([there.astype(np.float64)] if self.counted else [])]
            total += unit.clip(np.concatenate(terms, axis=1), adjacency="zero-out")[0].sum(axis=0)
        return total

    def means(self, value: Floats, records: int, ends: Ends) -> tuple[Floats, Floats]:
        """The mean and the standard deviation of each column, from what was released; neither leaves the range."""
        parts = value.reshape(-1, self.claim.columns)
        noise = self.mechanism.law.marginal_scales().reshape(parts.shape)
        number = np.clip(parts[-1], 1.0, records) if self.counted else np.full(self.claim.columns, float(records))
        mean = np.clip(parts[0] / number, -1.0, 1.0)
        low, half = ends[0], (ends[1] - ends[0]) / 2
        if not self.spread:
            return low + half * (1 + mean), half
        square = parts[1] / number - mean**2
        least = np.minimum(noise[1] / number, 1.0)  # less cannot be told from noise
        return low + half * (1 + mean), half * np.sqrt(np.clip(square, least, 1.0))


@lru_cache(maxsize=32)  # no data enter
def _noise(claim: Claim, spread: bool, counted: bool) -> Any:
    if not claim.delta > 0:
        raise ValueError("delta must be > 0 for Gaussian noise: with delta=0.0 ask for quantiles, or a median")
    moved = [2.0 if claim.adjacency == "replace" else 1.0, *([1.0] if spread else []), *([1.0] if counted else [])]
    profile = np.repeat(moved, claim.columns)
    box = Box(profile, adjacency=claim.adjacency)
    return calibrate("gaussian", box, epsilon=claim.epsilon, delta=claim.delta)


@dataclass(frozen=True)
class ColumnQuantiles:
    """The same quantiles of each column, on a grid of `CELLS` cells over its range; a missing cell is not counted."""

    claim: Claim
    q: tuple[float, ...]

    @property
    def mechanism(self) -> Quantiles:
        """Of one column; all columns together meet the claim."""
        return _drawing(self.claim, self.q)

    @property
    def plan(self) -> Plan:
        """The mechanism once for each column."""
        return _each(self.claim, self.q)

    def release(self, rows: Floats, ends: Ends, draws: Draws) -> Floats:
        """The middle of the cell of each quantile, one row per quantile."""
        found = np.empty((len(self.q), self.claim.columns))
        parts = within(rows, ends)
        for i in range(self.claim.columns):
            there = parts[~np.isnan(parts[:, i]), i]
            places = np.minimum((there * CELLS).astype(np.int64), CELLS - 1)
            counts = np.bincount(places, minlength=CELLS)
            found[:, i] = (draws.release(self.mechanism, counts) + 0.5) / CELLS
        return np.asarray(ends[0] + found * (ends[1] - ends[0]))


@lru_cache(maxsize=32)  # no data enter
def _each(claim: Claim, q: Sequence[float]) -> Plan:
    return Plan((Step(_drawing(claim, q), count=claim.columns),))


@lru_cache(maxsize=32)  # no data enter
def _drawing(claim: Claim, q: Sequence[float]) -> Quantiles:
    """The recursion of the largest rate at which all levels of all columns together meet the claim."""
    targets = targets_of(q)
    levels, entered = len(targets).bit_length(), entries_of(claim.adjacency, 1)
    epsilon = claim.epsilon * BELOW_512  # sums of several are rounded up
    rate = calibrated_rate("exponential", epsilon, claim.delta, entered, levels * claim.columns)
    own = math.nextafter(float(Fraction(rate) * levels * entered) * ABOVE_8, math.inf)
    pairs = tuple(one.as_integer_ratio() for one in targets)
    return Quantiles(CELLS, pairs, rate.as_integer_ratio(), own, 0.0, claim.adjacency)
