"""shapedp workload: the error of every query before any record is read; then the answers."""

from __future__ import annotations

import argparse
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np

from shapedp.boundary.documents import read, write
from shapedp.cli.options import claim
from shapedp.cli.output import certificate_lines, ends, show, table, written
from shapedp.cli.paths import beside, beside_certificate
from shapedp.mechanisms import mechanism_from_json
from shapedp.tables.vectors import suffix, write_columns
from shapedp.workloads import AnsweredWorkload, AnswerMechanism, WorkloadMechanism, WorkloadRelease
from shapedp.workloads.described import read_workload

SHOWN = 40


def plan(options: argparse.Namespace) -> int:
    """Plan, write, and print the error of every group of queries."""
    asked = read_workload(options.schema)
    chosen = {name: getattr(options, name) for name in ("noise", "adjacency", "error", "gap", "records")}
    made = asked.calibrate(**claim(options), **chosen)
    rows = _predicted(made)
    if options.plot is not None:
        from shapedp.report.pictures import draw_errors

        draw_errors([(row["group"], row["rms"], row["worst"]) for row in rows], options.plot)
    if options.output is not None:
        write(options.output, made.to_json())
    best = made.optimality
    record = {"groups": rows, "answers": len(asked), "optimality": None if best is None else ends(best)}
    record |= {"certificate": made.certificate.to_json()} if options.output is None else {}
    cells = [(r["group"], r["answers"], f"{r['rms']:.6g}", f"{r['worst']:.6g}") for r in rows[:SHOWN]]
    more = [f"... and {len(rows) - SHOWN} more groups: --json lists them"] if len(rows) > SHOWN else []
    least = (
        []
        if best is None
        else [f"optimality the error is at most {best.upper:.6g} times the least of any Gaussian noise"]
    )
    shown = table(("queries", "answers", "rms standard error", "largest"), cells)
    return show(
        options, record, shown, *more, "", *least, *certificate_lines(made.certificate), *written(options.output)
    )


def _predicted(made: WorkloadMechanism | AnswerMechanism) -> list[dict[str, Any]]:
    """The standard errors of every group, known from the plan alone."""
    rows = []
    for term in made.workload.terms:
        errors = made.standard_error(term.name)
        rms, worst = math.sqrt(float(np.square(errors).mean())), float(errors.max())
        rows.append({"group": term.name, "answers": errors.size, "rms": rms, "worst": worst})
    return rows


def release(options: argparse.Namespace) -> int:
    """Count, release and write: a row per answer."""
    certificate = beside(options)
    if suffix(options.output) not in (".csv", ".parquet"):
        raise ValueError("the answers of a workload are written as csv or parquet")
    made = mechanism_from_json(read(options.plan))
    if not isinstance(made, WorkloadMechanism | AnswerMechanism):
        raise ValueError("the plan of a workload is expected: what `shapedp workload plan` wrote")
    released = made.release([str(path) for path in options.input], unsafe=options.unsafe)
    columns = _columns(released)
    record = {**released.certificate.to_json(), "unsafe": released.unsafe}
    with beside_certificate(certificate, record):
        write_columns(options.output, columns)
    lines = [
        f"answers    {len(columns['value'])} in {len(made.workload.terms)} groups",
        *certificate_lines(released.certificate),
    ]
    return show(options, record, *lines, *written(Path(options.output), certificate))


def _columns(released: WorkloadRelease | AnsweredWorkload) -> dict[str, Any]:
    """Group, cell, answer and standard error of every query."""
    found: dict[str, list[Any]] = {"group": [], "cell": [], "value": [], "standard_error": []}
    schema = released.mechanism.workload.schema
    for term in released.mechanism.workload.terms:
        names = [factor.cell_names(schema.attributes[place].cells()) for place, factor in term.factors]
        found["group"] += [term.name] * math.prod(term.shape)
        found["cell"] += [", ".join(cell) for cell in itertools.product(*names)]
        found["value"] += released[term.name].reshape(-1).tolist()
        found["standard_error"] += released.standard_error(term.name).reshape(-1).tolist()
    return found
