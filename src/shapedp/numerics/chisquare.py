"""Hockey sticks of an affine function of a chi-square: sums of positive terms, bounded from both sides.

With m = k/2 and w_j(x) = e^-x x^j/Gamma(j + 1) the tails of a chi-square with k degrees are

    SF_k(2x) = w_(m-1) + w_(m-2) + ... (ending in w_0, or in w_(1/2) + erfc(sqrt x)),   CDF_k(2x) = w_m + w_(m+1) + ...

so that a difference of two tails at arguments in the ratio 1 - t is a sum of w_j times 1 - (1 - t)^i > 0: what
cancels has been cancelled on paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import special

from shapedp.numerics.arrays import Floats
from shapedp.numerics.gammatail import deviance
from shapedp.numerics.outward import UNIT

_TINY = 1e-315
_DEPTH = 50.0  # terms below e^-50 of the largest go into the remainder
_CELLS = 1 << 21


def upper_excess(k: int, t: float, epsilon: Floats) -> tuple[Floats, Floats]:
    """Bounds on SF_k(c) - e^eps SF_k(c/(1-t)), c = (2 eps - k log(1-t)) (1-t)/t, at each eps >= 0.

    Guarantee: lower <= truth <= upper, rounding and the dropped terms included (0 < t < 1). The value falls as c
    grows, so that rounding of c is covered by evaluating at both ends of it.
    """
    m, log_kept = k / 2, math.log1p(-t)
    x = (epsilon - m * log_kept) * ((1 - t) / t)
    slack = 8 * UNIT
    lower, upper = _downward(np.concatenate([x * (1 + slack), x * (1 - slack)]), m, log_kept)
    return lower[: x.size], upper[x.size :]


def lower_excess(k: int, t: float, epsilon: Floats) -> tuple[Floats, Floats]:
    """Bounds on CDF_k(c/(1-t)) - e^eps CDF_k(c), c = (-2 eps - k log(1-t)) (1-t)/t, at each eps >= 0; 0 if c <= 0.

    Guarantee: as `upper_excess`; the value grows with c.
    """
    m, log_kept = k / 2, math.log1p(-t)
    x = (-epsilon - m * log_kept) / t
    error = 8 * UNIT * (epsilon - m * log_kept) / t
    lower, upper = _upward(np.concatenate([x - error, x + error]), m, log_kept)
    return lower[: x.size], upper[x.size :]


def _log_weight(x: Floats, j: Floats) -> tuple[Floats, Floats]:
    """log w_j(x) and a bound on its error, for j >= 0.

    log w_j = -j (e^z - 1 - z) - log(j! e^j/j^j), z = log(x/j) (Loader 2000, Fast and accurate binomial probabilities).
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        gap = (x - j) / j
        z = np.where(np.abs(gap) < 0.5, np.log1p(gap), np.log(x / j))
        depth = j * deviance(z)
        value = np.where(j > 0, -depth - log_stirling(np.maximum(j, 0.25)), -x)
        error = np.where(j > 0, 64 + 8 * depth + 8 * np.abs((x - j) * z), 8 + 4 * x) * UNIT
    return value, error


def log_stirling(j: Floats) -> Floats:
    """log(Gamma(j + 1) e^j/j^j), j >= 1/4, to 2^-48: Stirling's series from 16 on, below it by Gamma itself."""
    large, small = np.maximum(j, 16.0), np.minimum(j, 16.0)
    s = 1 / np.square(large)
    series = 1 / 12 - s * (1 / 360 - s * (1 / 1260 - s * (1 / 1680 - s * (1 / 1188 - s * (691 / 360360)))))
    far = 0.5 * np.log(2 * math.pi * large) + series / large
    return np.where(j >= 16, far, np.log(special.gamma(small) * small * np.exp(small) / small**small))


