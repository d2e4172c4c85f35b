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

from shapedp.learn.cells import numbers, odd_columns, odd_types
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

    @property
    def names(self) -> tuple[Any, ...]:
        return tuple(self.frame.columns)

    @property
    def records(self) -> int:
        return len(self.frame)

    def odd(self, names: tuple[Any, ...]) -> dict[Any, str]:
        return odd_types(self.frame, names)

    def label(self, given: Any) -> Any:
        return given

    def parts(self, names: tuple[Any, ...], label: Any = None) -> Iterator[Part]:
        features = self.frame[list(names)]
        for start in range(0, self.records, CHUNK):
            piece = slice(start, start + CHUNK)
            values = numbers(features.iloc[piece])
            columns: list[NDArray[Any]] = list(values.T)
            if label is not None:
                columns.append(self.frame[label].iloc[piece].to_numpy(dtype=object, na_value=None))
            yield len(values), columns


@dataclass(frozen=True, eq=False)
class Arrow:
    """Anything Arrow: a schema, and record batches of the columns asked for."""

    schema: Any
    batches: Callable[[list[str]], Iterator[Any]]
    length: Callable[[], int] | None = None
    once: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.schema.names)

    @cached_property
    def records(self) -> int | None:
        return None if self.length is None else self.length()

    def odd(self, names: tuple[str, ...]) -> dict[Any, str]:
        return {name: str(kind) for name in names if not _is_number(kind := self.schema.field(name).type)}

    def label(self, given: Any) -> Any:
        return given

    def parts(self, names: tuple[str, ...], label: Any = None) -> Iterator[Part]:
        wanted = list(names) if label is None or label in names else [*names, label]
        for batch in self.batches(wanted):
            columns = [_floats(batch.column(name)) for name in names]
            if label is not None:
                columns.append(_objects(batch.column(label)))
            yield batch.num_rows, columns


class Columns:
    """Some of the columns of a frame, Arrow data or files: estimators take it as x, with the target's name as y."""

    def __init__(self, x: Any, features: Sequence[str]) -> None:
        source = source_of(x)
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
            raise ValueError(f"x has no column {name!r}; it has {', '.join(map(str, source.names))}")
    if len(set(chosen)) < len(chosen) or (named and y in chosen):
        raise ValueError("a column is either the target or a feature, once")
    odd_columns(source.odd((*chosen, y) if named and classes is None else chosen))
    if source.records == 0 or not chosen:
        raise ValueError(f"x must hold at least one record and one feature, got {source.records} and {len(chosen)}")
    target = y if named else None if y is NO_TARGET else in_memory_target(y, source.records, classes)
    return Streamed(source, chosen, target, None if classes is None else tuple(map(source.label, classes)))


def source_of(x: Any) -> Source | None:
    """The columns of x; None where it is no frame, Arrow data or path (scikit-learn reads those)."""
    if isinstance(x, Columns):
        return x.source
    if isinstance(x, str | os.PathLike):
        return _files([Path(x)])
    if isinstance(x, list | tuple) and x and all(isinstance(one, str | os.PathLike) for one in x):
        return _files([Path(one) for one in x])
    package = type(x).__module__.partition(".")[0]
    if package == "pandas" and hasattr(x, "iloc") and getattr(x, "ndim", 0) == 2:
        return _unique(PandasFrame(x))
    if package == "pyarrow" and hasattr(x, "scanner"):
        return _unique(_dataset(x))
    if package == "pyarrow" and hasattr(x, "read_next_batch"):
        return _unique(_reader(x))
    if hasattr(x, "__arrow_c_stream__") and (package == "pyarrow" or getattr(x, "ndim", len(x.shape)) == 2):
        return _unique(_stream(x))
    return None


def _unique(source: Source) -> Source:
    """The source, its names checked."""
    repeated = sorted({str(name) for name in source.names if source.names.count(name) > 1})
    if repeated:
        raise ValueError(f"x has several columns of the name {', '.join(repeated)}: rename them")
    return source


def _files(paths: list[Path]) -> Source:
    """Parquet, csv or feather files; a folder stands for the parquet files in it."""
    arrow = _arrow()
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"{path}: no such file")
    kinds = {"parquet" if path.is_dir() else FORMATS.get(path.suffix.lower()) for path in paths}
    if None in kinds or len(kinds) != 1:
        raise ValueError(f"files must share one format, with an ending among {', '.join(FORMATS)}")
    kind = kinds.pop()
    if kind == "csv":
        from shapedp.learn.csvfiles import CsvFiles

        return _unique(CsvFiles.of(paths))
    names = [str(path) for path in paths]
    dataset = arrow.dataset.dataset(names if len(names) > 1 else names[0], format=kind)
    return _unique(_parquet(dataset) if kind == "parquet" else _dataset(dataset))


def _parquet(dataset: Any) -> Arrow:
    """Parquet files read page by page: a row group is never held whole, however large."""
    from pyarrow import parquet

    def batches(names: list[str]) -> Iterator[Any]:
        for path in dataset.files:
            with parquet.ParquetFile(path, buffer_size=1 << 18, pre_buffer=False) as file:
                yield from file.iter_batches(batch_size=BATCH, columns=names)

    return Arrow(dataset.schema, batches, dataset.count_rows)


def _dataset(dataset: Any) -> Arrow:
    """A pyarrow dataset of any format; it holds a row group or a few."""

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
    arrow = _arrow()
    table = x if isinstance(x, arrow.Table) else arrow.RecordBatchReader.from_stream(x).read_all()

    def batches(names: list[str]) -> Iterator[Any]:
        yield from table.select(names).to_batches(max_chunksize=BATCH)

    return Arrow(table.schema, batches, lambda: int(table.num_rows))


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.dataset
    except ImportError:
        raise ImportError("Arrow data and files need pyarrow: pip install 'shapedp[learn]'") from None
    return pyarrow


def _is_number(kind: Any) -> bool:
    types = _arrow().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    found = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)
    return bool(found)


def _floats(column: Any) -> Floats:
    """A column as float64, null as NaN; integers beyond 2^53 are rounded, each for itself."""
    arrow = _arrow()
    if arrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return np.asarray(column.cast(arrow.float64(), safe=False).to_numpy(zero_copy_only=False))


def _objects(column: Any) -> NDArray[Any]:
    """A column of labels as Python objects, null as None."""
    decoded = column.dictionary_decode() if _arrow().types.is_dictionary(column.type) else column
    return np.array([*decoded.to_pylist(), None], dtype=object)[:-1]
