"""What was given, cell by cell: no cell changes how another one is read, and no error tells what a cell holds."""

from __future__ import annotations

import math
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import column_or_1d

Floats = NDArray[np.float64]
_NUMBERS = (Real, Decimal, np.bool_)
_FLAT = "Expected 2D array, got {}D array instead. Reshape your data: (-1, 1) for one feature, (1, -1) for one record"


def number(value: Any) -> float:
    """A float, NaN where the value is no real number or none that floats hold."""
    try:
        return float(value) if isinstance(value, _NUMBERS) else math.nan
    except Exception:  # an error would tell of one record
        return math.nan


def each_number(cells: NDArray[Any]) -> Floats:
    """An array of objects as numbers."""
    return np.fromiter((number(one) for one in cells.flat), np.float64, cells.size).reshape(cells.shape)


def numbers(x: Any) -> Any:
    """Rows as a two-dimensional array of numbers, or a CSR matrix that holds no cell twice; what is no number is NaN.

    Text is not read as a number, not even "1". Guarantee: errors depend on types and shapes alone and quote no cell.
    """
    given: Any = x
    if sparse.issparse(x):
        _real(given.dtype)
        return _once(given.tocsr())
    if _is_frame(x):
        return _columns(x)
    array = _rows(given) if isinstance(x, list | tuple) else np.asarray(x)
    if array.ndim != 2:
        raise ValueError(_FLAT.format(array.ndim))
    if array.dtype.kind == "O":
        return each_number(array)
    _real(array.dtype)
    with np.errstate(over="ignore"):
        return array if array.dtype.itemsize <= 8 else array.astype(np.float64)


def odd_types(frame: Any, names: tuple[Any, ...]) -> dict[Any, str]:
    """Those of the columns of a pandas frame that cannot hold numbers, with their types; columns of objects can."""
    return {name: str(kind) for name in names if not _holds_numbers(kind := frame[name].dtype)}


def odd_columns(odd: dict[Any, str]) -> None:
    """Refuse columns that hold no numbers, named with their types."""
    if odd:
        listed = ", ".join(f"{name} ({kind})" for name, kind in odd.items())
        raise ValueError(f"columns must hold numbers; these do not: {listed}. Convert them or leave them out")


def entries(y: Any) -> NDArray[Any]:
    """y as a vector. The entries of a list stay what they are: an array of them might be one of text for one text."""
    if isinstance(y, list | tuple):
        return objects([one[0] if isinstance(one, list | tuple) and len(one) == 1 else one for one in y])
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
    return np.array(labels) if alike else objects(labels)


def _is_label(one: Any) -> bool:
    try:
        hash(one)
    except TypeError:
        return False
    return one is not None and _same(one, one)


def objects(values: list[Any]) -> NDArray[Any]:
    """A vector of objects, whatever they are."""
    found = np.empty(len(values), dtype=object)
    for i, one in enumerate(values):
        found[i] = one
    return found


def _real(kind: Any) -> None:
    """Refuse a type that holds no real numbers."""
    if kind.kind == "c":
        raise ValueError("Complex data not supported: X must hold real numbers")
    if kind.kind not in "fiub":
        raise ValueError(f"X must hold numbers, got an array of {kind.type.__name__}: convert it")


def _once(x: Any) -> Any:
    """A CSR matrix whose repeated entries are added up; the one given stays as it is."""
    if not x.has_canonical_format:
        x = x.copy()
        x.sum_duplicates()
    return x


def _rows(x: list[Any] | tuple[Any, ...]) -> Floats:
    """A list of rows; only their lengths can be wrong."""
    rows = [one if isinstance(one, list | tuple) else _vector(one) for one in x]
    lengths = {-1 if one is None else len(one) for one in rows}
    if len(lengths) > 1:
        raise ValueError("the rows of X must be as long as each other")
    if lengths <= {-1}:
        raise ValueError(_FLAT.format(1))
    return np.array([[number(cell) for cell in one or ()] for one in rows])


def _vector(row: Any) -> list[Any] | None:
    array = np.asarray(row) if hasattr(row, "__array__") else None
    return None if array is None or array.ndim != 1 else array.tolist()


def _is_frame(x: Any) -> bool:
    return type(x).__module__.partition(".")[0] == "pandas" and hasattr(x, "iloc") and getattr(x, "ndim", 0) == 2


def _columns(frame: Any) -> Floats:
    """A pandas frame; columns of objects cell by cell."""
    kinds = frame.dtypes.tolist()
    odd_columns({name: str(kind) for name, kind in zip(frame.columns, kinds, strict=True) if not _holds_numbers(kind)})
    if all(kind == np.float32 for kind in kinds):
        return np.asarray(frame.to_numpy(dtype=np.float32))
    if all(_holds_numbers(kind, objects=False) for kind in kinds):
        return np.asarray(frame.to_numpy(dtype=np.float64, na_value=np.nan))
    each = [each_number(frame.iloc[:, i].to_numpy(dtype=object)) for i in range(len(kinds))]
    return np.column_stack(each)


def _holds_numbers(kind: Any, *, objects: bool = True) -> bool:
    """Whether a pandas type holds real numbers; one of objects, or of categories, may."""
    from pandas.api.types import is_bool_dtype, is_complex_dtype, is_numeric_dtype

    if kind == np.object_ or hasattr(kind, "categories"):
        return objects and (kind == np.object_ or _holds_numbers(kind.categories.dtype))
    return bool(is_numeric_dtype(kind) or is_bool_dtype(kind)) and not is_complex_dtype(kind)


def _same(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except Exception:  # an error would tell of one record
        return False
