"""Products of a tensor with one matrix per mode, without forming their Kronecker product."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.numerics.arrays import Floats

_BLOCK = 1 << 19  # entries worked on at a time
_NARROW = 32  # fewer entries than this after the mode: transpose, then multiply


def multiply(matrix: Floats, panel: Floats) -> Floats:
    """matrix times each of the (n, b) matrices of an (a, n, b) panel."""
    a, n, b = panel.shape
    if b >= _NARROW:
        return np.asarray(np.matmul(matrix, panel))
    rows = panel.reshape(a, n) if b == 1 else np.ascontiguousarray(panel.transpose(0, 2, 1)).reshape(a * b, n)
    return np.asarray((rows @ matrix.T).reshape(a, b, len(matrix)).transpose(0, 2, 1))


def blocks(x: NDArray[Any], shape: Sequence[int], mode: int) -> Iterator[NDArray[Any]]:
    """Views (a, n, b) of a C-contiguous x, of about 2^19 entries, that together cover it; n is the mode whole.

    `shape` is that of the last axes of x; what comes before is a batch.
    """
    size, after = shape[mode], math.prod(shape[mode + 1 :])
    whole = x.reshape(-1, size, after)
    width = min(after, max(_BLOCK // size, 1))
    height = max(_BLOCK // (size * width), 1)
    for top in range(0, len(whole), height):
        for left in range(0, after, width):
            yield whole[top : top + height, :, left : left + width]


def replace_mode(x: Floats, shape: Sequence[int], mode: int, change: Callable[[Floats], Floats]) -> None:
    """Every block of a mode replaced by a function of it, in place: extra memory is that of a few blocks."""
    for block in blocks(x, shape, mode):
        block[...] = change(block)


def outer(vectors: Sequence[Floats]) -> Floats:
    """The tensor of products of the vectors' entries."""
    total = np.ones(())
    for vector in vectors:
        total = np.multiply.outer(total, vector)
    return np.asarray(total)
