"""Arrays as JSON, exactly: short ones as numbers, long ones as compressed little-endian bytes."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.numerics.checks import finite

_READABLE = 256


def encode(array: NDArray[np.float64]) -> Any:
    """A JSON value from which `decode` restores the same floats."""
    if array.size <= _READABLE:
        return array.tolist()
    raw = np.ascontiguousarray(array, dtype="<f8").tobytes()
    return {"float64": base64.b64encode(zlib.compress(raw, 1)).decode("ascii"), "size": int(array.size)}


def decode(name: str, value: Any) -> NDArray[np.float64]:
    """The array behind a JSON value, finite and 1-d."""
    if isinstance(value, dict):
        try:
            raw = zlib.decompress(base64.b64decode(value["float64"], validate=True))
            array = np.frombuffer(raw, dtype="<f8").astype(np.float64)
        except (KeyError, TypeError, ValueError, zlib.error) as cause:
            raise ValueError(f"{name} is not an encoded array: {cause}") from None
        if array.size != value.get("size"):
            raise ValueError(f"{name} holds {array.size} values, {value.get('size')} were announced")
        return finite(name, array)
    return finite(name, value)


def frozen(array: NDArray[np.float64]) -> NDArray[np.float64]:
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
    array = np.asarray(values)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iu" or array.min() < 1:
        raise ValueError(f"{name} must be a non-empty 1-d array of integers >= 1, got {values!r}")
    copy = array.astype(np.int64)
    copy.setflags(write=False)
    return copy
