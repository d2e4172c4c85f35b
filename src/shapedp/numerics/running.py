"""Running sums of long rows by small matrix products: a plain running sum waits for each add. No row sees another."""

from __future__ import annotations

import numpy as np

from shapedp.numerics.arrays import Floats

_GROUP = 8
_PRODUCT = 2**12  # rows of a matrix product: BLAS keeps one of this size on one thread
_LATER = np.tril(np.ones((_GROUP, _GROUP)), -1)
_UP_TO = np.triu(np.ones((_GROUP, _GROUP)))


def padded(width: int) -> int:
    """Widths from 64 on are padded to a multiple of 64, so that sums run by groups of groups."""
    return width if width < _GROUP**2 else -(-width // _GROUP**2) * _GROUP**2


def _by_groups(width: int) -> bool:
    """Whether sums of a row this long run by matrix products over groups: a plain running sum waits for each add."""
    return width >= 1024 and width % _GROUP == 0


def _in_groups(values: Floats, matrix: Floats, out: Floats) -> tuple[Floats, Floats]:
    """Each group of 8 times a matrix into out; values and out as groups, row by row.

    Products small enough for one thread, of one row each: how BLAS rounds may depend on the shape of a product.
    """
    groups, inner = (part.reshape(len(part), -1, _GROUP) for part in (values, out))
    for i in range(0, groups.shape[1], _PRODUCT):
        np.matmul(groups[:, i : i + _PRODUCT], matrix, out=inner[:, i : i + _PRODUCT])
    return groups, inner


def later_sums(values: Floats, start: Floats, out: Floats) -> Floats:
    """out_i = start + the sum of values after i, row by row; start + the sums of whole rows are returned."""
    if not _by_groups(values.shape[1]):
        out[:, -1] = start
        np.add.accumulate(values[:, :0:-1], axis=1, out=out[:, -2::-1])
        out[:, :-1] += start[:, None]
        return np.asarray(out[:, 0] + values[:, 0])
    groups, inner = _in_groups(values, _LATER, out)
    totals = inner[:, :, 0] + groups[:, :, 0]
    after = np.empty_like(totals)
    whole = later_sums(totals, start, after)
    np.add(out, np.repeat(after, _GROUP, axis=1), out=out)
    return whole


def sums_up_to(values: Floats, factor: float, out: Floats) -> None:
    """out_i = factor times the sum of values up to and with i, row by row."""
    if not _by_groups(values.shape[1]):
        np.add.accumulate(values, axis=1, out=out)
        out *= factor
        return
    _, inner = _in_groups(values, _UP_TO * factor, out)
    totals = inner[:, :, -1].copy()
    before = np.empty_like(totals)
    sums_up_to(totals, 1.0, before)
    np.subtract(before, totals, out=before)
    np.add(out, np.repeat(before, _GROUP, axis=1), out=out)
