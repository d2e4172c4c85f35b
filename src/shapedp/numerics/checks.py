"""Validation at the boundary: every check is NaN-safe and names the argument it refuses."""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

LAID_OUT = 2**28
COUNTED = 2**53  # beyond it float64 could not count


def real(name: str, value: object) -> float:
    """A Python float from a real scalar of any library; booleans, strings, complex numbers and arrays are refused."""
    if type(value) is float:
        return value
    number = _item(value)
    scalar = getattr(number, "ndim", 0) == 0 and not isinstance(number, bool | np.bool_ | str | bytes | bytearray)
    if scalar:
        with contextlib.suppress(Exception):  # whatever a foreign __float__ raises, it is no number
            return float(number)
    raise TypeError(f"{name} must be a real number, got {_shown(value)}")


def entries(name: str, values: Any) -> tuple[Any, ...]:
    """What can be walked over, as a tuple; a length that an object states of itself is not believed."""
    try:
        walk = iter(values)
    except TypeError:
        raise TypeError(f"{name} must be a sequence, got {_shown(values)}") from None
    return tuple(one for one in walk)


def is_scalar(value: Any) -> bool:
    """Whether numpy takes it as one number; what numpy cannot read is none."""
    try:
        return np.ndim(value) == 0
    except Exception:  # whatever a foreign object raises
        return False


def _item(value: Any) -> Any:
    """The Python scalar inside a 0-d array or tensor of any library, or of Arrow; anything else as it is.

    None where there is none: a masked entry is missing, and a date or a span of time is no number of anything.
    """
    if isinstance(value, int | float | str):
        return value
    try:
        if hasattr(value, "as_py"):
            return value.as_py()
        if getattr(value, "ndim", None) != 0:
            return value
        missing = np.ma.is_masked(value) or getattr(getattr(value, "dtype", None), "kind", "") in ("m", "M")
        return None if missing else value.item()
    except Exception:  # a tensor without data, or one that cannot be read here
        return None


def _shown(value: object) -> str:
    """At most 80 characters about a value, whatever its own repr does."""
    try:
        text = repr(value)
    except Exception:
        text = type(value).__name__
    return text if len(text) <= 80 else f"{text[:77]}..."


def positive(name: str, value: object) -> float:
    """A finite number above zero."""
    number = real(name, value)
    if not 0 < number < math.inf:
        raise ValueError(f"{name} must be finite and > 0, got {_shown(value)}")
    return number


def nonnegative(name: str, value: object) -> float:
    """A finite number, zero allowed; -0.0 becomes 0.0."""
    number = real(name, value)
    if not 0 <= number < math.inf:
        raise ValueError(f"{name} must be finite and >= 0, got {_shown(value)}")
    return abs(number)


def probability(name: str, value: object) -> float:
    """A number in [0, 1)."""
    number = real(name, value)
    if not 0 <= number < 1:
        raise ValueError(f"{name} must lie in [0, 1), got {_shown(value)}")
    return abs(number)


def share(name: str, value: object) -> float:
    """A number in [0, 1]."""
    number = real(name, value)
    if not 0 <= number <= 1:
        raise ValueError(f"{name} must lie in [0, 1], got {_shown(value)}")
    return abs(number)


def count(name: str, value: object, *, least: int = 1, most: int = COUNTED) -> int:
    """An integer of `least` to `most`, so that no product or sum with it wraps unseen or leaves the range of floats.

    Floats and booleans are refused, even whole ones.
    """
    item = _item(value)
    try:
        if isinstance(item, bool | np.bool_ | np.ndarray) or getattr(value, "ndim", 0) != 0:
            raise TypeError
        number = operator.index(item)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {_shown(value)}") from None
    if number < least:
        raise ValueError(f"{name} must be at least {least}, got {_shown(value)}")
    if number > most:
        raise ValueError(f"{name} must be at most {'2^53' if most == COUNTED else most}, got {_shown(number)}")
    return number


def laid_out(number: int) -> int:
    """The number of coordinates, if an array of one entry each may be made for them; refused before memory is."""
    if number > LAID_OUT:
        raise ValueError(f"{number} coordinates cannot be laid out one by one: at most 2^28 are")
    return number


def total(name: str, sizes: NDArray[Any]) -> int:
    """The sum of sizes as a Python integer, which cannot wrap."""
    return count(f"the sum of {name}", sum(sizes.tolist()))


def numeric(name: str, values: ArrayLike) -> NDArray[Any]:
    """An array of real numbers that float64 holds; objects, strings, complex and booleans are refused.

    Integers beyond 2^53 are refused too: rounding them could move neighbours further apart than they are. So are masked
    entries, which are missing.
    """
    try:
        masked = any(isinstance(one, np.ma.MaskedArray) and np.ma.is_masked(one) for one in _entries(values))
        array = np.asarray(values)
    except (ValueError, RuntimeError, OverflowError, RecursionError, MemoryError):
        raise TypeError(f"{name} must be a rectangular array of real numbers that numpy can read") from None
    if masked:
        raise ValueError(f"{name} must have no masked entries: what is missing cannot be released")
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must hold real numbers (integers or floats), got dtype {array.dtype.type.__name__}")
    if array.dtype.itemsize > 8:
        raise TypeError(f"{name} must be of float64 or a narrower type, got dtype {array.dtype}")
    if _holds_long_integers(values, array):
        raise ValueError(f"{name} must be at most 2^53 in magnitude where it holds integers")
    return array


def _entries(values: Any) -> Iterable[Any]:
    """What lists and tuples within each other hold; anything else is an entry itself."""
    if not isinstance(values, list | tuple):
        return (values,)
    return (entry for one in values for entry in _entries(one))


def _holds_long_integers(values: ArrayLike, array: NDArray[Any]) -> bool:
    """Whether an integer beyond 2^53 is among the values, also one that numpy made a float beside other floats."""
    if array.dtype.itemsize < 8 or not array.size:
        return False
    if array.dtype.kind != "f":
        return max(int(array.max()), -int(array.min())) > 2**53
    if not isinstance(values, list | tuple) or not (np.abs(array) >= 2.0**53).any():
        return False
    return any(_is_long(one) for one in _entries(values))


def _is_long(entry: Any) -> bool:
    """Whether an entry of a list, a number or an array of integers, holds one beyond 2^53."""
    if isinstance(entry, int):
        return abs(entry) > 2**53
    kind = getattr(getattr(entry, "dtype", None), "kind", "")
    return kind in ("i", "u") and any(abs(one) > 2**53 for one in np.asarray(entry).reshape(-1).tolist())


def finite(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """A float64 array without NaN or infinity; not copied when it already is one."""
    array = np.asarray(numeric(name, values), dtype=np.float64)
    if array.size and not math.isfinite(float(array.min()) + float(array.max())) and not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite: it holds a NaN or an infinity")  # where and which is the data's own
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
    """One of a few words, as Python's own text; a text that compares in a way of its own is none of them."""
    kind = type(value)
    usual = kind is np.str_ or (kind.__eq__ is str.__eq__ and kind.__ne__ is str.__ne__)
    word = str.__str__(value) if isinstance(value, str) and usual else None
    if (word is None and value is not None) or word not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {_shown(value)}")
    return word


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
