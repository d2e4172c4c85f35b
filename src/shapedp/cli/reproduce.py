"""shapedp reproduce: published tables and figures, computed again."""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from shapedp.cli.options import add_json
from shapedp.cli.output import DONE, print_json, table
from shapedp.papers.register.harness import LIST, Published, experiments_folder, find_item, items, published, reproduce


def register(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "reproduce",
        help="compute a published table or figure again",
        description="Run one item of experiments/: a table on the screen, a JSON file and a picture. Without an item, "
        "list them. States: reproduced (the printed numbers come out), differs (and why), computed (the paper prints "
        "no numbers), data not at hand.",
        epilog="example: shapedp reproduce product-noise/figure-4",
    )
    parser.add_argument("item", nargs="?", metavar="PAPER/ITEM", help="such as product-noise/figure-4")
    parser.add_argument("--list", action="store_true", help="every figure and table of the papers, and how it stands")
    parser.add_argument("--all", action="store_true", help="run every item")
    parser.add_argument("--full", action="store_true", help="the published size instead of a quick run")
    parser.add_argument("-o", "--out", type=Path, default=Path("reproduced"), help="folder for JSON and picture")
    parser.add_argument("--experiments", type=Path, help="the experiments folder (default: the nearest one)")
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run one item, or list them."""
    folder = options.experiments or experiments_folder()
    if not (folder / LIST).is_file():
        raise FileNotFoundError(
            f"{folder}: holds no {LIST}; give the folder experiments of a checkout of the shapedp repository"
        )
    if options.list:
        return _list(published(folder), options.json)
    if options.all:
        return _all(folder, options)
    if options.item is None:
        known = [(name, item.title) for name, item in items(folder)]
        if options.json:
            print_json([{"item": name, "title": title} for name, title in known])
        else:
            print(table(("item", "title"), known))
        return DONE
    item = find_item(options.item, folder)
    found, written = reproduce(options.item, item, options.out, full=options.full, progress=_progress)
    if options.json:
        print_json({"item": options.item, "headers": found.headers, "rows": found.rows, "note": found.note})
    else:
        print(item.title)
        print(table(found.headers, [tuple(_cell(cell) for cell in row) for row in found.rows]))
        if found.note:
            print(found.note)
        print("wrote " + ", ".join(str(path) for path in written))
    return DONE


def _list(entries: list[Published], as_json: bool) -> int:
    if as_json:
        print_json([asdict(entry) for entry in entries])
    else:
        rows = [(e.paper, e.name, e.state, e.item or "-", _brief(e)) for e in entries]
        print(table(("paper", "published", "state", "item", "title, or why it differs"), rows))
        print("every difference: shapedp reproduce --list --json, or docs/reproductions.md")
    return DONE


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
        print_json([dict(zip(("item", "state", "seconds", "why"), row, strict=True)) for row in rows])
    return DONE


def _progress(done: int, total: int, what: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{done}/{total} {what:<60}", end="\n" if done == total else "", file=sys.stderr, flush=True)


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
