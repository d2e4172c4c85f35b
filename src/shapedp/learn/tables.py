"""Rows in blocks, from whatever holds them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Floats = NDArray[np.float64]
CHUNK = 4096  # rows of a block, a multiple of numerics.gram.BLOCK


class Table(Protocol):
    """Records with a target, read in one pass."""

    @property
    def records(self) -> int:
        """The number of records, public."""

    @property
    def columns(self) -> int:
        """The number of features, public."""

    def blocks(self) -> Iterator[tuple[Any, Floats]]:
        """Features (dense or CSR) and target of CHUNK records at a time; fewer in the last block only."""


@dataclass(frozen=True, eq=False)
class InMemory:
    """A dense array or CSR matrix, and a vector of as many entries."""

    x: Any
    y: Floats

    @property
    def records(self) -> int:
        return int(self.x.shape[0])

    @property
    def columns(self) -> int:
        return int(self.x.shape[1])

    def blocks(self) -> Iterator[tuple[Any, Floats]]:
        for start in range(0, self.records, CHUNK):
            yield self.x[start : start + CHUNK], self.y[start : start + CHUNK]


def without_odd(x: Any, y: Floats) -> tuple[Any, Floats, NDArray[np.bool_]]:
    """The block with every record that holds a NaN or an infinity turned into zeros, and which records were kept."""
    bad = ~np.isfinite(y)
    if hasattr(x, "indptr"):
        entries = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
        bad[entries[~np.isfinite(x.data)]] = True
        kept = x if not bad.any() else sparse.diags_array((~bad).astype(np.float64)) @ _zeroed(x)
        return kept, np.where(bad, 0.0, y), ~bad
    bad |= ~np.isfinite(x).all(axis=1)
    return (x if not bad.any() else np.where(bad[:, None], 0.0, x)), np.where(bad, 0.0, y), ~bad


def _zeroed(x: Any) -> Any:
    """A copy of a CSR matrix with NaN and infinity replaced by 0."""
    copy = x.copy()
    copy.data[~np.isfinite(copy.data)] = 0.0
    return copy
