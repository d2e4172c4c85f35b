"""shapedp demo: one query, every applicable mechanism, published claims refused."""

from __future__ import annotations

import argparse

from shapedp.cli.output import DONE, show, table
from shapedp.report.demo import DELTA, EPSILON, draw, records


def run(options: argparse.Namespace) -> int:
    """Print the table, save the picture."""
    entries = records()
    headers = ("mechanism", "expected error", "measured", "certificate", "note")
    rows = [
        (e.name, f"{e.expected:.4g}", "-" if e.measured is None else f"{e.measured:.4g}", e.verdict, e.note)
        for e in entries
    ]
    show(
        options,
        [entry.to_json() for entry in entries],
        f"Totals of 30 measurements over 569 patients, (epsilon, delta) = ({EPSILON:g}, {DELTA:g})\n",
        table(headers, rows),
        "\nerror: root mean square over the 30 totals; measured: one secure release against the true totals",
    )
    draw(entries, options.output)
    if not options.json:
        print(f"picture: {options.output}")
    return DONE
