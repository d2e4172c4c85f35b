"""shapedp reproduce: published tables and figures, computed again."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from shapedp.cli.output import DONE, show, table
from shapedp.cli.streams import progress
from shapedp.papers.register.harness import LIST, Published, experiments_folder, find_item, items, published, reproduce


def run(options: argparse.Namespace) -> int:
    """Run one item, or list them."""
    folder = options.experiments or experiments_folder()
    if not (folder / LIST).is_file():
        raise FileNotFoundError(
            f"{folder}: holds no {LIST}; give the folder experiments of a checkout of the shapedp repository"
        )
    if options.list:
        return _list(published(folder), options)
    if options.all:
        return _all(folder, options)
    if options.item is None:
        known = [(name, item.title) for name, item in items(folder)]
        data = [{"item": name, "title": title} for name, title in known]
        return show(options, data, table(("item", "title"), known))
    item = find_item(options.item, folder)
    found, written = reproduce(options.item, item, options.out, full=options.full, progress=_progress)
    return show(
        options,
        {"item": options.item, "headers": found.headers, "rows": found.rows, "note": found.note},
        item.title,
        table(found.headers, [tuple(_cell(cell) for cell in row) for row in found.rows]),
        *([found.note] if found.note else []),
        "wrote " + ", ".join(str(path) for path in written),
    )


def _list(entries: list[Published], options: argparse.Namespace) -> int:
    rows = [(e.paper, e.name, e.state, e.item or "-", _brief(e)) for e in entries]
    return show(
        options,
        [asdict(entry) for entry in entries],
        table(("paper", "published", "state", "item", "title, or why it differs"), rows),
        "every difference: shapedp reproduce --list --json, or docs/reproductions.md",
    )


def _brief(entry: Published) -> str:
    """The title, or the first of several differences and how many more there are."""
    if entry.state != "differs":
        return entry.why or entry.title
    first, *others = entry.why.split("; ")
    return f"{first}; {len(others)} more" if others else first


def _all(folder: Path, options: argparse.Namespace) -> int:
    rows = []
    for name, item in items(folder):
        start = time.perf_counter()
        found, _ = reproduce(name, item, options.out, full=options.full, progress=_progress)
        rows.append((name, found.state, f"{time.perf_counter() - start:.1f}", found.why))
        if not options.json:
            print(f"{rows[-1][2]:>7} s  {name}: {found.state}", flush=True)
    if options.json:
        show(options, [dict(zip(("item", "state", "seconds", "why"), row, strict=True)) for row in rows])
    return DONE


def _progress(done: int, total: int, what: str) -> None:
    progress(f"{done}/{total} {what}", last=done == total)


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
