"""Questions to a private table: what is computed of the rows of each group."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shapedp.private.conditions import Condition
from shapedp.workloads import Attribute

if TYPE_CHECKING:
    from shapedp.private.answers import Answers
    from shapedp.private.table import PrivateTable

VERBS = ("count", "sum", "mean", "variance")


@dataclass(frozen=True)
class Aggregate:
    """What is computed of a group: `count`, or the `sum`, `mean` or `variance` of a column with bounds.

    Example:
        >>> Aggregate("mean", "hours")
        mean(hours)
    """

    verb: str
    column: str | None = None

    def __post_init__(self) -> None:
        if self.verb not in VERBS:
            raise ValueError(f"a table computes {', '.join(VERBS)}, not {self.verb!r}")
        if (self.column is None) != (self.verb == "count") or not isinstance(self.column, str | None):
            raise TypeError(f"{self.verb} takes {'no column' if self.verb == 'count' else 'the name of a column'}")

    @property
    def name(self) -> str:
        """The column of an answer that nobody named."""
        return self.verb if self.column is None else re.sub(r"\W", "_", f"{self.verb}_{self.column}")

    def __repr__(self) -> str:
        return f"{self.verb}({self.column or ''})"


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

    def release(self, *, epsilon: float, delta: float, **options: Any) -> Answers:
        """The answer with noise; see `PrivateTable.ask`."""
        return self.table.ask(self, epsilon=epsilon, delta=delta, **options)

    def where(self, condition: Condition | str) -> Question:
        """The same question about fewer rows."""
        return replace(self, table=self.table.where(condition))

    def __repr__(self) -> str:
        groups = f" by {', '.join(one.name for one in self.by)}" if self.by else ""
        limits = f" where {' & '.join(map(repr, self.table.conditions))}" if self.table.conditions else ""
        return ", ".join(map(repr, self.asked.values())) + groups + limits
