"""Columns of pandas and Arrow data, as floats or as objects. How a column is read depends on its type alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.boundary.cells import number
from shapedp.boundary.values import printable
from shapedp.numerics.arrays import Floats

_SCALE = 76  # of a decimal; one has at most so many digits


def objects(values: Iterable[Any]) -> NDArray[Any]:
    """A vector of objects, whatever they are."""
    return np.fromiter(values, dtype=object)


def each_number(cells: NDArray[Any]) -> Floats:
    """An array of objects as numbers."""
    return np.fromiter((number(one) for one in cells.flat), np.float64, cells.size).reshape(cells.shape)


def refuse_columns(odd: dict[Any, str]) -> None:
    """Refuse columns that hold no numbers, named with their types."""
    if odd:
        listed = ", ".join(f"{printable(str(name))} ({kind})" for name, kind in odd.items())
        raise ValueError(f"columns must hold numbers; these do not: {listed}. Convert them or leave them out")


def of_package(x: Any, package: str) -> bool:
    """Whether x is an object of a library, or of a subclass of one."""
    return any(base.__module__.partition(".")[0] == package for base in type(x).__mro__)


def is_frame(x: Any) -> bool:
    """Whether x is a pandas frame."""
    return getattr(x, "ndim", 0) == 2 and hasattr(x, "iloc") and of_package(x, "pandas")


def is_arrow(x: Any) -> bool:
    """Whether x is Arrow data or exports some: pyarrow, polars and others; pandas is read by its own types."""
    exports = hasattr(x, "__arrow_c_stream__") or hasattr(x, "__arrow_c_array__")
    return exports and not of_package(x, "pandas")


def is_table(x: Any) -> bool:
    """Whether x is Arrow data of several columns."""
    return is_arrow(x) and getattr(x, "ndim", len(getattr(x, "shape", (0,)))) == 2


def pandas_odd(frame: Any) -> dict[Any, str]:
    """The columns of a pandas frame that cannot hold numbers, with their types; columns of objects can."""
    kinds = zip(frame.columns, frame.dtypes.tolist(), strict=True)
    return {name: str(kind) for name, kind in kinds if not pandas_numeric(kind)}


def pandas_numeric(kind: Any) -> bool:
    """Whether a pandas type holds real numbers; one of objects, or of categories that are numbers, may."""
    from pandas.api.types import is_bool_dtype, is_complex_dtype, is_numeric_dtype

    if hasattr(kind, "pyarrow_dtype"):
        return arrow_numeric(kind.pyarrow_dtype)
    if hasattr(kind, "categories"):
        return pandas_numeric(kind.categories.dtype)
    numeric = is_numeric_dtype(kind) or is_bool_dtype(kind) or kind == np.object_
    return bool(numeric) and not is_complex_dtype(kind)


def _kept_by_arrow(kind: Any) -> bool:
    """Whether pandas keeps a column of this type as Arrow data, which may hold bytes that are no text."""
    return hasattr(kind, "pyarrow_dtype") or getattr(kind, "storage", None) == "pyarrow"


def pandas_floats(column: Any) -> Floats:
    """A pandas column (a series, an index or an array) as float64; NaN where it holds no number."""
    kind = column.dtype
    if _kept_by_arrow(kind):
        return arrow_floats(getattr(column, "array", column).__arrow_array__())
    if hasattr(kind, "categories"):
        coded = getattr(column, "array", column)
        return _coded(coded.codes, coded.codes >= 0, pandas_floats(kind.categories), np.nan)
    with np.errstate(all="ignore"):
        if isinstance(kind, np.dtype) and kind.kind in "fiub":
            return np.asarray(column, dtype=np.float64)
        if kind != np.object_ and pandas_numeric(kind):
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return each_number(column.to_numpy(dtype=object))


def pandas_cells(column: Any) -> NDArray[Any]:
    """A pandas column as labels: numpy's types stay, all others become objects, None where missing."""
    kind = column.dtype
    if isinstance(kind, np.dtype):
        return np.asarray(column)
    if _kept_by_arrow(kind):
        return arrow_cells(getattr(column, "array", column).__arrow_array__())
    if hasattr(kind, "categories"):  # pandas would turn whole numbers into floats for one missing cell
        coded = getattr(column, "array", column)
        return _coded(coded.codes, coded.codes >= 0, pandas_cells(kind.categories).astype(object), None)
    if pandas_numeric(kind):
        return np.asarray(column.to_numpy(dtype=object, na_value=None))
    array = getattr(column, "array", column)
    return objects(None if gone else _python(partial(array.__getitem__, i)) for i, gone in enumerate(array.isna()))


def pandas_rows(frame: Any) -> Floats:
    """The columns of a pandas frame side by side, as float64, or as float32 where all are; nothing is refused."""
    kinds = frame.dtypes.tolist()
    if kinds and all(kind == np.float32 for kind in kinds):
        return np.asarray(frame.to_numpy(dtype=np.float32))
    if all(isinstance(kind, np.dtype) and kind.kind in "fiub" and kind.itemsize <= 8 for kind in kinds):
        return np.asarray(frame.to_numpy(dtype=np.float64))
    rows = np.empty(frame.shape)
    for i in range(len(kinds)):
        rows[:, i] = pandas_floats(frame.iloc[:, i])
    return rows


