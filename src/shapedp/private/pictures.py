"""Answers as a notebook shows them: tables, and values with their intervals as a small picture. No script, no file."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

from shapedp.boundary.values import printable
from shapedp.private.figures import texts

SHOWN = 200  # rows of a table on a page
_DRAWN = 40  # groups of a picture
_LETTERS = 28
_ROW, _LEFT, _WIDE, _EDGE = 18, 190, 300, 8
_FITS = "max-width:100%;height:auto"
_LINE = "stroke:currentColor;stroke-width:2;opacity:0.6"


def table_html(columns: Mapping[str, Sequence[Any]]) -> str:
    """The columns as a table, the first rows of it."""
    head = "".join(f"<th>{html.escape(printable(name))}</th>" for name in columns)
    cells = texts({name: list(one[: SHOWN + 1]) for name, one in columns.items()}, commas=True)
    rows = list(zip(*cells.values(), strict=True))
    body = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows[:SHOWN]]
    more = "<p>... and more rows</p>" if len(rows) > SHOWN else ""
    table = f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in body)}</table>"
    return f'<div style="overflow-x:auto">{table}</div>{more}'


def picture_html(columns: Mapping[str, Sequence[Any]], by: Sequence[str], name: str, level: float) -> str:
    """An answer group by group: a dot, and a line between the ends of its interval; nothing where it has none.

    What it shows is also said in words, for who cannot see it.
    """
    parts = [columns.get(name + end) for end in ("", "_low", "_high")]
    if any(one is None or not len(one) for one in parts):
        return ""
    rows = [[float(cell) for cell in row] for row in zip(*(one[:_DRAWN] for one in parts if one), strict=True)]
    ends = [cell for row in rows for cell in row if math.isfinite(cell)]
    least, most = min(ends, default=0.0), max(ends, default=1.0)
    names = [", ".join(printable(str(columns[one][k])) for one in by) or "all" for k in range(len(rows))]
    said = f"{printable(name)} with intervals of {level:.4g}, from {_shown(least)} to {_shown(most)}"
    told = "; ".join(_words(one, row) for one, row in zip(names, rows, strict=True))
    marks = [_mark(k, one, row, least, most) for k, (one, row) in enumerate(zip(names, rows, strict=True))]
    high, wide = _ROW * (len(rows) + 1), _LEFT + _WIDE + 2 * _EDGE
    size = f'width="{wide}" height="{high}" viewBox="0 0 {wide} {high}" fill="currentColor" style="{_FITS}"'
    scale = "".join(
        f'<text x="{_at(end, least, most)}" y="{high - 5}" text-anchor="{side}" font-size="11">{_shown(end)}</text>'
        for end, side in ((least, "start"), (most, "end"))
    )
    more = f"<p>The first {_DRAWN} groups are drawn.</p>" if len(columns[name]) > _DRAWN else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{html.escape(said)}">'
        f"<title>{html.escape(said)}</title><desc>{html.escape(told)}</desc>{''.join(marks)}{scale}</svg>{more}"
    )


def figure_html(columns: Mapping[str, Sequence[Any]], by: Sequence[str], name: str, level: float) -> str:
    """The picture of an answer under its name; nothing where it has none."""
    picture = picture_html(columns, by, name, level)
    said = f"{html.escape(printable(name))}, with intervals of {level:.4g}"
    place = "display:inline-block;max-width:100%;margin:0.5em 1em 0.5em 0;vertical-align:top"
    return picture and f'<figure style="{place}"><figcaption>{said}</figcaption>{picture}</figure>'


def _at(value: float, least: float, most: float) -> float:
    share = (value - least) / (most - least) if most > least else 0.5
    return round(_LEFT + _EDGE + _WIDE * min(max(share, 0.0), 1.0), 2)


def _mark(place: int, name: str, row: Sequence[float], least: float, most: float) -> str:
    """One group: its name, its interval, its value; a name too long is cut, and whole in its title."""
    value, low, high = (_at(cell, least, most) if math.isfinite(cell) else None for cell in row)
    middle = _ROW * place + _ROW // 2
    short = name if len(name) <= _LETTERS else name[: _LETTERS - 3] + "..."
    text = f'<text x="{_LEFT}" y="{middle + 4}" text-anchor="end" font-size="12">{html.escape(short)}</text>'
    line = f'<line x1="{low}" x2="{high}" y1="{middle}" y2="{middle}" style="{_LINE}"/>'
    dot = f'<circle cx="{value}" cy="{middle}" r="4"/>'
    shown = text + (line if low is not None and high is not None else "") + (dot if value is not None else "")
    return f"<g><title>{html.escape(_words(name, row))}</title>{shown}</g>"


def _words(name: str, row: Sequence[float]) -> str:
    value, low, high = map(_shown, row)
    return f"{name}: {value}, from {low} to {high}"


def _shown(cell: Any) -> str:
    return f"{cell:.6g}" if isinstance(cell, float) else printable(str(cell))
