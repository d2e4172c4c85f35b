"""An interval that contains a true value."""

from __future__ import annotations

import math
from dataclasses import dataclass

from shapedp.numerics.checks import real


@dataclass(frozen=True, slots=True)
class Bracket:
    """Two numbers between which the truth lies.

    Guarantee: lower <= truth <= upper, rounding and truncation included.

    Parameters: the two ends, 0 <= lower <= upper.

    Example:
        >>> 0.15 in Bracket(0.1, 0.2), str(Bracket(0.1, 0.2))
        (True, '[0.1, 0.2]')
    """

    lower: float
    upper: float

    def __post_init__(self) -> None:
        lower, upper = real("lower", self.lower), real("upper", self.upper)
        if not 0 <= lower <= upper:
            raise ValueError(f"a bracket needs 0 <= lower <= upper, got [{lower!r}, {upper!r}]")
        object.__setattr__(self, "lower", abs(lower))
        object.__setattr__(self, "upper", abs(upper))

    @property
    def gap(self) -> float:
        """upper - lower."""
        return self.upper - self.lower

    @property
    def relative_gap(self) -> float:
        """(upper - lower)/upper; 0 where both ends are 0."""
        if math.isinf(self.upper):
            return 0.0 if math.isinf(self.lower) else math.inf
        return self.gap / self.upper if self.upper else 0.0

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def max(self, other: Bracket) -> Bracket:
        """The bracket of the larger of two bracketed values."""
        return Bracket(max(self.lower, other.lower), max(self.upper, other.upper))

    def __str__(self) -> str:
        return f"[{self.lower:.6g}, {self.upper:.6g}]"
