"""Rotations kept to 24 bits, so that turning a vector in fixed-point arithmetic is exact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.boundary.documents import decode, described, encode
from shapedp.numerics.arrays import frozen
from shapedp.numerics.modes import multiply

Floats = NDArray[np.float64]
_BITS = 24
_REACH = 2.0**52


@dataclass(frozen=True, eq=False)
class Rotation:
    """R = whole/2^24, a matrix of integers over 2^24 that is orthogonal up to that rounding.

    Guarantee: R is exactly the matrix used by `turn`, and `norm` bounds its largest singular value.
    """

    whole: Floats

    def __post_init__(self) -> None:
        matrix = self.matrix
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or (self.whole != np.rint(self.whole)).any():
            raise ValueError("a rotation must be a square matrix of integers over 2^24")
        if not np.abs(matrix @ matrix.T - np.eye(len(matrix))).max() < 2.0**-12:
            raise ValueError("a rotation must be orthogonal up to rounding")

    @classmethod
    def near(cls, matrix: Floats) -> Rotation:
        """An orthogonal matrix rounded to 24 bits."""
        return cls(frozen(np.rint(matrix * 2.0**_BITS) + 0.0))

    @cached_property
    def matrix(self) -> Floats:
        """R."""
        return self.whole * 2.0**-_BITS

    @cached_property
    def inverse(self) -> Floats:
        """R^-1, nearly R^T."""
        return np.asarray(np.linalg.inv(self.matrix))

    @cached_property
    def norm(self) -> float:
        """A bound on |R|_2: sqrt of |R R^T - I|_F + 1, and its rounding."""
        excess = self.matrix @ self.matrix.T - np.eye(len(self.matrix))
        return math.sqrt(1 + float(np.linalg.norm(excess)) + len(self.matrix) ** 2 * 2.0**-50)

    @cached_property
    def log_determinant(self) -> float:
        """log |det R|, nearly 0."""
        return float(np.linalg.slogdet(self.matrix)[1])

    @cached_property
    def _bits(self) -> int:
        """Bits of an entry for which every sum of products stays below 2^53."""
        return 53 - max(math.ceil(math.log2(float(np.abs(self.whole).sum(axis=1).max()))), _BITS)

    @property
    def pieces(self) -> int:
        """How many products of `_bits` bits cover entries of up to 2^52 steps."""
        return math.ceil(53 / self._bits)

    def turn(self, steps: Floats) -> Floats:
        """R times the (n, b) matrices of a panel of whole numbers, as whole numbers.

        Guarantee: each entry errs by at most half a step per piece. The input is cut into pieces of so few bits
        that the products with `whole` and their sums are integers below 2^53, hence exact in floats in any
        order; only their scaling back to steps rounds.
        """
        total = np.zeros(steps.shape)
        rest = np.array(steps)
        top = max(float(rest.max()), -float(rest.min()))
        _within_reach(top)
        unit = 2.0 ** max(math.frexp(top)[1] - self._bits, 0)
        while True:
            piece = np.rint(rest / unit)
            product = multiply(self.whole, piece)
            product = np.rint(product * (unit * 2.0**-_BITS))
            total += product
            _within_reach(max(float(total.max()), -float(total.min())))
            if unit == 1:
                return total
            rest -= piece * unit
            unit = max(unit * 2.0 ** -(self._bits + 1), 1.0)

    def to_json(self) -> Any:
        """The integers, row by row."""
        return encode(self.whole.reshape(-1))

    @classmethod
    @described
    def from_json(cls, data: Any, size: int) -> Rotation:
        """What `to_json` wrote."""
        whole = decode("rotation", data)
        if whole.size != size * size:
            raise ValueError(f"rotation must have {size} x {size} entries, got {whole.size}")
        return cls(frozen(whole.reshape(size, size)))


def _within_reach(top: float) -> None:
    if not top <= _REACH:
        raise ValueError("x must stay below 2^52 steps of the mechanism in every direction; clip it first")
