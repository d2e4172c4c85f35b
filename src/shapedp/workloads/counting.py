"""Exact tables of counts, from frames and files: only those that a workload needs, batch by batch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shapedp.privacy import Certificate
from shapedp.tables.sources import Source, pandas_source, source_of
from shapedp.workloads.schema import Attribute, Schema

if TYPE_CHECKING:
    from shapedp.workloads.answers import AnswerMechanism
    from shapedp.workloads.mechanism import WorkloadMechanism
    from shapedp.workloads.workload import Term, Workload

_MOST = 1 << 27  # cells of one table
_LARGEST = 1 << 22  # records that whole rows may count one as: sums over 2^40 of them are within int64
_EXACT = 1 << 22  # records whose measures, in steps, add up exactly in floats


@dataclass(frozen=True, eq=False)
class Counted:
    """Tables by the places of their attributes; the last axis holds the count and the sums, in whole steps.

    `bounds` says what was kept of one person, where the one who counted saw to it, and `whose` who a person is, in a
    sentence that the certificate of a release repeats.
    """

    tables: dict[tuple[int, ...], NDArray[np.int64]]
    schema: Schema | None = None
    bounds: Mapping[str, int] | None = None
    whose: str = ""

    def stated(self, certificate: Certificate) -> Certificate:
        """The certificate of a release of these tables."""
        return replace(certificate, scope=self.whose) if self.whose else certificate

    @property
    def records(self) -> int:
        """The number of records counted."""
        return max(int(table[..., 0].sum()) for table in self.tables.values())


def counted(mechanism: WorkloadMechanism | AnswerMechanism, x: Any) -> Counted:
    """The tables that a mechanism needs, from x: a frame, Arrow data, a path, or a Dask data frame.

    Errors name columns and types, never a cell. A record with a value outside a domain (without an "other" cell), or
    with a measure that is no number, is counted nowhere.
    """
    return tables_of(mechanism.workload.schema, mechanism.needed(), x)


def counted_within(mechanism: WorkloadMechanism | AnswerMechanism, x: Any) -> Counted:
    """The tables from x, or x itself where it holds them; refused where they are not those that were planned for."""
    tables = x if isinstance(x, Counted) else counted(mechanism, x)
    if tables.schema is not None and tables.schema.to_json() != mechanism.workload.schema.to_json():
        raise ValueError("the tables were counted for another schema: its domains and bounds are not those planned")
    if tables.bounds is not None and tables.bounds != mechanism.workload.bounds():
        raise ValueError("the tables were counted for another number of rows or groups per person than was planned for")
    if tables.records > mechanism.records:
        raise ValueError(
            f"the plan was made for at most {mechanism.records} records: plan with records=, a public bound"
        )
    return tables


def whole_answers(term: Term, table: NDArray[np.int64]) -> NDArray[np.int64]:
    """The answers of a group from the table of its attributes, whole rows being asked."""
    cells = table[..., term.measure]
    for axis, (_, factor) in enumerate(term.factors):
        if factor.shape != "cells":
            cells = np.moveaxis(np.tensordot(factor.matrix.astype(np.int64), cells, axes=(1, axis)), 0, axis)
    return cells


def exact_answers(workload: Workload, x: Any) -> NDArray[Any]:
    """All answers in a row, without noise: whole numbers where only counts are asked with whole rows."""
    schema = workload.schema
    found = tables_of(schema, list(dict.fromkeys(term.attributes for term in workload.terms)), x).tables
    parts: list[NDArray[Any]] = []
    for term in workload.terms:
        most = 1.0
        table: NDArray[Any] = found[term.attributes][..., term.measure]
        if term.measure:
            table = table * schema.measures[term.measure - 1].step
        for axis, (_, factor) in enumerate(term.factors):
            if factor.shape != "cells":
                rows: NDArray[Any] = factor.matrix
                most *= float(np.abs(rows).sum(axis=1).max())
                if most <= _LARGEST and not (rows % 1).any():
                    rows = rows.astype(np.int64)
                table = np.moveaxis(np.tensordot(rows, table, axes=(1, axis)), 0, axis)
        parts.append(table.reshape(-1))
    return np.concatenate(parts)


def tables_of(schema: Schema, needed: list[tuple[int, ...]], x: Any) -> Counted:
    """The tables by these attributes."""
    for axes in needed:
        cells = math.prod(schema.sizes[k] for k in axes)
        if cells * (1 + len(schema.measures)) > _MOST:
            raise ValueError(f"a table of {cells} cells is too large to count: ask for fewer attributes together")
    if hasattr(x, "to_delayed") and hasattr(x, "npartitions"):
        return _distributed(schema, needed, x)
    source = source_of(x)
    if source is None:
        raise TypeError(f"x must be a frame, Arrow data, a path or a Dask data frame, got {type(x).__name__}")
    return Counted(_count(schema, needed, source), schema)


def _distributed(schema: Schema, needed: list[tuple[int, ...]], x: Any) -> Counted:
    from dask.base import compute
    from dask.delayed import delayed

    work = delayed(lambda piece: _count(schema, needed, pandas_source(piece)), pure=False)
    _columns(schema, needed, pandas_source(x._meta))
    failed = ""
    try:
        pieces = compute(*[work(piece) for piece in x.to_delayed()])  # type: ignore[no-untyped-call]
    except Exception as error:  # of what makes the partitions: it may quote a cell
        failed = type(error).__name__
    if failed:  # raised here, so that it does not carry the other error along
        raise ValueError(f"a partition could not be computed or counted ({failed}): compute x alone to see why")
    return Counted({axes: sum(piece[axes] for piece in pieces) for axes in needed}, schema)


def _columns(schema: Schema, needed: list[tuple[int, ...]], source: Source) -> list[Attribute]:
    """The attributes that are read; refuses a source that lacks one, or a measure."""
    used = sorted({k for axes in needed for k in axes})
    chosen = [schema.attributes[k] for k in used]
    asked = [one.name for one in chosen] + [one.name for one in schema.measures]
    missing = [name for name in asked if name not in source.names]
    if missing:
        raise ValueError(f"the table has no column {', '.join(map(repr, missing))}")
    if odd := source.not_numeric(tuple(one.name for one in schema.measures)):
        raise ValueError(f"measures must be columns of numbers, not {', '.join(map(str, odd))}")
    return chosen


def _count(schema: Schema, needed: list[tuple[int, ...]], source: Source) -> dict[tuple[int, ...], NDArray[np.int64]]:
    chosen = _columns(schema, needed, source)
    place = {schema.index(one.name): k for k, one in enumerate(chosen)}
    wide = 1 + len(schema.measures)
    tables = {axes: np.zeros((math.prod(schema.sizes[k] for k in axes), wide), dtype=np.int64) for axes in needed}
    for codes, values in _batches(schema, chosen, source):
        for axes, table in tables.items():
            flat = np.zeros(len(values), dtype=np.int64)
            for k in axes:
                flat = flat * schema.sizes[k] + codes[place[k]]
            for column, start in itertools.product(range(wide), range(0, len(values), _EXACT)):
                some = slice(start, start + _EXACT)
                added = np.bincount(flat[some], values[some, column].astype(np.float64), minlength=len(table))
                table[:, column] += np.rint(added).astype(np.int64)
    return {axes: table.reshape([*(schema.sizes[k] for k in axes), wide]) for axes, table in tables.items()}


def _batches(
    schema: Schema, chosen: list[Attribute], source: Source
) -> Iterator[tuple[list[NDArray[np.int64]], NDArray[np.int64]]]:
    """Cells of every attribute, and (1, measures in steps), of the records that are counted."""
    named = [one for one in chosen if one.labels is not None]
    numeric = [one for one in chosen if one.labels is None]
    floats = tuple([one.name for one in numeric] + [one.name for one in schema.measures])
    books = {
        one.name: Attribute(one.name, tuple(map(source.label, one.labels or ())), other=one.other) for one in named
    }
    for size, columns in source.parts(floats, [one.name for one in named]):
        found = {one.name: one.codes(column) for one, column in zip(numeric, columns, strict=False)}
        found |= {
            one.name: books[one.name].codes(column) for one, column in zip(named, columns[len(floats) :], strict=True)
        }
        kept, rows = np.ones(size, dtype=np.bool_), [np.ones(size, dtype=np.int64)]
        for measure, column in zip(schema.measures, columns[len(numeric) : len(floats)], strict=True):
            steps, known = measure.steps(np.asarray(column, dtype=np.float64))
            rows.append(steps)
            kept &= known
        for codes in found.values():
            kept &= codes >= 0
        yield [found[one.name][kept] for one in chosen], np.stack(rows, axis=1)[kept]
