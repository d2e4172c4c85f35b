"""Answers as they are read: as many digits as their errors leave, and ends of intervals rounded outward."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from typing import Any

from shapedp.boundary.values import printable

_DIGITS = 3  # of the least error
_MOST = 12  # of a value
_LARGE = 1e15  # numbers beyond are written with a power of ten
_ENDS = {"": ROUND_HALF_EVEN, "_error": ROUND_HALF_EVEN, "_low": ROUND_FLOOR, "_high": ROUND_CEILING}


def texts(columns: Mapping[str, Sequence[Any]], *, commas: bool) -> dict[str, list[str]]:
    """Every cell as a text. A value, its error and its ends have the decimals that its error leaves.

    Example:
        >>> answer = {"sum": [15915914.25], "sum_error": [313.4], "sum_low": [15915300.2], "sum_high": [15916528.3]}
        >>> [one[0] for one in texts(answer, commas=True).values()]
        ['15,915,914', '313', '15,915,300', '15,916,529']
    """
    how: dict[str, tuple[int | None, str]] = {}
    for name in columns:
        if name + "_error" in columns:
            places = _places(columns[name], columns[name + "_error"])
            how |= {name + end: (places, side) for end, side in _ENDS.items() if name + end in columns}
    plain = (None, ROUND_HALF_EVEN)
    return {name: _column(cells, *how.get(name, plain), commas) for name, cells in columns.items()}


def _places(values: Sequence[Any], errors: Sequence[Any]) -> int | None:
    """Decimals that show the first digits of the least error; None where there is no error to go by."""
    known = [float(one) for one in errors if isinstance(one, int | float) and 0 < one < math.inf]
    sizes = [abs(float(one)) for one in values if isinstance(one, int | float) and 0 < abs(one) < math.inf]
    if not known:
        return None
    wanted = _DIGITS - 1 - math.floor(math.log10(min(known)))
    room = _MOST - 1 - math.floor(math.log10(max(sizes, default=1.0)))
    return max(min(wanted, room), 0)


def _column(cells: Sequence[Any], places: int | None, side: str, commas: bool) -> list[str]:
    numbers = [cell for cell in cells if isinstance(cell, float) and math.isfinite(cell)]
    whole = places is not None and all(number.is_integer() for number in numbers)
    return [_text(cell, 0 if whole else places, side, commas) for cell in cells]


def _text(cell: Any, places: int | None, side: str, commas: bool) -> str:
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return printable(str(cell))
    if isinstance(cell, int):
        return f"{cell:,d}" if commas and places is not None else str(cell)
    if places is None or not abs(cell) < _LARGE:
        return f"{cell:.6g}"
    exact = Decimal(cell).quantize(Decimal(1).scaleb(-places), side, Context(prec=40))
    return f"{exact + 0:{',' if commas else ''}f}"
