"""How much further than the clip rounding lets one record move the computed sum: a bound inside the certificate.

A record's gradient is clipped with its norm rounded up, and added in float64. Let n bound the records of a draw, d the
entries of the query, u = 2^-53. Then, as shares of the clip:

- the record's own row lies within the clip, up to `OWN` (a clip may round its bounds to float32);
- the norm of another record is known to within max(2 (d + 16) u, 2^-24) of itself, so that its row may differ by that
  much with and without the record: n of them;
- the sum is within (4096 + 8 n) u of the rows' own reach, at most n times `CANCEL`, for each of the two neighbours,
  whatever the order of the additions;
- rows that are added on the matrix units of a GPU are what was measured there (see `fused`), times a weight rounded
  down; their sum is within 2^-35 of the rows' lengths for each of the two neighbours;
- on a GPU sum and noise are rounded to a grid of at most 2^-23 of the noise.

These are proved. `OTHERS` is not: it is the room left for the gradients of the other records, which torch computes
with and without the record (a mean over the batch divides by another number, a product may be scheduled otherwise).
Their clipped rows are assumed to differ by at most 2^-22 of the clip on average. Where records stand at places of a
batch of fixed shape (`independent`), no such room is needed: the same operations run on the same values.

n is the expected number plus what a Poisson sample exceeds with probability below 2^-128 (Chernoff's bound).
"""

from __future__ import annotations

import math

from shapedp.numerics.outward import UNIT
from shapedp.torch.single import CANCEL

OWN = 2.0**-22
NORMS = 2.0**-24
OTHERS = 2.0**-22
GRID = 2.0**-23
PAIRS = 2.0**-34
_RARE = 128 * math.log(2)


def most_records(expected: float, shares: int = 1) -> int:
    """A number of records that a Poisson sample, with or without one more record, exceeds with probability < 2^-128.

    With several `shares` of one sample each, that is the probability that any of them exceeds it.

    Reference: Chernoff's bound P(X >= n) <= exp(-(n log(n/m) - n + m)) for sums of independent indicators of mean m.
    """
    mean, rare = expected + 1, _RARE + math.log(shares)
    low, high = 1.0, 2.0
    while _exponent(mean, mean * high) < rare:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if _exponent(mean, mean * middle) >= rare else (middle, high)
    return math.ceil(mean * high)


def _exponent(mean: float, n: float) -> float:
    return n * math.log(n / mean) - n + mean


def margin(expected: float, dim: int, scale: float, steepness: float = 1.0, others: float = OTHERS) -> float:
    """What rounding may add to the distance that one record moves the sum, relative to the clip; see the module.

    `expected` is the expected number of records of a sample, `dim` the number of entries of the query, `scale` that
    of the noise. `steepness` says how much faster than a clipped row a clip's query changes with a norm, `others` by
    what share the rows of the other records may change.
    """
    n = most_records(expected)
    norms = max(2 * (dim + 16) * UNIT, NORMS)
    sums = 2 * (4096 + 8 * n) * UNIT * CANCEL
    return OWN + n * (steepness * (norms + others) + sums + PAIRS) + scale * GRID * math.sqrt(dim)
