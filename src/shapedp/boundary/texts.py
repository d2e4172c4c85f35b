"""Csv files: the rows, the first of them, and columns of bytes as numbers or labels, every cell read for itself."""

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
from shapedp.boundary.files import readable

Floats = NDArray[np.float64]
RAGGED = "{}: a row has more or fewer cells than the header or the first row ({}): mend the file"
_PLAIN = r"\A *[-+]?[0-9]{1,99}(?:\.[0-9]{1,99})?(?:[eE][-+]?[0-9]{1,2})? *\z"  # Arrow reads it as Python does


def first_row(path: Path) -> list[str]:
    """The cells of the first row, trimmed; [] where it is blank."""
    with _opened(path) as rows:
        return [cell.strip() for cell in next(rows, [])]


def rows_of(path: Path) -> list[list[str]]:
    """All rows; a blank line is [], and blank lines at the end do not count."""
    with _opened(path) as rows:
        found = list(rows)
    while found and not found[-1]:
        found.pop()
    return found


def column_of(path: Path, rows: list[list[str]], index: int, width: int) -> Floats:
    """One column of rows of that width as numbers; NaN where a cell is none, and throughout a blank line."""
    if any(row and len(row) != width for row in rows):
        raise ValueError(RAGGED.format(path, width))
    return np.array([text_number(row[index]) if row else np.nan for row in rows], dtype=np.float64)


def text_floats(column: Any) -> Floats:
    """An Arrow column of bytes as numbers: what is spelt plainly all at once, every other cell by itself."""
    import pyarrow
    from pyarrow import compute

    plain = compute.match_substring_regex(column, _PLAIN)
    text = compute.utf8_trim(compute.if_else(plain, column, None).cast(pyarrow.string()), characters=" ")
    found = np.array(text.cast(pyarrow.float64()).to_numpy(zero_copy_only=False))
    others = np.flatnonzero(~np.asarray(plain.to_numpy(zero_copy_only=False), dtype=np.bool_))
    found[others] = [text_number(cell) for cell in column.take(pyarrow.array(others)).to_pylist()]
    return found


def text_labels(column: Any) -> NDArray[Any]:
    """An Arrow column of bytes as labels."""
    coded = column.dictionary_encode()
    read = objects(text_label(cell) for cell in coded.dictionary.to_pylist())
    return np.asarray(read[coded.indices.to_numpy()])


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The rows of a file; bytes that are no text stay in their cell, and no cell is too long."""
    before = csv.field_size_limit(2**31 - 1)
    try:
        with readable(path).open(newline="", encoding="utf-8-sig", errors="surrogateescape") as stream:
            yield csv.reader(stream)
    except csv.Error:
        raise ValueError(f"{path}: not a csv file") from None
    finally:
        csv.field_size_limit(before)
