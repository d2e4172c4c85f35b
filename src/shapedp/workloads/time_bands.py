"""Noise over time: lower triangular matrices C whose inverse colours independent noise, with bands or Toeplitz.

Step t of a training releases g_t + (C^-1 z)_t, the same as C g + z. Entries are whole multiples of 2^-18, so that the
norms of columns are known exactly; at most 1. A record that takes part at most once in any `bands` steps changes C g
by columns that do not overlap.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, entries
from shapedp.numerics.gram import Integers
from shapedp.workloads.time_maps import STEPS, StepSums

BITS = 18
ONE = 1 << BITS
_LARGEST = 8.0  # the most that the rows of C^-1 may stretch noise


class Correlation(ABC):
    """How the noise of a step depends on that of earlier steps; `separation` steps lie between two uses of a record.

    Guarantee: `reach` times the clip bounds the norm of all that one record changes of C g in `unit` steps, signs and
    directions of its gradients included; where `sampled`, records may be drawn at random in their step.

    Example:
        >>> from shapedp.workloads import Banded, StepSums
        >>> found = Banded.best(StepSums(64), bands=4)
        >>> isinstance(found, Correlation), found.separation
        (True, 4)
    """

    steps: int
    separation: int  # the number of groups of records: step t draws from group t mod separation

    @property
    @abstractmethod
    def unit(self) -> int:
        """The number of steps that are accounted for together."""

    @property
    @abstractmethod
    def sampled(self) -> bool:
        """Whether a unit is one release that may be sampled."""

    @property
    @abstractmethod
    def reach(self) -> float:
        """The most that one record moves C g in a unit, in units of the clip, rounded up."""

    @property
    @abstractmethod
    def copies(self) -> int:
        """How many gradients the noise of earlier steps takes, at 4 bytes per entry."""

    @abstractmethod
    def matrix(self) -> Floats:
        """C."""

    @abstractmethod
    def error(self, workload: StepSums) -> float:
        """The squared error of all answers of the workload, for z of variance 1."""

    @property
    def units(self) -> int:
        """How many units the steps make."""
        return -(-self.steps // self.unit)


class Bands(Correlation):
    """Columns of norm at most 1 that end after `bands` rows: one release per cycle of `bands` steps."""

    @property
    def separation(self) -> int:  # type: ignore[override]
        return self.bands

    @property
    def unit(self) -> int:
        return self.bands

    @property
    def sampled(self) -> bool:
        return True

    @property
    def reach(self) -> float:
        return 1.0

    @property
    def copies(self) -> int:
        return self.bands - 1

    @property
    @abstractmethod
    def bands(self) -> int:
        """How many rows a column reaches over."""

    @abstractmethod
    def row(self, step: int) -> Integers:
        """Entries (step, step), (step, step - 1), ... as multiples of 2^-18."""


@dataclass(frozen=True)
class Banded(Bands):
    """A matrix given column by column: entry k of column j stands in row j + k, in multiples of 2^-18.

    Examples
    --------
    >>> best = Banded.best(StepSums(64), bands=64)
    >>> round(best.error(StepSums(64)), 1), best.least(StepSums(64)) <= best.error(StepSums(64))
    (282.2, True)
    """

    columns: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        rows = tuple(tuple(_whole(one) for one in entries("columns", column)) for column in self.columns)
        object.__setattr__(self, "columns", rows)
        if not rows or not rows[0] or len({len(one) for one in rows}) > 1 or len(rows[0]) > len(rows):
            raise ValueError("columns must be of one length, at least 1 and at most their number")
        for at, column in enumerate(rows):
            _checked(column)
            if any(column[len(rows) - at :]):
                raise ValueError("a column reaches below the last step: its entries there must be 0")
        inverse = _solved(self.matrix(), np.eye(len(rows)))
        steady(float(np.sqrt(np.square(inverse).sum(axis=1).max())))

    @property
    def steps(self) -> int:  # type: ignore[override]
        return len(self.columns)

    @property
    def bands(self) -> int:
        return len(self.columns[0])

    @cached_property
    def _table(self) -> Integers:
        return np.array(self.columns, dtype=np.int64)

    def row(self, step: int) -> Integers:
        step = count("step", step, least=0, most=self.steps - 1)
        back = np.arange(min(self.bands, step + 1))
        return np.asarray(self._table[step - back, back])

    def matrix(self) -> Floats:
        whole = np.zeros((self.steps, self.steps))
        for k in range(self.bands):
            at = np.arange(self.steps - k)
            whole[at + k, at] = self._table[: self.steps - k, k]
        return np.asarray(whole / ONE)

    def error(self, workload: StepSums) -> float:
        return float(np.square(_answers(self.matrix(), workload.matrix())).sum())

    def least(self, workload: StepSums) -> float:
        """A lower bound on the error of every matrix with unit columns and these bands, proved."""
        from shapedp.workloads.time_search import least_error

        return least_error(workload.matrix(), self.matrix(), self.bands)

    @classmethod
    def best(cls, workload: StepSums, bands: int) -> Self:
        """The bands of least error for a workload; O(steps^3) per round, for up to about 1,000 steps."""
        from shapedp.workloads.time_search import best_bands

        found = best_bands(workload.matrix(), _number_of(bands, workload.steps))
        table = np.zeros((workload.steps, bands), dtype=np.int64)
        for k in range(bands):
            table[: workload.steps - k, k] = _rounded(np.diagonal(found, -k))
        return cls(tuple(tuple(int(one) for one in row) for row in table))


@dataclass(frozen=True)
class Toeplitz(Bands):
    """The same column at every step: `coefficients`, in multiples of 2^-18.

    Examples
    --------
    >>> found = Toeplitz.best(StepSums(1000), bands=8)
    >>> found.bands, round((found.error(StepSums(1000)) / StepSums(1000).squares(found.plain())) ** 0.5, 3)
    (8, 0.373)
    """

    steps: int
    coefficients: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", count("steps", self.steps, most=STEPS))
        given = tuple(_whole(one) for one in entries("coefficients", self.coefficients))
        object.__setattr__(self, "coefficients", given)
        if not given or len(given) > self.steps:
            raise ValueError("coefficients must hold at least one number and at most one for each step")
        _checked(given)
        steady(float(np.linalg.norm(self._response())))

    @property
    def bands(self) -> int:
        return len(self.coefficients)

    @cached_property
    def _row(self) -> Integers:
        return np.array(self.coefficients, dtype=np.int64)

    def row(self, step: int) -> Integers:
        return np.asarray(self._row[: count("step", step, least=0, most=self.steps - 1) + 1])

    def plain(self) -> Floats:
        """The first column of the identity: noise that does not depend on earlier steps."""
        return np.asarray(np.eye(1, self.steps)[0])

    def _response(self) -> Floats:
        from shapedp.workloads.time_search import reciprocal

        return reciprocal(np.array(self.coefficients) / ONE, self.steps)

    def matrix(self) -> Floats:
        from scipy import linalg

        column = np.zeros(self.steps)
        column[: self.bands] = self._row / ONE
        return np.asarray(linalg.toeplitz(column, np.zeros(self.steps)))

    def error(self, workload: StepSums) -> float:
        return workload.squares(self._response())

    @classmethod
    def best(cls, workload: StepSums, bands: int) -> Self:
        """The coefficients of least error at a constant learning rate, fast for any number of steps."""
        from shapedp.workloads.time_search import best_coefficients

        found = best_coefficients(workload.coefficients(), _number_of(bands, workload.steps))
        return cls(workload.steps, tuple(int(one) for one in _rounded(found)))


def _number_of(bands: int, steps: int) -> int:
    if count("bands", bands) > steps:
        raise ValueError(f"bands must be at most the {steps} steps, got {bands}")
    return bands


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"entries must be whole numbers, multiples of 2^-{BITS}, got {value!r}")
    return int(value)


def _rounded(values: Floats) -> Integers:
    """Multiples of 2^-18, towards 0, so that no norm grows."""
    return np.trunc(np.asarray(values) * ONE).astype(np.int64)


def _checked(column: tuple[int, ...]) -> None:
    if column[0] <= 0:
        raise ValueError("the first entry of every column must be > 0: a step without noise of its own shows its sum")
    if sum(one * one for one in column) > ONE * ONE:
        raise ValueError("every column must have norm at most 1: its noise would not cover what a record moves")


def steady(stretch: float, most: float = _LARGEST) -> None:
    """Refuses noise that grows so much that the numbers it is kept in would not hold it."""
    if not stretch <= most:
        raise ValueError(f"this matrix stretches noise {stretch:g} times, {most:g} is the most")


def _solved(lower: Floats, right: Floats) -> Floats:
    from scipy import linalg

    return np.asarray(linalg.solve_triangular(lower, right, lower=True, check_finite=False))


def _answers(lower: Floats, workload: Floats) -> Floats:
    """A C^-1."""
    from scipy import linalg

    return np.asarray(linalg.solve_triangular(lower, workload.T, lower=True, trans="T", check_finite=False).T)
