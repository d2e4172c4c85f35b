"""Columns read batch by batch from frames, Arrow data and files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from shapedp.boundary.columns import (
    arrow,
    arrow_cells,
    arrow_floats,
    arrow_numeric,
    arrow_table,
    is_frame,
    of_package,
    pandas_cells,
    pandas_odd,
    pandas_rows,
    refuse_columns,
)
from shapedp.boundary.files import readable
from shapedp.learn.tables import CHUNK, NO_TARGET, in_memory_target, signs

Floats = NDArray[np.float64]
Part = tuple[int, list[NDArray[Any]]]
BATCH = 8 * CHUNK
FORMATS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".feather": "feather", ".arrow": "feather"}


class Source(Protocol):
    """Named columns."""

    @property
    def names(self) -> tuple[Any, ...]:
        """Of all columns."""

    @property
    def records(self) -> int | None:
        """None where only a pass tells."""

    @property
    def once(self) -> bool:
        """Whether it can be read only once."""

    @property
    def listed(self) -> bool:
        """Whether an error may list the names: not where they are the first row of a file."""

    def odd(self, names: tuple[Any, ...]) -> dict[Any, str]:
        """Those of the columns that do not hold numbers, with their types."""

    def label(self, given: Any) -> Any:
        """A class as labels of the source are read."""

    def parts(self, names: tuple[Any, ...], label: Any = None) -> Iterator[Part]:
        """Batches: how many rows, then the columns as float64, and the label column, if any, as objects."""


@dataclass(frozen=True, eq=False)
class Streamed:
    """A source as a table; the target is a column's name, a vector with an entry per record, or None: zeros."""

    source: Source
    names: tuple[Any, ...]
    target: Any
    classes: tuple[Any, ...] | None = None

    @property
    def records(self) -> int | None:
        return self.source.records

    @property
    def columns(self) -> int:
        return len(self.names)

    def blocks(self) -> Iterator[tuple[Any, Floats]]:
        """Blocks of CHUNK rows whatever the batches of the source; each column contiguous."""
        block, filled = np.empty((self.columns + 1, CHUNK)), 0
        for size, columns in self._batches():
            start = 0
            while start < size:
                taken = min(CHUNK - filled, size - start)
                for row, column in zip(block, columns, strict=True):
                    row[filled : filled + taken] = column[start : start + taken]
                start, filled = start + taken, filled + taken
                if filled == CHUNK:
                    yield block[:-1].T, block[-1]
                    block, filled = np.empty((self.columns + 1, CHUNK)), 0
        if filled:
            yield block[:-1, :filled].T, block[-1, :filled]

    def _batches(self) -> Iterator[Part]:
        """Batches of the features and the target."""
        if isinstance(self.target, str) and self.classes is None:
            yield from self.source.parts((*self.names, self.target))
        elif isinstance(self.target, str):
            for size, columns in self.source.parts(self.names, self.target):
                yield size, [*columns[:-1], signs(columns[-1], self.classes or ())]
        else:
            yield from self._beside()

    def _beside(self) -> Iterator[Part]:
        """Batches of the features beside a target held in memory."""
        done = 0
        for size, columns in self.source.parts(self.names):
            target = np.zeros(size) if self.target is None else self.target[done : done + size]
            done += size
            if len(target) != size:
                break
            yield size, [*columns, target]
        if self.target is not None and done != len(self.target):
            more = "more than " if done > len(self.target) else ""
            raise ValueError(f"x and y must have as many rows as each other, got {more}{done} and {len(self.target)}")


@dataclass(frozen=True, eq=False)
class PandasFrame:
    """A pandas frame, block by block."""

    frame: Any
    once = False
    listed = True

    @property
    def names(self) -> tuple[Any, ...]:
        return tuple(self.frame.columns)

    @property
    def records(self) -> int:
        return len(self.frame)

    def odd(self, names: tuple[Any, ...]) -> dict[Any, str]:
        return pandas_odd(self.frame[list(names)])

    def label(self, given: Any) -> Any:
        return given

    def parts(self, names: tuple[Any, ...], label: Any = None) -> Iterator[Part]:
        features = self.frame[list(names)]
        for start in range(0, self.records, CHUNK):
            piece = slice(start, start + CHUNK)
            values = pandas_rows(features.iloc[piece])
            columns: list[NDArray[Any]] = list(values.T)
            if label is not None:
                columns.append(pandas_cells(self.frame[label].iloc[piece]).astype(object))
            yield len(values), columns


