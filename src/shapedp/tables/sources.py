"""Named columns from frames, Arrow data and files, read batch by batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from shapedp.boundary import columns as read
from shapedp.boundary.files import check_input
from shapedp.boundary.refusals import refusal
from shapedp.numerics.gram import BLOCK, GROUP

Part = tuple[int, list[NDArray[Any]]]
CHUNK = GROUP * BLOCK  # rows of a block
BATCH = 8 * CHUNK
FORMATS = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".feather": "feather", ".arrow": "feather"}
_NO_HEADER = "header=False is for csv files"


@dataclass(frozen=True, eq=False)
class Source:
    """Named columns that are read in batches.

    `parts(names, label)` gives batches: the number of rows, then the columns of these names as float64 and, if `label`
    is not None, the column of that name (of a list: each of its columns) as objects. `not_numeric(names)` gives those
    of the columns whose type holds no numbers, with their types. `count()` is the number of records; None where only
    reading them tells. `once`: the columns can be read only once. `declared`: names and types are declared; those of a
    csv file are not, and its first row may be a record, so errors do not list it; `typed`: the user declared the types.
    `label(given)` is a class in the form in which labels are read.
    """

    names: tuple[Any, ...]
    parts: Callable[[tuple[Any, ...], Any], Iterator[Part]]
    not_numeric: Callable[[tuple[Any, ...]], dict[Any, str]]
    count: Callable[[], int] | None
    once: bool = False
    declared: bool = True
    label: Callable[[Any], Any] = lambda given: given
    typed: bool = False

    @cached_property
    def records(self) -> int | None:
        """The number of records, where it is known before they are read."""
        return None if self.count is None else self.count()


def labelled(label: Any) -> list[Any]:
    """The columns that are read as objects."""
    return label if isinstance(label, list) else [] if label is None else [label]


def pandas_source(frame: Any) -> Source:
    """The columns of a pandas frame."""

    def parts(names: tuple[Any, ...], label: Any) -> Iterator[Part]:
        features = frame[list(names)]
        for start in range(0, len(frame), CHUNK):
            piece = slice(start, start + CHUNK)
            values = read.pandas_rows(features.iloc[piece])
            columns: list[NDArray[Any]] = list(values.T)
            columns += [read.pandas_cells(frame[one].iloc[piece]).astype(object) for one in labelled(label)]
            yield len(frame.iloc[piece]), columns

    return Source(tuple(frame.columns), parts, lambda names: read.pandas_odd(frame[list(names)]), lambda: len(frame))


def arrow_source(
    schema: Any, batches: Callable[[list[str]], Iterator[Any]], count: Callable[[], int] | None, *, once: bool = False
) -> Source:
    """The columns of an Arrow schema, from record batches of those asked for."""

    def parts(names: tuple[str, ...], label: Any) -> Iterator[Part]:
        wanted = list(dict.fromkeys((*names, *labelled(label))))
        for batch in _quiet(batches(wanted)):
            columns = [read.arrow_floats(batch.column(name)) for name in names]
            columns += [read.arrow_cells(batch.column(name)) for name in labelled(label)]
            yield batch.num_rows, columns

    def not_numeric(names: tuple[str, ...]) -> dict[Any, str]:
        return {name: str(kind) for name in names if not read.arrow_numeric(kind := schema.field(name).type)}

    return Source(tuple(schema.names), parts, not_numeric, count, once)


def source_of(x: Any, *, header: bool = True) -> Source | None:
    """The columns of x; None where x is no frame, Arrow data or path (`boundary.arrays.numbers` reads those)."""
    source: Source | None = None
    paths = x if isinstance(x, list | tuple) and x else [x]
    if all(isinstance(one, str | os.PathLike) for one in paths):
        source = _files([Path(one) for one in paths], header)
    elif not header:
        raise ValueError(_NO_HEADER)
    elif read.is_frame(x):
        source = pandas_source(x)
    elif read.of_package(x, "pyarrow") and hasattr(x, "scanner"):
        source = _dataset(x)
    elif read.of_package(x, "pyarrow") and hasattr(x, "read_next_batch"):
        source = _reader(x)
    elif read.is_table(x):
        source = _in_memory(x)
    if source is not None and len(set(source.names)) < len(source.names):
        repeated = sorted({str(name) for name in source.names if source.names.count(name) > 1})
        listed = f" {', '.join(repeated)}" if source.declared else ""
        raise ValueError(f"x has several columns of the name{listed}: rename them")
    return source


def _files(paths: list[Path], header: bool) -> Source:
    """Parquet, csv or feather files; a folder stands for the parquet files in it."""
    library = read.arrow()
    for path in paths:
        check_input(path, folder=True)
    kinds = {"parquet" if path.is_dir() else FORMATS.get(path.suffix.lower()) for path in paths}
    if None in kinds or len(kinds) != 1:
        raise ValueError(f"files must share one format, with an ending among {', '.join(FORMATS)}")
    kind = kinds.pop()
    if kind == "csv":
        from shapedp.tables.csvfiles import csv_source

        return csv_source(paths, header)
    if not header:
        raise ValueError(_NO_HEADER)
    names = [str(path) for path in paths]
    found = library.dataset.dataset(names if len(names) > 1 else names[0], format=kind)
    return _dataset(found, kind=kind or "")


def _dataset(dataset: Any, *, kind: str = "") -> Source:
    """A pyarrow dataset; of files of this `kind` where one is given."""
    same_types(dataset)

    def batches(names: list[str]) -> Iterator[Any]:
        scan = dataset.scanner(columns=names, batch_size=BATCH, batch_readahead=4, fragment_readahead=1)
        yield from scan.to_batches()

    found = batches if not kind else partial(pages, dataset, kind)
    return arrow_source(dataset.schema, found, dataset.count_rows)


def pages(dataset: Any, kind: str, names: list[str]) -> Iterator[Any]:
    """Batches of these columns, file by file: of parquet files page by page, so that no row group is held whole.

    A column that a file lacks is missing in its rows. Arrow's scanner of feather files looks ahead, and ends the
    process where one of them is damaged.
    """
    library = read.arrow()
    kinds = library.schema([dataset.schema.field(name) for name in names])
    for path in dataset.files:
        for batch in (_parquet_pages if kind == "parquet" else _feather_pages)(path, names):
            there, length = set(batch.schema.names), batch.num_rows
            lacking = (library.nulls(length, field.type) for field in kinds if field.name not in there)
            columns = [batch.column(name) if name in there else next(lacking) for name in names]
            yield library.record_batch(columns, names=names) if names else batch


def _parquet_pages(path: str, names: list[str]) -> Iterator[Any]:
    with read.arrow().parquet.ParquetFile(path, buffer_size=1 << 18, pre_buffer=False) as file:
        yield from file.iter_batches(batch_size=BATCH, columns=names)


def _feather_pages(path: str, names: list[str]) -> Iterator[Any]:
    library = read.arrow()
    with library.OSFile(path) as stream:
        there = library.ipc.open_file(stream).schema.names
        wanted = library.ipc.IpcReadOptions(included_fields=[i for i, name in enumerate(there) if name in names])
        file = library.ipc.open_file(stream, options=wanted)
        for i in range(file.num_record_batches):
            batch = file.get_batch(i)
            read.refuse_damaged(batch)
            yield from (batch.slice(start, BATCH) for start in range(0, batch.num_rows, BATCH))


def _reader(reader: Any) -> Source:
    """A record batch reader, which can be read only once."""
    left = [reader]

    def batches(names: list[str]) -> Iterator[Any]:
        if not left:
            raise ValueError("this record batch reader has been read already: make a new one for another fit")
        yield from (batch.select(names) for batch in left.pop())

    return arrow_source(reader.schema, batches, None, once=True)


def _in_memory(x: Any) -> Source:
    """A table in memory that exports an Arrow stream: of pyarrow, polars and others."""
    table = read.arrow_table(x)

    def batches(names: list[str]) -> Iterator[Any]:
        yield from table.select(names).to_batches(max_chunksize=BATCH)

    return arrow_source(table.schema, batches, lambda: int(table.num_rows))


def same_types(dataset: Any) -> None:
    """Refuse files that disagree on the type of a column, and formats whose types are guessed from cells.

    A cast to the type of the first file would fail on one cell, so files are compared by the types they declare.
    """
    library = read.arrow()
    for part in dataset.get_fragments():
        if getattr(getattr(part, "format", None), "default_extname", "parquet") in ("csv", "json"):
            raise ValueError("Arrow guesses the types of csv and json files from their cells: pass the path of a csv")
        for field in part.physical_schema:
            at = dataset.schema.get_field_index(field.name)
            kinds = (field.type, field.type if at < 0 else dataset.schema.field(at).type)
            if kinds[0] != kinds[1] and not (_widens(kinds[0]) and kinds[1] == library.float64()):
                raise ValueError(refusal("tables", "types-differ", name=field.name, one=kinds[1], other=kinds[0]))


def _widens(kind: Any) -> bool:
    """Whether float64 holds every value of an Arrow type."""
    types = read.arrow().types
    small = types.is_integer(kind) and kind.bit_width <= 32
    return bool(small or types.is_null(kind) or types.is_float16(kind) or types.is_float32(kind))


def _quiet(batches: Iterator[Any]) -> Iterator[Any]:
    """The batches; where Arrow cannot read one, an error that does not quote what it read."""
    failed = False
    try:
        yield from batches
    except read.arrow().ArrowInvalid:
        failed = True
    if failed:  # raised here, so that it does not carry Arrow's own error along
        raise ValueError("the Arrow data cannot be read with the types they declare: write them again with right types")