def arrow() -> Any:
    """The library pyarrow."""
    try:
        import pyarrow
        import pyarrow.dataset
        import pyarrow.parquet
    except ImportError:
        raise ImportError("Arrow data and files need pyarrow: pip install 'shapedp[learn]'") from None
    return pyarrow


def arrow_table(x: Any) -> Any:
    """A table in memory as a pyarrow table."""
    library = arrow()
    if isinstance(x, library.Table):
        return x
    return _imported(lambda: library.RecordBatchReader.from_stream(x).read_all())


def arrow_column(x: Any) -> Any:
    """A vector in memory as a pyarrow array."""
    library = arrow()
    if isinstance(x, library.Array | library.ChunkedArray):
        return x
    return _imported(lambda: (library.chunked_array if hasattr(x, "__arrow_c_stream__") else library.array)(x))


def _imported(read: Callable[[], Any]) -> Any:
    """What another library exports; a type that Arrow does not have is refused in words."""
    try:
        return read()
    except arrow().ArrowException:
        raise TypeError("a column has a type that Arrow does not have: convert it to numbers or texts") from None


def arrow_numeric(kind: Any) -> bool:
    """Whether an Arrow type holds real numbers; that of a column of nulls does, for all are missing."""
    types = arrow().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    tests = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(test(kind) for test in tests)


def arrow_floats(column: Any) -> Floats:
    """An Arrow column as float64, NaN where it is null, and throughout where its type is not one of numbers.

    Large integers are rounded, each for itself; decimals to the nearest float, as if they were written out.
    """
    library = arrow()
    if isinstance(column, library.ChunkedArray):
        return np.concatenate([np.empty(0), *(arrow_floats(chunk) for chunk in column.chunks)])
    if not arrow_numeric(column.type):  # a cast would read text as numbers and fail on one cell
        return np.full(len(column), np.nan)
    refuse_damaged(column)
    if library.types.is_dictionary(column.type):
        return _coded(*_codes(column), arrow_floats(column.dictionary), np.nan)
    if library.types.is_decimal(column.type):  # Arrow multiplies by a rounded power of ten: 1.65 is not 1.65 then
        if abs(column.type.scale) > _SCALE:  # Arrow writes none of them out
            return np.full(len(column), np.nan)
        column = column.cast(library.string())
    return np.asarray(column.cast(library.float64(), safe=False).to_numpy(zero_copy_only=False))


def arrow_cells(column: Any) -> NDArray[Any]:
    """An Arrow column as Python objects, None where it is null or cannot be read."""
    library = arrow()
    if isinstance(column, library.ChunkedArray):
        return np.concatenate([np.empty(0, dtype=object), *(arrow_cells(chunk) for chunk in column.chunks)])
    if library.types.is_dictionary(column.type):
        return _coded(*_codes(column), arrow_cells(column.dictionary), None)
    plain = getattr(column, "storage", column)
    if library.types.is_nested(plain.type):  # no label and no id, and a damaged one may end the process
        return objects([None] * len(column))
    refuse_damaged(plain)
    if library.types.is_primitive(column.type) and arrow_numeric(column.type):  # each of them is a Python object
        return objects(column.to_pylist())
    return objects(_python(one.as_py) for one in column)


def refuse_damaged(column: Any) -> None:
    """Refuse an Arrow array (or batch) that leads outside of its own memory, which Arrow does not check in its files.

    To read it may end the process, or show other memory. Bytes that are no text, or digits beyond a decimal's, are odd
    cells, no damage.
    """
    library = arrow()
    kind = getattr(column, "type", None)
    as_bytes = {
        library.string(): library.binary(),
        library.large_string(): library.large_binary(),
        library.string_view(): library.binary_view(),
    }
    column = column.view(as_bytes[kind]) if kind in as_bytes else column
    offsets = kind in (*as_bytes, *as_bytes.values())
    failed = False
    try:
        column.validate(full=offsets)
    except library.ArrowException:
        failed = True
    if failed:  # raised here, so that it does not carry Arrow's own error along
        raise ValueError("the Arrow data are damaged: write them again, or read them from another copy")


def _python(cell: Callable[[], Any]) -> Any:
    """A cell as a Python object, None where it cannot be one."""
    try:
        return cell()
    except Exception:  # bytes that are no text, a date beyond Python's: an error would tell of one record
        return None


def _codes(column: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Where the values of a dictionary column stand, and which cells have one at all."""
    refuse_damaged(column.indices)
    known = np.asarray(column.indices.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    codes = np.asarray(column.indices.fill_null(0).to_numpy(zero_copy_only=False))
    return codes, known & (codes >= 0) & (codes < len(column.dictionary))


def _coded(codes: NDArray[Any], known: NDArray[np.bool_], values: NDArray[Any], missing: Any) -> NDArray[Any]:
    """values[codes] where a code is known; a missing cell takes nobody's value."""
    found = np.full(len(codes), missing, dtype=values.dtype)
    found[known] = values[codes[known]]
    return found
