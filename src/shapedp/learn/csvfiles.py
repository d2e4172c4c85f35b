"""CSV files as columns. Every cell is read for itself: as a number in a feature, as a number or text in a label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.boundary.cells import text_label
from shapedp.boundary.texts import RAGGED, first_row, text_floats, text_labels
from shapedp.numerics.checks import column_names

Floats = NDArray[np.float64]
BLOCK = 1 << 20  # bytes read at a time; more where a row is longer
LONGEST = (1 << 31) - 1


@dataclass(frozen=True, eq=False)
class CsvFiles:
    """Files with one header, or none (`header=False`: columns are then named 0, 1, ...); a line is a record, an
    empty one too.

    Guarantee: the names are public; a header with a number among them is refused, as it may be a record, and no error
    repeats it. Whether a column holds numbers would depend on records: whatever is asked for as a feature counts as
    one of numbers, and a cell that is none is NaN. Errors quote no row.
    """

    paths: tuple[Path, ...]
    names: tuple[str, ...]
    header: bool = True
    once = False
    listed = False

    @classmethod
    def of(cls, paths: list[Path], header: bool = True) -> CsvFiles:
        """The files, their headers compared."""
        names = _names(paths[0], header)
        for path in paths[1:]:
            if _names(path, header) != names:
                raise ValueError(f"{path} has other columns than {paths[0]}")
        return cls(tuple(paths), names, header)

    @cached_property
    def records(self) -> int:
        return sum(batch.num_rows for batch in self._batches([self.names[0]]))

    def odd(self, names: tuple[str, ...]) -> dict[Any, str]:
        return {}

    def label(self, given: Any) -> Any:
        return text_label(given.encode()) if isinstance(given, str) else given

    def parts(self, names: tuple[str, ...], label: Any = None) -> Iterator[tuple[int, list[NDArray[Any]]]]:
        wanted = list(dict.fromkeys(names if label is None else (*names, label)))
        for batch in self._batches(wanted):
            columns: list[NDArray[Any]] = [text_floats(batch.column(name)) for name in names]
            if label is not None:
                columns.append(text_labels(batch.column(label)))
            yield batch.num_rows, columns

    def _batches(self, wanted: list[str]) -> Iterator[Any]:
        """Batches of bytes; a file with a row longer than a block goes on in larger blocks."""
        for path in self.paths:
            done, block = 0, BLOCK
            while block:
                try:
                    for batch in self._read(path, wanted, block, done):
                        done += batch.num_rows
                        yield batch
                    break
                except ValueError:
                    block = 0 if block > path.stat().st_size or block == LONGEST else min(16 * block, LONGEST)
            else:
                raise ValueError(RAGGED.format(path, len(self.names)))

    def _read(self, path: Path, wanted: list[str], block: int, done: int) -> Iterator[Any]:
        """The batches of one file from a record on."""
        import pyarrow
        from pyarrow import csv

        read = csv.ReadOptions(column_names=list(self.names), skip_rows_after_names=int(self.header), block_size=block)
        kinds = dict.fromkeys(self.names, pyarrow.binary())
        convert = csv.ConvertOptions(column_types=kinds, include_columns=wanted, strings_can_be_null=False)
        parse = csv.ParseOptions(ignore_empty_lines=False, newlines_in_values=True)
        for batch in csv.open_csv(path, read_options=read, convert_options=convert, parse_options=parse):
            left = batch.slice(min(done, batch.num_rows))
            done -= batch.num_rows - left.num_rows
            if left.num_rows:
                yield left


def _names(path: Path, header: bool) -> tuple[str, ...]:
    first = first_row(path)
    if not first:
        raise ValueError(f"{path}: the file is empty; a header with the names of the columns is expected")
    return column_names(path, first) if header else tuple(map(str, range(len(first))))
