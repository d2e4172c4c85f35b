"""Numbers as they are read: few digits, rounded to the side that promises less where that matters."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Literal

from shapedp.numerics.arrays import Floats
from shapedp.privacy import Bracket

Side = Literal["near", "up", "down"]
_SIDES = {"near": ROUND_HALF_EVEN, "up": ROUND_CEILING, "down": ROUND_FLOOR}
TIMES = "\u00d7"
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float, digits: int = 4, side: Side = "near") -> str:
    """The value to so many digits: 0.0123, 1,250, 3.2 times 10⁻⁷; `side` says which way it is rounded."""
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == 0:
        return "0"
    rounded = Context(prec=digits, rounding=_SIDES[side]).create_decimal(Decimal(value))
    power = rounded.adjusted()
    if -4 <= power < 7:
        return f"{rounded.normalize():,f}"
    lead = f"{rounded.scaleb(-power).normalize():f}"
    return f"{'' if lead == '1' else lead + TIMES}10{str(power).translate(_RAISED)}"


def power(value: float) -> str:
    """A tick of a logarithmic axis: powers of ten beyond 100 and 0.01 as such."""
    exponent = round(math.log10(value))
    if abs(exponent) > 2 and math.isclose(value, 10.0**exponent, rel_tol=1e-9):
        return f"10{str(exponent).translate(_RAISED)}"
    return number(value)


def percent(share: float, digits: int = 3, side: Side = "near") -> str:
    """A share of one, in percent."""
    return number(100 * share, digits, side) + "%"


def interval(bracket: Bracket, digits: int = 6) -> str:
    """Both ends, rounded outward."""
    return f"[{number(bracket.lower, digits, 'down')}, {number(bracket.upper, digits, 'up')}]"


def span(values: Floats, side: Side = "near") -> str:
    """From the least to the largest; one number where they are shown alike."""
    low, high = (number(float(end), 4, side) for end in (values.min(), values.max()))
    return high if low == high else f"{low} to {high}"


def whole(value: int) -> str:
    """An integer with commas between thousands."""
    return f"{value:,d}"


def counted(value: int, thing: str) -> str:
    """1 step, 2 steps."""
    return f"{whole(value)} {thing}" + ("" if value == 1 else "s")
