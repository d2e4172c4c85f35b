"""What to write instead of the words of other libraries."""

from __future__ import annotations

from typing import NoReturn

_ROWS = "rows are never shown: ask a question, such as count()"
_SORTED = "sort and filter the frame of the answer: that costs nothing"
_DISTINCT = "persons are counted by rows=1 and count(); the values of a column are in its domain"
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
    "order_by": _SORTED,
    "sort_values": _SORTED,
    "having": _SORTED,
    "limit": _SORTED,
    "distinct": _DISTINCT,
    "nunique": _DISTINCT,
    "count_distinct": _DISTINCT,
    "mode": "write top_k(column, 1)",
    "join": "join before the table is made, so that each row is still one person's",
    "merge": "join before the table is made, so that each row is still one person's",
    "describe": "write agg(sdp.count(), sdp.mean(column), sdp.median(column))",
    "head": _ROWS,
    "collect": _ROWS,
    "shape": _ROWS,
    "columns": "the columns and their kinds are in source.kinds",
    "release": "ask a question first, such as count().release(epsilon=..., delta=...)",
}
_ANSWER = "a question has no answer yet: release it, as in question.release(epsilon=..., delta=...)"
QUESTION = dict.fromkeys(("frame", "frames", "columns", "certificate", "interval", "report"), _ANSWER)
QUESTION |= dict.fromkeys(("order_by", "sort_values", "having", "limit", "filter", "query"), _SORTED)
QUESTION |= dict.fromkeys(("group_by", "groupby"), "groups come first, as in t.group_by(column).count()")


def refused(made: object, hints: dict[str, str], name: str) -> NoReturn:
    """For `__getattr__`: the remedy, where one is known."""
    remedy = f": {hints[name]}" if name in hints else ""
    raise AttributeError(f"{type(made).__name__!r} object has no attribute {name!r}{remedy}", name=name, obj=made)
