"""Rows and vectors from any container. Types are those the container declares; cells of a list are read one by one.

Guarantee: changing one record changes what is read for that record only; errors and warnings depend on types, names
and shapes, and quote no cell.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sized
from collections.abc import Set as AbstractSet
from contextlib import suppress
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.boundary import columns
from shapedp.boundary.cells import identity, is_label, label_order, number, same
from shapedp.numerics.arrays import Floats

_FLAT = "Expected 2D array, got {}D array instead. Reshape your data: (-1, 1) for one feature, (1, -1) for one record"
_REAL = "y must hold real numbers (integers or floats), got dtype {}"
_COMPLEX = "Complex data not supported: {} must hold real numbers"


def is_sparse(x: Any) -> bool:
    """Whether x is a scipy sparse array or matrix. Nothing is where scipy.sparse, slow to load, was not loaded."""
    loaded = sys.modules.get("scipy.sparse")
    return loaded is not None and bool(loaded.issparse(x))


def numbers(x: Any) -> Any:
    """Rows as a two-dimensional array of floats, or a CSR matrix that holds no cell twice; what is no number is NaN.

    Text is not read as a number, not even "1"; a masked entry is missing, as a null is.
    """
    if is_sparse(x):
        return _sparse(x)
    if columns.is_frame(x):
        columns.refuse_columns(columns.pandas_odd(x))
        return columns.pandas_rows(x)
    if columns.is_table(x):
        table = columns.arrow_table(x)
        kinds = zip(table.column_names, table.schema.types, strict=True)
        columns.refuse_columns({name: str(kind) for name, kind in kinds if not columns.arrow_numeric(kind)})
        return np.column_stack([columns.arrow_floats(column) for column in table.columns])
    if not _is_array(x):
        return _rows(_listed("X", x))
    array = np.asarray(x)
    if array.ndim != 2:
        raise ValueError(_FLAT.format(array.ndim))
    return _unmasked(x, _floats("X", array))


def values(y: Any) -> NDArray[Any]:
    """y as labels: numpy's types stay what they are, all else becomes objects, one for each entry."""
    if (column := _only_column(y)) is not None:
        return values(column)[:, None]
    if _is_series(y):
        return columns.pandas_cells(y)
    if columns.is_arrow(y):
        return columns.arrow_cells(columns.arrow_column(y))
    if not _is_array(y):
        return columns.objects(map(_single, _listed("y", y)))
    array = np.asarray(y)
    if array.dtype.kind == "c":
        raise ValueError(_COMPLEX.format("y") + " or labels")
    if array.dtype.kind == "V":
        raise ValueError("y must hold numbers or labels, got a structured array: choose one of its fields")
    if isinstance(y, np.ma.MaskedArray):
        array = array.astype(object)
        array[np.ma.getmaskarray(y)] = None
    return array


def cells(x: Any) -> list[NDArray[Any]]:
    """The columns of a table as labels; see `values`."""
    if is_sparse(x):
        raise TypeError("a sparse matrix holds numbers only: pass an array, a frame or a list of rows")
    if columns.is_frame(x):
        return [columns.pandas_cells(x.iloc[:, i]) for i in range(x.shape[1])]
    if columns.is_table(x):
        return [columns.arrow_cells(column) for column in columns.arrow_table(x).columns]
    if not _is_array(x):
        rows = _same_width([_row(one) for one in _listed("X", x)])
        return [columns.objects(row[i] for row in rows) for i in range(len(rows[0]) if rows else 0)]
    if np.ndim(x) != 2:
        raise ValueError(_FLAT.format(np.ndim(x)))
    return list(values(x).T)


def floats(y: Any) -> Floats:
    """y as a target of numbers, NaN where an entry is none."""
    if (column := _only_column(y)) is not None:
        return floats(column)[:, None]
    if _is_series(y):
        if not columns.pandas_numeric(y.dtype):
            raise TypeError(_REAL.format(y.dtype))
        return columns.pandas_floats(y)
    if columns.is_arrow(y):
        vector = columns.arrow_column(y)
        if not columns.arrow_numeric(vector.type):
            raise TypeError(_REAL.format(vector.type))
        return columns.arrow_floats(vector)
    if not _is_array(y):
        return columns.each_number(columns.objects(map(_single, _listed("y", y))))
    array = np.asarray(y)
    if array.dtype.kind not in "fiuOc":
        raise TypeError(_REAL.format(array.dtype.type.__name__))
    return np.asarray(_unmasked(y, _floats("y", array)), dtype=np.float64)


def ids(owner: Any) -> NDArray[np.int64]:
    """A number for each distinct id of a person, -1 where there is none; see `cells.identity`."""
    given = values(owner)
    if given.ndim != 1:
        raise ValueError(f"owner must hold one id per row, got shape {given.shape}")
    if given.dtype.kind in "iuUS":
        return np.asarray(np.unique(given, return_inverse=True)[1], dtype=np.int64)
    if given.dtype.kind not in "Of":
        raise TypeError(f"owner must hold integers or strings, got dtype {given.dtype.type.__name__}")
    seen: dict[Any, int] = {}
    known = map(identity, given.tolist())
    return np.array([-1 if one is None else seen.setdefault(one, len(seen)) for one in known], dtype=np.int64)


