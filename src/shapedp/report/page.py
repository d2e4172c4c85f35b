"""One page: a head that forbids every request, sections, tables, figures; written whole or not at all."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path

from shapedp._version import __version__
from shapedp.boundary.files import write_bytes
from shapedp.report.markup import Child, Markup, el, frame, many
from shapedp.report.svg import Chart, swatch

LIMIT = 2_000_000  # bytes of a page
_BADGES = {"certified": "good", "refuted": "bad", "undecided": "open", "approximate": "open"}


@dataclass(frozen=True, eq=False)
class Page:
    """A self-contained HTML page.

    Parameters
    ----------
    title
        What the page is about, in a line.
    header, sections
        Its content.
    verdict
        The verdict of what it shows, None where that has none.

    Examples
    --------
    >>> page = Page("Notes", top("a note", "Notes", "One sentence."), ())
    >>> page.html.startswith("<!DOCTYPE html>")
    True
    """

    title: str
    header: Markup
    sections: tuple[Markup, ...]
    verdict: str | None = None

    def __repr__(self) -> str:
        return f"Page({self.title!r}, verdict={self.verdict!r})"

    @cached_property
    def html(self) -> str:
        """The page as text: no script, no request, the same for the same input."""
        style = (resources.files("shapedp.report") / "page.css").read_text(encoding="utf-8")
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'"
        parts = {"title": self.title, "header": self.header, "sections": self.sections}
        text = frame(policy=policy, version=__version__, style=Markup(style), **parts)
        if len(text.encode()) > LIMIT:
            raise ValueError(f"the page would be larger than {LIMIT} bytes: report a part of it")
        return text

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Writes the page; it appears under its name once it is complete."""
        target = Path(path)
        if target.suffix not in (".html", ".htm"):
            raise ValueError(f"{target}: a report is an HTML page, name it .html")
        write_bytes(target, self.html.encode())
        return target


def top(kind: str, title: str, lead: Child, cards: Sequence[tuple[str, Child, Child]] = ()) -> Markup:
    """The head of a page: what it is about, in a sentence, and the figures that matter most."""
    items = [el("div", el("dt", name), el("dd", value, note and el("small", note))) for name, value, note in cards]
    figures = el("dl", items, class_="cards") if items else None
    eyebrow = el("p", f"shapedp report: {kind}", class_="eyebrow")
    return many(eyebrow, el("h1", title), el("p", lead, class_="lead"), figures)


def section(name: str, title: str, *content: Child) -> Markup:
    """A section with a heading and an id to link to."""
    return el("section", el("h2", title, id=f"{name}-heading"), content, id=name, aria_labelledby=f"{name}-heading")


def badge(verdict: str) -> Markup:
    """A verdict, in its colour and in words."""
    return el("span", verdict, class_=f"badge {_BADGES.get(verdict, 'neutral')}")


def callout(kind: str, text: Child) -> Markup:
    """A paragraph that must not be overlooked: kind is good, bad or open."""
    return el("div", el("p", text), class_=f"callout {kind}", role="note")


def facts(*pairs: tuple[str, Child] | None) -> Markup:
    """Names and values; None is left out."""
    return el("dl", [(el("dt", pair[0]), el("dd", pair[1])) for pair in pairs if pair is not None], class_="facts")


def table(caption: str, headers: Sequence[str], rows: Sequence[Sequence[Child]], *, words: int = 1) -> Markup:
    """A table whose first `words` columns are text and whose others are numbers.

    Where it is too wide it scrolls; one of more than four columns is set row by row on a narrow screen.
    """
    wide, kinds = len(headers) > 4, [None if i < words else "number" for i in range(len(headers))]

    def cell(i: int, value: Child) -> Markup:
        label = headers[i] if wide else None
        return el("td" if i else "th", value, class_=kinds[i], data_label=label, scope=None if i else "row")

    head = [el("th", header, class_=kind, scope="col") for header, kind in zip(headers, kinds, strict=True)]
    body = [el("tr", [cell(i, value) for i, value in enumerate(row)]) for row in rows]
    parts = el("caption", caption), el("thead", el("tr", head)), el("tbody", body)
    inner = el("table", parts, class_="wide" if wide else None)
    return el("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)


def figure(name: str, chart: Chart, caption: Child, legend: Sequence[tuple[str, str, str]] = ()) -> Markup:
    """A chart with its title, a legend of (class, shape, words), and what it shows."""
    keys = el("ul", [el("li", swatch(kind, shape), words) for kind, shape, words in legend], class_="legend")
    return el("figure", el("h3", chart.title), chart.render(name), keys if legend else None, el("figcaption", caption))


def charts(*figures: Markup | None) -> Markup:
    """Figures side by side where there is room."""
    return el("div", figures, class_="charts")


def more(summary: str, *content: Child) -> Markup:
    """What is shown when asked for; always in print."""
    return el("details", el("summary", summary), content)


def commands(lines: Sequence[str]) -> Markup:
    """Commands as they are typed."""
    return el("pre", el("code", "\n".join(lines)))


def meter(share: float, words: str) -> Markup:
    """A bar filled to a share of one."""
    used, shape = min(max(share, 0.0), 1.0), {"viewBox": "0 0 100 4", "preserveAspectRatio": "none"}
    bars = el("rect", width=100, height=4, class_="rest"), el("rect", width=100 * used, height=4, class_="bar one")
    return el("svg", el("title", words), bars, **shape, role="img", aria_label=words, class_="meter")
