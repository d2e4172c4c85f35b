"""A ledger: what is spent of each cap, when, and on what."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from shapedp.boundary.values import WORDS
from shapedp.ledger import Charge, Entry, Ledger, Status
from shapedp.ledger.about import unit_words
from shapedp.report import words
from shapedp.report.figures import number, percent, whole
from shapedp.report.markup import Markup, el, text
from shapedp.report.page import Page, charts, commands, facts, figure, meter, more, section, table, top
from shapedp.report.svg import Axis, Chart, linear, places

_DRAWN = 400
_LISTED = 300
_RULES = {
    "either": "either: the sums of ε and of δ, or the sum of μ², whichever is within its share of the cap",
    "gaussian": "Gaussian: the sum of μ², each spend priced as Gaussian differential privacy",
    "renyi": "Rényi: the sum of Rényi divergences at fixed orders",
    "basic": "basic: the sums of ε and of δ",
}
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_STEPS = (  # between the ticks of a time axis, in seconds
    *(minutes * _MINUTE for minutes in (1, 5, 15, 30)),
    *(hours * _HOUR for hours in (1, 3, 6, 12)),
    *(days * _DAY for days in (1, 2, 5, 10, 20, 30, 60, 91, 182, 365)),
)


def ledger_page(ledger: Ledger, *, name: str | None = None, dataset: str | None = None) -> Page:
    """The page of a ledger, or of one of its data sets. Every entry is read and checked against the totals."""
    names = ledger.datasets() if dataset is None else (dataset,)
    if not names:
        raise ValueError("the ledger holds no data set")
    shown = name or (Path(ledger.store.name).name if ledger.store.is_sqlite else ledger.store.name)
    accounts = [(status := ledger.check(one), list(ledger.history(one))[: status.entries]) for one in names]
    most = max(status.spent for status, _ in accounts)
    entries = sum(status.entries for status, _ in accounts)
    cards = [
        ("Data sets", whole(len(names)), None),
        ("Entries", whole(entries), "reserved, released or abandoned; all count"),
        ("Most spent", percent(most, 4, "up"), "of a cap"),
    ]
    head = top("a privacy ledger", f"Budget of {shown}", text("ledger"), cards)
    promise = section("promise", "What is promised", text("ledger-promise"))
    shows = section("shows", "What this page shows", text("ledger-shows"))
    parts = (_dataset(k, status, taken) for k, (status, taken) in enumerate(accounts, 1))
    return Page(f"Budget of {shown}", head, (promise, *parts, shows, _recheck(shown, names)))


def _dataset(place: int, status: Status, entries: Sequence[Entry]) -> Markup:
    rule = status.filter
    share = percent(status.spent, 4, "up")
    pairs = facts(
        ("Cap", words.claim(rule.epsilon, rule.delta)),
        ("Spent", f"{share} of the cap"),
        ("Neighbours", words.neighbours(status.adjacency)),
        ("Persons", unit_words(status.unit)),
        ("Counted by", _RULES.get(rule.rule, rule.rule)),
        ("Totals", _totals(rule.describe(status.totals))),
        ("Entries", ", ".join(f"{whole(number_)} {state}" for state, number_ in status.states.items())),
    )
    shares = _shares(status, entries)
    drawn = charts(_timeline(place, status, entries, shares), _charges(place, entries, shares)) if entries else None
    bar, listed = meter(status.spent, f"{share} of the cap is spent"), _table(status, entries, shares)
    return section(f"dataset-{place}", f"Data set {status.dataset}", bar, pairs, drawn, listed)


def _totals(described: dict[str, Any]) -> str:
    def show(value: Any) -> str:
        return ", ".join(number(v, 4, "up") for v in value) if isinstance(value, list) else number(value, 6, "up")

    return "; ".join(f"{name.replace('_', ' ').replace('mu', 'μ')} {show(value)}" for name, value in described.items())


def _shares(status: Status, entries: Sequence[Entry]) -> list[float]:
    """The share of the cap that is used after each entry."""
    start = Charge((0,) * len(status.totals.amounts))
    totals = accumulate((entry.cost for entry in entries), Charge.plus, initial=start)
    return [status.filter.spent(total) for total in islice(totals, 1, None)]


def _timeline(place: int, status: Status, entries: Sequence[Entry], shares: Sequence[float]) -> Markup:
    seconds = [_seconds(entry.time) for entry in entries]
    x, at = _time_axis(seconds)
    y = Axis("share of the cap", 0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0), show=percent)
    described = text("ledger-timeline", entries=whole(len(entries)), spent=percent(status.spent, 4, "up"))
    chart = Chart(x, y, "Spent over time", described)
    chart.across((x.low, 1.0), (x.high, 1.0), "limit", "the cap")
    every = max(-(-len(entries) // _DRAWN), 1)
    kept = [*range(0, len(entries) - 1, every), len(entries) - 1]
    points = [(at(k), shares[k]) for k in kept]
    chart.steps([(x.low, 0.0), (points[0][0], 0.0), *points, (x.high, points[-1][1])], "one")
    for k, (where, share) in zip(kept, points, strict=True):
        chart.mark(where, share, "one" if len(kept) <= 60 else "unseen", _entry_words(entries[k], share), radius=3.0)
    legend = [("one", "line", "spent"), ("limit", "line", "the cap")]
    return figure(f"timeline-{place}", chart, "Each step is a reservation.", legend)


def _charges(place: int, entries: Sequence[Entry], shares: Sequence[float]) -> Markup:
    """How much of the cap each entry took, in groups where they are many."""
    gains = [b - a for a, b in zip([0.0, *shares[:-1]], shares, strict=True)]
    size = -(-len(gains) // 80)
    groups = [(k, min(k + size, len(gains))) for k in range(0, len(gains), size)]
    sums = [sum(gains[a:b]) for a, b in groups]
    y = linear("share of the cap", 0.0, max(max(sums), 1e-12), show=lambda value: percent(value))
    n = len(gains)
    described = f"The share of the cap taken by each of {whole(n)} entries."
    chart = Chart(places("entry", n), y, "What each entry took", described)
    for (a, b), total in zip(groups, sums, strict=True):
        where = f"entry {a + 1}" if b == a + 1 else f"entries {a + 1} to {b}"
        gap = 0.12 if size == 1 else 0.0
        chart.column(a + 0.5 + gap, b + 0.5 - gap, total, "one", f"{where}: {percent(total, 3)} of the cap")
    return figure(f"charges-{place}", chart, "One bar each." if size == 1 else f"{size} entries to a bar.")


def _entry_words(entry: Entry, share: float) -> str:
    named = f" {entry.label!r}" if entry.label else ""
    when = _clock(_seconds(entry.time))
    return f"entry {entry.sequence}{named}, {when}: {percent(share, 4, 'up')} spent ({entry.state})"


def _table(status: Status, entries: Sequence[Entry], shares: Sequence[float]) -> Markup | None:
    if not entries:
        return el("p", "Nothing was spent yet.")
    said = tuple(name for name in WORDS if any(getattr(entry, name) for entry in entries[-_LISTED:]))
    headers = ("entry", "time (UTC)", "state", *said, "mechanism", "its own claim", "releases", "spent after it")
    rows = [_row(entry, share, said) for entry, share in list(zip(entries, shares, strict=True))[-_LISTED:]]
    caption = f"The latest {whole(len(rows))} of {whole(status.entries)} entries"
    return more("Entry by entry", table(caption, headers, rows, words=5 + len(said)))


def _row(entry: Entry, share: float, said: tuple[str, ...]) -> tuple[str, ...]:
    claim = words.claim(float(entry.certificate["epsilon"]), float(entry.certificate["delta"]))
    what = (whole(entry.sequence), _clock(_seconds(entry.time)), entry.state, *(getattr(entry, one) for one in said))
    return (*what, _subject(entry), claim, whole(entry.count), percent(share, 4, "up"))


def _subject(entry: Entry) -> str:
    kind, person = str(entry.mechanism.get("type", "")).rsplit(".", 1)[-1], entry.mechanism.get("vouched_by")
    return kind if person is None else f"{kind}, not computed: {person} vouches for it"


def _recheck(shown: str, names: Sequence[str]) -> Markup:
    where = shlex.quote(shown)
    lines = [f"shapedp ledger status {where} --check"]
    lines += [f"shapedp ledger history {where} --dataset {shlex.quote(name)}" for name in names[:20]]
    lines.append(f"shapedp ledger export {where} -o ledger.json")
    return section("recheck", "How to recheck", text("ledger-recheck", commands=commands(lines)))


def _seconds(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def _clock(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")


def _time_axis(seconds: Sequence[float]) -> tuple[Axis, Callable[[int], float]]:
    """Time where the entries span more than a minute, otherwise their number."""
    first, last = seconds[0], max(seconds)
    if last - first < 60:
        return linear("entry", 0.0, float(len(seconds))), lambda k: float(k + 1)
    step = next((s for s in _STEPS if (last - first) / s <= 5), _STEPS[-1])
    start = -(-first // step) * step
    ticks = [start + k * step for k in range(int((last - start) // step) + 1)]
    pattern = "%H:%M" if last - first < 86400 else "%d %b" if last - first < 300 * 86400 else "%b %Y"
    room = 0.03 * (last - first)

    def show(value: float) -> str:
        return datetime.fromtimestamp(value, UTC).strftime(pattern)

    label = f"time (UTC), from {_clock(first)}"
    return Axis(label, first - room, last + room, tuple(ticks), show=show), lambda k: seconds[k]
