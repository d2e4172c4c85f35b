"""Answers of a private table: values with standard errors and intervals, group by group, and one certificate."""

from __future__ import annotations

import html
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import import_module
from typing import Any, Protocol

import numpy as np

from shapedp.boundary.values import plain, printable
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import probability
from shapedp.privacy import Certificate
from shapedp.private.dropped import Dropped
from shapedp.private.layout import Layout, Parts
from shapedp.private.pictures import figure_html, table_html
from shapedp.private.questions import Question
from shapedp.workloads import AnsweredWorkload, Measure, WorkloadRelease
from shapedp.workloads.workload import Term

WHOLE = "Counts are rounded to whole numbers after the noise; their errors and intervals are those before."

_LISTED = 60  # groups that are printed, with all their columns
Column = list[Any]
Noisy = WorkloadRelease | AnsweredWorkload


class Released(Protocol):
    """What answers come from: under one certificate."""

    @property
    def certificate(self) -> Certificate:
        """What it is worth."""


Four = tuple[Floats, Floats, Floats, Floats]  # value, standard error, lower and upper end


@dataclass(frozen=True, eq=False)
class Answers:
    """The answers to the questions asked together.

    `frames` holds a data frame per question (pandas where installed, otherwise a mapping of lists), `frame` that of a
    single question. Beside each value stand its standard error and the ends of its interval (`confidence`). All
    come from the same noisy numbers, under one `certificate`. `dropped`, where it was asked for, is the share of rows
    that the bounds per person dropped. `spend` is the spend of the ledger that counted it, `time` when it was made;
    `report()` makes a page of it.

    Example:
        >>> import pandas as pd
        >>> import shapedp as sdp
        >>> t = sdp.table(pd.DataFrame({"sex": ["F", "M"]}), person=None, domains={"sex": ["F", "M"]})
        >>> answers = t.ask(t.group_by("sex").count(), t.count(), epsilon=1.0, delta=1e-6)
        >>> [len(one["count"]) for one in answers], list(answers.tables[0])
        ([2, 1], ['sex', 'count', 'count_error', 'count_low', 'count_high'])
    """

    questions: tuple[Question, ...]
    tables: tuple[Mapping[str, Column], ...]
    release: Released
    confidence: float = 0.95
    _again: Callable[[float], Answers] | None = None
    spend: Any = None
    dropped: Dropped | None = None
    time: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    def __post_init__(self) -> None:
        plain(self)

    @property
    def certificate(self) -> Certificate:
        """What all answers together are worth."""
        return self.release.certificate

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader of the numbers must know."""
        said = () if self.dropped is None else (self.dropped.sentence(self.confidence),)
        return (self.certificate.scope, *self.counted, *said)

    @property
    def counted(self) -> tuple[str, ...]:
        """What is said of counts, where there are any."""
        return (WHOLE,) if any(ask.verb == "count" for one in self.questions for ask in one.asked.values()) else ()

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns of the only table."""
        if len(self.tables) != 1:
            raise ValueError(f"{len(self.tables)} questions were asked: their tables are in .tables and .frames")
        return self.tables[0]

    @property
    def frame(self) -> Any:
        """The data frame of the only question."""
        return _frame(self.columns)

    @property
    def frames(self) -> list[Any]:
        """A data frame per question."""
        return [_frame(one) for one in self.tables]

    def interval(self, confidence: float) -> Answers:
        """The same answers with intervals of another confidence; nothing more is spent."""
        assert self._again is not None
        return replace(self._again(confidence), spend=self.spend, time=self.time)

    def report(self, *, title: str = "", author: str = "", purpose: str = "", data: str = "") -> Any:
        """A page about this release: who made it, when and why, of whom, the values with their intervals, and what it
        is worth; `save(path)` writes it. What is left out is taken from the ledger's entry, where there is one.
        """
        pages = import_module("shapedp.report")  # by name: pages know of answers, not answers of pages
        return pages.of(self, title=title, author=author, purpose=purpose, data=data)

    def __iter__(self) -> Iterator[Mapping[str, Column]]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def __repr__(self) -> str:
        frames = [
            _frame({printable(name): _plain(cells) for name, cells in columns.items()}) for columns in self.tables
        ]
        wide = [one.to_string(max_rows=_LISTED) if hasattr(one, "to_string") else one for one in frames]
        shown = [f"{question!r}\n{frame}" for question, frame in zip(self.questions, wide, strict=True)]
        return "\n\n".join((*shown, *self.notes[2:], self.certificate.explain()))

    def _repr_html_(self) -> str:
        parts = []
        for question, columns in zip(self.questions, self.tables, strict=True):
            by = [one.name for one in question.by]
            drawn = (figure_html(columns, by, name, self.confidence) for name in question.asked)
            parts += [f"<h4>{html.escape(repr(question))}</h4>", table_html(columns), *drawn]
        said = " ".join((self.certificate.explain(), *self.notes[1:]))
        return "".join((*parts, f"<p>{html.escape(said)}</p>"))


def _frame(columns: Mapping[str, Column]) -> Any:
    try:
        import pandas
    except ImportError:
        return dict(columns)
    return pandas.DataFrame(columns)


def _plain(cells: Column) -> Column:
    """The cells of a column, with no text among them that steers a terminal."""
    return [printable(cell) if isinstance(cell, str) else cell for cell in cells]


