"""Questions to a private table: what is computed of the rows of each group."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from shapedp.boundary.values import plain, plainest, printable
from shapedp.numerics.checks import count as whole
from shapedp.numerics.checks import one_of, real, vector
from shapedp.private import hints
from shapedp.private.conditions import Condition
from shapedp.workloads import Attribute

if TYPE_CHECKING:
    from shapedp.private.answers import Answers
    from shapedp.private.table import PrivateTable

SUMMED = ("count", "sum", "mean", "variance")
DRAWN = ("median", "quantile", "top_k")  # chosen among public candidates, not computed from noisy sums
VERBS = (*SUMMED, *DRAWN)
ENDS = ("", "_error", "_low", "_high")  # of the columns of an answer
_STEPS = 1000  # levels of quantiles are multiples of one over it
_MOST_STEPS = 2000  # of a grid: each is a comparison in the query
_FAR = 1e140


@dataclass(frozen=True)
class Aggregate:
    """What is computed of a group: `count`, the `sum`, `mean` or `variance` of a column with bounds, or a `quantile`.

    Parameters
    ----------
    verb: what is computed.
    column: of which column.
    level: of a quantile, a multiple of 0.001 between 0 and 1.
    grid: the values that a quantile may have: rising numbers, or how many steps there are between the bounds.
    interval: whether a part of a quantile's share is spent on the ends of an interval.
    k: how many values `top_k` names.

    Example:
        >>> Aggregate("mean", "hours")
        mean(hours)
    """

    verb: str
    column: str | None = None
    level: float | None = None
    grid: tuple[float, ...] | int | None = None
    interval: bool = True
    k: int | None = None

    def __post_init__(self) -> None:
        plain(self)
        one_of("what a table computes", self.verb, VERBS)
        column = plainest(self.column)
        object.__setattr__(self, "column", column)
        if (column is None) != (self.verb == "count") or not isinstance(column, str | None) or column == "":
            raise TypeError(f"{self.verb} takes {'no column' if self.verb == 'count' else 'the name of a column'}")
        if self.verb == "median":
            object.__setattr__(self, "level", 0.5)
        if self.verb in ("median", "quantile"):
            level = real("the level of a quantile", self.level)
            if (
                not 0 < level < 1
                or abs(level * _STEPS - round(level * _STEPS)) > 1 / _STEPS
                or not round(level * _STEPS)
            ):
                raise ValueError(f"a quantile's level is a multiple of 0.001 between 0 and 1, got {level!r}")
            object.__setattr__(self, "grid", _grid(self.grid))
        if self.verb == "top_k":
            object.__setattr__(self, "k", whole("k", self.k))

    @property
    def fraction(self) -> Fraction:
        """The level of a quantile, exactly."""
        return Fraction(round((self.level or 0.0) * _STEPS), _STEPS)

    @property
    def name(self) -> str:
        """The column of an answer that nobody named."""
        level = f"_{float(self.fraction):g}" if self.verb == "quantile" else ""
        return self.verb if self.column is None else re.sub(r"\W", "_", f"{self.verb}_{self.column}{level}")

    def columns(self, name: str) -> tuple[str, ...]:
        """The columns of an answer of this name, beside its groups."""
        if self.verb == "top_k":
            return "rank", str(self.column), "shortfall"
        return tuple(name + end for end in ENDS)

    def __repr__(self) -> str:
        more = {"quantile": f", {float(self.fraction):g}", "top_k": f", {self.k}"}.get(self.verb, "")
        return f"{self.verb}({printable(self.column or '')}{more})"


def _grid(given: Any) -> tuple[float, ...] | int | None:
    """Rising numbers, or a number of steps."""
    if given is None:
        return None
    if isinstance(given, int | np.integer):
        steps = whole("grid", given)
        if steps > _MOST_STEPS:
            raise ValueError(f"a grid has at most {_MOST_STEPS} steps, got {steps}")
        return steps
    points = vector("grid", given)
    if not 2 <= points.size <= _MOST_STEPS + 1 or not (np.diff(points) > 0).all() or np.abs(points).max() > _FAR:
        raise ValueError("grid must be two numbers at least, each above the one before, or a number of steps")
    return tuple(points.tolist())


def count() -> Aggregate:
    """The number of rows of a group.

    Returns: an `Aggregate` for `agg`.

    Example:
        >>> count()
        count()
    """
    return Aggregate("count")


def sum(column: str) -> Aggregate:
    """The sum of a column with bounds; a missing cell adds nothing.

    Parameters: the name of the column.
    Returns: an `Aggregate` for `agg`.

    Example:
        >>> sum("hours")
        sum(hours)
    """
    return Aggregate("sum", column)


def mean(column: str) -> Aggregate:
    """The mean of a column with bounds, over the rows in which it is not missing.

    Parameters: the name of the column.
    Returns: an `Aggregate` for `agg`.

    Example:
        >>> mean("hours")
        mean(hours)
    """
    return Aggregate("mean", column)


def variance(column: str) -> Aggregate:
    """The variance (divided by the number of rows) of a column with bounds, over the rows where it is not missing.

    Parameters: the name of the column.
    Returns: an `Aggregate` for `agg`.

    Example:
        >>> variance("hours")
        variance(hours)
    """
    return Aggregate("variance", column)


def median(column: str, *, grid: Any = None, interval: bool = True) -> Aggregate:
    """The median of a column with bounds, over the rows in which it is not missing: a value of a public grid.

    Parameters: the name of the column; `grid` and `interval` as for `quantile`.
    Returns: an `Aggregate` for `agg`.

    Example:
        >>> median("hours")
        median(hours)
    """
    return Aggregate("median", column, grid=grid, interval=interval)


def quantile(column: str, level: float, *, grid: Any = None, interval: bool = True) -> Aggregate:
    """A quantile of a column with bounds, over the rows in which it is not missing: a value of a public grid.

    Parameters
    ----------
    column: the name of the column.
    level: the share of rows at or below it, a multiple of 0.001.
    grid: the values that it may have: rising numbers, or how many steps there are between the bounds. Unless told, the
        whole numbers between bounds that are whole and at most 400 apart, otherwise 400 steps.
    interval: without it no part of the share is spent on an interval.

    Returns: an `Aggregate` for `agg`.

    Example:
        >>> quantile("hours", 0.9)
        quantile(hours, 0.9)
    """
    return Aggregate("quantile", column, level, grid=grid, interval=interval)


@dataclass(frozen=True, eq=False)
class Question:
    """Aggregates by group, asked of a private table. Nothing is read before it is released.

    Example:
        >>> import pandas as pd
        >>> import shapedp as sdp
        >>> t = sdp.table(pd.DataFrame({"sex": ["F", "M"]}), person=None, domains={"sex": ["F", "M"]})
        >>> t.group_by("sex").count()
        count() by sex
    """

    table: PrivateTable
    by: tuple[Attribute, ...]
    asked: Mapping[str, Aggregate]

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            hints.refused(self, hints.QUESTION, name)

    def check(self) -> None:
        """Refuse groups and answers of which two would have one column."""
        groups = [one.name for one in self.by]
        if len(set(groups)) < len(groups):
            raise ValueError(f"a column is grouped by twice: {', '.join(groups)}")
        named = [end for name, one in self.asked.items() for end in one.columns(name)]
        if twice := {one for one in named if [*groups, *named].count(one) > 1}:
            raise ValueError(
                f"the columns of the answer must differ from each other and from the groups: rename one "
                f"({', '.join(map(printable, sorted(twice)))})"
            )

    def release(self, *, epsilon: float, delta: float, **options: Any) -> Answers:
        """The answer with noise; see `PrivateTable.ask`."""
        return self.table.ask(self, epsilon=epsilon, delta=delta, **options)

    def where(self, condition: Condition | str) -> Question:
        """The same question about fewer rows."""
        return replace(self, table=self.table.where(condition))

    def __repr__(self) -> str:
        groups = f" by {', '.join(printable(one.name) for one in self.by)}" if self.by else ""
        limits = f" where {' & '.join(map(repr, self.table.conditions))}" if self.table.conditions else ""
        return ", ".join(map(repr, self.asked.values())) + groups + limits
