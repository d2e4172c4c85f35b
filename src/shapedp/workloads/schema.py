"""What a table may hold, said before it is read: attributes with public domains, measures with public bounds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.boundary.cells import is_label
from shapedp.boundary.columns import each_number
from shapedp.boundary.values import boolean, plain, plainest, whole_text
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, real, vector

OTHER = "(other)"
_MOST = 1 << 20  # cells of one attribute
_BITS = 30  # a measure is counted in steps of 2^-30 of its bound: sums of 2^33 records are exact


@dataclass(frozen=True, eq=False)
class Attribute:
    """A column with a public domain: whole numbers below `size`, listed `labels`, or intervals between `edges`.

    With `other` a value outside the domain goes to one more cell, the last; without it the record is counted nowhere.
    """

    name: str
    labels: tuple[Any, ...] | None = None
    edges: tuple[float, ...] | None = None
    whole: int = 0
    other: bool = False

    def __post_init__(self) -> None:
        plain(self)

    @classmethod
    def of(cls, name: Any, domain: Any) -> Attribute:
        """From a size, a list of labels, or {"labels" | "size" | "edges": ..., "other": True}."""
        if not isinstance(name, str) or not name:
            raise TypeError(f"an attribute's name must be a string that is not empty, got {name!r}")
        name = whole_text("an attribute's name", name)
        if not isinstance(domain, Mapping):
            domain = {"size" if isinstance(domain, int | np.integer) else "labels": domain}
        kinds = [key for key in ("size", "labels", "edges") if key in domain]
        if len(kinds) != 1 or set(domain) - {*kinds, "other"}:
            raise ValueError(
                f"the domain of {name!r} must be a size, a list of labels, or a table with one of size, labels and "
                "edges, and other"
            )
        given, other = domain[kinds[0]], boolean("other", domain.get("other", False))
        if kinds[0] == "size":
            size = count(f"the size of {name!r}", given)
            made = cls(name, whole=size, other=other)
        elif kinds[0] == "edges":
            ends = vector(f"the edges of {name!r}", given)
            if ends.size < 2 or (np.diff(ends) <= 0).any():
                raise ValueError(f"the edges of {name!r} must be two numbers at least, each above the one before")
            made = cls(name, edges=tuple(ends.tolist()), other=other)
        else:
            made = cls(name, labels=_labels(name, given), other=other)
        if made.size > _MOST:
            raise ValueError(f"{name!r} has {made.size} cells, more than {_MOST}")
        return made

    @cached_property
    def size(self) -> int:
        """The number of cells."""
        inside = self.whole or (len(self.labels) if self.labels is not None else len(self.edges or ()) - 1)
        return inside + self.other

    def cells(self) -> list[Any]:
        """A name for every cell."""
        if self.labels is not None:
            named: list[Any] = list(self.labels)
        elif self.edges is not None:
            ends = [f"{end:g}" for end in self.edges]
            if len(set(ends)) < len(ends):  # short names would not tell two groups apart
                ends = [repr(float(end)) for end in self.edges]
            named = [f"[{low}, {high})" for low, high in itertools.pairwise(ends)]
        else:
            named = list(range(self.whole))
        other = OTHER
        while other in named:
            other = f"({other})"
        return [*named, other] if self.other else named

    def codes(self, column: NDArray[Any]) -> NDArray[np.int64]:
        """The cell of each entry, -1 where the record is counted nowhere. Each entry is looked at alone."""
        missing = self.size - 1 if self.other else -1
        if self.labels is not None:
            book = {label: k for k, label in enumerate(self.labels)}
            return np.fromiter((_place(book, one, missing) for one in column), np.int64)
        numbers = column if column.dtype == np.float64 else each_number(column.astype(object))
        with np.errstate(invalid="ignore"):
            if self.edges is None:
                good = (numbers >= 0) & (numbers < self.whole) & (numbers == np.floor(numbers))
                found = numbers
            else:
                good = (numbers >= self.edges[0]) & (numbers < self.edges[-1])
                found = np.searchsorted(np.array(self.edges), numbers, side="right") - 1.0
        return np.where(good, np.where(good, found, 0.0).astype(np.int64), missing)

    def to_json(self) -> dict[str, Any]:
        """What `of` reads."""
        if self.labels is not None:
            domain: dict[str, Any] = {"labels": list(self.labels)}
        elif self.edges is not None:
            domain = {"edges": list(self.edges)}
        else:
            domain = {"size": self.whole}
        return {**domain, "other": True} if self.other else domain


def _place(book: dict[Any, int], cell: Any, missing: int) -> int:
    """Where a cell stands among the labels."""
    try:
        own = str.__str__(cell) if isinstance(cell, str) else cell  # a subclass may hash as it likes
        return book.get(own, missing) if is_label(own) else missing
    except Exception:  # it cannot be compared: an error would tell of one record
        return missing


def _labels(name: str, given: Any) -> tuple[Any, ...]:
    if isinstance(given, list | tuple) and not given:
        raise ValueError(f"the domain of {name!r} is empty: list the values of its groups")
    if isinstance(given, str | bytes) or not isinstance(given, Sequence | np.ndarray | range) or not len(given):
        raise TypeError(
            f"the domain of {name!r} must be a size or a list of labels, known before any record is read; "
            f"got {type(given).__name__}"
        )
    labels = tuple(map(plainest, given))
    if not all(isinstance(one, str | int | float | bool) and is_label(one) for one in labels):
        raise TypeError(f"the labels of {name!r} must be words or numbers")
    for one in labels:
        if isinstance(one, str):
            whole_text(f"a label of {name!r}", one)
    if len(set(labels)) < len(labels):
        raise ValueError(f"the labels of {name!r} must differ")
    return labels


@dataclass(frozen=True)
class Measure:
    """A number per record, clipped to public bounds, which are widened to whole steps."""

    name: str
    low: float
    high: float

    @classmethod
    def of(cls, name: Any, bounds: Any) -> Measure:
        """From a pair of bounds."""
        if not isinstance(name, str) or not name:
            raise TypeError(f"a measure's name must be a string that is not empty, got {name!r}")
        name = whole_text("a measure's name", name)
        pair = vector(f"the bounds of {name!r}", [bounds] if isinstance(bounds, int | float) else bounds)
        if pair.size != 2 or not pair[0] < pair[1] or not 1e-140 < np.abs(pair).max() < 1e140:
            raise ValueError(f"the bounds of {name!r} must be two numbers, the first below the second")
        return cls(name, real("low", pair[0]), real("high", pair[1]))

    @property
    def step(self) -> float:
        """The grid of its values, a power of two."""
        return 2.0 ** (math.frexp(max(abs(self.low), abs(self.high)))[1] - _BITS)

    @property
    def unit(self) -> float:
        """The power of two above its bounds, in which mechanisms see it: 2^30 steps."""
        return self.step * 2.0**_BITS

    @property
    def ends(self) -> tuple[int, int]:
        """The bounds in whole steps, rounded outward."""
        return math.floor(self.low / self.step), math.ceil(self.high / self.step)

    @property
    def bound(self) -> float:
        """The largest magnitude."""
        return max(abs(end) for end in self.ends) * self.step

    def steps(self, column: Floats) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Each value clipped, in whole steps; and which are numbers at all."""
        known = ~np.isnan(column)
        clipped = np.clip(np.where(known, column, 0.0), self.low, self.high)
        return np.rint(clipped / self.step).astype(np.int64), known