def answered(
    questions: Sequence[Question],
    layout: Layout,
    release: Noisy,
    measures: Mapping[str, Measure],
    confidence: float = 0.95,
) -> Answers:
    """The tables of all questions."""
    level = probability("confidence", confidence)
    tables = []
    for by, parts in zip(layout.groups, layout.parts, strict=True):
        reader = _Reader(layout, release, by, level)
        tables.append(reader.table(parts, measures))

    def again(other: float) -> Answers:
        return answered(questions, layout, release, measures, other)

    return Answers(tuple(questions), tuple(tables), release, level, again)


@dataclass(frozen=True, eq=False)
class _Reader:
    """The noisy tables by some attributes, in the order in which they were asked, without hidden cells."""

    layout: Layout
    release: Noisy
    by: tuple[str, ...]
    level: float

    def table(self, parts: Mapping[str, Parts], measures: Mapping[str, Measure]) -> dict[str, Column]:
        """Groups, then four columns per aggregate."""
        found: dict[str, Column] = {}
        named = [self._cells(name) for name in self.by]
        for place, name in enumerate(self.by):
            found[self.layout.columns[name]] = [row[place] for row in itertools.product(*named)]
        for name, one in parts.items():
            value, error, low, high = self._four(one, measures)
            whole = [round(x) for x in value.tolist()]
            found[name] = whole if one.ask.verb == "count" else value.tolist()
            found |= {name + "_error": error.tolist(), name + "_low": low.tolist(), name + "_high": high.tolist()}
        return found

    def _cells(self, name: str) -> list[Any]:
        schema = self.release.mechanism.workload.schema
        cells = schema.attributes[schema.index(name)].cells()
        return cells[:-1] if name in self.layout.hidden else cells

    def _four(self, one: Parts, measures: Mapping[str, Measure]) -> Four:
        if one.ask.verb in ("count", "sum"):
            place = one.count if one.ask.verb == "count" else one.total
            return self._plain(self._term(place))
        measure, feature = measures[str(one.ask.column)], self.layout.features[int(one.total or 1) - 1]
        ends = (measure.low - feature.centre, measure.high - feature.centre)
        if one.ask.verb == "mean":
            mean, error, low, high = self._mean(one.count, one.total, ends, self.level)
            return mean + feature.centre, error, low + feature.centre, high + feature.centre
        return self._variance(one, ends)

    def _variance(self, one: Parts, ends: tuple[float, float]) -> Four:
        """E y - (E t)^2 with t centred and y = t^2.

        Guarantee: the ends combine the intervals of both means, each at confidence 1 - (1 - level)/2, so that both
        hold together with at least the stated probability (Bonferroni).
        """
        widest = max(abs(end) for end in ends)
        shift, top = widest**2 / 2, ((ends[1] - ends[0]) / 2) ** 2  # no variance is larger
        each = 1 - (1 - self.level) / 2
        mean, error, low, high = self._mean(one.count, one.total, ends, each)
        square, its_error, least, most = self._mean(one.count, one.squares, (-shift, shift), each)
        value = np.clip(square + shift - mean**2, 0.0, top)
        near = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
        far = np.maximum(np.abs(low), np.abs(high))
        spread = np.minimum(np.hypot(its_error, 2 * np.abs(mean) * error), top)
        return value, spread, np.clip(least + shift - far**2, 0.0, top), np.clip(most + shift - near**2, 0.0, top)

    def _mean(self, count: int | None, total: int | None, ends: tuple[float, float], level: float) -> Four:
        """A ratio of two sums with its interval; its error is that of first order, at most the range."""
        below, above = self._term(count), self._term(total)
        n, s = self._values(below), self._values(above)
        pairs = ((below, None), (below, above), (above, None))
        a, b, c = (self._shown(self.release.mechanism.covariances(*pair), below) for pair in pairs)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.clip(np.where(n > 0, s / n, (ends[0] + ends[1]) / 2), *ends)
            error = np.sqrt(np.maximum(c - 2 * mean * b + mean**2 * a, 0.0)) / n
        error = np.where(n > 0, np.minimum(error, ends[1] - ends[0]), ends[1] - ends[0])
        low, high = (self._shown(end, below) for end in self.release.quotient(below, above, ends, level))
        return mean, error, low, high

    def _plain(self, term: Term) -> Four:
        name = term.name
        found = (self.release[name], self.release.standard_error(name), *self.release.interval(name, self.level))
        value, error, low, high = (self._shown(one, term) for one in found)
        return value, error, low, high

    def _term(self, place: int | None) -> Term:
        return self.release.mechanism.workload.table(0 if place is None else place, self.by)

    def _values(self, term: Term) -> Floats:
        return self._shown(self.release[term.name], term)

    def _shown(self, table: Floats, term: Term) -> Floats:
        """In the order of the question, hidden cells left out, in a row."""
        schema = self.release.mechanism.workload.schema
        names = [schema.attributes[place].name for place in term.attributes]
        ordered = np.transpose(table, [names.index(name) for name in self.by]) if self.by else table
        cut = tuple(slice(0, -1) if name in self.layout.hidden else slice(None) for name in self.by)
        return np.asarray(ordered[cut], dtype=np.float64).reshape(-1)
