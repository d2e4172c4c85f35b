"""shapedp reproduce: published tables and figures, computed again."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from shapedp.claims.harness import experiments_folder, find_item, items, reproduce
from shapedp.cli.options import add_json
from shapedp.cli.output import DONE, print_json, table


def register(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "reproduce",
        help="compute a published table or figure again",
        description="Run one item of experiments/: a table on the screen, a JSON file and a picture. Without an item, "
        "list them.",
        epilog="example: shapedp reproduce product-noise/figure-4",
    )
    parser.add_argument("item", nargs="?", metavar="PAPER/ITEM", help="such as product-noise/figure-4")
    parser.add_argument("--full", action="store_true", help="the published size instead of a quick run")
    parser.add_argument("-o", "--out", type=Path, default=Path("reproduced"), help="folder for JSON and picture")
    parser.add_argument("--experiments", type=Path, help="the experiments folder (default: the nearest one)")
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run one item, or list them."""
    folder = options.experiments or experiments_folder()
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


def _progress(done: int, total: int, what: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{done}/{total} {what:<60}", end="\n" if done == total else "", file=sys.stderr, flush=True)


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