@dataclass(frozen=True, eq=False)
class Arrow:
    """Anything Arrow: a schema, and record batches of the columns asked for."""

    schema: Any
    batches: Callable[[list[str]], Iterator[Any]]
    length: Callable[[], int] | None = None
    once: bool = False
    listed = True

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.schema.names)

    @cached_property
    def records(self) -> int | None:
        return None if self.length is None else self.length()

    def odd(self, names: tuple[str, ...]) -> dict[Any, str]:
        return {name: str(kind) for name in names if not arrow_numeric(kind := self.schema.field(name).type)}

    def label(self, given: Any) -> Any:
        return given

    def parts(self, names: tuple[str, ...], label: Any = None) -> Iterator[Part]:
        wanted = list(names) if label is None or label in names else [*names, label]
        for batch in _quiet(self.batches(wanted)):
            columns = [arrow_floats(batch.column(name)) for name in names]
            if label is not None:
                columns.append(arrow_cells(batch.column(label)))
            yield batch.num_rows, columns


class Columns:
    """Some of the columns of a frame, Arrow data or files: estimators take it as x, with the target's name as y.

    `header=False` says that the first row of a csv file is a record: its columns are then named 0, 1, ...
    """

    def __init__(self, x: Any, features: Sequence[str], *, header: bool = True) -> None:
        source = source_of(x, header=header)
        if source is None:
            raise TypeError(f"x must be a frame, Arrow data or a path, got {type(x).__name__}")
        self.source, self.features = source, tuple(features)

    def as_table(self, y: Any, classes: Sequence[Any] | None) -> Streamed:
        """What `read_table` asks for."""
        return table_of(self.source, y, classes, self.features)

    def loaded(self, label: str) -> tuple[Any, NDArray[Any]]:
        """The features as a pandas frame and the column of labels, in memory."""
        import pandas

        self.as_table(label, (0, 1))
        parts = [columns for _, columns in self.source.parts(self.features, label)]
        *values, labels = (np.concatenate(pieces) for pieces in zip(*parts, strict=True))
        return pandas.DataFrame(dict(zip(self.features, values, strict=True))), np.asarray(labels)


def table_of(
    source: Source, y: Any, classes: Sequence[Any] | None, features: tuple[Any, ...] | None = None
) -> Streamed:
    """A source as a table; without `features` every column but the target is one."""
    named = isinstance(y, str)
    chosen = tuple(name for name in source.names if not (named and name == y)) if features is None else features
    for name in (*chosen, *([y] if named else [])):
        if name not in source.names:
            listed = f"; it has {', '.join(map(str, source.names))}" if source.listed else " in its first row"
            raise ValueError(f"x has no column {name!r}{listed}")
    if len(set(chosen)) < len(chosen) or (named and y in chosen):
        raise ValueError("a column is either the target or a feature, once")
    refuse_columns(source.odd((*chosen, y) if named and classes is None else chosen))
    if source.records == 0 or not chosen:
        raise ValueError(f"x must hold at least one record and one feature, got {source.records} and {len(chosen)}")
    target = y if named else None if y is NO_TARGET else in_memory_target(y, source.records, classes)
    return Streamed(source, chosen, target, None if classes is None else tuple(map(source.label, classes)))


def source_of(x: Any, *, header: bool = True) -> Source | None:
    """The columns of x; None where it is no frame, Arrow data or path (see `numbers` for those)."""
    if isinstance(x, Columns):
        return x.source
    if isinstance(x, str | os.PathLike):
        return _files([Path(x)], header)
    if isinstance(x, list | tuple) and x and all(isinstance(one, str | os.PathLike) for one in x):
        return _files([Path(one) for one in x], header)
    if not header:
        raise ValueError("header=False is for csv files")
    if is_frame(x):
        return _unique(PandasFrame(x))
    pyarrow = of_package(x, "pyarrow")
    if pyarrow and hasattr(x, "scanner"):
        return _unique(_dataset(x))
    if pyarrow and hasattr(x, "read_next_batch"):
        return _unique(_reader(x))
    if hasattr(x, "__arrow_c_stream__") and getattr(x, "ndim", len(getattr(x, "shape", (0,)))) == 2:
        return _unique(_stream(x))
    return None