def log_fair_binomial(n: int) -> Floats:
    """log(C(n, j) 2^-n) for j = 0 to n, without the cancellation of large log-Gammas (n <= 2^14: to 2^-39).

    Reference: Loader 2000, Fast and accurate computation of binomial probabilities.
    """
    j = np.arange(n + 1, dtype=np.float64)
    inner = np.maximum(j, 0.25)
    stirling = np.where(j > 0, log_stirling(inner), 0.0)
    lean = (2 * j - n) / n if n else np.zeros(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        up = np.where(j > 0, j * np.log1p(lean), 0.0)
    return np.asarray(stirling[-1] - stirling - stirling[::-1] - up - up[::-1])


def groups(widths: NDArray[np.int64], cells: int) -> Iterator[NDArray[np.int64]]:
    """Indices in order of width, in groups whose tables have so many cells at most."""
    order, start = np.argsort(widths, kind="stable"), 0
    while start < order.size:
        stop = start + 1
        while stop < order.size and (stop - start + 1) * int(widths[order[stop]]) <= cells:
            stop += 1
        yield order[start:stop]
        start = stop


def _about(
    x: Floats, j: Floats, i: Floats, log_kept: float, *, grow: bool, n: int, limit: Floats
) -> tuple[Floats, Floats, Floats]:
    """The terms w_j (1 - (1-t)^i) about an anchor: i rises to `limit` terms, and j with it if `grow`, and i falls to 1.

    Returns the sum, a bound on its relative rounding, and a bound on what lies beyond n terms to either side.
    """
    log_weight, error = _log_weight(x, j)
    weight = np.exp(log_weight)
    out, beyond = _sweep(weight, j, x, i, log_kept, grow=grow, step=1, n=n, limit=limit)
    back, before = _sweep(weight, j, x, i, log_kept, grow=not grow, step=-1, n=n, limit=i - 1)
    rounding = (4.0 * n + 256) * UNIT
    return weight * -np.expm1(i * log_kept) + out + back, error + rounding + rounding, beyond + before


def _sweep(
    start: Floats, first: Floats, x: Floats, i: Floats, log_kept: float, *, grow: bool, step: int, n: int, limit: Floats
) -> tuple[Floats, Floats]:
    """Terms w_j (1 - (1-t)^i) beyond an anchor, relative to the anchor's weight.

    `grow` says whether j rises along the sweep, `step` whether i does (+1, -1); `limit` is the number of terms that
    exist. Returns the sum, and a bound on what lies beyond n terms.
    """
    ahead = np.arange(1, n + 1, dtype=np.float64)
    ratio = x[:, None] / (first[:, None] + ahead) if grow else np.maximum(first[:, None] - ahead + 1, 0.0) / x[:, None]
    weight = np.cumprod(np.where(ahead <= limit[:, None], ratio, 0.0), axis=1)
    factor = -np.expm1(np.minimum((i[:, None] + step * ahead) * log_kept, 0.0))  # 0 beyond the limit
    total = (weight * factor).sum(axis=1)
    last = weight[:, -1]
    following = x / (first + n + 1) if grow else np.maximum(first - n, 0.0) / x
    with np.errstate(divide="ignore", invalid="ignore"):
        beyond = np.where(following < 1, last * following / (1 - following), np.inf)
    beyond = np.where((limit <= n) | (last == 0), 0.0, beyond)
    return start * total, start * beyond


def _width(x: float, j: float, limit: float) -> int:
    """How many terms from j on (towards smaller weights) matter."""
    rate = abs(math.log(max(x, 1e-300) / max(j, 0.5)))
    spread = max(x, j, 1.0)
    near = _DEPTH / rate if rate > 0 else math.inf
    far = math.sqrt(2 * _DEPTH * spread) + _DEPTH
    return int(max(min(near, far, limit), 1.0)) + 1


def _downward(x: Floats, m: float, log_kept: float) -> tuple[Floats, Floats]:
    """Bounds on the sum over i >= 1 of w_(m-i)(x) (1 - (1-t)^i), erfc at the end of it where k is odd."""
    lower, upper = np.empty_like(x), np.empty_like(x)
    bottom = math.floor(m)  # i runs to here: j = m - i is 0 or 1/2
    anchor = np.clip(np.rint(m - x), 1, max(bottom, 1))
    widths = np.array([_width(a, m - b, bottom) for a, b in zip(x.tolist(), anchor.tolist(), strict=True)], np.int64)
    for at in groups(widths + 1, _CELLS):
        xs, i, n = x[at], anchor[at], int(widths[at].max())
        if bottom:
            value, relative, rest = _about(xs, m - i, i, log_kept, grow=False, n=n, limit=bottom - i)
        else:
            n, value, relative, rest = 0, np.zeros_like(xs), np.zeros_like(xs), np.zeros_like(xs)
        if m != bottom:  # erfc(sqrt x) - (1-t)^m e^(x t/(1-t)) erfc(sqrt(x/(1-t))), inside the remainder if that is cut
            far = np.sqrt(xs * math.exp(-log_kept))
            near_part = np.exp(-xs) * special.erfcx(np.sqrt(xs))
            far_part = np.exp(-xs + m * log_kept) * special.erfcx(far)
            reached = n >= bottom - i
            value = value + np.where(reached, near_part - far_part, 0.0)
            rest = rest + np.where(reached, (near_part + far_part) * (64 + 4 * xs) * UNIT, 0.0)
        lower[at] = np.maximum(value * (1 - relative) - rest - _TINY, 0.0)
        upper[at] = np.minimum(value * (1 + 2 * relative) + rest + _TINY, 1.0)
    return lower, upper


def _upward(x: Floats, m: float, log_kept: float) -> tuple[Floats, Floats]:
    """Bounds on the sum over i >= 1 of w_(m+i)(x) (1 - (1-t)^i)."""
    lower, upper = np.zeros_like(x), np.zeros_like(x)
    alive = np.flatnonzero(x > 0)
    if not alive.size:
        return lower, upper
    x = x[alive]
    anchor = np.maximum(np.rint(x - m), 1.0)
    widths = np.array([_width(a, m + b, math.inf) for a, b in zip(x.tolist(), anchor.tolist(), strict=True)], np.int64)
    for at in groups(widths + 1, _CELLS):
        xs, i, n = x[at], anchor[at], int(widths[at].max())
        limit = np.full_like(xs, np.inf)
        value, relative, rest = _about(xs, m + i, i, log_kept, grow=True, n=n, limit=limit)
        lower[alive[at]] = np.maximum(value * (1 - relative) - rest - _TINY, 0.0)
        upper[alive[at]] = np.minimum(value * (1 + 2 * relative) + rest + _TINY, 1.0)
    return lower, upper
