"""Vectors and tables in npy, csv and parquet files, written whole or not at all."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from shapedp.boundary.documents import read as read_json
from shapedp.boundary.documents import write as write_json
from shapedp.boundary.files import atomic, csv_bytes, read_array
from shapedp.numerics.checks import column_names

__all__ = ["SUFFIXES", "Vector", "read_json", "read_records", "read_vector", "suffix", "write_columns", "write_json"]
__all__ += ["write_vector"]

SUFFIXES = (".npy", ".csv", ".parquet")


@dataclass(frozen=True, eq=False)
class Vector:
    """Values read from a file, with the name of their column where the file had one."""

    values: NDArray[Any]
    name: str | None = None


def suffix(path: Path) -> str:
    """The format of a file, by its ending."""
    if path.suffix not in SUFFIXES:
        raise ValueError(f"{path}: the format must be one of {', '.join(SUFFIXES)}")
    return path.suffix


def read_vector(path: Path, column: str | None = None) -> Vector:
    """One column of numbers; `column` chooses where the file has several."""
    kind = suffix(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    if kind == ".npy":
        if column is not None:
            raise ValueError("--column does not apply to npy files")
        return Vector(read_array(path))
    if kind == ".csv":
        return _read_csv(path, column)
    table = _parquet().read_table(path)
    name = _choose(path, table.column_names, column)
    return Vector(table.column(name).to_numpy(), name)


def read_records(path: Path, columns: list[str] | None = None) -> tuple[list[str], NDArray[np.float64]]:
    """The names of the columns, and a row of numbers per record; an empty cell is NaN."""
    kind = suffix(path)
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file")
    if kind == ".npy":
        array = finite_or_nan(path, read_array(path))
        return _columns(path, [str(i) for i in range(array.shape[1])], columns, lambda i: array[:, i])
    if kind == ".parquet":
        table = _parquet().read_table(path)
        return _columns(path, table.column_names, columns, lambda i: table.column(i).to_numpy())
    first, *rows = _csv_rows(path)
    header = list(column_names(path, first))

    def column(index: int) -> list[float]:
        try:
            return [float(row[index]) if row[index].strip() else np.nan for row in rows if row]
        except (ValueError, IndexError):
            raise ValueError(f"column {header[index]!r} holds something that is not a number") from None

    return _columns(path, header, columns, column)


def finite_or_nan(path: Path, array: NDArray[Any]) -> NDArray[np.float64]:
    """A 2-d array of real numbers."""
    if array.ndim != 2 or array.dtype.kind not in "iuf":
        raise ValueError(f"{path}: records must be a 2-d array of real numbers, one row each, got shape {array.shape}")
    return array.astype(np.float64)


def _columns(
    path: Path, names: list[str], chosen: list[str] | None, column: Callable[[int], Any]
) -> tuple[list[str], NDArray[np.float64]]:
    wanted = names if chosen is None else [_choose(path, names, name) for name in chosen]
    try:
        values = [np.asarray(column(names.index(name)), dtype=np.float64) for name in wanted]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}; choose columns of numbers with --columns") from None
    return wanted, np.column_stack(values)


def _csv_rows(path: Path) -> list[list[str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            rows = list(csv.reader(stream))
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not a text file in UTF-8") from None
    while rows and not rows[-1]:
        rows.pop()
    if not rows:
        raise ValueError(f"{path}: the file is empty")
    return rows


def _read_csv(path: Path, column: str | None) -> Vector:
    rows = _csv_rows(path)
    if [] in rows:
        raise ValueError(f"{path}: line {rows.index([]) + 1} is blank; a missing value cannot be released")
    try:
        [float(cell) for cell in rows[0]]
        header = None
    except ValueError:
        header = [cell.strip() for cell in rows.pop(0)]
    if header is None and column is None and len(rows) == 1:
        return Vector(np.array([float(cell) for cell in rows[0]]))
    width = len(header or rows[0])
    names = header or [str(i) for i in range(width)]
    index = names.index(_choose(path, names, column))
    try:
        values = np.array([float(row[index]) for row in rows])
    except (ValueError, IndexError):
        raise ValueError(f"{path}: column {names[index]!r} holds something that is not a number") from None
    return Vector(values, header[index] if header else None)


def _choose(path: Path, names: list[str], column: str | None) -> str:
    if column is not None:
        if names.count(column) != 1:
            found = "several columns" if column in names else "no column"
            raise ValueError(f"{path}: {found} {column!r}; it has {', '.join(names)}")
        return column
    if len(names) != 1:
        raise ValueError(f"{path}: has the columns {', '.join(names)}; choose one with --column")
    return names[0]


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
