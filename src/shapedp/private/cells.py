"""Columns as Arrow arrays of one kind. Each cell is read by itself and nothing fails: what does not fit is missing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from shapedp.boundary import columns as read
from shapedp.boundary.cells import identity
from shapedp.tables.csvfiles import csv_numbers

_TRUTHS = {b"true": True, b"1": True, b"false": False, b"0": False}


def _text(cell: Any) -> str | None:
    """A text; None where the cell is none, or no text that can be written."""
    if not isinstance(cell, str):
        return None
    try:
        text = str.__str__(cell)  # not what a subclass prints
        text.encode()
    except Exception:  # an error would tell of one record
        return None
    return text


def _identity(cell: Any) -> str | None:
    """The id of a person."""
    return _text(identity(cell))


def _truth(cell: Any) -> bool | None:
    return bool(cell) if isinstance(cell, bool | np.bool_) else None


def _each(cells: Iterable[Any], kind: str) -> Any:
    """One cell after the other."""
    library = read.arrow()
    if kind == "boolean":
        return library.array([_truth(cell) for cell in cells], library.bool_())
    make = _text if kind == "text" else _identity
    return library.array([make(cell) for cell in cells], library.string())


def pandas_column(column: Any, kind: str) -> Any:
    """A pandas column as an Arrow array of a kind."""
    library, own = read.arrow(), column.dtype
    if kind == "number":
        return library.array(read.pandas_floats(column), library.float64())
    if isinstance(own, np.dtype) and own.kind in "iu" and kind == "id":
        return library.array(column.to_numpy()).cast(library.string())
    if isinstance(own, np.dtype) and own.kind == "b" and kind == "boolean":
        return library.array(column.to_numpy())
    return _each(read.pandas_cells(column).tolist(), kind)


def arrow_column(column: Any, kind: str) -> Any:
    """An Arrow array as one of a kind."""
    library = read.arrow()
    if kind == "number":
        return library.array(read.arrow_floats(column), library.float64())
    own = column.type.value_type if library.types.is_dictionary(column.type) else column.type
    whole = library.types.is_integer(own) and kind == "id"
    text = library.types.is_string(own) or library.types.is_large_string(own) or library.types.is_string_view(own)
    if (whole or text) and kind in ("text", "id"):
        try:
            column.validate(full=True)
            return column.cast(own).cast(library.string())
        except library.ArrowException:  # bytes that are no text: cell by cell
            pass
    return _each(read.arrow_cells(column).tolist(), kind)


def csv_column(column: Any, kind: str) -> Any:
    """A column of bytes of a csv file as an Arrow array of a kind; an empty cell is missing."""
    library = read.arrow()
    if kind == "number":
        return library.array(csv_numbers(column), library.float64())
    cells = column.to_pylist()
    if kind == "boolean":
        return library.array([_TRUTHS.get(cell.strip().lower()) for cell in cells], library.bool_())
    return library.array([_decoded(cell) for cell in cells], library.string())


def _decoded(cell: bytes) -> str | None:
    """The text of a cell, without spaces around it: many files have one after each comma."""
    try:
        return cell.decode().strip(" ") or None
    except UnicodeDecodeError:
        return None
