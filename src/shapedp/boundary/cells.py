"""One cell at a time: a float, a label or an id, or missing.

Guarantee: each function looks at its cell alone and raises nothing, so no cell changes how another one is read.
"""

from __future__ import annotations

import math
from decimal import Decimal
from numbers import Integral, Real
from typing import Any
from uuid import UUID

import numpy as np

_NUMBERS = (Real, Decimal, np.bool_)
_EXACT = 2.0**53  # whole floats below it are one integer each
_DIGITS = 80  # of a decimal that is an id: an exponent of millions would take as many digits
_MARK = "\x1f"  # before ids that are not the text they are written as


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


def identity(cell: Any) -> str | None:
    """The id of a person as a text: a text, bytes, a UUID or a whole number; None where the cell is none of these.

    Guarantee: equal numbers are one id, and so are a whole number and the text that writes it: 7, 7.0 and "7". No other
    two values are: to take two persons for one lets either change which rows of the other count.
    """
    try:
        if isinstance(cell, str):
            text = str.__str__(cell)  # not what a subclass prints
            return f"{_MARK}t{text}" if text.startswith(_MARK) else text
        if isinstance(cell, bytes):
            return f"{_MARK}b{bytes(cell).hex()}"
        whole = None if isinstance(cell, bool | np.bool_) else _whole(cell)
        if whole is None:
            return str(cell) if isinstance(cell, UUID) else None
        return f"{_MARK}i{whole:x}" if abs(whole) >> 128 else str(whole)  # no text has thousands of digits
    except Exception:  # an error would tell of one record
        return None


def _whole(cell: Any) -> int | None:
    """The whole number that a cell is, exactly; None where it is none, or a float of which several are one."""
    if isinstance(cell, Integral):
        return int(cell)
    if isinstance(cell, Decimal):
        return (
            int(cell) if cell.is_finite() and cell.adjusted() < _DIGITS and cell == cell.to_integral_value() else None
        )
    near = float(cell) if isinstance(cell, Real) else math.nan
    return int(near) if abs(near) < _EXACT and near.is_integer() and near == cell else None
