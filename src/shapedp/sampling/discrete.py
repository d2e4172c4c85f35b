"""Exact discrete Laplace noise in integer arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.numerics.checks import laid_out, numeric

from .sources import Source, Words

Integers = NDArray[np.int64]

_LANES = 1 << 15
_MAX_STEPS = 1 << 50
_TOP = np.uint64(2**64 - 1)


def discrete_laplace(
    steps: int | NDArray[Any], shape: int | Sequence[int], source: Source, *, parts: int = 1
) -> Integers:
    """Return draws of P(k) proportional to exp(-|k| parts / steps), k any integer.

    `steps` is a positive integer up to 2^50, or an array of them that broadcasts to `shape`; so is `parts`, one number.

    Guarantee: exact given uniform bits: only integers are computed, no float and no truncation
    (64-bit integers suffice unless an event of probability below exp(-8000) happens, which raises).
    Reference: Canonne, Kamath, Steinke (2020), Algorithms 1 and 2.

    Returns: integers in the shape asked for.

    Example:
        >>> from shapedp.sampling import SecureSource
        >>> discrete_laplace(4, (2, 3), SecureSource()).shape
        (2, 3)
    """
    size, cut = _shape(shape), index(parts)
    if not 1 <= cut <= _MAX_STEPS:
        raise ValueError("parts must lie in [1, 2^50]")
    scale = _steps(steps)
    try:
        lanes = np.broadcast_to(scale, size)
    except ValueError:
        raise ValueError(f"steps must broadcast to shape {size}, got shape {scale.shape}") from None
    out = np.empty(lanes.size, dtype=np.int64)
    for start in range(0, out.size, _LANES):
        some = slice(start, start + _LANES)
        out[some] = _draw(lanes.flat[some], source, parts=cut)
    return out.reshape(size)


def geometric(steps: int, n: int, source: Source) -> Integers:
    """Return n draws of P(y) proportional to exp(-y / steps), y = 0, 1, 2, ...

    Guarantee: as `discrete_laplace`, whose magnitude this is before the sign.

    Parameters: `steps` as in `discrete_laplace`, the number of draws, and where the bits come from.
    Returns: n integers.

    Example:
        >>> from shapedp.sampling import SecureSource
        >>> bool((geometric(4, 100, SecureSource()) >= 0).all())
        True
    """
    return _draw(np.broadcast_to(_steps(np.array([index(steps)])), laid_out(index(n))), source, signed=False)


def exponential_coins(numerator: NDArray[Any], denominator: int, source: Source) -> NDArray[np.bool_]:
    """Return one Bernoulli(exp(-numerator / denominator)) per entry of integers >= 0.

    Guarantee: exact given uniform bits: a coin of the fraction, and as many of exp(-1) as there are wholes.
    Reference: Canonne, Kamath, Steinke (2020), Algorithm 1.

    Parameters: the numerators, their one denominator (at most 2^50), and where the bits come from.
    Returns: one boolean per numerator.

    Example:
        >>> from shapedp.sampling import SecureSource
        >>> exponential_coins(np.array([0, 0]), 3, SecureSource())  # probability e^0
        array([ True,  True])
    """
    numerator = numeric("numerator", numerator)
    if numerator.ndim != 1 or numerator.dtype.kind not in "iu" or (numerator < 0).any():
        raise ValueError("numerator must be a 1-d array of integers >= 0")
    if not 1 <= index(denominator) <= _MAX_STEPS:
        raise ValueError("denominator must lie in [1, 2^50]")
    whole, rest = np.divmod(numerator.astype(np.uint64), np.uint64(denominator))
    heads = _accept_exponential(rest, np.broadcast_to(np.uint64(denominator), rest.shape), source)
    more = np.flatnonzero(heads & (whole > 0))
    heads[more] = _geometric(more.size, source) >= whole[more]
    return heads


def _draw(steps: Words, source: Source, *, signed: bool = True, parts: int = 1) -> Integers:
    """Return one draw per lane, retrying the lanes that Algorithm 2 rejects; without a sign, the magnitudes."""
    out = np.empty(steps.size, dtype=np.int64)
    todo = np.arange(steps.size)
    while todo.size:
        t = steps[todo]
        remainder = _below(t, source)
        kept = np.flatnonzero(_accept_exponential(remainder, t, source))
        lanes, t, remainder = todo[kept], t[kept], remainder[kept]
        value = ((remainder + t * _geometric(t.size, source)) // np.uint64(parts)).view(np.int64)
        if signed:
            negative = (source.words(t.size) & np.uint64(1)).astype(np.bool_)
            good = (value != 0) | ~negative
            kept, lanes, value = kept[good], lanes[good], np.where(negative, -value, value)[good]
        out[lanes] = value
        todo = np.delete(todo, kept)
    return out


def _below(bound: Words, source: Source) -> Words:
    """Return one uniform integer of [0, bound) per lane: a word modulo bound, short of the last multiple."""
    words = source.words(bound.size)
    value = words % bound
    again = np.flatnonzero(words - value > _TOP - bound + np.uint64(1))
    while again.size:
        words = source.words(again.size)
        part = words % bound[again]
        value[again] = part
        again = again[words - part > _TOP - bound[again] + np.uint64(1)]
    return value


def _accept_exponential(numerator: Words, denominator: Words, source: Source) -> NDArray[np.bool_]:
    """Return one Bernoulli(exp(-numerator/denominator)) per lane, the ratio in [0, 1] (Algorithm 1)."""
    accepted = np.empty(numerator.size, dtype=np.bool_)
    active = np.arange(numerator.size)
    k = 1
    while active.size:
        if k > 4096:
            raise OverflowError("source repeated an event of probability below exp(-8000): it is not random")
        hit = _below(denominator[active] * np.uint64(k), source) < numerator[active]
        accepted[active[~hit]] = k % 2 == 1
        active = active[hit]
        k += 1
    return accepted


def _geometric(n: int, source: Source) -> Words:
    """Return n counts of successes of Bernoulli(exp(-1)) before the first failure."""
    count = np.zeros(n, dtype=np.uint64)
    active = np.arange(n)
    while active.size:
        one = np.ones(active.size, dtype=np.uint64)
        active = active[_accept_exponential(one, one, source)]
        count[active] += np.uint64(1)
        if active.size and count[active[0]] > 8000:
            raise OverflowError("source repeated an event of probability below exp(-8000): it is not random")
    return count


def _shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    try:
        sizes = tuple(map(index, shape)) if isinstance(shape, Sequence) else (index(shape),)
    except TypeError:
        raise TypeError(f"shape must be an integer or a sequence of integers, got {shape!r}") from None
    if any(size < 0 for size in sizes):
        raise ValueError(f"shape must hold integers >= 0, got {shape!r}")
    laid_out(math.prod(sizes))
    return sizes


def _steps(steps: int | NDArray[Any]) -> Words:
    array = numeric("steps", steps)
    if array.dtype.kind not in "iu":
        raise TypeError(f"steps must be an integer or an array of integers, got {array.dtype}")
    if array.size and not (array.min() >= 1 and array.max() <= _MAX_STEPS):
        raise ValueError(f"steps must lie in [1, 2^50], got values in [{array.min()}, {array.max()}]")
    return array.astype(np.uint64)