def equal(cells: NDArray[Any], label: Any) -> NDArray[np.bool_]:
    """Which of the cells are the label; what cannot be compared with it is not.

    Objects are compared all at once where none of them raises, and one by one otherwise: the same comparisons.
    """
    if cells.dtype.kind != "O" and isinstance(label, str | Real | np.bool_):
        found = np.asarray(cells == label)
        if found.shape == cells.shape:
            return found
    label = int(label) if isinstance(label, np.integer) else label
    if type(label) in (bool, int, float, str):
        with suppress(Exception):
            return np.asarray(np.equal(cells, columns.objects([label]), dtype=object), dtype=np.bool_)
    return np.fromiter((same(one, label) for one in cells), np.bool_, len(cells))


def distinct(cells: NDArray[Any]) -> NDArray[Any]:
    """The labels that occur, sorted, numbers before text; what is missing or no label at all is left out."""
    if cells.dtype.kind != "O":
        found = np.unique(cells)
        return np.asarray(found[found == found])
    labels = sorted({one for one in cells if is_label(one)}, key=label_order)
    alike = all(isinstance(one, str) for one in labels) or all(isinstance(one, Real | np.bool_) for one in labels)
    return np.array(labels) if alike else columns.objects(labels)


def _floats(name: str, array: NDArray[Any]) -> NDArray[Any]:
    """An array as floats by its type: float64 and float32 stay, objects are read one by one."""
    kind = array.dtype
    if kind.kind == "O":
        return columns.each_number(array)
    if kind.kind == "c":
        raise ValueError(_COMPLEX.format(name))
    if kind.kind not in "fiub":
        raise ValueError(f"{name} must hold numbers, got an array of {kind.type.__name__}: convert it")
    if kind in (np.float64, np.float32):
        return array
    with np.errstate(all="ignore"):  # a long double beyond float64 is infinite, without a word
        return array.astype(np.float64)


def _unmasked(given: Any, found: NDArray[Any]) -> NDArray[Any]:
    """NaN where the array that was given is masked."""
    if not isinstance(given, np.ma.MaskedArray):
        return found
    return np.where(np.ma.getmaskarray(given), found.dtype.type(np.nan), found)


def _sparse(x: Any) -> Any:
    """A CSR matrix of floats whose repeated entries are added up; the one given stays as it is."""
    rows = x.tocsr()
    data = _floats("X", rows.data)
    if data is not rows.data:
        rows = type(rows)((data, rows.indices, rows.indptr), shape=rows.shape)
    if not rows.has_canonical_format:
        rows = rows.copy()
        with np.errstate(all="ignore"):
            rows.sum_duplicates()
    return rows


def _only_column(y: Any) -> Any:
    """The column of a frame that has one; None where y is no frame."""
    if not (columns.is_frame(y) or columns.is_table(y)):
        return None
    if y.shape[1] != 1:
        raise ValueError(f"y should be a 1d array, got a frame of shape {tuple(y.shape)}")
    return y.iloc[:, 0] if columns.is_frame(y) else columns.arrow_table(y).column(0)


def _is_series(y: Any) -> bool:
    """Whether y is a pandas column."""
    return getattr(y, "ndim", 0) == 1 and hasattr(y, "to_numpy") and columns.of_package(y, "pandas")


def _is_array(x: Any) -> bool:
    """Whether a container has a type for all its cells: an array, or what turns into one."""
    return hasattr(x, "__array__") or hasattr(x, "__array_interface__") or hasattr(x, "__dlpack__")


def _listed(name: str, x: Any) -> list[Any]:
    """The entries of a list, tuple, deque or any other collection that has a length and an order."""
    unfit = isinstance(x, str | bytes | bytearray | Mapping | AbstractSet)
    if unfit or not (isinstance(x, Sized) and isinstance(x, Iterable)):
        raise ValueError(f"{name} must be an array, a frame or a list, got {type(x).__name__}: convert it")
    return list(x)


def _single(one: Any) -> Any:
    """The entry of a list of one, as of a column written as a list of rows."""
    return one[0] if isinstance(one, list | tuple) and len(one) == 1 else one


def _rows(x: list[Any]) -> Floats:
    """A list of rows; only their lengths can be wrong."""
    return np.array([[number(cell) for cell in one] for one in _same_width([_row(one) for one in x])])


def _same_width(rows: list[list[Any] | None]) -> list[list[Any]]:
    """Rows of one length; nothing else is looked at."""
    lengths = {-1 if one is None else len(one) for one in rows}
    if len(lengths) > 1:
        raise ValueError("the rows of X must be as long as each other")
    if lengths <= {-1}:
        raise ValueError(_FLAT.format(1))
    return [one or [] for one in rows]


def _row(row: Any) -> list[Any] | None:
    """The cells of one row; None where it is no row."""
    if isinstance(row, list | tuple):
        return list(row)
    try:
        if isinstance(row, np.ma.MaskedArray):
            return row.tolist() if row.ndim == 1 else None
        if _is_array(row):
            array = np.asarray(row)
            return array.tolist() if array.ndim == 1 else None
        return _listed("X", row)
    except Exception:  # no row; an error would tell of one record
        return None
