"""Spark data frames as tables of which only sums leave the executors."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from shapedp.boundary.columns import arrow, refuse_columns
from shapedp.boundary.refusals import refusal
from shapedp.tables.blocks import NO_TARGET, InMemory, Streamed, Table
from shapedp.tables.pieces import Distributed, Found, PieceError, T, joined, total_of, worked
from shapedp.tables.sources import arrow_source

MERGERS = 16  # most tasks that merge sums; the driver receives as many
_SCHEMA = "piece bigint, found binary"
_MERGED = -1  # the piece of a row that stands for several


@dataclass(frozen=True, eq=False, kw_only=True)
class OnSpark(Distributed):
    """A data frame; `target` is the name of a column, or None."""

    frame: Any
    target: str | None

    def reduced(self, work: Callable[[Table], T], merge: Callable[[list[T]], T], progress: bool = False) -> T:
        """`work` done on every partition where it is, the results merged in at most `MERGERS` tasks, then here.

        Each row of a partial result goes to the task that its partition's number names, whatever is in it: a task that
        is run again sends it to the same place. Spark draws its own bar.
        """
        each = partial(_partition, work, self.names or (), self.target, self.classes, self.version)
        mergers = min(MERGERS, self.frame.sparkSession.sparkContext.defaultParallelism)
        sums = self.frame.mapInArrow(each, _SCHEMA).repartition(mergers, "piece")
        failed, rows = "", []
        try:
            rows = sums.mapInArrow(partial(_together, merge), _SCHEMA).collect()
        except Exception as error:  # Spark's errors may quote a cell
            failed = type(error).__name__
        if failed:  # raised here, so that it does not carry Spark's own error along
            raise ValueError(refusal("tables", "no-partition", kind=failed))
        total: T = total_of(joined(merge, [pickle.loads(row["found"]) for row in rows]))
        return total


def spark_table(x: Any, y: Any, classes: Sequence[Any] | None) -> OnSpark:
    """A Spark data frame with the target y, the name of a column or `NO_TARGET`; types are those of its schema."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    if x.isStreaming:
        raise TypeError("x must be a data frame at rest: a stream has no end")
    fields = {field.name: field.dataType for field in x.schema.fields}
    if len(fields) < len(x.columns):
        raise ValueError("x has several columns of one name: rename them")
    if y is not NO_TARGET and y not in fields:
        raise ValueError(f"x has no column {y!r}; it has {', '.join(fields)}")
    names = tuple(name for name in fields if y is NO_TARGET or name != y)
    if not names:
        raise ValueError("x must have at least one feature")
    wanted = names if y is NO_TARGET or classes is not None else (*names, y)
    refuse_columns({name: fields[name].simpleString() for name in wanted if not _numeric(fields[name])})
    labels, target = None if classes is None else tuple(classes), None if y is NO_TARGET else str(y)
    return OnSpark(frame=x, target=target, columns=len(names), names=names, records=None, classes=labels)


def _numeric(kind: Any) -> bool:
    """Whether a Spark type holds real numbers; that of a column of nulls does, for all are missing."""
    from pyspark.sql.types import BooleanType, NullType, NumericType

    return isinstance(kind, NumericType | BooleanType | NullType)


def _partition(
    work: Callable[[Table], Any],
    names: tuple[str, ...],
    target: str | None,
    classes: tuple[Any, ...] | None,
    version: str,
    batches: Iterator[Any],
) -> Iterator[Any]:
    """The sums of one partition, as one row; runs on an executor."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    number = context.partitionId()
    yield _row(number, summed_piece(work, names, target, classes, version, number, batches))


def summed_piece(
    work: Callable[[Table], Any],
    names: tuple[str, ...],
    target: str | None,
    classes: tuple[Any, ...] | None,
    version: str,
    number: int,
    batches: Iterator[Any],
) -> Found:
    """The sums of Arrow batches; what goes wrong is told, not raised: Spark would log it with all it quotes."""
    try:
        total = worked(work, partial(_piece, batches, names, target, classes), version)
    except PieceError as error:
        return Found((number,), None, refused=str(error))
    except Exception as error:
        return Found((number,), None, failed=type(error).__name__)
    return Found((number,), total)


def _piece(
    batches: Iterator[Any], names: tuple[str, ...], target: str | None, classes: tuple[Any, ...] | None
) -> Table:
    first = next(batches, None)
    if first is None:
        return InMemory(np.empty((0, len(names))), np.empty(0))
    found = arrow_source(first.schema, lambda wanted: (one.select(wanted) for one in chain([first], batches)), None)
    return Streamed(found, names, target, classes)


def _together(merge: Callable[[list[Any]], Any], batches: Iterator[Any]) -> Iterator[Any]:
    """Sums merged as they come, two at a time in memory; runs on an executor."""
    total: Found | None = None
    for batch in batches:
        for cell in batch.column("found"):
            found = pickle.loads(cell.as_py())
            total = found if total is None else joined(merge, [total, found])
    if total is not None:
        yield _row(_MERGED, total)


def _row(piece: int, found: Found) -> Any:
    library = arrow()
    cells = [library.array([piece], library.int64()), library.array([pickle.dumps(found)], library.binary())]
    return library.record_batch(cells, names=["piece", "found"])
