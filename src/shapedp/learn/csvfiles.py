"""CSV files as columns of numbers: a cell that is no number is missing, wherever it stands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from shapedp.learn.streams import Arrow

EMPTY = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")


def csv_source(paths: list[Path]) -> Arrow:
    """Files with a header. A column is one of numbers if the first megabyte of the first file holds one in it."""
    import pyarrow
    from pyarrow import csv

    first = next(iter(_batches(paths[:1], None)), None)
    if first is None:
        raise ValueError(f"{paths[0]}: the file holds no records")
    names = list(first.schema.names)
    numbers = {name for name in names if np.isfinite(_parsed(first.column(name)).to_numpy(zero_copy_only=False)).any()}
    fields = [(name, pyarrow.float64() if name in numbers else pyarrow.string()) for name in names]

    def batches(wanted: list[str]) -> Iterator[Any]:
        for batch in _batches(paths, wanted):
            columns = [_parsed(batch.column(name)) if name in numbers else batch.column(name) for name in wanted]
            yield pyarrow.record_batch(columns, names=wanted)

    def length() -> int:
        return sum(batch.num_rows for batch in _batches(paths, names[:1]))

    for path in paths[1:]:
        if csv.open_csv(path).schema.names != names:
            raise ValueError(f"{path} has other columns than {paths[0]}")
    return Arrow(pyarrow.schema(fields), batches, length)


def _batches(paths: list[Path], wanted: list[str] | None) -> Iterator[Any]:
    """Batches of text."""
    import pyarrow
    from pyarrow import csv

    for path in paths:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            header = stream.readline()
        names = pyarrow.csv.read_csv(pyarrow.BufferReader(header.encode())).schema.names if header.strip() else []
        if not names:
            raise ValueError(f"{path}: the file is empty; a header with the names of the columns is expected")
        options = csv.ConvertOptions(
            column_types={name: pyarrow.string() for name in names}, include_columns=wanted, strings_can_be_null=False
        )
        yield from csv.open_csv(path, convert_options=options)


def _parsed(column: Any) -> Any:
    """Text as float64; what cannot be read is null."""
    import pyarrow
    from pyarrow import compute

    clean = compute.utf8_trim_whitespace(column)
    clean = compute.if_else(compute.is_in(clean, pyarrow.array(EMPTY)), None, clean)
    try:
        return clean.cast(pyarrow.float64())
    except pyarrow.ArrowInvalid:
        return pyarrow.array([_number(cell) for cell in clean.to_pylist()], pyarrow.float64())


def _number(cell: str | None) -> float | None:
    try:
        return None if cell is None else float(cell)
    except ValueError:
        return None
