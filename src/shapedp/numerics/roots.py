"""Monotone searches that return the side on which a condition was seen to hold."""

from __future__ import annotations

import math
from collections.abc import Callable

from shapedp.numerics.checks import positive, real
from shapedp.numerics.outward import ROUNDINGS_8, ROUNDINGS_32, ROUNDINGS_128

_TURNS = 200
Condition = Callable[[float], bool]
Function = Callable[[float], float]


class SearchError(ArithmeticError):
    """No point of the searched range satisfies the condition.

    Example:
        >>> last_true(lambda x: x < 0, 0.0, 1.0)
        Traceback (most recent call last):
        shapedp.numerics.roots.SearchError: the condition fails at the lower end 0.0
    """


class SelfCheckError(ArithmeticError):
    """Two bounds contradict each other: a fault of this library. Nothing is certified from either.

    Example:
        >>> str(SelfCheckError("lower 2 exceeds upper 1"))[:45]
        'lower 2 exceeds upper 1. This is a fault of s'
    """

    def __init__(self, finding: str) -> None:
        super().__init__(f"{finding}. This is a fault of shapedp: no answer is given. Please report these numbers")


def _middle(low: float, high: float) -> float:
    if low > 0 and high > 4 * low:
        return math.sqrt(low) * math.sqrt(high)
    return low + (high - low) / 2


def _narrowed(holds: Condition, good: float, bad: float, relative: float, end: str) -> float:
    """Bisection between a point where a condition holds and one where it may fail; the last one where it held."""
    good, bad, relative = real("low", good), real("high", bad), positive("relative", relative)
    if not holds(good):
        raise SearchError(f"the condition fails at the {end} end {good!r}")
    if holds(bad):
        return bad
    while abs(good - bad) > relative * max(abs(good), abs(bad)):
        middle = _middle(min(good, bad), max(good, bad))
        if middle in (good, bad):
            break
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


def last_true(holds: Condition, low: float, high: float, *, relative: float = ROUNDINGS_8) -> float:
    """The largest argument found in [low, high] at which a condition, true below some point, holds.

    Guarantee: `holds` returned True at the returned value, and no true point exceeds it by more than the
    relative tolerance if the condition is monotone. Raises SearchError if it fails at `low`.

    Parameters: the condition, the two ends of the range, and the relative tolerance.
    Returns: the largest true argument that was found.

    Example:
        >>> round(last_true(lambda x: x * x <= 2, 0.0, 2.0), 9)
        1.414213562
    """
    return _narrowed(holds, low, high, relative, "lower")


def first_true(holds: Condition, low: float, high: float, *, relative: float = ROUNDINGS_8) -> float:
    """The smallest argument found in [low, high] at which a condition, true above some point, holds.

    Guarantee: `holds` returned True at the returned value. Raises SearchError if it fails at `high`.

    Parameters: as for `last_true`.
    Returns: the smallest true argument that was found.

    Example:
        >>> round(first_true(lambda x: x * x >= 2, 0.0, 2.0), 9)
        1.414213562
    """
    return _narrowed(holds, high, low, relative, "upper")


def last_true_near(holds: Condition, guess: float, *, relative: float = ROUNDINGS_32) -> float:
    """A true point just below a good guess at the point where a condition turns false.

    Steps down from the guess by `relative`, then by ever more, until the condition holds.
    Guarantee: `holds` returned True at the returned value.

    Parameters: the condition, the guess, and the first step relative to it.
    Returns: a true argument just below the guess.

    Example:
        >>> last_true_near(lambda x: x <= 3, 3.0) < 3
        True
    """
    step, guess = positive("relative", relative), real("guess", guess)
    while step < 0.5:
        candidate = guess * (1 - step)
        if holds(candidate):
            return candidate
        step *= 4
    raise SearchError(f"the condition holds nowhere near {guess!r}")


def first_true_near(holds: Condition, guess: float, high: float, *, relative: float = ROUNDINGS_8) -> float:
    """A true point just above a good guess at the point where a condition turns true.

    Steps up from the guess by `relative`, then by ever more, until the condition holds.
    Guarantee: `holds` returned True at the returned value. Raises SearchError if it fails up to `high`.

    Parameters: the condition, the guess, the upper end, and the first step relative to the guess.
    Returns: a true argument, the guess itself where it is one.

    Example:
        >>> first_true_near(lambda x: x >= 3, 2.999999, 10.0) >= 3
        True
    """
    candidate, step, high = real("guess", guess), positive("relative", relative), real("high", high)
    while candidate < high:
        if holds(candidate):
            return candidate
        candidate, step = guess + step * max(guess, 1e-300), 4 * step
    if holds(high):
        return high
    raise SearchError(f"the condition fails at the upper end {high!r}")


