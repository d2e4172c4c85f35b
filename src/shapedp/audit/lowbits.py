"""The bit-pattern audit: what the low-order bits of a float tell about the input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shapedp.audit.empirical import AuditResult
from shapedp.audit.empirical import mechanism as audit_mechanism
from shapedp.audit.subjects import released
from shapedp.boundary.values import boolean
from shapedp.mechanisms import Additive
from shapedp.mechanisms.mixing import Sketching
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import entries

Codes = NDArray[np.int64]
_PLACES = 128
_CODES = _PLACES * 8 * 8


@dataclass(frozen=True, eq=False)
class BitTable:
    """The log ratio of counts per bit pattern, summed over coordinates: a score like any other."""

    inputs: tuple[Floats, Floats]
    ratios: Floats = None  # type: ignore[assignment]

    def fit(self, outputs: Floats, labels: Floats) -> BitTable:
        """Count patterns of outputs at the first input (label 1) and at the second (label 0)."""
        codes = self._codes(outputs)
        table = []
        for label in (1, 0):
            counts = np.bincount(codes[labels == label].ravel(), minlength=_CODES).astype(np.float64)
            table.append(np.log(counts + 0.5) - np.log(counts.sum() + 0.5 * _CODES))
        object.__setattr__(self, "ratios", table[0] - table[1])
        return self

    def decision_function(self, outputs: Floats) -> Floats:
        """The summed log ratio of each output."""
        return np.asarray(self.ratios[self._codes(outputs)].sum(axis=1))

    def _codes(self, outputs: Floats) -> Codes:
        """Where the last set bit stands, absolutely and below the leading one; whether y - x gives y back."""
        y = np.asarray(outputs, dtype=np.float64)
        place, depth = last_bit(y)
        exact = np.zeros(y.shape, dtype=np.int64)
        for bit, x in enumerate(self.inputs):
            with np.errstate(invalid="ignore"):
                noise = y - x
                exact |= ((x + noise == y) & (last_bit(noise)[1] < depth)).astype(np.int64) << bit
        fine = np.clip(place + 80, 0, _PLACES - 1)
        return (fine * 8 + np.minimum(depth // 8, 7)) * 8 + exact * 2 + np.signbit(y)


def last_bit(y: Floats) -> tuple[Codes, Codes]:
    """The power of two of the last set bit, and how many bits below the leading one it stands (0 for y = 0)."""
    mantissa, exponent = np.frexp(np.nan_to_num(y, nan=0.0, posinf=0.0, neginf=0.0))
    integer = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = np.maximum(integer & -integer, 1)
    trailing = np.where(integer > 0, np.log2(lowest.astype(np.float64)), 52.0).astype(np.int64)
    return exponent - 53 + trailing, 52 - trailing


def bits(
    mechanism: Any,
    *,
    neighbours: tuple[Any, Any],
    epsilon: float | None = None,
    delta: float | None = None,
    samples: int = 400_000,
    confidence: float = 0.99,
    vectorized: bool = False,
    seed: int | None = None,
) -> AuditResult:
    """Audit a claim by the bit patterns of the outputs alone, whatever their size.

    A float-naive sampler reaches other floats from x than from x': the place of the last set bit tells them apart.
    Every bound is one on the claim itself, as in `audit.mechanism`, with the score learned from bit patterns.

    Parameters
    ----------
    mechanism, neighbours, epsilon, delta, samples, confidence, vectorized, seed : as in `audit.mechanism`.

    Returns
    -------
    An `AuditResult`.

    Guarantee: as `AuditResult`. One-dimensional outputs show most; 0 and 1 are neighbours that tell much.
    Reference: Mironov 2012, on the least significant bits of Laplace noise.

    Examples
    --------
    >>> import shapedp as sdp
    >>> m = sdp.calibrate("laplace", sdp.L1(1.0, dim=1), epsilon=1.0, delta=0.0)
    >>> sdp.audit.bits(m, neighbours=(0.0, 1.0), samples=4000, seed=1).violation
    False
    """
    vectorized = boolean("vectorized", vectorized)
    if isinstance(mechanism, Sketching):
        raise TypeError("bits takes an additive mechanism or a function f(x, rng), such as one that releases a sketch")
    if len(pair := entries("neighbours", neighbours)) != 2:
        raise TypeError("neighbours must be a pair of inputs")
    inputs = tuple(np.ravel(np.asarray(side, dtype=np.float64)) for side in pair)
    table = BitTable((inputs[0], inputs[1]))
    if isinstance(mechanism, Additive):
        mechanism, vectorized = Released(mechanism, mechanism.epsilon, mechanism.delta), True
    return audit_mechanism(
        mechanism, epsilon=epsilon, delta=delta, neighbours=(pair[0], pair[1]), samples=samples, confidence=confidence,
        classifier=table, vectorized=vectorized, seed=seed,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Released:
    """A mechanism of the library as a function of its outputs alone, and the claim it carries."""

    mechanism: Additive
    epsilon: float
    delta: float
    secure: ClassVar[bool] = True  # takes rng=None

    def __call__(self, x: Any, rng: np.random.Generator | None, n: int) -> Floats:
        return released(self.mechanism, x, rng, n)
