"""Measures of error that a law answers and a calibration minimises."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from shapedp.numerics.checks import real

_NAMES = {"squared": 2.0, "absolute": 1.0, "max": math.inf}
_POWER = re.compile(r"l([0-9]+(?:\.[0-9]+)?)")


@dataclass(frozen=True)
class Measure:
    """sum_i w_i E |n_i|^power; an infinite power stands for the largest w_i E n_i^2 of any coordinate."""

    power: float

    @property
    def maximum(self) -> bool:
        """Whether the worst coordinate decides."""
        return math.isinf(self.power)

    @property
    def name(self) -> str:
        """The word that `measure_of` reads back."""
        return next((word for word, power in _NAMES.items() if power == self.power), f"l{self.power:.17g}")


def measure_of(value: Any) -> Measure:
    """A measure from "squared", "absolute", "max", "l3", ("lp", 3) or a Measure."""
    if isinstance(value, Measure):
        return value
    if isinstance(value, str) and value in _NAMES:
        return Measure(_NAMES[value])
    power = math.nan
    if isinstance(value, str) and (found := _POWER.fullmatch(value)):
        power = float(found[1])
    elif isinstance(value, tuple) and len(value) == 2 and value[0] == "lp":
        power = real("p", value[1])
    if not 1 <= power < math.inf:
        raise ValueError(f"error must be 'squared', 'absolute', 'max', or 'l3' or ('lp', 3) with p >= 1, got {value!r}")
    return Measure(power)
