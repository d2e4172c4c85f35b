"""Hyperspherical coordinates in any dimension, kept as deviations from a right angle.

A vector x of length d is its norm r and d - 1 angles theta_z; what is stored is a_z = pi/2 - theta_z:

    a_z = atan2(x_z, |(x_(z+1), ..., x_d)|)   for z <= d - 2, in [-pi/2, pi/2]
    a_(d-1) = atan2(x_(d-1), x_d)             in [-pi, pi]
    x_z = r cos(a_1) ... cos(a_(z-1)) sin(a_z), x_d = r cos(a_1) ... cos(a_(d-1))

Angles of long vectors lie near pi/2, where theta_z loses digits that a_z keeps. A zero vector has all a_z = 0.
Each way works in pieces that stay in cache. Forward, tails are sums of squares from the end. Backward,
x_z = tan(a_z) R_(z+1) where log |R| is a running sum of -log(1 + tan^2)/2, its exponent carried apart. Long vectors
are cut into spans for the cores: forward, the tail of a span comes from the squares alone; backward, a span starts
from a power of two and is scaled to where the one before it ended. The cuts do not depend on the number of cores.
Where numba is installed, `flat` does the pieces of very long vectors in which no element stands out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shapedp.numerics.arrays import Floats, dots
from shapedp.numerics.checks import finite, numeric
from shapedp.numerics.flat import FROM_ANGLES, TO_ANGLES
from shapedp.numerics.running import later_sums, padded, sums_up_to
from shapedp.numerics.threads import each

Places = NDArray[np.int64]
Loop = Callable[[NDArray[Any], float, NDArray[Any]], float] | None  # of `flat`, None where numpy is to do the work
PIECE = 2**16  # numbers at a time
SPAN = 16 * PIECE  # numbers of one vector for one thread
_LN2_HIGH = float.fromhex("0x1.62e42fefa3800p-1")  # 42 bits, so that its product with an exponent is exact
_LN2_LOW = float.fromhex("0x1.ef35793c76730p-45")
_SMALL, _LARGE = 1e-140, 1e145  # tails between these have squares that neither vanish nor overflow
_DEEP = -300.0  # log R below which factors are multiplied by mantissa and exponent


def to_angles(x: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
    """The norm, and the d - 1 deviations a_z = pi/2 - theta_z, of each vector along the last axis (d >= 2).

    float32 in, float32 out; computed in float64.
    Guarantee: the bits of a vector's angles come from this vector alone, whatever others are converted with it;
    to_angles and from_angles give x back to about 4e-15 relative in every element, times |x_z|/|tail| where
    a single element outweighs everything after it: its angle is then near the pole, where a float holds fewer digits.
    """
    array = _table("x", x, least=2)
    d = array.shape[-1]
    rows = array.reshape(-1, d)
    angles = np.empty((len(rows), d - 1), dtype=array.dtype)
    norm = np.empty(len(rows))
    loop = TO_ANGLES.at_once(d)  # whatever the number of vectors: none may decide how another is rounded
    with _quiet():
        if d - 1 > SPAN:
            for i in range(len(rows)):
                norm[i] = _forward_spans(rows[i : i + 1], angles[i : i + 1], loop)
        else:

            def convert(some: slice) -> None:
                ends = np.abs(rows[some, -1].astype(np.float64))
                norm[some] = _forward(rows[some, :-1], angles[some], ends, loop)

            _each(_panels(len(rows), d - 1), convert, rows.size)
        np.arctan2(rows[:, -2] + 0.0, rows[:, -1] + 0.0, out=angles[:, -1])
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
    loop = FROM_ANGLES.at_once(m)
    with _quiet():
        if m > SPAN:
            for i in range(len(rows)):
                _backward_spans(float(lengths[i]), rows[i : i + 1], x[i : i + 1], loop)
        else:

            def convert(some: slice) -> None:
                x[some, -1] = np.ldexp(*_backward(*np.frexp(lengths[some]), rows[some], x[some, :-1], loop))

            _each(_panels(len(rows), m), convert, rows.size)
    if not np.isfinite(x[:, -1]).all():
        finite("angles", array)
    return x.reshape(*array.shape[:-1], m + 1)


def _table(name: str, values: ArrayLike, least: int) -> NDArray[Any]:
    array = numeric(name, values)
    if array.ndim == 0 or array.shape[-1] < least:
        raise ValueError(f"{name} must hold vectors of length >= {least} along its last axis, got shape {array.shape}")
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)


def _quiet() -> np.errstate:
    return np.errstate(over="ignore", under="ignore", invalid="ignore")


def _each(items: Iterable[Any], work: Callable[[Any], None], size: int) -> None:
    """Work on every item, in threads where there is much to do."""
    each(items, lambda: _quiet()(work), size // (4 * PIECE))


def _spans(width: int) -> list[slice]:
    return [slice(start, min(start + SPAN, width)) for start in range(0, width, SPAN)]


def _panels(n: int, width: int) -> Iterator[slice]:
    """Some rows at a time: short vectors share a piece."""
    step = max(1, PIECE // padded(min(width, PIECE)))
    return (slice(i, i + step) for i in range(0, n, step))


def _pieces(width: int) -> list[tuple[int, int]]:
    return [(start, min(start + PIECE, width)) for start in range(0, width, PIECE)]


def _forward_spans(x: NDArray[Any], angles: NDArray[Any], loop: Loop) -> float:
    """The same for one long row, span by span; the norm is returned."""
    spans = _spans(angles.shape[1])
    norms = np.empty(len(spans) + 1)
    norms[-1] = abs(float(x[0, -1]))

    def measure(i: int) -> None:
        norms[i] = _norm(x[0, spans[i]])

    def convert(i: int) -> None:
        _forward(x[:, spans[i]], angles[:, spans[i]], tails[i + 1 : i + 2], loop)

    _each(range(len(spans)), measure, x.size)
    if ((norms > _SMALL) & (norms < _LARGE)).all():
        tails = np.sqrt(np.add.accumulate(np.square(norms[::-1])))[::-1]
    else:
        tails = np.hypot.accumulate(norms[::-1])[::-1]
    _each(range(len(spans)), convert, x.size)
    return float(tails[0])


def _norm(x: NDArray[Any]) -> float:
    """The norm of one span."""
    pieces = [x[start:end].astype(np.float64, copy=False) for start, end in _pieces(len(x))]
    squares = sum(map(_square, pieces))
    if _SMALL**2 < squares < _LARGE**2:
        return math.sqrt(squares)
    largest = max(float(np.abs(piece).max()) for piece in pieces)
    if not 0 < largest < math.inf:
        return largest  # nothing, or no number
    return largest * math.sqrt(sum(float(np.square(piece / largest).sum()) for piece in pieces))


def _square(piece: Floats) -> float:
    """The sum of squares, by rows of 512 while they last."""
    cut = len(piece) // 512 * 512
    rows, rest = piece[:cut].reshape(-1, 512), piece[cut:]
    return float(dots(rows, rows).sum() + np.square(rest).sum())


def _forward(x: NDArray[Any], angles: NDArray[Any], tail: Floats, loop: Loop) -> Floats:
    """Fill the angles of some rows from the last piece to the first, given the norms of what follows them.

    The norms of the rows with what follows are returned. Pieces that `loop` can do are left to it.
    """
    n, m = angles.shape
    size = padded(min(m, PIECE))
    squares, tails = np.zeros((2, n, size))
    for start, end in reversed(_pieces(m)):
        width = end - start
        piece, out = x[:, start:end], angles[:, start:end]
        if loop is not None and width == PIECE and _SMALL < tail[0] < _LARGE / 2:
            done = loop(piece[0], tail[0], out[0])
            if done > 0:
                tail = np.array([done])
                continue
        used = padded(width)
        square, after = (_part(scratch, used) for scratch in (squares, tails))
        square[:, width:] = 0.0
        np.multiply(piece, piece, out=square[:, :width], dtype=np.float64)
        lengths, total = _tails(piece, square, after, tail)
        above = tail > 0
        if above.all():
            np.divide(piece, lengths, out=lengths)
            np.arctan(lengths, out=out, casting="same_kind")
        else:
            out[above] = np.arctan(piece[above] / lengths[above])
            out[~above] = np.arctan2(piece[~above], lengths[~above])
        tail = total
    return tail


def _part(scratch: Floats, used: int) -> Floats:
    """The first columns of a scratch array, contiguous."""
    return scratch.reshape(-1)[: len(scratch) * used].reshape(len(scratch), used)


def _tails(piece: NDArray[Any], square: Floats, after: Floats, tail: Floats) -> tuple[Floats, Floats]:
    """The norm of everything after each element of a piece, and that of the piece with all after it.

    By sums of squares in the rows where they serve, by a chain of hypot in the others: each row decides for itself.
    """
    width = piece.shape[1]
    whole = later_sums(square, tail * tail, after)
    odd = np.flatnonzero(~(_summable(piece, square, tail) & (whole < _LARGE**2)))
    lengths = after[:, :width]
    np.sqrt(lengths, out=lengths)
    total = np.sqrt(whole)
    if odd.size:
        chain = np.empty((odd.size, width + 1))
        chain[:, 0] = tail[odd]
        chain[:, 1:] = piece[odd, ::-1]
        np.hypot.accumulate(chain, axis=1, out=chain)
        lengths[odd], total[odd] = chain[:, -2::-1], chain[:, -1]
    return lengths, total


def _summable(piece: NDArray[Any], square: Floats, tail: Floats) -> NDArray[np.bool_]:
    """The rows whose squares that vanish are too small to matter: next to the tail, or because there are none."""
    ends = tail == 0
    if not ends.any():
        return np.asarray((tail > _SMALL) & (tail < _LARGE))
    vanishing = ((square[:, : piece.shape[1]] < _SMALL**2) & (piece != 0)).any(axis=1)
    return np.where(ends, ~vanishing, (tail > _SMALL) & (tail < _LARGE))


def _backward_spans(norm: float, angles: NDArray[Any], x: NDArray[Any], loop: Loop) -> None:
    """The same for one long row, span by span, each from a power of two not below the norm, then scaled."""
    spans = _spans(angles.shape[1])
    mantissa, exponent = math.frexp(norm)
    start = min(exponent + 1, 1023)
    factors, shifts = np.empty(len(spans)), np.empty(len(spans), dtype=np.int64)

    def convert(i: int) -> None:
        end = _backward(np.array([0.5]), np.array([start]), angles[:, spans[i]], x[:, spans[i]], loop)
        factors[i], shifts[i] = 2 * end[0][0], end[1][0] - start

    def scale(i: int) -> None:
        part, shift = x[:, spans[i]], exponents[i] - start
        if abs(shift) < 1000:  # a plain product, whose factor is a normal float
            np.multiply(part, math.ldexp(2 * mantissas[i], shift), out=part)
            return
        np.multiply(part, 2 * mantissas[i], out=part)
        np.ldexp(part, max(shift, -(2**30)), out=part)

    _each(range(len(spans)), convert, x.size)
    mantissas, exponents = [mantissa], [exponent]
    for factor, shift in zip(factors.tolist(), shifts.tolist(), strict=True):
        mantissa, more = math.frexp(mantissas[-1] * factor)
        mantissas.append(mantissa)
        exponents.append(exponents[-1] + more + shift)
    _each(range(len(spans)), scale, x.size)
    x[:, -1] = np.ldexp(mantissas[-1], max(exponents[-1], -(2**30)))


def _backward(
    mantissa: Floats, exponent: NDArray[Any], angles: NDArray[Any], x: NDArray[Any], loop: Loop
) -> tuple[Floats, NDArray[Any]]:
    """Fill some rows from the first piece to the last, given the tails before them, r = mantissa 2^exponent.

    The tails after them are returned. Pieces that `loop` can do are left to it.
    """
    n, m = angles.shape
    size = padded(min(m, PIECE))
    slopes, squares, logs = np.zeros((3, n, size))
    for start, end in _pieces(m):
        width = end - start
        piece, out = angles[:, start:end], x[:, start:end]
        if loop is not None and width == PIECE and -400 < exponent[0] < 800:
            fall = loop(piece[0], math.ldexp(mantissa[0], int(exponent[0])), out[0])
            if fall >= 0:
                mantissa, more = np.frexp(mantissa * math.exp(-fall))
                exponent = exponent + more
                continue
        used = padded(width)
        slope, square, log = (_part(scratch, used) for scratch in (slopes, squares, logs))
        slope[:, width:] = 0.0
        np.tan(piece, out=slope[:, :width], dtype=np.float64)
        turned = _turns(piece, slope)
        np.multiply(slope, slope, out=square)
        np.log1p(square, out=square)
        sums_up_to(square, -0.5, log)
        factor, shift = _split(log[:, width - 1])
        _multiply(slope[:, :width], log[:, :width], mantissa, exponent, out)
        if turned is not None:
            odd, alive = turned
            _flip(out, *odd)
            factor = factor * (1.0 - 2.0 * (np.bincount(odd[0], minlength=n) % 2)) * alive
        mantissa, more = np.frexp(mantissa * factor)
        exponent = exponent + more + shift
        if not np.isfinite(mantissa).all():
            return np.full_like(mantissa, np.nan), exponent
        if not mantissa.any() or exponent[mantissa != 0].max() < -1200:
            x[:, end:] = 0.0
            return mantissa, exponent
    return mantissa, exponent


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
