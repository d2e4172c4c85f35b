"""Modes of a tensor: scales and a rotation kept to 24 bits, so that turning a vector is exact in fixed point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from shapedp.boundary.documents import decode, described, encode
from shapedp.numerics.arrays import Floats, frozen
from shapedp.numerics.checks import count, finite, laid_out, vector
from shapedp.numerics.modes import multiply
from shapedp.numerics.outward import ROUNDINGS_8, ROUNDINGS_256

_BITS = 24
_REACH = 2.0**52


@dataclass(frozen=True, eq=False)
class Rotation:
    """R = whole/2^24, a matrix of integers over 2^24 that is orthogonal up to that rounding.

    Guarantee: R is exactly the matrix used by `turn`, and `norm` bounds its largest singular value.
    """

    whole: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "whole", frozen(self.whole))
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
        return frozen(self.whole * 2.0**-_BITS)

    @cached_property
    def inverse(self) -> Floats:
        """R^-1, nearly R^T."""
        return frozen(np.linalg.inv(self.matrix))

    @cached_property
    def norm(self) -> float:
        """A bound on |R|_2: sqrt of |R R^T - I|_F + 1, and its rounding."""
        excess = self.matrix @ self.matrix.T - np.eye(len(self.matrix))
        return math.sqrt(1 + float(np.linalg.norm(excess)) + len(self.matrix) ** 2 * ROUNDINGS_8)

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


def _within_reach(top: float) -> None:
    if not top <= _REACH:
        raise ValueError("x must stay below 2^52 steps of the mechanism in every direction; clip it first")


@dataclass(frozen=True, eq=False)
class Mode:
    """One factor of the covariance: R^-1 diag(scales^2) R^-T, R the rotation, or the identity where it is None."""

    scales: Floats
    rotation: Rotation | None = None

    @classmethod
    def of(cls, factor: Any) -> Mode:
        """From a matrix U (the covariance is U U^T), a diagonal, a size (the identity) or a mode."""
        if isinstance(factor, Mode):
            return factor
        if np.ndim(factor) == 0:
            return cls(frozen(np.ones(laid_out(count("a factor's size", factor)))))
        array = finite("factors", factor)
        if array.ndim == 1:
            return cls(frozen(vector("factors", array, least=0.0)))
        if array.ndim != 2 or not array.size:
            raise ValueError(f"a factor must be a size, a diagonal or a matrix, got shape {array.shape}")
        if array.shape[0] == array.shape[1] and not (array - np.diag(np.diagonal(array))).any():
            return cls(frozen(np.abs(np.diagonal(array))))
        axes, values, _ = np.linalg.svd(array, full_matrices=array.shape[0] > array.shape[1])
        scales = np.zeros(len(array))
        scales[: values.size] = np.where(values > values[0] * ROUNDINGS_256, values, 0.0)
        return cls(frozen(scales), Rotation.near(axes.T))

    @cached_property
    def whitener(self) -> Floats:
        """diag(1/scales) R."""
        if self.singular:
            raise ValueError("the covariance is singular: some directions carry no noise, nothing can whiten them")
        return frozen((np.eye(self.size) if self.rotation is None else self.rotation.matrix) / self.scales[:, None])

    @cached_property
    def root(self) -> Floats:
        """R^-1 diag(scales): a square root of the covariance."""
        return np.diag(self.scales) if self.rotation is None else self.rotation.inverse * self.scales

    @property
    def size(self) -> int:
        """The number of entries along the mode."""
        return self.scales.size

    @property
    def singular(self) -> bool:
        """Whether some direction carries no noise."""
        return bool(self.scales.min() == 0)

    def variances(self) -> Floats:
        """The diagonal of the covariance."""
        if self.rotation is None:
            return np.square(self.scales)
        return np.asarray(np.square(self.rotation.inverse) @ np.square(self.scales))

    def deviations(self) -> Floats:
        """The roots of `variances`."""
        return self.scales if self.rotation is None else np.sqrt(self.variances())

    def exponents(self) -> tuple[float, float]:
        """log2 of the smallest and of the largest scale above zero."""
        noisy = self.scales[self.scales > 0]
        if not noisy.size:
            raise ValueError("a factor must carry some noise: it is zero")
        return math.log2(float(noisy.min())), math.log2(float(noisy.max()))

    def to_json(self) -> dict[str, Any]:
        """The fields `scales` and `rotation`, its integers row by row."""
        rotation = None if self.rotation is None else encode(self.rotation.whole.reshape(-1))
        return {"scales": encode(self.scales), "rotation": rotation}

    @classmethod
    @described
    def from_json(cls, data: dict[str, Any]) -> Mode:
        """What `to_json` wrote."""
        scales = vector("scales", decode("scales", data["scales"]), least=0.0)
        if data.get("rotation") is None:
            return cls(frozen(scales))
        whole, size = decode("rotation", data["rotation"]), scales.size
        if whole.size != size * size:
            raise ValueError(f"rotation must have {size} x {size} entries, got {whole.size}")
        return cls(frozen(scales), Rotation(frozen(whole.reshape(size, size))))