@dataclass(frozen=True, eq=False)
class Schema:
    """Attributes and measures, in order; names differ."""

    attributes: tuple[Attribute, ...]
    measures: tuple[Measure, ...] = ()

    @classmethod
    def of(cls, attributes: Any, measures: Any = None) -> Schema:
        """From mappings of names to domains, and of names to bounds."""
        pairs = list(attributes.items()) if isinstance(attributes, Mapping) else attributes
        if not isinstance(pairs, list | tuple) or any(not isinstance(p, list | tuple) or len(p) != 2 for p in pairs):
            raise TypeError("a schema is a mapping of names to domains, or a list of such pairs")
        if not isinstance(measures, Mapping | None):
            raise TypeError("measures must be a mapping of names to bounds")
        found = tuple(Attribute.of(*pair) for pair in pairs)
        bounded = tuple(Measure.of(*pair) for pair in (measures or {}).items())
        names = [one.name for one in found] + [one.name for one in bounded]
        if not found or len(set(names)) < len(names):
            raise ValueError("a schema needs one attribute at least, and each name once")
        if len(bounded) > 6:
            raise ValueError("a workload has six measures at most: split it")
        return cls(found, bounded)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of cells of each attribute."""
        return tuple(one.size for one in self.attributes)

    def index(self, name: Any) -> int:
        """Where an attribute stands."""
        for place, one in enumerate(self.attributes):
            if isinstance(name, str) and one.name == name:
                return place
        shown = repr(name) if isinstance(name, str) else f"of type {type(name).__name__}"
        raise ValueError(f"no attribute {shown}; the schema has {', '.join(one.name for one in self.attributes)}")

    def measure(self, name: Any) -> int:
        """Where a measure stands."""
        for place, one in enumerate(self.measures):
            if isinstance(name, str) and one.name == name:
                return place
        known = ", ".join(one.name for one in self.measures) or "none"
        shown = repr(name) if isinstance(name, str) else f"of type {type(name).__name__}"
        raise ValueError(f"no measure {shown} with bounds; the schema has {known}")

    def corners(self) -> NDArray[np.int64]:
        """What one record adds to (count, measures), at its extremes, in whole steps: one row each."""
        rows = [[1]]
        for one in self.measures:
            rows = [[*row, end] for row in rows for end in one.ends]
        return np.array(rows, dtype=np.int64)

    def steps(self) -> Floats:
        """The step of the count and of each measure."""
        return np.array([1.0, *(one.step for one in self.measures)])

    def units(self) -> Floats:
        """The same as a mechanism sees it, each measure in its own unit: noise does not depend on kilos or grams."""
        return np.array([1.0, *(2.0**-_BITS for _ in self.measures)])

    def asked(self, measure: int) -> Floats:
        """What an answer about the count (0) or the k-th measure adds up, of what a mechanism sees."""
        row = np.zeros(1 + len(self.measures))
        row[measure] = self.measures[measure - 1].unit if measure else 1.0
        return row

    def to_json(self) -> dict[str, Any]:
        """What `of` reads."""
        return {
            "attributes": {one.name: one.to_json() for one in self.attributes},
            "measures": {one.name: [one.low, one.high] for one in self.measures},
        }
