"""The answers of a private table: what was asked, of whom, within which bounds; the values with their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from shapedp.boundary.values import words as checked
from shapedp.private.answers import Answers
from shapedp.private.figures import texts
from shapedp.private.questions import DRAWN, Question
from shapedp.report.figures import number, percent, whole
from shapedp.report.markup import Child, Markup, el, text
from shapedp.report.page import Page, facts, meter, section, table
from shapedp.report.pages import certified_page

LISTED = 300
_WIDE, _HIGH = 160.0, 14.0
_ENDS = ("", "_error", "_low", "_high")


def answers_page(answers: Answers, *, title: str = "", author: str = "", purpose: str = "", data: str = "",
                 file: str | None = None) -> Page:  # fmt: skip
    """The page of a release: named, dated and signed; then its values, then what they are worth.

    Guarantee: everything on it was released or stated by the caller; no record, no true value.
    """
    spend = answers.spend
    said = {"label": title, "author": author, "note": purpose}
    kept = {} if spend is None else vars(spend.about)
    told = {name: checked(name, given) or kept.get(name, "") for name, given in said.items()}
    heading = told["label"] or "Answers of a private table"
    parts = [_release(answers, told, checked("label", data)), *(_question(k, answers) for k in range(len(answers)))]
    page = certified_page("a release", heading, answers.certificate, file, parts)
    promise, rest = page.sections[0], page.sections[1 + len(parts) :]
    return replace(page, sections=(*parts, promise, *rest))


def _release(answers: Answers, told: Mapping[str, str], data: str) -> Markup:
    """What was released, by whom, when and what for; of whom, within which bounds; out of which budget."""
    spend, people = answers.spend, answers.questions[0].table
    name = data or (spend.dataset if spend is not None else "")
    day = datetime.fromisoformat(answers.time).strftime("%Y-%m-%d %H:%M UTC")
    asked = "; ".join(map(repr, answers.questions))
    bounds = [f"{one.name}: {number(one.low)} to {number(one.high)}" for one in _used(answers).values()]
    found = ", ".join(getattr(answers.release, "found", {}))
    groups = {one.name: one for question in answers.questions for one in question.by}
    pairs = facts(
        ("Data set", name) if name else None,
        ("Released", day),
        ("By", told["author"]) if told["author"] else None,
        ("Purpose", told["note"]) if told["note"] else None,
        ("Questions", asked),
        ("Persons", people.sentence),
        ("Bounds", "; ".join(bounds)) if bounds else None,
        ("Groups", "; ".join(map(_cells, groups.values()))) if groups else None,
        ("Dropped", answers.dropped.sentence(answers.confidence)) if answers.dropped is not None else None,
        ("Where from", text("bounds-found", names=found) if found else text("bounds-stated")),
    )
    return section(
        "release",
        "What was released",
        pairs,
        *_budget(spend),
        *(el("p", one, class_="note") for one in answers.counted),
    )


def _used(answers: Answers) -> dict[str, Any]:
    """The measures of the columns that are asked for."""
    measures = answers.questions[0].table.measures
    names = [str(one.column) for question in answers.questions for one in question.asked.values()]
    return {name: measures[name] for name in names if hasattr(measures.get(name), "low")}


def _cells(attribute: Any) -> str:
    shown = [str(cell) for cell in attribute.cells()[:20]]
    more = f" and {whole(attribute.size - 20)} more" if attribute.size > 20 else ""
    return f"{attribute.name}: {', '.join(shown)}{more}"


def _budget(spend: Any) -> list[Markup]:
    """What was spent of the cap before and after, where a ledger counted the release."""
    if spend is None or spend.shares is None:
        return []
    (before, after), cap = spend.shares, spend.terms.filter
    shown = [percent(share, 4, "up") for share in (before, after)]
    told = text("budget-spent", before=shown[0], after=shown[1], entry=str(spend.entry), rule=cap.rule,
                dataset=spend.dataset, epsilon=number(cap.epsilon, 6), delta=number(cap.delta, 6))  # fmt: skip
    return [el("h3", "The budget"), meter(after, f"{shown[1]} of the cap is spent"), el("p", told)]


def _question(place: int, answers: Answers) -> Markup:
    question, columns = answers.questions[place], answers.tables[place]
    level = percent(answers.confidence, 4)
    shown = [_values(question, name, columns, level) for name in question.asked if name in columns]
    plain = [] if shown else [_plain(columns)]
    return section(f"question-{place + 1}", _heading(question), *shown, *plain)


def _heading(question: Question) -> str:
    shown = repr(question)
    return shown if len(shown) <= 120 else shown[:117] + "..."


def _values(question: Question, name: str, columns: Mapping[str, Sequence[Any]], level: str) -> Markup:
    """One aggregate, group by group, its interval as a number and as a picture on a common scale."""
    by = [one.name for one in question.by]
    value, error, low, high = (list(columns.get(name + end, [math.nan] * len(columns[name])))[:LISTED] for end in _ENDS)
    ends = [float(end) for end in (*low, *high, *value) if math.isfinite(float(end))]
    least, most = min(ends, default=0.0), max(ends, default=1.0)
    said = texts(dict(zip((name + end for end in _ENDS), (value, error, low, high), strict=True)), commas=True)
    shown = list(zip(*said.values(), strict=True))
    rows: list[list[Child]] = []
    for k, (one, its_error, start, end) in enumerate(shown):
        groups = [str(columns[column][k]) for column in by] or ["all"]
        bar = _bar((value[k], low[k], high[k]), (one, start, end), least, most)
        rows.append([*groups, one, its_error, f"{start} to {end}", bar])
    scale = f"scale {number(least)} to {number(most)}"
    error_of = "half the interval" if question.asked[name].verb in DRAWN else "standard error"
    headers = [*(by or ["group"]), name, error_of, f"{level} interval", scale]
    total = len(columns[name])
    cut = f" The first {whole(LISTED)} of {whole(total)} groups." if total > LISTED else ""
    return table(
        f"{question.asked[name]!r}: values, and a picture of their intervals.{cut}", headers, rows, words=len(by) or 1
    )


def _plain(columns: Mapping[str, Sequence[Any]]) -> Markup:
    """Columns without intervals, as they are."""
    rows = [[_short(cell) for cell in row] for row in list(zip(*columns.values(), strict=True))[:LISTED]]
    return table("Answers", list(columns), rows, words=len(columns))


def _short(cell: Any) -> str:
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        return str(cell)
    return (whole(cell) if isinstance(cell, int) else number(cell, 5)) if math.isfinite(cell) else "-"


def _bar(ends: tuple[float, float, float], shown: tuple[str, str, str], least: float, most: float) -> Markup:
    """A dot with its interval on the scale from `least` to `most`; said in words for who cannot see it."""
    value, low, high = ends

    def at(x: float) -> float:
        share = (float(x) - least) / (most - least) if most > least and math.isfinite(float(x)) else 0.5
        return round(6 + (_WIDE - 12) * min(max(share, 0.0), 1.0), 2)

    said = f"{shown[0]}, from {shown[1]} to {shown[2]}"
    line = el("line", x1=at(low), x2=at(high), y1=_HIGH / 2, y2=_HIGH / 2, class_="line one")
    dot = el("circle", cx=at(value), cy=_HIGH / 2, r=4.0, class_="mark one")
    size = {"viewBox": f"0 0 {_WIDE:g} {_HIGH:g}", "width": f"{_WIDE:g}", "height": f"{_HIGH:g}"}
    return el("svg", el("title", said), line, dot, role="img", aria_label=said, class_="interval", **size)
