"""Csv files. Each cell is read for itself: as a number, or, in a column of labels, as a number or a text."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.boundary.cells import text_label, text_number
from shapedp.boundary.columns import objects
from shapedp.boundary.files import check_input
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import column_names
from shapedp.tables.sources import Part, Source, labelled

BLOCK = 1 << 20  # bytes read at a time; more where a row is longer
LONGEST = (1 << 31) - 1
_RAGGED = "{}: a row has more or fewer cells than the header or the first row ({}): mend the file"
_PLAIN = r"\A *[-+]?[0-9]{1,99}(?:\.[0-9]{1,99})?(?:[eE][-+]?[0-9]{1,2})? *\z"  # Arrow reads it as Python does


def csv_source(paths: list[Path], header: bool = True) -> Source:
    """Csv files with the same header, or none (`header=False`: columns are then named 0, 1, ...).

    Each line is a record, an empty one too. Files are read by Arrow in blocks, so they may be larger than memory.

    Guarantee: column names are public. A header that holds a number is refused, since it may be a record; no error
    repeats the header or a row. Whether a column holds numbers would depend on records, so every column asked for as
    a feature counts as one of numbers, and a cell that is none is NaN.
    """
    names = csv_names(paths, header)

    def batches(wanted: list[str]) -> Iterator[Any]:
        for path in paths:
            yield from csv_batches(path, names, header, wanted)

    def parts(features: tuple[str, ...], label: Any) -> Iterator[Part]:
        for batch in batches(list(dict.fromkeys((*features, *labelled(label))))):
            columns: list[NDArray[Any]] = [csv_numbers(batch.column(name)) for name in features]
            columns += [_arrow_labels(batch.column(name)) for name in labelled(label)]
            yield batch.num_rows, columns

    def count() -> int:
        return sum(batch.num_rows for batch in batches([names[0]]))

    return Source(names, parts, lambda features: {}, count, declared=False, label=_label)


def _label(given: Any) -> Any:
    return text_label(given.encode()) if isinstance(given, str) else given


def csv_names(paths: list[Path], header: bool = True) -> tuple[str, ...]:
    """The columns that all the files have."""
    names = _names(paths[0], header)
    for path in paths[1:]:
        if _names(path, header) != names:
            raise ValueError(f"{path} has other columns than {paths[0]}")
    return names


def csv_batches(
    path: Path, names: tuple[str, ...], header: bool, wanted: list[str], *, ragged: str = "error"
) -> Iterator[Any]:
    """Arrow batches of bytes. A file with a row longer than a block is read on in larger blocks.

    A row with more or fewer cells than the header is an error; with ragged="skip" it is left out.
    """
    import pyarrow
    from pyarrow import csv as arrow_csv

    handler = {"invalid_row_handler": lambda row: "skip"} if ragged == "skip" else {}
    parse = arrow_csv.ParseOptions(ignore_empty_lines=False, newlines_in_values=True, **handler)
    kinds = dict.fromkeys(names, pyarrow.binary())
    convert = arrow_csv.ConvertOptions(column_types=kinds, include_columns=wanted, strings_can_be_null=False)
    # Arrow shows the handler a text. A row that is none would stop it, and be told of: every byte is a character here.
    encoding = "latin-1" if handler else "utf8"
    done, block = 0, BLOCK
    while block:
        read = arrow_csv.ReadOptions(
            column_names=list(names), skip_rows_after_names=int(header), block_size=block, encoding=encoding
        )
        skip = done
        try:
            for batch in arrow_csv.open_csv(path, read, parse, convert):
                left = batch.slice(min(skip, batch.num_rows))
                skip -= batch.num_rows - left.num_rows
                done += left.num_rows
                if left.num_rows:
                    yield _as_written(left) if handler else left
            return
        except ValueError:
            block = 0 if block > path.stat().st_size or block == LONGEST else min(16 * block, LONGEST)
    raise ValueError(_RAGGED.format(path, len(names)))


def _as_written(batch: Any) -> Any:
    """A batch that was read as Latin-1, with the bytes that stand in the file."""
    import pyarrow

    def written(column: Any) -> Any:
        letters = column.buffers()[2]
        if letters is None or not np.any(np.frombuffer(letters, np.uint8) > 127):
            return column
        return pyarrow.array([cell.decode().encode("latin-1") for cell in column.to_pylist()], pyarrow.binary())

    return pyarrow.record_batch([written(column) for column in batch.columns], schema=batch.schema)


def csv_rows(path: Path) -> list[list[str]]:
    """All rows of a csv file in memory. A blank line is []; blank lines at the end do not count."""
    with _opened(path) as rows:
        found = list(rows)
    while found and not found[-1]:
        found.pop()
    if not found or not found[0]:
        raise ValueError(f"{path}: the file is empty, or its first row is")
    return found


def csv_column(path: Path, rows: list[list[str]], index: int, width: int) -> Floats:
    """One column of rows that have `width` cells each, as numbers; NaN where a cell is none, and in a blank line."""
    if any(row and len(row) != width for row in rows):
        raise ValueError(_RAGGED.format(path, width))
    return np.array([text_number(row[index]) if row else np.nan for row in rows], dtype=np.float64)


def _names(path: Path, header: bool) -> tuple[str, ...]:
    with _opened(path) as rows:
        first = [cell.strip() for cell in next(rows, [])]
    if not first:
        raise ValueError(f"{path}: the file is empty; a header with the names of the columns is expected")
    return column_names(path, first) if header else tuple(map(str, range(len(first))))


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The rows of a file. Bytes that are no text stay in their cell, and no cell is too long."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        check_input(path)
        with path.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as stream:
            yield csv.reader(stream)
    except csv.Error:
        raise ValueError(f"{path}: not a csv file") from None
    finally:
        csv.field_size_limit(before)


def csv_numbers(column: Any) -> Floats:
    """An Arrow column of bytes as numbers: cells in plain notation all at once, every other cell by itself."""
    import pyarrow
    from pyarrow import compute

    plain = compute.match_substring_regex(column, _PLAIN)
    text = compute.utf8_trim(compute.if_else(plain, column, None).cast(pyarrow.string()), characters=" ")
    found = np.array(text.cast(pyarrow.float64()).to_numpy(zero_copy_only=False))
    others = np.flatnonzero(~np.asarray(plain.to_numpy(zero_copy_only=False), dtype=np.bool_))
    found[others] = [text_number(cell) for cell in column.take(pyarrow.array(others)).to_pylist()]
    return found


def _arrow_labels(column: Any) -> NDArray[Any]:
    """An Arrow column of bytes as labels."""
    coded = column.dictionary_encode()
    read = objects(text_label(cell) for cell in coded.dictionary.to_pylist())
    return np.asarray(read[coded.indices.to_numpy()])
