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


def frozen(array: Any) -> Floats:
    """A copy in memory that nobody can write to, or the array itself where it lies in such memory already.

    An array that is merely marked as read-only may have a view that is not, and the mark can be taken away.
    """
    return _kept(array, np.float64)


def frozen_integers(array: Any) -> NDArray[np.int64]:
    """`frozen` for whole numbers."""
    return _kept(array, np.int64)


def _kept(array: Any, kind: Any) -> NDArray[Any]:
    below = array
    while isinstance(below, np.ndarray):
        below = below.base
    if type(below) is bytes and array.dtype == kind:
        return np.asarray(array)
    plain = np.asarray(array, dtype=kind)
    return np.frombuffer(plain.tobytes(), dtype=kind).reshape(plain.shape)


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
    return frozen_integers(array)
