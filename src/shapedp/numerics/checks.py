"""Validation at the boundary: every check is NaN-safe and names the argument it refuses."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def real(name: str, value: object) -> float:
    """A Python float from a real scalar; booleans, strings and arrays are refused."""
    dtype = getattr(value, "dtype", None)
    unfit = getattr(value, "ndim", 0) != 0 or (dtype is not None and dtype.kind not in "iuf")
    if unfit or isinstance(value, bool | str | bytes | bytearray):
        raise TypeError(f"{name} must be a real number, got {value!r}")
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must be a real number, got {value!r}") from None


def positive(name: str, value: object) -> float:
    """A finite number above zero."""
    number = real(name, value)
    if not 0 < number < math.inf:
        raise ValueError(f"{name} must be finite and > 0, got {value!r}")
    return number


def nonnegative(name: str, value: object) -> float:
    """A finite number, zero allowed; -0.0 becomes 0.0."""
    number = real(name, value)
    if not 0 <= number < math.inf:
        raise ValueError(f"{name} must be finite and >= 0, got {value!r}")
    return abs(number)


def probability(name: str, value: object) -> float:
    """A number in [0, 1)."""
    number = real(name, value)
    if not 0 <= number < 1:
        raise ValueError(f"{name} must lie in [0, 1), got {value!r}")
    return abs(number)


def count(name: str, value: object, *, least: int = 1) -> int:
    """An integer of at least `least`; floats and booleans are refused, even whole ones."""
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {value!r}")
    return number


def numeric(name: str, values: ArrayLike) -> NDArray[Any]:
    """An array of real numbers that float64 holds; objects, strings, complex and booleans are refused.

    Integers beyond 2^53 are refused too: rounding them could move neighbours further apart than they are. So are masked
    entries, which are missing.
    """
    parts = values if isinstance(values, list | tuple) else (values,)
    if any(isinstance(one, np.ma.MaskedArray) and np.ma.is_masked(one) for one in parts):
        raise ValueError(f"{name} must have no masked entries: what is missing cannot be released")
    try:
        array = np.asarray(values)
    except ValueError:
        raise TypeError(f"{name} must be a rectangular array of real numbers") from None
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must hold real numbers (integers or floats), got dtype {array.dtype}")
    if array.dtype.itemsize > 8:
        raise TypeError(f"{name} must be of float64 or a narrower type, got dtype {array.dtype}")
    if array.dtype.str[1:] in ("i8", "u8") and array.size and max(int(array.max()), -int(array.min())) > 2**53:
        raise ValueError(f"{name} must be at most 2^53 in magnitude where it holds integers")
    return array


def finite(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """A float64 array without NaN or infinity; not copied when it already is one."""
    array = np.asarray(numeric(name, values), dtype=np.float64)
    if array.size and not math.isfinite(float(array.min()) + float(array.max())) and not np.isfinite(array).all():
        where = int(np.flatnonzero(~np.isfinite(array))[0])
        raise ValueError(f"{name} must be finite, got {array.flat[where]!r} at flat index {where}")
    return array


def vector(name: str, values: ArrayLike, *, least: float = -math.inf, strict: bool = False) -> NDArray[np.float64]:
    """A non-empty finite 1-d float64 array, every entry >= least (> least if strict)."""
    array = finite(name, values)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{name} must be a non-empty 1-d array, got shape {array.shape}")
    low = float(array.min())
    if low < least or (strict and low == least):
        sign = ">" if strict else ">="
        raise ValueError(f"{name} must be {sign} {least:g} in every entry, got {low!r}")
    return array


def one_of(name: str, value: object, allowed: tuple[str | None, ...]) -> Any:
    """One of a few words."""
    if not (value is None or isinstance(value, str)) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return value


def column_names(where: object, cells: Iterable[str]) -> tuple[str, ...]:
    """The cells of a header; refused, unquoted, where one is a number, a date or an amount.

    Guarantee: the first record of such a table is not taken for public names, and no error repeats it.
    """
    names = tuple(cell.strip() for cell in cells)
    if any(_like_data(name) for name in names):
        raise ValueError(f"{where}: the first row looks like data: a header with column names is expected")
    return names


def _like_data(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return any(map(str.isdigit, cell)) and not any(map(str.isalpha, cell))
    return True
