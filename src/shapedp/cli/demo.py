"""shapedp demo: one query, every applicable mechanism, one published claim refused."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from shapedp.cli.options import add_json
from shapedp.cli.output import print_json, table
from shapedp.cli.paths import writing


def register(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "demo",
        help="one query released by every applicable mechanism, with a picture",
        description="Release the totals of 30 measurements over 569 patients by every applicable mechanism, compare "
        "their errors and certificates, and see published claims refused.",
    )
    parser.add_argument("-o", "--output", type=Path, default=Path("shapedp-demo.png"), help="where the picture goes")
    add_json(parser)
    writing(parser, "output")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the table, save the picture."""
    from shapedp.report.demo import DELTA, EPSILON, draw, records

    entries = records()
    if options.json:
        print_json([entry.to_json() for entry in entries])
    else:
        print(f"Totals of 30 measurements over 569 patients, (epsilon, delta) = ({EPSILON:g}, {DELTA:g})\n")
        rows = [
            (
                e.name,
                f"{e.expected:.4g}",
                "-" if e.measured is None else f"{e.measured:.4g}",
                e.verdict,
                e.note,
            )
            for e in entries
        ]
        print(table(("mechanism", "expected error", "measured", "certificate", "note"), rows))
        print("\nerror: root mean square over the 30 totals; measured: one secure release against the true totals")
    draw(entries, options.output)
    if not options.json:
        print(f"picture: {options.output}")
    return 0
