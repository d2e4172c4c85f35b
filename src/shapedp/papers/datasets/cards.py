"""What is publicly known of every data set: its origin and terms, and what its documentation says about the columns.

Nothing here was measured on the records.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from shapedp.papers.datasets.base import Bounds, Dataset, limits
from shapedp.papers.values import read_toml

Range = tuple[float, float]


@dataclass(frozen=True)
class Card:
    """Where a data set comes from and under what terms, and how the files here differ from the published ones."""

    name: str
    title: str
    citation: str
    licence: str
    source: str
    notes: str = ""


CARDS = {name: Card(name, **texts) for name, texts in read_toml("shapedp.papers.datasets", "cards.toml").items()}
_COLUMNS = read_toml("shapedp.papers.datasets", "columns.toml")
RANGES: dict[str, dict[str, Range]] = _COLUMNS["ranges"]
CHOICES: dict[str, dict[str, tuple[str, ...]]] = {
    name: {column: tuple(values) for column, values in columns.items()}
    for name, columns in _COLUMNS["categories"].items()
}
NAMES: dict[str, tuple[str, ...]] = {name: tuple(values) for name, values in _COLUMNS["names"].items()}


def build(name: str, x: Any, y: NDArray[Any], **fields: Any) -> Dataset:
    """A data set with the texts of its card and all that is documented; `fields` add to that, or replace it."""
    card = CARDS[name]
    known = {key: tuple(values) for key, values in _COLUMNS["known"].get(name, {}).items()}
    if name in RANGES:
        known = {"feature_names": tuple(RANGES[name]), "bounds": bounds_of(RANGES[name].values()), **known}
    elif "bounds" in known:
        known["bounds"] = limits(*known["bounds"])
    texts: dict[str, Any] = {"citation": card.citation, "licence": card.licence, "source": card.source}
    return Dataset(name, x, y, description=f"{card.title}. {card.notes}".strip(), **texts, **(known | fields))


def bounds_of(ranges: Iterable[Range]) -> Bounds:
    """The bounds of columns with these ranges, in their order."""
    return limits(*zip(*ranges, strict=True))


def one_hot_names(categories: dict[str, tuple[str, ...]]) -> list[str]:
    """The names of the 0/1 columns, one per category."""
    return [f"{column}={name}" for column, names in categories.items() for name in names]
