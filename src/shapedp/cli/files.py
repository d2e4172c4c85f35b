"""Vectors and tables in npy, csv and parquet files, written whole or not at all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from shapedp.boundary.arrays import numbers
from shapedp.boundary.cells import text_number
from shapedp.boundary.columns import arrow_floats, arrow_numeric, refuse_columns
from shapedp.boundary.documents import read as read_json
from shapedp.boundary.documents import write as write_json
from shapedp.boundary.files import atomic, csv_bytes, read_array, readable
from shapedp.boundary.texts import column_of, rows_of
from shapedp.numerics.checks import column_names

__all__ = ["SUFFIXES", "Vector", "read_json", "read_records", "read_vector", "suffix", "write_columns", "write_json"]
__all__ += ["write_vector"]

SUFFIXES = (".npy", ".csv", ".parquet")


@dataclass(frozen=True, eq=False)
class Vector:
    """Values read from a file, with the name of their column where one was declared."""

    values: NDArray[Any]
    name: str | None = None


def suffix(path: Path) -> str:
    """The format of a file, by its ending."""
    if path.suffix not in SUFFIXES:
        raise ValueError(f"{path}: the format must be one of {', '.join(SUFFIXES)}")
    return path.suffix


def read_vector(path: Path, column: str | None = None, *, header: bool | None = None) -> Vector:
    """One column of numbers; `column` chooses where the file has several.

    `header` says whether the first row of a csv file holds names; None: it does where a column is chosen by name, or
    where the row is not one of numbers. No error repeats it, and the vector has a name only if that was declared: by
    `column`, or by a parquet file.
    """
    kind = suffix(path)
    readable(path)
    if kind == ".npy":
        if column is not None:
            raise ValueError("--column does not apply to npy files")
        return Vector(read_array(path))
    if kind == ".csv":
        return _read_csv(path, column, header)
    table = _parquet().read_table(path)
    name = table.column_names[_choose(path, table.column_names, column)]
    values = table.column(name)
    refuse_columns({} if arrow_numeric(values.type) else {name: str(values.type)})
    return Vector(arrow_floats(values) if values.null_count or not _plain(values.type) else values.to_numpy(), name)


def read_records(
    path: Path, columns: list[str] | None = None, *, header: bool = True
) -> tuple[list[str], NDArray[np.float64]]:
    """The names of the columns, and a row of numbers per record; a cell that is no number is NaN.

    Guarantee: names are those of `columns`, of a parquet file or numbers; no error repeats a cell. The first row of a
    csv file holds names where `header` is true, and `columns` says which.
    """
    kind = suffix(path)
    readable(path)
    if kind != ".csv" and not header:
        raise ValueError("--no-header is for csv files")
    if kind == ".npy":
        array = finite_or_nan(path, read_array(path))
        names = [str(i) for i in range(array.shape[1])]
        return columns or names, array[:, _chosen(path, names, columns)]
    if kind == ".parquet":
        table = _parquet().read_table(path)
        some = table.select(_chosen(path, table.column_names, columns))
        kinds = zip(some.column_names, some.schema.types, strict=True)
        refuse_columns({name: str(one) for name, one in kinds if not arrow_numeric(one)})
        return some.column_names, np.column_stack([arrow_floats(one) for one in some.columns])
    return _csv_records(path, columns, header)


def _csv_records(path: Path, columns: list[str] | None, header: bool) -> tuple[list[str], NDArray[np.float64]]:
    rows = _csv_rows(path)
    if header and columns is None:
        raise ValueError(
            f"{path}: name the columns with --columns a,b,c, or say --no-header if the first row is a record"
        )
    width = len(rows[0])
    names = list(column_names(path, rows.pop(0))) if header else [str(i) for i in range(width)]
    wanted = _chosen(path, names, columns, listed=False)
    return columns or names, np.column_stack([column_of(path, rows, index, width) for index in wanted])


def finite_or_nan(path: Path, array: NDArray[Any]) -> NDArray[np.float64]:
    """A 2-d array of real numbers."""
    if array.ndim != 2 or array.dtype.kind not in "iuf":
        raise ValueError(f"{path}: records must be a 2-d array of real numbers, one row each, got shape {array.shape}")
    return np.asarray(numbers(array), dtype=np.float64)


def _csv_rows(path: Path) -> list[list[str]]:
    rows = rows_of(path)
    if not rows or not rows[0]:
        raise ValueError(f"{path}: the file is empty, or its first row is")
    return rows


def _read_csv(path: Path, column: str | None, header: bool | None) -> Vector:
    rows = _csv_rows(path)
    if [] in rows:
        raise ValueError(f"{path}: line {rows.index([]) + 1} is blank; a missing value cannot be released")
    width = len(rows[0])
    if header is None:
        header = any(math.isnan(text_number(cell)) for cell in rows[0])
    if not header and column is None and len(rows) == 1:
        rows, width = [[cell] for cell in rows[0]], 1
    names = list(column_names(path, rows.pop(0))) if header else [str(i) for i in range(width)]
    index = _choose(path, names, column, listed=False)
    values = column_of(path, rows, index, width)
    if np.isnan(values).any():
        raise ValueError(f"{path}: the column holds something that is not a number, or not a finite one")
    return Vector(values, column if header else None)


def _chosen(path: Path, names: list[str], columns: list[str] | None, *, listed: bool = True) -> list[int]:
    """Where the columns stand that were asked for, or all of them."""
    return list(range(len(names))) if columns is None else [_choose(path, names, one, listed=listed) for one in columns]


def _choose(path: Path, names: list[str], column: str | None, *, listed: bool = True) -> int:
    """Where a column stands; names that may be a record are not listed."""
    if column is not None:
        if names.count(column) != 1:
            found = "several columns" if column in names else "no column"
            raise ValueError(f"{path}: {found} {column!r}" + (f"; it has {', '.join(names)}" if listed else ""))
        return names.index(column)
    if len(names) != 1:
        raise ValueError(f"{path}: has {len(names)} columns; choose one with --column")
    return 0


def _plain(kind: Any) -> bool:
    """Whether numpy has the Arrow type."""
    import pyarrow

    return bool(pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind))


def write_vector(path: Path, vector: Vector) -> None:
    """The values, in the format of the path's ending, exactly."""
    kind = suffix(path)
    if kind == ".parquet":
        _parquet()
    with atomic(path) as stream:
        if kind == ".npy":
            np.save(stream, vector.values, allow_pickle=False)
        elif kind == ".csv":
            header = [[vector.name]] if vector.name else []
            stream.write(csv_bytes([*header, *([float(value)] for value in vector.values)]))
        else:
            _write_parquet(stream, vector)


def write_columns(path: Path, columns: dict[str, Any]) -> None:
    """Columns of equal length as csv or parquet; the column "value" alone as npy."""
    if suffix(path) == ".npy":
        return write_vector(path, Vector(np.asarray(columns["value"])))
    if suffix(path) == ".parquet":
        _parquet()
    with atomic(path) as stream:
        if suffix(path) == ".parquet":
            _write_table(stream, columns)
        else:
            stream.write(csv_bytes([list(columns), *zip(*columns.values(), strict=True)]))
    return None


def _write_parquet(stream: IO[bytes], vector: Vector) -> None:
    _write_table(stream, {vector.name or "value": vector.values})


def _write_table(stream: IO[bytes], columns: dict[str, Any]) -> None:
    import pyarrow

    _parquet().write_table(pyarrow.table(columns), stream)


def _parquet() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise ImportError("parquet files need pyarrow: pip install 'shapedp[learn]'") from None
    return pyarrow.parquet
