"""What was given, cell by cell: no cell changes how another one is read, and no error tells what a cell holds."""

from __future__ import annotations

import math
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

Floats = NDArray[np.float64]
_NUMBERS = (Real, Decimal, np.bool_)


def number(value: Any) -> float:
    """A float, NaN where the value is no real number or none that floats hold."""
    try:
        return float(value) if isinstance(value, _NUMBERS) else math.nan
    except Exception:  # an error would tell of one record
        return math.nan


def each_number(cells: NDArray[Any]) -> Floats:
    """An array of objects as numbers."""
    return np.fromiter((number(one) for one in cells.flat), np.float64, cells.size).reshape(cells.shape)


def entries(y: Any) -> NDArray[Any]:
    """y as a vector. The entries of a list stay what they are: an array of them might be one of text for one text."""
    if isinstance(y, list | tuple):
        return _objects([one[0] if isinstance(one, list | tuple) and len(one) == 1 else one for one in y])
    given = np.asarray(y)
    if given.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold real numbers or labels")
    return np.asarray(column_or_1d(given, warn=True))


def equal(values: NDArray[Any], label: Any) -> NDArray[np.bool_]:
    """Which of the values are the label; what cannot be compared with it is not."""
    if isinstance(label, str | Real | np.bool_):
        try:
            found = np.asarray(values == label)
            if found.shape == values.shape:
                return found
        except Exception:  # one of the values: each for itself then
            pass
    return np.fromiter((_same(one, label) for one in values), np.bool_, len(values))


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """The labels that occur, sorted, numbers before text; what is missing or no label at all is left out."""
    if values.dtype.kind != "O":
        found = np.unique(values)
        return np.asarray(found[found == found])
    seen = {one for one in values if _is_label(one)}
    labels = sorted(seen, key=lambda one: (0, number(one), "") if isinstance(one, _NUMBERS) else (1, 0.0, str(one)))
    alike = all(isinstance(one, str) for one in labels) or all(isinstance(one, Real | np.bool_) for one in labels)
    return np.array(labels) if alike else _objects(labels)


def _is_label(one: Any) -> bool:
    try:
        hash(one)
    except TypeError:
        return False
    return one is not None and _same(one, one)


def _objects(values: list[Any]) -> NDArray[Any]:
    found = np.empty(len(values), dtype=object)
    for i, one in enumerate(values):
        found[i] = one
    return found


def _same(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except Exception:  # an error would tell of one record
        return False
