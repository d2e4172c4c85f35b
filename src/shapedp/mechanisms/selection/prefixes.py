"""Quantiles read from noisy prefix counts, and what every release of quantiles answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from shapedp.mechanisms.additive import Additive
from shapedp.mechanisms.base import Release, Rng
from shapedp.mechanisms.calibrate import calibrate
from shapedp.mechanisms.selection.choose import Integers, whole_numbers
from shapedp.numerics.arrays import Floats, frozen
from shapedp.numerics.checks import count, entries, is_scalar, one_of, probability, real, vector
from shapedp.sensitivity import ADJACENCIES, Adjacency, Hull

PREFIX_CELLS = 512  # the most for which prefix counts are shaped
SHORT = 10**6  # denominators of targets


class Planned(Protocol):
    """What a release of quantiles was planned by."""

    def ranks(self, confidence: float) -> Floats:
        """How many ranks each value is off, at most, with the given probability for all of them."""

    def interval(self, noisy: Floats, confidence: float) -> tuple[Floats, Floats]:
        """Ends that hold each true quantile with the given probability, from the noisy prefix counts."""


@dataclass(frozen=True, eq=False)
class QuantileRelease(Release[Floats]):
    """Quantiles, in the order asked for, with bounds on how far their ranks are from those asked for.

    `plan` is the mechanism; `noisy` the prefix counts that were released, where the values come from them.

    Examples
    --------
    >>> plan = Prefixes.calibrate([1, 2, 3], [0.5], epsilon=1.0, delta=1e-6, adjacency="add-remove")
    >>> made = plan.release([100, 9000, 100])
    >>> made.value, made.interval(0.95)
    (array([2.]), (array([2.]), array([2.])))
    """

    plan: Planned | None = None
    noisy: Floats | None = None

    def ranks(self, confidence: float) -> Floats:
        """How many ranks each value is off, at most, with the given probability for all of them."""
        assert self.plan is not None
        return self.plan.ranks(confidence)

    def interval(self, confidence: float) -> tuple[Floats, Floats]:
        """Lower and upper ends that hold each true quantile with the given probability, one at a time."""
        if self.plan is None or self.noisy is None:
            raise ValueError("the recursion gives no interval of values: ask for ranks(), or for method='prefix'")
        return self.plan.interval(self.noisy, confidence)


@dataclass(frozen=True, eq=False)
class Prefixes:
    """Quantiles read from the counts below each cell, with Gaussian noise shaped to all prefixes together.

    `mechanism` releases the counts; what follows is computed from them alone.

    Examples
    --------
    >>> plan = Prefixes.calibrate([1, 2, 3], [0.5], epsilon=1.0, delta=1e-6, adjacency="add-remove")
    >>> plan.mechanism.certificate.verdict
    'certified'
    """

    mechanism: Additive
    targets: tuple[Fraction, ...]
    grid: Floats

    @classmethod
    def calibrate(
        cls, grid: ArrayLike, q: ArrayLike, *, epsilon: float, delta: float, adjacency: Adjacency, records: int = 1
    ) -> Self:
        """The noise of least error on all prefix counts that meets the claim."""
        points = vector("grid", grid)
        if not 2 <= points.size <= PREFIX_CELLS:
            raise ValueError(f"prefix counts are shaped for grids of 2 to {PREFIX_CELLS} cells, got {points.size}")
        below = np.triu(np.ones((points.size, points.size)))  # a record in cell j counts in every prefix from j on
        if one_of("adjacency", adjacency, ADJACENCIES) == "replace":
            below = np.concatenate([below, np.zeros((1, points.size))])  # a value outside the grid is counted nowhere
        hull = Hull(below * count("records", records), differences=adjacency == "replace", adjacency=adjacency)
        made = calibrate("gaussian", hull, epsilon=epsilon, delta=delta)
        return cls(made, targets_of(q), frozen(points))

    @cached_property
    def _root(self) -> Floats:
        """Rows r with noise = sum z_k r_k, z standard normal."""
        law: Any = self.mechanism.law
        size = self.grid.size
        return np.asarray(np.diag(law.scales) if law.kind == "gaussian" else law.colorize(np.eye(size)))

    @cached_property
    def deviations(self) -> Floats:
        """The standard deviation of (count up to cell z) - q (count of all), for each q and z."""
        levels = np.array([float(one) for one in self.targets])
        moved = self._root[None] - levels[:, None, None] * self._root[:, -1][None, :, None]
        return np.asarray(np.sqrt(np.square(moved).sum(axis=1)))

    def release(self, x: ArrayLike, *, rng: Rng = None) -> QuantileRelease:
        """x holds how many records are in each cell."""
        counts = counts_of(x, self.grid.size)
        drawn = self.mechanism.release(np.cumsum(counts).astype(np.float64), rng=rng)
        noisy = np.asarray(drawn.value, dtype=np.float64)
        values = self.grid[places_of(noisy, np.array([float(one) for one in self.targets]))]
        return QuantileRelease(values, None, drawn.certificate, unsafe=drawn.unsafe, plan=self, noisy=frozen(noisy))

    def ranks(self, confidence: float) -> Floats:
        """Twice what the noise of all cells reaches at most with that probability: once at a cell, once beside it."""
        missed = 1 - probability("confidence", confidence)
        if not missed > 0:
            return np.full(len(self.targets), math.inf)
        far = -float(special.ndtri(missed / (2 * self.deviations.size)))
        return np.asarray(2 * far * self.deviations.max(axis=1))

    def interval(self, noisy: Floats, confidence: float) -> tuple[Floats, Floats]:
        """Ends that hold each true quantile with the given probability; see `ends_of`."""
        missed = 1 - probability("confidence", confidence)
        far = -float(special.ndtri(missed / 2)) if missed > 0 else math.inf
        low, high = ends_of(noisy, np.array([float(one) for one in self.targets]), far * self.deviations)
        return self.grid[low], self.grid[high]


def places_of(noisy: Floats, levels: Floats) -> Integers:
    """The cells in which noisy prefix counts, made to rise, reach these shares of the last of them."""
    smooth = (np.maximum.accumulate(noisy) + np.minimum.accumulate(noisy[::-1])[::-1]) / 2
    return np.asarray(np.minimum(np.searchsorted(smooth, levels * smooth[-1]), noisy.size - 1))


def ends_of(noisy: Floats, levels: Floats, reach: Floats) -> tuple[Integers, Integers]:
    """The first and the last cell in which each quantile may lie.

    The true quantile is in cell z if fewer than q n records lie below z and at least q n up to it. So the noisy
    difference is at most `reach` above 0 just below z, at least that far below 0 at z, each but for half of what is
    missed: all cells for which both are so.
    """
    gap, last = noisy[None] - levels[:, None] * noisy[-1], noisy.size - 1
    reached = gap >= -reach
    passed = np.concatenate([np.ones((levels.size, 1), dtype=bool), gap < reach], axis=1)[:, :-1]
    low = np.where(reached.any(axis=1), reached.argmax(axis=1), last)
    high = last - passed[:, ::-1].argmax(axis=1)
    return np.minimum(low, high), np.maximum(low, high)


def targets_of(q: ArrayLike) -> tuple[Fraction, ...]:
    """The quantiles wanted as fractions, rising."""
    given = [real("q", one) for one in ((q,) if is_scalar(q) else entries("q", q))]
    if not given or not all(a < b for a, b in pairwise([0.0, *given, 1.0])):
        raise ValueError("q must hold numbers strictly between 0 and 1, each larger than the one before")
    levels = tuple(Fraction(one).limit_denominator(SHORT) for one in given)
    if not all(a < b for a, b in pairwise([Fraction(0), *levels, Fraction(1)])):
        raise ValueError(f"two of q, or one of them and 0 or 1, are closer than {1 / SHORT:g}")
    return levels


def counts_of(values: ArrayLike, cells: int) -> Integers:
    """One integer >= 0 per cell."""
    counts = whole_numbers("counts", values)
    if counts.size != cells:
        raise ValueError(f"counts must have one entry per cell of the grid, {cells} in all, got {counts.size}")
    if counts.min() < 0:
        raise ValueError("counts must be >= 0: each is the number of records in a cell")
    return counts
