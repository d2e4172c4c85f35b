"""Sums x + scale * normal on a grid by a table of the quantile: what `rounding` does in twenty passes, for numba.

`scipy.special.ndtri` alone takes as long as numpy's own normals: no route through it is faster than they are.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc, ndtri

from shapedp.numerics.arrays import Floats
from shapedp.numerics.compiled import Kernel

_BITS = 6  # cells of an octave of u: 2^6
_DEGREE = 5
_OCTAVES = 24  # u from 2^-25 to 1/2; the rest of a release is decided exactly
_LOWEST = 1023 - _OCTAVES - 1
_SHIFT = 52 - _BITS
_OFFSET = _LOWEST << _BITS
_HALF = 1 << (_SHIFT - 1)
_CELL = ~((1 << _SHIFT) - 1)
_PIECE = 512  # numbers that one loop hands to the next
_TO_WHOLE = 1.5 * 2.0**52  # adding and taking it off rounds numbers below 2^51 to the nearest whole, ties to even
_FAR = 2.0**50


@cache
def table() -> Floats:
    """Coefficients c of Phi^-1(u) = c_0 + c_1 t + ..., t = u less the middle of its cell; a row of 8 per cell.

    A cell is a 64th of an octave: 2^e (1 + k/64) <= u < 2^e (1 + (k + 1)/64), e = -25 to -2, then u = 1/2.

    Guarantee: the sum errs by at most 2^-46, its roundings included, for u in [2^-25, 1/2].
    The table interpolates in Chebyshev's nodes: Phi^-1 has its nearest singularity at u = 0, at least 128
    half-widths away, so that the rest of degree 6 is below 2^-49. tests/sampling/test_normals.py bounds it for every
    cell in ball arithmetic.
    """
    octaves = np.ldexp(1.0, np.arange(-_OCTAVES - 1, 0))
    half = np.repeat(octaves / (2 << _BITS), 1 << _BITS)
    middle = (octaves[:, None] * (1 + (np.arange(1 << _BITS) + 0.5) / (1 << _BITS))).reshape(-1)
    half, middle = (part[: (_OCTAVES << _BITS) + 1] for part in (half, middle))
    nodes = np.cos((np.arange(_DEGREE + 1) + 0.5) * np.pi / (_DEGREE + 1))
    centre = _normal_quantiles(middle)
    values = _normal_quantiles(middle[:, None] + half[:, None] * nodes) - centre[:, None]
    powers = np.linalg.inv(np.vander(nodes, increasing=True))
    rows = np.zeros((len(middle), 8))
    rows[:, : _DEGREE + 1] = values @ powers.T / half[:, None] ** np.arange(_DEGREE + 1)
    rows[:, 0] += centre
    rows.setflags(write=False)
    return rows


def _normal_quantiles(u: Floats) -> Floats:
    """Phi^-1(u) to 2^-49: ndtri, and a step of Newton's method."""
    x = ndtri(u)
    density = np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    return np.asarray(x - (0.5 * erfc(-x * math.sqrt(0.5)) - u) / density)


def _add_normals(
    words: NDArray[np.int64],
    x: NDArray[np.floating],
    ratio: Floats,
    grid: Floats,
    rows: Floats,
    out: NDArray[np.floating],
    edge: float,
    least: float,
) -> bool:
    """Fill out with grid * round(x / grid + ratio * noise); whether floats decide all of it.

    False where a sum lies within 1/2 - edge of a rounding boundary, some u is below `least` or some x is 2^50 steps
    away: then another route must decide. `ratio` is scale/grid, 0 where x is to be returned; it and `grid` hold one
    number or one per column.
    """
    doubtful = 0
    cells = np.empty(_PIECE, np.int64)
    places, normals = np.empty(_PIECE), np.empty(_PIECE)
    r, g, width, grids = ratio[0], grid[0], ratio.size, int(grid.size > 1)
    for start in range(0, x.size, _PIECE):
        n = min(_PIECE, x.size - start)
        signed, numbers, sums = words[start : start + n], x[start : start + n], out[start : start + n]
        for i in range(n):
            u = abs((signed[i] + 0.5) * 2.0**-64)
            bits = np.float64(u).view(np.int64)
            cells[i] = np.maximum((bits >> _SHIFT) - _OFFSET, 0)
            places[i] = u - np.int64((bits & _CELL) | _HALF).view(np.float64)
            doubtful += u < least
        for i in range(n):
            k, t = np.uint64(cells[i]), places[i]
            normal = rows[k, 3] + t * (rows[k, 4] + t * rows[k, 5])
            normal = rows[k, 0] + t * (rows[k, 1] + t * (rows[k, 2] + t * normal))
            normals[i] = normal if signed[i] < 0 else -normal
        if width == 1 and r > 0:
            for i in range(n):
                steps = numbers[i] / g
                whole = (steps + _TO_WHOLE) - _TO_WHOLE
                rest = normals[i] * r + (steps - whole)
                step = (rest + _TO_WHOLE) - _TO_WHOLE
                doubtful += (abs(rest - step) > edge) | (abs(steps) > _FAR)
                sums[i] = (whole + step + 0.0) * g
            continue
        column = start % width
        for i in range(n):
            r, g = ratio[column], grid[column * grids]
            steps = numbers[i] / g
            whole = (steps + _TO_WHOLE) - _TO_WHOLE
            rest = normals[i] * r + (steps - whole)
            step = (rest + _TO_WHOLE) - _TO_WHOLE
            doubtful += ((abs(rest - step) > edge) | (abs(steps) > _FAR)) & (r > 0)
            sums[i] = (whole + step + 0.0) * g if r > 0 else numbers[i]
            column = column + 1 if column + 1 < width else 0
    return doubtful == 0


ADD_NORMALS = Kernel(_add_normals)
