"""Exact budget arithmetic: integers in units of 2^-192, so totals never depend on the order of the spends."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from shapedp.boundary.documents import described

BITS = 192
NEVER = 1 << (BITS + 1100)
"""A cost above every capacity: an order at which a mechanism has no finite divergence."""


def units_up(value: Fraction | float) -> int:
    """The least number of units that is at least `value`; infinity becomes NEVER."""
    if isinstance(value, float) and math.isinf(value):
        return NEVER
    return math.ceil(Fraction(value) * (1 << BITS))


def units_down(value: Fraction | float) -> int:
    """The largest number of units that is at most `value`."""
    return math.floor(Fraction(value) * (1 << BITS))


def as_float(units: int) -> float:
    """The nearest float, for showing only; NEVER and beyond are infinite."""
    return math.inf if units >= NEVER else float(Fraction(units, 1 << BITS))


@dataclass(frozen=True, slots=True)
class Charge:
    """What one spend costs, or what all spends together have cost: one amount per line of the filter, and the
    probability on which nothing is promised.

    Parameters
    ----------
    amounts
        What each line of the filter counts, in units of 2^-192.
    failure
        The probability on which nothing is promised, in the same units.

    Examples
    --------
    >>> one = Charge((units_up(0.25),))
    >>> one.times(3) == one.plus(one).plus(one)
    True
    """

    amounts: tuple[int, ...]
    failure: int = 0

    def __post_init__(self) -> None:
        listed = isinstance(self.amounts, tuple)
        if not listed or not all(isinstance(units, int) for units in (*self.amounts, self.failure)):
            raise TypeError("a charge is made of whole numbers of units")
        if min(self.amounts, default=0) < 0 or self.failure < 0:
            raise ValueError("a charge cannot be negative")

    def times(self, count: int) -> Charge:
        """The charge of `count` equal spends: exactly that of `count` single ones."""
        return Charge(tuple(a * count for a in self.amounts), self.failure * count)

    def plus(self, other: Charge) -> Charge:
        """The sum; exact."""
        both = zip(self.amounts, other.amounts, strict=True)
        return Charge(tuple(a + b for a, b in both), self.failure + other.failure)

    def to_json(self) -> dict[str, object]:
        """Integers as decimal strings: JSON readers elsewhere round long ones."""
        return {"amounts": [str(a) for a in self.amounts], "failure": str(self.failure)}

    @classmethod
    @described
    def from_json(cls, data: dict[str, object]) -> Charge:
        """The charge that `to_json` wrote."""
        amounts = data["amounts"]
        if not isinstance(amounts, list):
            raise ValueError("amounts must be a list")
        return cls(tuple(int(a) for a in amounts), int(str(data["failure"])))
