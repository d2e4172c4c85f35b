"""Where the rows are: frames, Arrow data, files, or a table of Ibis; each column of a kind that is declared.

The kind of a column (number, text, boolean) comes from its type. Columns of csv files and pandas columns of objects
have none: theirs is declared, and each of their cells is read by itself; one that does not fit is missing. Numbers are
read as float64, so that every source and every database compares and rounds the same numbers.
"""

from __future__ import annotations

import glob
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

import numpy as np

from shapedp.boundary import columns as read
from shapedp.boundary.files import check_input
from shapedp.boundary.values import printable, whole_text
from shapedp.private.cells import arrow_column, csv_column, pandas_column
from shapedp.private.conditions import literal
from shapedp.tables.csvfiles import csv_batches, csv_names
from shapedp.tables.sources import BATCH, FORMATS, pages, same_types

KINDS = ("number", "text", "boolean")
ID = "id"  # of a person: whole numbers and texts, all as text
_NAMED = (
    "number",
    "text",
    "",
    "binary",
    "large_binary",
    "binary_view",
    "fixed_size_binary",
    "uuid",
    "extension<arrow.uuid>",
)
_EXACT = 2.0**53
_UNREAD = (
    "the table could not be read with the types that it declares, or the database failed ({}): "
    "read it without shapedp to see why"
)
_LACKS = (
    "the database of this table lacks a function that a private table needs (SHA-256, windows, or isnan): "
    "hand over its rows as Arrow data or as parquet files instead"
)
_LACKING = ("OperationNotDefinedError", "UnsupportedOperationError", "UnsupportedBackendType")  # of Ibis, before rows
# The least and largest number that a parquet file notes of a column leave out NaN. DuckDB 2.0 takes isnan for false
# where these two differ: what somebody's NaN counts as would depend on other people's rows.
_SETTINGS = "SET disabled_optimizers = 'statistics_propagation'; SET preserve_insertion_order = false"
Wanted = Mapping[str, tuple[str, str]]  # a column and its kind, by the name that it gets
Batches = Callable[[list[tuple[str, str]]], Iterator[list[Any]]]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with named columns.

    `kinds` gives the kind of every column: one of `KINDS`, "" where it must be declared, or the name of a type that
    cannot be read. `complete` are the columns whose type has no missing cells. Rows come as a table of Ibis (`table`),
    as parquet files (`paths`), or as Arrow arrays, batch by batch (`batches`, of columns and their kinds).
    `rounded` are the columns that a database may read as other floats than Arrow: files are then read by Arrow alone.

    Guarantee: what holds the rows is neither shown nor pickled: an expression of Ibis prints what it has in memory.
    """

    kinds: dict[str, str]
    complete: frozenset[str] = frozenset()
    table: Any = field(default=None, repr=False)
    paths: tuple[str, ...] = ()
    batches: Batches | None = field(default=None, repr=False)
    rounded: frozenset[str] = frozenset()

    def __reduce__(self) -> NoReturn:
        raise TypeError("the rows of a private table are not pickled: keep the answers' frames and certificate")

    def __deepcopy__(self, memo: Any) -> Rows:
        return self

    def computed(self, wanted: Wanted, query: Callable[[Any], Any], memory: str | None = None) -> Any:
        """What the database computes of these columns, as Arrow data: `query` makes an expression of a table of Ibis.

        Our own database takes no more than `memory` ("4GB"); what does not fit goes to temporary files. What a
        database says of a failure may quote a cell, so it is not repeated.
        """
        ibis()  # where it is missing, that is said
        failed, ways = "", list[Callable[[], Any]]()
        if self.table is not None:
            ways.append(lambda: query(_selected(self.table, wanted, foreign=True)).to_pyarrow())
        if self.paths and self.rounded.isdisjoint(column for column, _ in wanted.values()):
            ways.append(lambda: _computed(lambda own: query(self._files(own, wanted)), memory))
        if self.batches is not None:
            ways.append(lambda: _computed(lambda own: query(self._registered(own, wanted)), memory))
        # One cell whose bytes are no text stops DuckDB; Arrow takes it for missing. So both must read all others alike.
        with warnings.catch_warnings():  # of other libraries, whose number would tell how many ways were gone
            warnings.simplefilter("ignore")
            for way in ways:
                try:
                    return way()
                except Exception as error:
                    failed = type(error).__name__
        said = _LACKS if failed in _LACKING else _UNREAD.format(failed)
        raise ValueError(said)  # here, so that it does not carry the other error along

    def _files(self, connection: Any, wanted: Wanted) -> Any:
        exact = [glob.escape(path) for path in self.paths]  # these files, and no column from their folders' names
        return _selected(connection.read_parquet(exact, hive_partitioning=False), wanted)

    def _registered(self, connection: Any, wanted: Wanted) -> Any:
        library = read.arrow()
        types = {"number": library.float64(), "boolean": library.bool_()}
        schema = library.schema([(name, types.get(kind, library.string())) for name, (_, kind) in wanted.items()])
        batches: Batches = self.batches  # type: ignore[assignment]
        made = (library.record_batch(columns, schema=schema) for columns in batches(list(wanted.values())))
        connection.con.register("people", library.RecordBatchReader.from_batches(schema, made))
        found = connection.table("people")
        return _selected(found, {name: (name, kind) for name, (_, kind) in wanted.items()})


def _computed(query: Callable[[Any], Any], memory: str | None) -> Any:
    """What a query says in a database of our own."""
    with TemporaryDirectory() as folder:  # for what does not fit into memory
        limit = {} if memory is None else {"memory_limit": memory}
        own = ibis().duckdb.connect(temp_directory=folder, **limit)
        try:
            own.raw_sql(_SETTINGS)
            return query(own).to_pyarrow()
        finally:
            own.disconnect()


def names_persons(kind: str) -> bool:
    """Whether a column of this kind, or type, may hold the ids of persons."""
    return kind.partition("[")[0] in _NAMED


def ibis() -> Any:
    """The library Ibis, with its back end for DuckDB."""
    try:
        import duckdb  # noqa: F401
        import ibis as library
    except ImportError:
        raise ImportError("private tables need Ibis and DuckDB: pip install 'shapedp[tables]'") from None
    return library


def _selected(table: Any, wanted: Wanted, *, foreign: bool = False) -> Any:
    return table.select(**{name: _cell(table[column], kind, foreign) for name, (column, kind) in wanted.items()})


def _cell(column: Any, kind: str, foreign: bool) -> Any:
    """A column of a database as one kind; missing where it is NaN.

    Where the database is not our own (`foreign`) its optimizer may trust statistics without NaN, but not of texts.
    """
    if kind == "boolean":
        return column.cast("boolean")
    if kind == "number" or (kind == ID and column.type().is_floating()):
        floats = column.cast("int8" if column.type().is_boolean() else column.type()).cast("float64")
        missing = floats.isnan() | (floats.cast("string").lower() == "nan") if foreign else floats.isnan()
        floats = missing.fill_null(True).ifelse(ibis().null("float64"), floats)
        if kind == "number":
            return floats
        whole = (floats.abs() < _EXACT) & is_whole(floats, _EXACT)
        return whole.ifelse(floats, ibis().null("float64")).try_cast("int64")
    if kind == ID and column.type().is_integer() and not column.type().is_uint64():
        return column.cast("int64")  # told apart as its text is, in fewer bytes
    if kind == ID and column.type().is_decimal():
        return _whole_text(column.cast("string"))
    return column if column.type().is_string() else column.cast("string")


def _whole_text(text: Any) -> Any:
    """The text of a decimal that is a whole number, null of any other. A floor may not fit, and one cell would fail."""
    whole = text.replace("0", "").endswith(".") | ~text.contains(".")
    return whole.ifelse(text, ibis().null("string"))


def is_whole(cell: Any, most: float) -> Any:
    """Whether a number of at most this size is a whole one; false or true of larger ones, and never an error.

    Ibis turns a floor into an integer of 64 bits. A database may do so for every row, whatever stands beside it, and
    fails where one cell is infinite or too large.
    """
    near = ibis().least(ibis().greatest(cell, literal(-float(most))), literal(float(most)))
    return near.floor() == near


def rows_of(source: Any) -> Rows:
    """The rows of a pandas or polars frame, of Arrow data, of csv, parquet or feather files, or of a table of Ibis."""
    paths = source if isinstance(source, list | tuple) and source else [source]
    if all(isinstance(one, str | os.PathLike) for one in paths):
        return _files([Path(one) for one in paths])
    if read.is_frame(source):
        return _pandas(source)
    if read.of_package(source, "ibis"):
        return _ibis_table(source)
    if read.of_package(source, "polars") and hasattr(source, "collect") and not hasattr(source, "height"):
        raise TypeError("a lazy frame of polars is collected first: pass frame.collect(), or the path of its file")
    if read.of_package(source, "pyarrow") and hasattr(source, "scanner"):
        same_types(source)
        return _arrow(source.schema, lambda names: source.scanner(columns=names, batch_size=BATCH).to_batches())
    if read.is_table(source):
        return _in_memory(source)
    raise TypeError(
        "a private table is made of a pandas or polars frame, Arrow data, a table of Ibis, or the path of a csv, "
        f"parquet or feather file, not of {type(source).__name__}"
    )


def _files(paths: list[Path]) -> Rows:
    for path in paths:
        check_input(path, folder=True)
    kinds = {"parquet" if path.is_dir() else FORMATS.get(path.suffix.lower(), "") for path in paths}
    if len(kinds) != 1 or kinds == {""}:
        raise ValueError(f"files must share one format, with an ending among {', '.join(FORMATS)}")
    kind = kinds.pop()
    if kind == "csv":
        names = csv_names(paths)

        def batches(wanted: list[tuple[str, str]]) -> Iterator[list[Any]]:
            for path in paths:
                for batch in csv_batches(path, names, True, _names(wanted), ragged="skip"):
                    yield [csv_column(batch.column(name), of_kind) for name, of_kind in wanted]

        return Rows(dict.fromkeys(names, ""), batches=batches)
    listed = [str(path) for path in paths]
    found = read.arrow().dataset.dataset(listed if len(listed) > 1 else listed[0], format=kind)
    same_types(found)
    made = _arrow(found.schema, partial(pages, found, kind))
    alike = len({name.lower() for name in made.kinds}) < len(made.kinds)  # one name for DuckDB
    decimals = frozenset(field.name for field in found.schema if _is_decimal(field.type))
    return made if kind != "parquet" or alike else replace(made, paths=tuple(found.files), rounded=decimals)


def _in_memory(x: Any) -> Rows:
    """Arrow data, or what exports some, such as a polars frame. Only the columns asked for are exported."""
    if read.of_package(x, "polars"):
        schema = read.arrow_table(x.head(0)).schema
        return _arrow(schema, lambda names: x.select(names).to_arrow().to_batches(max_chunksize=BATCH))
    table = read.arrow_table(x)
    return _arrow(table.schema, lambda names: table.select(names).to_batches(max_chunksize=BATCH))


def _arrow(schema: Any, batches: Callable[[list[str]], Any]) -> Rows:
    def made(wanted: list[tuple[str, str]]) -> Iterator[list[Any]]:
        for batch in batches(_names(wanted)):
            yield [arrow_column(batch.column(name), kind) for name, kind in wanted]

    _once(schema.names)
    kinds = {field.name: _arrow_kind(field.type) for field in schema}
    whole = (field.name for field in schema if not field.nullable and _never_nan(field.type))
    return Rows(kinds, frozenset(whole), batches=made)


def _is_decimal(kind: Any) -> bool:
    types = read.arrow().types
    return bool(types.is_decimal(kind.value_type if types.is_dictionary(kind) else kind))


def _never_nan(kind: Any) -> bool:
    """Whether no cell of an Arrow type is NaN, which is missing even where none is null."""
    types = read.arrow().types
    return bool(types.is_integer(kind) or types.is_boolean(kind))


def _arrow_kind(kind: Any) -> str:
    types = read.arrow().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_boolean(kind):
        return "boolean"
    if types.is_null(kind):
        return ""
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    return "number" if read.arrow_numeric(kind) else str(kind)


def _pandas(frame: Any) -> Rows:
    def made(wanted: list[tuple[str, str]]) -> Iterator[list[Any]]:
        for start in range(0, len(frame), BATCH):
            piece = frame.iloc[start : start + BATCH]
            yield [pandas_column(piece[name], kind) for name, kind in wanted]

    names = list(frame.columns)
    _once(names)
    kinds = {name: _pandas_kind(kind) for name, kind in zip(names, frame.dtypes.tolist(), strict=True)}
    return Rows(kinds, batches=made)  # whether a column is one of integers may depend on one missing cell


def _pandas_kind(kind: Any) -> str:
    from pandas.api.types import is_bool_dtype, is_string_dtype

    if hasattr(kind, "pyarrow_dtype"):
        return _arrow_kind(kind.pyarrow_dtype)
    if hasattr(kind, "categories"):
        inner = _pandas_kind(kind.categories.dtype)
        return inner if inner else "text"
    if kind == np.object_:
        return ""
    if is_bool_dtype(kind):
        return "boolean"
    if read.pandas_numeric(kind):
        return "number"
    return "text" if is_string_dtype(kind) else str(kind)


def _ibis_table(table: Any) -> Rows:
    kinds, complete = {}, set()
    for name, kind in table.schema().items():
        known = kind.is_numeric() or kind.is_string() or kind.is_boolean()
        word = "boolean" if kind.is_boolean() else "text" if kind.is_string() else "number"
        kinds[name] = word if known else str(kind)
        complete |= {name} if not kind.nullable and (kind.is_integer() or kind.is_boolean()) else set()
    return Rows(kinds, frozenset(complete), table=table)


def _names(wanted: list[tuple[str, str]]) -> list[str]:
    """Each column once."""
    return list(dict.fromkeys(name for name, _ in wanted))


def _once(names: Any) -> None:
    if any(not isinstance(name, str) for name in names):
        raise ValueError("the columns of a private table are named by texts: rename them")
    for name in names:
        whole_text("the name of a column", name)
    if repeated := sorted({name for name in names if list(names).count(name) > 1}):
        raise ValueError(
            f"the table has several columns of the name {', '.join(map(printable, repeated))}: rename them"
        )
