"""CSV files as columns. Every cell is read for itself: as a number in a feature, as a number or text in a label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.learn.cells import objects
from shapedp.numerics.checks import column_names

Floats = NDArray[np.float64]
EMPTY = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")


@dataclass(frozen=True, eq=False)
class CsvFiles:
    """Files with one header; a line is a record, an empty one too.

    Guarantee: the names are public; a header with a number among them is refused, as it may be a record. Whether a
    column holds numbers would depend on records: whatever is asked for as a feature counts as one of numbers, and a
    cell that is none is NaN. Errors quote no row.
    """

    paths: tuple[Path, ...]
    names: tuple[str, ...]
    once = False

    @classmethod
    def of(cls, paths: list[Path]) -> CsvFiles:
        """The files, their headers compared."""
        names = _header(paths[0])
        for path in paths[1:]:
            if _header(path) != names:
                raise ValueError(f"{path} has other columns than {paths[0]}")
        return cls(tuple(paths), names)

    @cached_property
    def records(self) -> int:
        return sum(batch.num_rows for batch in self._batches([self.names[0]]))

    def odd(self, names: tuple[str, ...]) -> dict[Any, str]:
        return {}

    def label(self, given: Any) -> Any:
        return _label(given.encode()) if isinstance(given, str) else given

    def parts(self, names: tuple[str, ...], label: Any = None) -> Iterator[tuple[int, list[NDArray[Any]]]]:
        wanted = list(dict.fromkeys(names if label is None else (*names, label)))
        for batch in self._batches(wanted):
            columns: list[NDArray[Any]] = [_floats(batch.column(name)) for name in names]
            if label is not None:
                columns.append(_labels(batch.column(label)))
            yield batch.num_rows, columns

    def _batches(self, wanted: list[str]) -> Iterator[Any]:
        """Batches of bytes."""
        import pyarrow
        from pyarrow import csv

        kinds = dict.fromkeys(self.names, pyarrow.binary())
        convert = csv.ConvertOptions(column_types=kinds, include_columns=wanted, strings_can_be_null=False)
        parse = csv.ParseOptions(ignore_empty_lines=False, newlines_in_values=True)
        for path in self.paths:
            try:
                yield from csv.open_csv(path, convert_options=convert, parse_options=parse)
            except pyarrow.ArrowInvalid:
                raise ValueError(
                    f"{path}: a row has more or fewer cells than the header ({len(self.names)}), or is longer than a "
                    "megabyte: mend the file"
                ) from None


def _header(path: Path) -> tuple[str, ...]:
    import pyarrow
    from pyarrow import csv

    with path.open("rb") as stream:
        line = stream.readline()
    if not line.strip():
        raise ValueError(f"{path}: the file is empty; a header with the names of the columns is expected")
    names = tuple(csv.read_csv(pyarrow.BufferReader(line)).schema.names)
    column_names(path, names)
    return names


def _floats(column: Any) -> Floats:
    """Bytes as float64, NaN where they are no number."""
    import pyarrow
    from pyarrow import compute

    try:
        text = compute.utf8_trim_whitespace(column.cast(pyarrow.string()))
        found = compute.if_else(compute.is_in(text, pyarrow.array(EMPTY)), None, text).cast(pyarrow.float64())
        return np.asarray(found.to_numpy(zero_copy_only=False))
    except pyarrow.ArrowInvalid:  # one of the cells: each for itself then, with the same result for the others
        return np.fromiter((_number(cell) for cell in column.to_pylist()), np.float64, len(column))


def _number(cell: bytes) -> float:
    try:
        return float(cell.decode())
    except ValueError:
        return np.nan


def _labels(column: Any) -> NDArray[Any]:
    coded = column.dictionary_encode()
    read = objects([_label(cell) for cell in coded.dictionary.to_pylist()])
    return np.asarray(read[coded.indices.to_numpy()])


def _label(cell: bytes) -> float | str | None:
    """A number where the cell is one, else its text; None where it is empty or no text."""
    value = _number(cell)
    try:
        return value if value == value else cell.decode() or None
    except UnicodeDecodeError:
        return None
