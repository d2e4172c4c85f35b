"""Hyperspherical coordinates in any dimension, kept as deviations from a right angle.

A vector x of length d is its norm r and d - 1 angles theta_z; what is stored is a_z = pi/2 - theta_z:

    a_z = atan2(x_z, |(x_(z+1), ..., x_d)|)   for z <= d - 2, in [-pi/2, pi/2]
    a_(d-1) = atan2(x_(d-1), x_d)             in [-pi, pi]
    x_z = r cos(a_1) ... cos(a_(z-1)) sin(a_z), x_d = r cos(a_1) ... cos(a_(d-1))

Angles of long vectors lie near pi/2, where theta_z loses digits that a_z keeps. A zero vector has all a_z = 0.
Each way is one pass in pieces that stay in cache. Forward, tails are sums of squares from the end. Backward,
x_z = tan(a_z) R_(z+1) where log |R| is a running sum of -log(1 + tan^2)/2, its exponent carried apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapedp.numerics.checks import finite, numeric

Floats = NDArray[np.float64]
Places = NDArray[np.int64]
PIECE = 2**16  # numbers at a time
_GROUP = 8
_PRODUCT = 2**12  # rows of a matrix product: BLAS keeps one of this size on one thread
_LATER = np.tril(np.ones((_GROUP, _GROUP)), -1)
_UP_TO = np.triu(np.ones((_GROUP, _GROUP)))
_LN2_HIGH = float.fromhex("0x1.62e42fefa3800p-1")  # 42 bits, so that its product with an exponent is exact
_LN2_LOW = float.fromhex("0x1.ef35793c76730p-45")
_SMALL, _LARGE = 1e-140, 1e145  # tails between these have squares that neither vanish nor overflow
_DEEP = -300.0  # log R below which factors are multiplied by mantissa and exponent


def to_angles(x: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """The norm, and the d - 1 deviations a_z = pi/2 - theta_z, of each vector along the last axis (d >= 2).

    float32 in, float32 out; computed in float64.
    Guarantee: to_angles and from_angles give x back to about 4e-15 relative in every element, times |x_z|/|tail| where
    a single element outweighs everything after it: its angle is then near the pole, where a float holds fewer digits.
    """
    array = _table("x", x, least=2)
    d = array.shape[-1]
    rows = array.reshape(-1, d)
    angles = np.empty((len(rows), d - 1), dtype=array.dtype)
    norm = np.empty(len(rows))
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for some in _panels(len(rows), d - 1):
            norm[some] = _forward(rows[some], angles[some])
        lengths = norm.astype(array.dtype)  # infinite where a float32 does not hold it
    if not np.isfinite(norm).all():
        finite("x", array)
        raise ValueError("the norm of x exceeds the largest float: use other units")
    return lengths.reshape(array.shape[:-1]), angles.reshape(*array.shape[:-1], d - 1)


def from_angles(norm: ArrayLike, angles: ArrayLike) -> NDArray[Any]:
    """The vectors that have these norms (of either sign) and deviations, which may lie outside their ranges.

    Guarantee: an element of size |r| e^-l above the smallest normal float is off by at most about 4e-15 (1 + l)
    relative, a smaller one by the spacing of subnormal floats besides; nothing underflows before the element does.
    """
    array = _table("angles", angles, least=1)
    lengths = np.broadcast_to(finite("norm", norm), array.shape[:-1]).reshape(-1)
    m = array.shape[-1]
    rows = array.reshape(-1, m)
    x = np.empty((len(rows), m + 1), dtype=array.dtype)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        for some in _panels(len(rows), m):
            _backward(lengths[some], rows[some], x[some])
    if not np.isfinite(x[:, -1]).all():
        finite("angles", array)
    return x.reshape(*array.shape[:-1], m + 1)


def published_angles(deviations: ArrayLike) -> NDArray[Any]:
    """theta of the usual convention: pi/2 - a in [0, pi], and the last one in (-pi, pi]."""
    theta = np.pi / 2 - _table("deviations", deviations, least=1)
    last = theta[..., -1]
    np.subtract(last, 2 * np.pi, out=last, where=last > np.pi)
    return np.asarray(theta)


def _table(name: str, values: ArrayLike, least: int) -> NDArray[Any]:
    array = numeric(name, values)
    if array.ndim == 0 or array.shape[-1] < least:
        raise ValueError(f"{name} must hold vectors of length >= {least} along its last axis, got shape {array.shape}")
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _panels(n: int, width: int) -> Iterator[slice]:
    """Some rows at a time: short vectors share a piece."""
    step = max(1, PIECE // _padded(min(width, PIECE)))
    return (slice(i, i + step) for i in range(0, n, step))


def _padded(width: int) -> int:
    """Widths from 64 on are padded to a multiple of 64, so that sums run by groups of groups."""
    return width if width < _GROUP**2 else -(-width // _GROUP**2) * _GROUP**2


def _pieces(width: int) -> list[tuple[int, int]]:
    return [(start, min(start + PIECE, width)) for start in range(0, width, PIECE)]


def _by_groups(width: int) -> bool:
    """Whether sums of a row this long run by matrix products over groups: a plain running sum waits for each add."""
    return width >= 1024 and width % _GROUP == 0


def _in_groups(values: Floats, matrix: Floats, out: Floats) -> tuple[Floats, Floats]:
    """Each group of 8 times a matrix into out; values and out as groups. Products small enough for one thread."""
    groups, inner = values.reshape(-1, _GROUP), out.reshape(-1, _GROUP)
    for i in range(0, len(groups), _PRODUCT):
        np.matmul(groups[i : i + _PRODUCT], matrix, out=inner[i : i + _PRODUCT])
    return groups, inner


def _later_sums(values: Floats, start: Floats, out: Floats) -> Floats:
    """out_i = start + the sum of values after i, row by row; start + the sums of whole rows are returned."""
    if not _by_groups(values.shape[1]):
        out[:, -1] = start
        np.add.accumulate(values[:, :0:-1], axis=1, out=out[:, -2::-1])
        out[:, :-1] += start[:, None]
        return np.asarray(out[:, 0] + values[:, 0])
    groups, inner = _in_groups(values, _LATER, out)
    totals = (inner[:, 0] + groups[:, 0]).reshape(len(values), -1)
    after = np.empty_like(totals)
    whole = _later_sums(totals, start, after)
    np.add(out, np.repeat(after, _GROUP, axis=1), out=out)
    return whole


def _sums_up_to(values: Floats, factor: float, out: Floats) -> None:
    """out_i = factor times the sum of values up to and with i, row by row."""
    if not _by_groups(values.shape[1]):
        np.add.accumulate(values, axis=1, out=out)
        out *= factor
        return
    _, inner = _in_groups(values, _UP_TO * factor, out)
    totals = inner[:, -1].reshape(len(values), -1)
    before = np.empty_like(totals)
    _sums_up_to(totals, 1.0, before)
    np.subtract(before, totals, out=before)
    np.add(out, np.repeat(before, _GROUP, axis=1), out=out)


def _forward(x: NDArray[Any], angles: NDArray[Any]) -> Floats:
    """Fill the angles of some rows from the last piece to the first; the norms are returned."""
    n, m = angles.shape
    size = _padded(min(m, PIECE))
    squares, tails = np.zeros((2, n, size))
    tail = np.abs(x[:, -1].astype(np.float64))
    for start, end in reversed(_pieces(m)):
        width = end - start
        piece, out = x[:, start:end], angles[:, start:end]
        used = _padded(width)
        square, after = (_part(scratch, used) for scratch in (squares, tails))
        square[:, width:] = 0.0
        np.multiply(piece, piece, out=square[:, :width], dtype=np.float64)
        lengths, total = _tails(piece, square, after, tail)
        if tail.min() > 0:
            np.divide(piece, lengths, out=lengths)
            np.arctan(lengths, out=out, casting="same_kind")
        else:
            np.arctan2(piece, lengths, out=out, casting="same_kind")
        tail = total
    np.arctan2(x[:, -2] + 0.0, x[:, -1] + 0.0, out=angles[:, -1])
    return tail


def _part(scratch: Floats, used: int) -> Floats:
    """The first columns of a scratch array, contiguous."""
    return scratch.reshape(-1)[: len(scratch) * used].reshape(len(scratch), used)


def _tails(piece: NDArray[Any], square: Floats, after: Floats, tail: Floats) -> tuple[Floats, Floats]:
    """The norm of everything after each element of a piece, and that of the piece with all after it."""
    width = piece.shape[1]
    if _summable(piece, square, tail):
        whole = _later_sums(square, tail * tail, after)
        if whole.max() < _LARGE**2:
            lengths = after[:, :width]
            return np.sqrt(lengths, out=lengths), np.sqrt(whole)
    chain = np.empty((len(piece), width + 1))
    chain[:, 0] = tail
    chain[:, 1:] = piece[:, ::-1]
    np.hypot.accumulate(chain, axis=1, out=chain)
    return chain[:, -2::-1].copy(), chain[:, -1].copy()


def _summable(piece: NDArray[Any], square: Floats, tail: Floats) -> bool:
    """Whether squares that vanish are too small to matter: next to the tail, or because there are none."""
    if tail.min() > _SMALL:
        return bool(tail.max() < _LARGE)
    if not (tail[tail > 0] > _SMALL).all():
        return False
    return not ((square[:, : piece.shape[1]] < _SMALL**2) & (piece != 0)).any()


def _backward(norm: Floats, angles: NDArray[Any], x: NDArray[Any]) -> None:
    """Fill some rows from the first piece to the last."""
    n, m = angles.shape
    size = _padded(min(m, PIECE))
    slopes, squares, logs = np.zeros((3, n, size))
    mantissa, exponent = np.frexp(norm)
    for start, end in _pieces(m):
        width = end - start
        piece, out = angles[:, start:end], x[:, start:end]
        used = _padded(width)
        slope, square, log = (_part(scratch, used) for scratch in (slopes, squares, logs))
        slope[:, width:] = 0.0
        np.tan(piece, out=slope[:, :width], dtype=np.float64)
        turned = _turns(piece, slope)
        np.multiply(slope, slope, out=square)
        np.log1p(square, out=square)
        _sums_up_to(square, -0.5, log)
        factor, shift = _split(log[:, width - 1])
        _multiply(slope[:, :width], log[:, :width], mantissa, exponent, out)
        if turned is not None:
            odd, alive = turned
            _flip(out, *odd)
            factor = factor * (1.0 - 2.0 * (np.bincount(odd[0], minlength=n) % 2)) * alive
        mantissa, more = np.frexp(mantissa * factor)
        exponent = exponent + more + shift
        if not np.isfinite(mantissa).all():
            x[:, -1] = np.nan
            return
        if not mantissa.any() or exponent[mantissa != 0].max() < -1200:
            x[:, end:] = 0.0
            return
    x[:, -1] = np.ldexp(mantissa, exponent)


def _split(log: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """e^log as (factor, whole exponent), factor near 1."""
    shift = np.rint(np.maximum(log, -1e6) / math.log(2))
    factor = np.exp(log - shift * _LN2_HIGH - shift * _LN2_LOW)
    return factor, shift.astype(np.int64)


def _multiply(slope: Floats, log: Floats, mantissa: Floats, exponent: NDArray[Any], out: NDArray[Any]) -> None:
    """out = slope e^log mantissa 2^exponent, in plain products where none of them leaves the normal range."""
    if log[:, -1].min() > _DEEP and exponent.max() < 800 and exponent.min() > -400:
        np.exp(log, out=log)
        log *= np.ldexp(mantissa, exponent)[:, None]
        np.multiply(slope, log, out=out, casting="same_kind")
        return
    factor, shift = _split(log)
    factor *= mantissa[:, None]
    factor *= slope
    np.ldexp(factor, np.maximum(shift + exponent[:, None], -(2**30)).astype(np.int32), out=factor)
    out[...] = factor


def _turns(piece: NDArray[Any], slope: Floats) -> tuple[tuple[Places, Places], Floats] | None:
    """Where angles reach pi/2: the places (rows, columns) of negative cosines, and 0 for rows where one vanishes.

    An angle that is the float next to pi/2 stands for pi/2 itself, the one next to pi for pi. After a vanishing
    cosine the slopes are set to zero. None where no angle reaches pi/2.
    """
    half, full = piece.dtype.type(np.pi / 2), piece.dtype.type(np.pi)
    if -half < piece.min() and piece.max() < half:
        return None
    rows, columns = np.nonzero(np.abs(piece) >= half)
    angles = np.abs(piece[rows, columns].astype(np.float64))
    slope[rows[angles == full], columns[angles == full]] = 0.0
    alive = np.ones(len(piece))
    for row, column in zip(*(place[angles == half][::-1] for place in (rows, columns)), strict=True):
        slope[row, column] = np.copysign(slope[row, column], piece[row, column])
        slope[row, column + 1 : piece.shape[1]] = 0.0
        alive[row] = 0.0
    odd = (angles > half) & (np.cos(angles) < 0)
    return (rows[odd], columns[odd]), alive


def _flip(out: NDArray[Any], rows: Places, columns: Places) -> None:
    """Change the signs from each place to the end of its row."""
    if len(rows) <= 8 * len(out):
        for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
            np.negative(out[row, column:], out=out[row, column:])
        return
    signs = np.ones(out.shape)
    signs[rows, columns] = -1.0
    out *= np.multiply.accumulate(signs, axis=1, out=signs)
