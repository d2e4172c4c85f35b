"""Read-only arrays, and blocks of coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.numerics.checks import numeric, total

Floats = NDArray[np.float64]

# the product of each row of one array with the row of the other, from these rows alone
dots: Callable[[Floats, Floats], Floats] = getattr(np, "vecdot", lambda x, y: np.einsum("...j,...j->...", x, y))


def frozen(array: Floats) -> Floats:
    """A read-only copy, or the array itself where it is one already."""
    if array.dtype == np.float64 and array.flags.owndata and not array.flags.writeable:
        return array
    copy = np.array(array, dtype=np.float64)
    copy.setflags(write=False)
    return copy


def block_index(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each block begins."""
    return np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)


def block_sizes(name: str, values: Any) -> NDArray[np.int64]:
    """Positive whole block sizes as a read-only int64 array."""
    try:
        array = numeric(name, values)
    except TypeError:
        array = np.empty(0)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iu" or array.min() < 1:
        raise ValueError(f"{name} must be a non-empty 1-d array of integers >= 1")
    total(name, array)
    copy = array.astype(np.int64)
    copy.setflags(write=False)
    return copy