def falling_root(log_value: Function, target: float, high: float, *, relative: float = ROUNDINGS_128) -> float:
    """About where a falling function, given by its logarithm, passes a target in [0, high]: a guess, no bound.

    Regula falsi with the Illinois rule; bisection where a value is infinite or progress stalls.

    Parameters: the logarithm of the function, the target on that scale, the upper end, and the relative tolerance.
    Returns: about the root; `high` where the target is not reached.

    Example:
        >>> round(falling_root(lambda x: -x, -3.0, 100.0), 9)
        3.0
    """
    target, high, relative = real("target", target), real("high", high), positive("relative", relative)
    low, low_gap = 0.0, log_value(0.0) - target
    if low_gap <= 0:
        return 0.0
    reach = min(1.0, high)
    while (high_gap := log_value(reach) - target) > 0:
        if reach >= high:
            return high
        low, low_gap, reach = reach, high_gap, min(4 * reach, high)
    top = reach
    for turn in range(100):
        if top - low <= relative * top:
            break
        middle = _middle(low, top)
        if turn % 4 and math.isfinite(low_gap) and math.isfinite(high_gap):
            middle = min(max(top - high_gap * (top - low) / (high_gap - low_gap), low), top)
        if not low < middle < top:
            break
        gap = log_value(middle) - target
        if gap > 0:
            low, low_gap, high_gap = middle, gap, high_gap / 2
        else:
            top, high_gap, low_gap = middle, gap, low_gap / 2
    return top


def increasing_root(gap: Function, start: float, tolerance: float = 1e-11, slope: float = 4.0) -> float:
    """About a root of an increasing function: secants from the start first, then a bracket. A guide, no proof.

    `slope` is what is known of the function's slope at the start.
    """
    tolerance = positive("tolerance", tolerance)
    ends: list[tuple[float, float] | None] = [None, None]  # the last points below the root and above it

    def ask(x: float) -> float:
        value = gap(x)
        ends[value > 0] = (x, value)
        return value

    x, at_x = start, ask(start)
    for _ in range(12):
        step = -min(max(at_x / slope, -0.5), 0.5)
        if abs(step) <= tolerance or at_x == 0:
            return x + step
        if ends[0] and ends[1] and not ends[0][0] < x + step < ends[1][0]:
            break
        before, x = at_x, x + step
        at_x = ask(x)
        slope = (at_x - before) / step
        if not slope > 0:
            break
    step = 0.25
    while not (ends[0] and ends[1]) and step < 1e3:
        x += step if ends[0] else -step
        ask(x)
        step *= 2
    low, high = ends
    if not (low and high):
        raise SearchError("no root of the function was found")
    return between(gap, low, high, tolerance)


def between(gap: Function, low: tuple[float, float], high: tuple[float, float], tolerance: float) -> float:
    """About a root of a function between two points, given with its values there, of opposite sign. A guide, no proof.

    Inverse quadratic interpolation where it is safe, bisection elsewhere.
    Reference: Chandrupatla 1997, Advances in Engineering Software 28.

    Example:
        >>> round(between(lambda x: x * x - 2, (0.0, -2.0), (2.0, 2.0), 1e-12), 9)
        1.414213562
    """
    (a, at_a), (b, at_b) = high, low
    if at_a == 0 or at_b == 0:
        return a if at_a == 0 else b
    share = 0.5
    for _ in range(_TURNS):
        x = a + share * (b - a)
        at_x = gap(x)
        c, at_c = a, at_a
        if (at_x > 0) != (at_a > 0):
            c, at_c, b, at_b = b, at_b, a, at_a
        a, at_a = x, at_x
        best = a if abs(at_a) < abs(at_b) else b
        reach = (abs(best) * 1e-14 + 0.5 * tolerance) / abs(b - a) if a != b else 1.0
        if reach > 0.5 or at_x == 0:
            return best
        place, rise = (a - b) / (c - b), (at_a - at_b) / (at_c - at_b)
        if rise * rise < place and (1 - rise) ** 2 < 1 - place:
            share = at_a / (at_b - at_a) * at_c / (at_b - at_c)
            share += (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (at_c - at_b)
        else:
            share = 0.5
        share = min(max(share, reach), 1 - reach)
    return best
