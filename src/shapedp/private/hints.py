"""What to write instead of the words of other libraries."""

from __future__ import annotations

from typing import NoReturn

_ROWS = "rows are never shown: ask a question, such as count()"
TABLE = {
    "groupby": "write group_by(...)",
    "filter": "write where(...)",
    "query": "write where(...)",
    "avg": "write mean(column)",
    "average": "write mean(column)",
    "std": "write variance(column), of which the root is the standard deviation",
    "var": "write variance(column)",
    "min": "write quantile(column, 0.01): an extreme value is somebody's",
    "max": "write quantile(column, 0.99): an extreme value is somebody's",
    "percentile": "write quantile(column, 0.9)",
    "value_counts": "write group_by(column).count(), or top_k(column, 3)",
    "size": "write count()",
    "head": _ROWS,
    "collect": _ROWS,
    "shape": _ROWS,
    "columns": "the columns and their kinds are in source.kinds",
    "release": "ask a question first, such as count().release(epsilon=..., delta=...)",
}
_ANSWER = "a question has no answer yet: release it, as in question.release(epsilon=..., delta=...)"
QUESTION = dict.fromkeys(("frame", "frames", "columns", "certificate", "interval", "report"), _ANSWER)


def refused(made: object, hints: dict[str, str], name: str) -> NoReturn:
    """For `__getattr__`: the remedy, where one is known."""
    remedy = f": {hints[name]}" if name in hints else ""
    raise AttributeError(f"{type(made).__name__!r} object has no attribute {name!r}{remedy}", name=name, obj=made)
