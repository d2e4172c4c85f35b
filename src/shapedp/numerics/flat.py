"""Hyperspherical coordinates of pieces in which no element stands out, compiled: series instead of functions.

A block of 512 elements is flat where the sum of their squares is at most 2^-9 of the sum of the squares that follow:
nearly all of a long vector. Within it tails and cosines change by so little that short Taylor series give them, and
one pass does what numpy does in ten. `hyperspherical` hands over whole pieces, and takes back those that are not flat.

Every series is cut where its rest, an alternating one's first term or a geometric bound on the others, is below
2^-54 of the result. Sums within a block go by windows of 64 and then by steps of 64: 14 additions deep. Sums of blocks
carry the rounding of each addition along.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.numerics.compiled import Kernel

BLOCK = 512
FLAT = 2.0**-9
LONG = 1 << 23  # numbers of one call: numba's loading time is repaid by the fifth such vector there and back
_PAD = 64


def _to_angles(x: NDArray[Any], tail: float, out: NDArray[Any]) -> float:
    """Fill out with arctan(x_z / |what follows x_z|), given the norm of what follows all; the norm of x with it.

    -1 where a block is not flat: then `out` is to be filled by another route. Squares neither vanish nor overflow.
    """
    squares, fours, sums = np.zeros((3, BLOCK + _PAD))
    total, rest = tail * tail, 0.0
    for start in range(x.size - BLOCK, -1, -BLOCK):
        piece, angles = x[start : start + BLOCK], out[start : start + BLOCK]
        for i in range(BLOCK):
            number = np.float64(piece[i])
            squares[i] = number * number
        for i in range(BLOCK):  # windows of 4, 16 and 64 from i on
            fours[i] = (squares[i] + squares[i + 1]) + (squares[i + 2] + squares[i + 3])
        for i in range(BLOCK):
            sums[i] = (fours[i] + fours[i + 4]) + (fours[i + 8] + fours[i + 12])
        for i in range(BLOCK):
            squares[i] = (sums[i] + sums[i + 16]) + (sums[i + 32] + sums[i + 48])
        for k in range(BLOCK - _PAD, -1, -_PAD):
            for j in range(_PAD):
                sums[k + j] = squares[k + j] + sums[k + j + _PAD]
        if not sums[0] <= FLAT * total:
            return -1.0
        inverse = 1.0 / total
        root = math.sqrt(inverse)
        for i in range(BLOCK):
            d = sums[i + 1] * inverse  # the tail is sqrt(total (1 + d))
            t = np.float64(piece[i]) * root
            t += t * (d * (-1 / 2 + d * (3 / 8 + d * (-5 / 16 + d * (35 / 128 - d * (63 / 256))))))
            z = t * t
            angles[i] = t + t * (z * (-1 / 3 + z * (1 / 5 + z * (-1 / 7 + z * (1 / 9 - z * (1 / 11))))))
        more = sums[0] + rest
        higher = total + more
        rest = more - (higher - total)
        total = higher
    return math.sqrt(total)


def _from_angles(angles: NDArray[Any], radius: float, out: NDArray[Any]) -> float:
    """Fill out with radius cos(a_1) ... cos(a_(z-1)) sin(a_z); minus the log of the product of all cosines.

    -1 where a block is not flat: then `out` is to be filled by another route.
    """
    logs, fours, sums = np.zeros((3, BLOCK + _PAD))
    total, rest = 0.0, 0.0
    for start in range(0, angles.size, BLOCK):
        piece, x = angles[start : start + BLOCK], out[start : start + BLOCK]
        for i in range(BLOCK):
            a = np.float64(piece[i])
            z = a * a
            log = 1 / 12 + z * (1 / 45 + z * (17 / 2520 + z * (31 / 14175 + z * (691 / 935550))))
            logs[_PAD + i] = z * (1 / 2 + z * log)  # -log cos
        for i in range(_PAD, BLOCK + _PAD):  # windows of 4, 16 and 64 up to i
            fours[i] = (logs[i] + logs[i - 1]) + (logs[i - 2] + logs[i - 3])
        for i in range(_PAD, BLOCK + _PAD):
            sums[i] = (fours[i] + fours[i - 4]) + (fours[i - 8] + fours[i - 12])
        for i in range(_PAD, BLOCK + _PAD):
            logs[i] = (sums[i] + sums[i - 16]) + (sums[i - 32] + sums[i - 48])
        for k in range(_PAD, BLOCK + _PAD, _PAD):
            for j in range(_PAD):
                sums[k + j] = logs[k + j] + sums[k + j - _PAD]
        if not sums[BLOCK + _PAD - 1] <= FLAT / 2:
            return -1.0
        left = radius * math.exp(-total) * (1.0 - rest)
        for i in range(BLOCK):
            d, a = sums[_PAD - 1 + i], np.float64(piece[i])
            z = a * a
            fall = d * (1.0 - d * (1 / 2 - d * (1 / 6 - d * (1 / 24 - d * (1 / 120)))))  # 1 - e^-d
            bend = z * (1 / 6 - z * (1 / 120 - z * (1 / 5040 - z * (1 / 362880))))  # 1 - sin(a)/a
            flat = left * a
            x[i] = flat - flat * (fall + bend - fall * bend)
        more = sums[BLOCK + _PAD - 1] + rest
        higher = total + more
        rest = more - (higher - total)
        total = higher
    return total


TO_ANGLES, FROM_ANGLES = Kernel(_to_angles, LONG), Kernel(_from_angles, LONG)