def _unique(source: Source) -> Source:
    """The source, its names checked."""
    repeated = sorted({str(name) for name in source.names if source.names.count(name) > 1})
    if repeated:
        listed = f" {', '.join(repeated)}" if source.listed else ""
        raise ValueError(f"x has several columns of the name{listed}: rename them")
    return source


def _files(paths: list[Path], header: bool) -> Source:
    """Parquet, csv or feather files; a folder stands for the parquet files in it."""
    library = arrow()
    for path in paths:
        readable(path)
    kinds = {"parquet" if path.is_dir() else FORMATS.get(path.suffix.lower()) for path in paths}
    if None in kinds or len(kinds) != 1:
        raise ValueError(f"files must share one format, with an ending among {', '.join(FORMATS)}")
    kind = kinds.pop()
    if kind == "csv":
        from shapedp.learn.csvfiles import CsvFiles

        return _unique(CsvFiles.of(paths, header))
    if not header:
        raise ValueError("header=False is for csv files")
    names = [str(path) for path in paths]
    dataset = library.dataset.dataset(names if len(names) > 1 else names[0], format=kind)
    return _unique(_parquet(dataset) if kind == "parquet" else _dataset(dataset))


def _parquet(dataset: Any) -> Arrow:
    """Parquet files read page by page: a row group is never held whole, however large."""
    from pyarrow import parquet

    _same_types(dataset)

    def batches(names: list[str]) -> Iterator[Any]:
        for path in dataset.files:
            with parquet.ParquetFile(path, buffer_size=1 << 18, pre_buffer=False) as file:
                yield from file.iter_batches(batch_size=BATCH, columns=names)

    return Arrow(dataset.schema, batches, dataset.count_rows)


def _dataset(dataset: Any) -> Arrow:
    """A pyarrow dataset; it holds a row group or a few."""
    _same_types(dataset)

    def batches(names: list[str]) -> Iterator[Any]:
        yield from dataset.scanner(
            columns=names, batch_size=BATCH, batch_readahead=4, fragment_readahead=1
        ).to_batches()

    return Arrow(dataset.schema, batches, dataset.count_rows)


def _reader(reader: Any) -> Arrow:
    """A record batch reader, which is spent after one pass."""
    spent = [False]

    def batches(names: list[str]) -> Iterator[Any]:
        if spent[0]:
            raise ValueError("this record batch reader has been read already: make a new one for another fit")
        spent[0] = True
        for batch in reader:
            yield batch.select(names)

    return Arrow(reader.schema, batches, None, once=True)


def _stream(x: Any) -> Arrow:
    """A table in memory that exports an Arrow stream: pyarrow, polars and others."""
    table = arrow_table(x)

    def batches(names: list[str]) -> Iterator[Any]:
        yield from table.select(names).to_batches(max_chunksize=BATCH)

    return Arrow(table.schema, batches, lambda: int(table.num_rows))


def _same_types(dataset: Any) -> None:
    """Refuse files that disagree on the type of a column, and formats whose types are guessed from cells.

    A cast to the type of the first file would fail on one cell; files are compared by what they declare.
    """
    library = arrow()
    for part in dataset.get_fragments():
        if getattr(getattr(part, "format", None), "default_extname", "parquet") in ("csv", "json"):
            raise ValueError("Arrow guesses the types of csv and json files from their cells: pass the path of a csv")
        for field in part.physical_schema:
            at = dataset.schema.get_field_index(field.name)
            kinds = (field.type, field.type if at < 0 else dataset.schema.field(at).type)
            if kinds[0] != kinds[1] and not (_widens(kinds[0]) and kinds[1] == library.float64()):
                raise ValueError(
                    f"the files disagree on the type of column {field.name!r} ({kinds[1]} and {kinds[0]}): "
                    "write them with one type"
                )


def _widens(kind: Any) -> bool:
    """Whether float64 holds every value of an Arrow type."""
    types = arrow().types
    small = types.is_integer(kind) and kind.bit_width <= 32
    return bool(small or types.is_null(kind) or types.is_float16(kind) or types.is_float32(kind))


def _quiet(batches: Iterator[Any]) -> Iterator[Any]:
    """The batches; where Arrow cannot read one, an error that does not quote what it read."""
    failed = False
    try:
        yield from batches
    except arrow().ArrowInvalid:
        failed = True
    if failed:  # raised here, so that it does not carry Arrow's own error along
        raise ValueError("the Arrow data cannot be read with the types they declare: write them again with right types")
