"""Tables whose records are on other machines: sums are made there, and only sums leave."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from shapedp._version import __version__
from shapedp.boundary.refusals import refusal
from shapedp.numerics.arrays import Floats
from shapedp.tables.blocks import Table

T = TypeVar("T")
RECORDS = "this estimator or solver reads the records themselves, not only sums: use solver='descent' or 'mixing'"


class PieceError(ValueError):
    """A partition has other types or sizes than it should."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Distributed(ABC):
    """A table in pieces that are somewhere else; what `moments` sums there."""

    columns: int
    names: tuple[str, ...] | None
    records: int | None
    classes: tuple[Any, ...] | None
    version: str = field(default=__version__, init=False)

    def blocks(self) -> Iterator[tuple[Any, Floats]]:
        """Refused: the records stay where they are."""
        raise TypeError(RECORDS)

    @abstractmethod
    def reduced(self, work: Callable[[Table], T], merge: Callable[[list[T]], T], progress: bool = False) -> T:
        """`work` done on every piece where it is, the results merged.

        Guarantee: every piece counts once; an error quotes no cell.
        """


def worked(work: Callable[[Table], T], open_piece: Callable[[], Table], version: str) -> T:
    """`work` on one piece; runs on a worker, whose library must be the one that the certificate is about."""
    if version != __version__:
        raise PieceError(refusal("tables", "other-version", here=version, there=__version__))
    try:
        return work(open_piece())
    except (ValueError, TypeError) as error:  # of the reader, which quotes no cell
        raise PieceError(str(error)) from None


@dataclass(frozen=True)
class Found:
    """What was made of some pieces: their numbers and their total, or why there is none."""

    pieces: tuple[int, ...]
    total: Any
    refused: str | None = None  # a message that quotes no cell
    failed: str | None = None  # the type of an error


def joined(merge: Callable[[list[Any]], Any], found: Sequence[Found]) -> Found:
    """The total of several; the first of what went wrong, if anything did.

    Guarantee: a piece that comes twice is refused, for its records would count twice.
    """
    pieces = tuple(number for one in found for number in one.pieces)
    if len(set(pieces)) < len(pieces):
        return Found(pieces, None, refused=refusal("tables", "piece-twice"))
    wrong = [one for one in found if one.refused is not None or one.failed is not None]
    if wrong:
        first = min(wrong, key=lambda one: one.pieces)
        return Found(pieces, None, first.refused, first.failed)
    return Found(pieces, merge([one.total for one in found]))


def total_of(found: Found) -> Any:
    """The total of all pieces.

    Guarantee: refused unless the pieces are numbered 0, 1, ... without a gap, each once.
    """
    if found.refused is not None:
        raise PieceError(found.refused)
    if found.failed is not None:
        raise ValueError(refusal("tables", "no-partition", kind=found.failed))
    if sorted(found.pieces) != list(range(len(found.pieces))):
        raise PieceError(refusal("tables", "piece-lost"))
    return found.total
