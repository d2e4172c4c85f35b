"""What the documentation of each data set says about its columns; nothing here was measured on the records."""

from __future__ import annotations

from collections.abc import Iterable

from shapedp.papers.data import read_toml
from shapedp.papers.datasets.base import Bounds, limits

Range = tuple[float, float]
_DOCUMENTED = read_toml("shapedp.papers.datasets", "columns.toml")

RANGES: dict[str, dict[str, Range]] = {
    name: {column: (low, high) for column, (low, high) in columns.items()}
    for name, columns in _DOCUMENTED["ranges"].items()
}
CHOICES: dict[str, dict[str, tuple[str, ...]]] = {
    name: {column: tuple(values) for column, values in columns.items()}
    for name, columns in _DOCUMENTED["categories"].items()
}
NAMES: dict[str, tuple[str, ...]] = {name: tuple(values) for name, values in _DOCUMENTED["names"].items()}


def bounds_of(ranges: Iterable[Range]) -> Bounds:
    """The bounds of columns with these ranges, in their order."""
    lower, upper = zip(*ranges, strict=True)
    return limits(lower, upper)


def one_hot_names(categories: dict[str, tuple[str, ...]]) -> list[str]:
    """The names of the 0/1 columns, one per category."""
    return [f"{column}={name}" for column, names in categories.items() for name in names]
