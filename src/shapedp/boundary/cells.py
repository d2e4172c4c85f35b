"""One cell at a time: a float, a label or an id, or missing.

Guarantee: each function looks at its cell alone and raises nothing, so no cell changes how another one is read.
"""

from __future__ import annotations

import math
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np

_NUMBERS = (Real, Decimal, np.bool_)
_EXACT = 2.0**53  # whole floats below it are one integer each


def number(cell: Any) -> float:
    """A float; NaN where the cell is no real number or none that floats hold. Text is no number, not even "1"."""
    if type(cell) is float:
        return cell
    try:
        return float(cell) if isinstance(cell, _NUMBERS) else math.nan
    except Exception:  # an error would tell of one record
        return math.nan


def text_number(cell: bytes | str) -> float:
    """The number that a cell of a text file spells, as Python's `float` reads it; NaN where it spells none."""
    try:
        return float(cell.decode() if isinstance(cell, bytes) else cell)
    except ValueError:
        return math.nan


def text_label(cell: bytes) -> float | str | None:
    """A number where the cell spells one, else its text; None where it is empty or no text."""
    value = text_number(cell)
    try:
        return value if value == value else cell.decode() or None
    except UnicodeDecodeError:
        return None


def same(one: Any, other: Any) -> bool:
    """Whether two cells are equal; what cannot be compared is not."""
    try:
        return bool(one == other)
    except Exception:  # an error would tell of one record
        return False


def is_label(cell: Any) -> bool:
    """Whether the cell can be a class: neither missing nor something that equals nothing, not even itself."""
    try:
        hash(cell)
    except Exception:
        return False
    return cell is not None and same(cell, cell)


def label_order(cell: Any) -> tuple[int, float, str]:
    """Where a label is sorted: numbers first, then by text."""
    try:
        return (0, number(cell), "") if isinstance(cell, _NUMBERS) else (1, 0.0, str(cell))
    except Exception:
        return (2, 0.0, "")


def identity(cell: Any) -> int | str | bytes | None:
    """The id of a person: a whole number, text or bytes; None where the cell is none of these."""
    if isinstance(cell, str | bytes):
        return str(cell) if isinstance(cell, str) else bytes(cell)
    try:
        if isinstance(cell, bool | np.bool_):
            return None
        if isinstance(cell, Integral):
            return int(cell)
        whole = isinstance(cell, Real) and abs(float(cell)) < _EXACT and float(cell).is_integer()
        return int(float(cell)) if whole else None
    except Exception:
        return None
