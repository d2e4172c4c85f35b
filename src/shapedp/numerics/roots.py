"""Monotone searches that return the side on which a condition was seen to hold."""

from __future__ import annotations

import math
from collections.abc import Callable


class SearchError(ArithmeticError):
    """No point of the searched range satisfies the condition."""


def _middle(low: float, high: float) -> float:
    if low > 0 and high > 4 * low:
        return math.sqrt(low) * math.sqrt(high)
    return low + (high - low) / 2


def last_true(holds: Callable[[float], bool], low: float, high: float, *, relative: float = 2.0**-50) -> float:
    """The largest argument found in [low, high] at which a condition, true below some point, holds.

    Guarantee: `holds` returned True at the returned value, and no true point exceeds it by more than the
    relative tolerance if the condition is monotone. Raises SearchError if it fails at `low`.
    """
    if not holds(low):
        raise SearchError(f"the condition fails at the lower end {low!r}")
    if holds(high):
        return high
    while high - low > relative * max(abs(low), abs(high)):
        middle = _middle(low, high)
        if not low < middle < high:
            break
        if holds(middle):
            low = middle
        else:
            high = middle
    return low


def first_true(holds: Callable[[float], bool], low: float, high: float, *, relative: float = 2.0**-50) -> float:
    """The smallest argument found in [low, high] at which a condition, true above some point, holds.

    Guarantee: `holds` returned True at the returned value. Raises SearchError if it fails at `high`.
    """
    if not holds(high):
        raise SearchError(f"the condition fails at the upper end {high!r}")
    if holds(low):
        return low
    while high - low > relative * max(abs(low), abs(high)):
        middle = _middle(low, high)
        if not low < middle < high:
            break
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


def last_true_near(holds: Callable[[float], bool], guess: float, *, relative: float = 2.0**-48) -> float:
    """A true point just below a good guess at the point where a condition turns false.

    Steps down from the guess by `relative`, doubling, until the condition holds.
    Guarantee: `holds` returned True at the returned value.
    """
    step = relative
    while step < 0.5:
        candidate = guess * (1 - step)
        if holds(candidate):
            return candidate
        step *= 2
    raise SearchError(f"the condition holds nowhere near {guess!r}")
