"""Vectors and small tables in npy, csv and parquet files: read into memory, written whole or not at all."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.boundary.arrays import numbers
from shapedp.boundary.cells import text_number
from shapedp.boundary.columns import arrow, arrow_cells, arrow_floats, arrow_numeric, refuse_columns
from shapedp.boundary.files import atomic, check_input, csv_bytes, read_array
from shapedp.boundary.refusals import refusal
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import column_names, laid_out
from shapedp.tables.csvfiles import csv_column, csv_rows

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
    where the row is not one of numbers. No error repeats that row. The vector has a name only where one was declared:
    by `column`, or by a parquet file.
    """
    kind = suffix(path)
    check_input(path)
    if kind == ".npy":
        if column is not None:
            raise ValueError("--column does not apply to npy files")
        return Vector(read_array(path))
    if kind == ".csv":
        return _csv_vector(path, column, header)
    names = arrow().parquet.read_schema(path).names
    name = names[_choose(path, names, column)]
    values, types = _read_parquet(path, [name]).column(0), arrow().types
    plain = types.is_integer(values.type) or types.is_floating(values.type)  # numpy has the type
    return Vector(values.to_numpy() if plain and not values.null_count else arrow_floats(values), name)


def read_records(path: Path, columns: list[str] | None = None, *, header: bool = True) -> tuple[list[str], Floats]:
    """The names of the columns, and a row of numbers per record; a cell that is no number is NaN.

    The first row of a csv file holds names where `header` is true, and `columns` says which of them to read.

    Guarantee: the names are those of `columns`, of a parquet file, or numbers; no error repeats a cell.
    """
    kind = suffix(path)
    check_input(path)
    if kind == ".csv":
        return _csv_records(path, columns, header)
    if not header:
        raise ValueError("--no-header is for csv files")
    if kind == ".npy":
        array = read_array(path)
        if array.ndim != 2 or array.dtype.kind not in "iuf":
            raise ValueError(f"{path}: records must be a 2-d array of real numbers, a row each, got {array.shape}")
        names = [str(i) for i in range(array.shape[1])]
        rows = np.asarray(numbers(array), dtype=np.float64)
        return columns or names, rows[:, _chosen(path, names, columns)]
    some = _read_parquet(path, columns)
    return some.column_names, np.asarray(numbers(some))


def read_ids(path: Path, column: str, *, header: bool = True) -> list[str | int | None]:
    """The ids of persons in a column of a csv or parquet file, None where a cell is empty or cannot be read.

    Guarantee: the column's type is looked at before a cell is read; no error repeats a cell.
    """
    kind = suffix(path)
    check_input(path)
    if kind == ".npy":
        raise ValueError("--person names a column of a csv or parquet file: an npy file has no names")
    if kind == ".csv":
        rows = csv_rows(path)
        width = len(rows[0])
        names = list(column_names(path, rows.pop(0))) if header else [str(i) for i in range(width)]
        index = _choose(path, names, column, listed=False)
        csv_column(path, rows, index, width)  # refuses rows of another width
        return [(row[index].strip(" ") or None) if row else None for row in rows]
    with arrow().parquet.ParquetFile(path) as file:
        schema, types = file.schema_arrow, arrow().types
        found = schema.types[_choose(path, schema.names, column)]
        own = found.value_type if types.is_dictionary(found) else found
        if not (types.is_integer(own) or types.is_string(own) or types.is_large_string(own)):
            raise ValueError(f"{path}: persons are told apart by whole numbers or texts; {column!r} is of type {found}")
        laid_out(file.metadata.num_rows)
        return list(arrow_cells(file.read(columns=[column]).column(0)))


def _read_parquet(path: Path, columns: list[str] | None) -> Any:
    """Columns of a parquet file, all where none are named, once they are known to be numbers, and not too many.

    A few bytes may stand for any number of equal cells: what the file announces is looked at before a cell is read.
    """
    with arrow().parquet.ParquetFile(path) as file:
        schema = file.schema_arrow
        wanted = _chosen(path, schema.names, columns)
        refuse_columns({schema.names[i]: str(schema.types[i]) for i in wanted if not arrow_numeric(schema.types[i])})
        laid_out(file.metadata.num_rows * len(wanted))
        return file.read() if columns is None else file.read(columns=columns).select(columns)


def _csv_records(path: Path, columns: list[str] | None, header: bool) -> tuple[list[str], Floats]:
    rows = csv_rows(path)
    if header and columns is None:
        raise ValueError(refusal("tables", "name-the-columns", path=path))
    width = len(rows[0])
    names = list(column_names(path, rows.pop(0))) if header else [str(i) for i in range(width)]
    wanted = _chosen(path, names, columns, listed=False)
    return columns or names, np.column_stack([csv_column(path, rows, index, width) for index in wanted])


def _csv_vector(path: Path, column: str | None, header: bool | None) -> Vector:
    rows = csv_rows(path)
    if [] in rows:
        raise ValueError(f"{path}: line {rows.index([]) + 1} is blank; a missing value cannot be released")
    width = len(rows[0])
    if header is None:
        header = any(math.isnan(text_number(cell)) for cell in rows[0])
    if not header and column is None and len(rows) == 1:
        rows, width = [[cell] for cell in rows[0]], 1
    names = list(column_names(path, rows.pop(0))) if header else [str(i) for i in range(width)]
    values = csv_column(path, rows, _choose(path, names, column, listed=False), width)
    if np.isnan(values).any():
        raise ValueError(f"{path}: the column holds something that is not a number, or not a finite one")
    return Vector(values, column if header else None)


def _chosen(path: Path, names: list[str], columns: list[str] | None, *, listed: bool = True) -> list[int]:
    """Where the columns stand that were asked for, or all of them."""
    return list(range(len(names))) if columns is None else [_choose(path, names, one, listed=listed) for one in columns]


def _choose(path: Path, names: list[str], column: str | None, *, listed: bool = True) -> int:
    """Where a column stands; an error lists the names only if they cannot be a record."""
    if column is not None:
        if names.count(column) != 1:
            found = "several columns" if column in names else "no column"
            raise ValueError(f"{path}: {found} {column!r}" + (f"; it has {', '.join(names)}" if listed else ""))
        return names.index(column)
    if len(names) != 1:
        raise ValueError(f"{path}: has {len(names)} columns; choose one with --column")
    return 0


def write_vector(path: Path, vector: Vector) -> None:
    """Write the values, exactly, in the format of the path's ending."""
    name = vector.name if vector.name and suffix(path) != ".npy" else "value"
    write_columns(path, {name: vector.values}, header=bool(vector.name))


def write_columns(path: Path, columns: dict[str, Any], *, header: bool = True) -> None:
    """Write columns of equal length as csv (with a row of names if `header`) or parquet; as npy the column "value"."""
    kind = suffix(path)
    library: Any = arrow() if kind == ".parquet" else None
    with atomic(path) as stream:
        if kind == ".npy":
            np.save(stream, np.asarray(columns["value"]), allow_pickle=False)
        elif kind == ".csv":
            cells = [map(float, one) if isinstance(one, np.ndarray) else one for one in columns.values()]
            stream.write(csv_bytes([*([list(columns)] if header else []), *zip(*cells, strict=True)]))
        else:
            library.parquet.write_table(library.table(columns), stream)
