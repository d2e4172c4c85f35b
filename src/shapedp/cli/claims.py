"""shapedp claims and reproduce: published statements, tables and figures, computed again."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path

from shapedp.boundary.files import write_bytes
from shapedp.boundary.refusals import refusal
from shapedp.cli.codes import DONE, REFUSED
from shapedp.cli.output import show, table
from shapedp.cli.streams import progress
from shapedp.papers.register import CLAIMS, Claim, Finding, check, harness
from shapedp.papers.register.harness import LIST, Published
from shapedp.papers.register.pages import disagreements, documentation, page

_OWN = ("compute", "judge", "printed", "about")


def claims(options: argparse.Namespace) -> int:
    """List or verify published statements and their computed verdicts."""
    chosen = _chosen(options.names)
    if options.page is not None:
        write_bytes(options.page, page(chosen).encode())
    if options.verify:
        return _verify(chosen, options)
    rows = [(claim.id, claim.standing, claim.statement, claim.witness) for claim in chosen]
    derived = ("standing", "slack", "command")
    names = (*(f.name for f in fields(Claim) if f.name not in _OWN), *derived)
    data = [{name: getattr(claim, name) for name in names} for claim in chosen]
    return show(options, data, table(("claim", "verdict", "statement", "why"), rows))


def checked(chosen: Iterable[Claim]) -> list[Finding]:
    """Every claim computed anew, with a line of progress."""
    findings, total = [], len(list(chosen))
    for done, claim in enumerate(chosen, 1):
        _progress(done, total, claim.id)
        findings.append(check(claim))
    return findings


def _verify(chosen: list[Claim], options: argparse.Namespace) -> int:
    findings, docs = checked(chosen), documentation()
    headers = ("claim", "verdict", "register", "computed")
    show(options, [finding.to_json() for finding in findings], table(headers, map(_row, findings)))
    misprints = [] if docs is None else list(disagreements(docs))
    notes = [refusal("cli", "not-compared")] if docs is None else [f"shapedp: misprint: {one}" for one in misprints]
    print(*notes, sep="\n", end="\n" if notes else "", file=sys.stderr)
    return DONE if all(finding.verified for finding in findings) and not misprints else REFUSED


def _row(finding: Finding) -> tuple[str, ...]:
    register = "verified" if finding.verified else "DISAGREES: " + "; ".join(finding.disagreements)
    computed = ", ".join(f"{name} {value:.6g}" for name, value in finding.values.items())
    return finding.claim.id, finding.verdict, register, computed


def _chosen(names: list[str]) -> list[Claim]:
    chosen = [c for c in CLAIMS.values() if not names or any(c.id == n or c.id.startswith(n + "/") for n in names)]
    if not chosen:
        raise ValueError(f"no claim matches {', '.join(names)}; shapedp claims lists them all")
    return chosen


def reproduce(options: argparse.Namespace) -> int:
    """Run one published table or figure, or list them."""
    folder = options.experiments or harness.experiments_folder()
    if not (folder / LIST).is_file():
        raise FileNotFoundError(f"{folder}: holds no {LIST}; give the folder experiments of a checkout of shapedp")
    if options.list:
        return _list(harness.published(folder), options)
    if options.all:
        return _all(folder, options)
    if options.item is None:
        known = [(name, item.title) for name, item in harness.items(folder)]
        data = [{"item": name, "title": title} for name, title in known]
        return show(options, data, table(("item", "title"), known))
    item = harness.find_item(options.item, folder)
    found, written = harness.reproduce(options.item, item, options.out, full=options.full, progress=_progress)
    cells = [[f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row] for row in found.rows]
    shown = {"item": options.item, "headers": found.headers, "rows": found.rows, "note": found.note}
    said = [*([found.note] if found.note else []), "wrote " + ", ".join(map(str, written))]
    return show(options, shown, item.title, table(found.headers, cells), *said)


def _list(entries: list[Published], options: argparse.Namespace) -> int:
    rows = [(e.paper, e.name, e.state, e.item or "-", _brief(e)) for e in entries]
    listed = table(
        ("paper", "published", "state", "item", "title, why it differs, or what of its conclusion holds"), rows
    )
    more = "every difference: shapedp reproduce --list --json, or docs/reproductions.md"
    return show(options, [asdict(entry) for entry in entries], listed, more)


def _brief(entry: Published) -> str:
    """The title, what becomes of the conclusion, or the first of several differences and how many more there are."""
    if entry.state != "differs":
        return entry.why or entry.conclusion or entry.title
    first, *others = entry.why.split("; ")
    return f"{first}; {len(others)} more" if others else first


def _all(folder: Path, options: argparse.Namespace) -> int:
    rows = []
    for name, item in harness.items(folder):
        start = time.perf_counter()
        found, _ = harness.reproduce(name, item, options.out, full=options.full, progress=_progress)
        seconds = f"{time.perf_counter() - start:.1f}"
        rows.append({"item": name, "state": found.state, "seconds": seconds, "why": found.why})
        if not options.json:
            print(f"{seconds:>7} s  {name}: {found.state}", flush=True)
    return show(options, rows) if options.json else DONE


def _progress(done: int, total: int, what: str) -> None:
    progress(f"{done}/{total} {what}", last=done == total)
