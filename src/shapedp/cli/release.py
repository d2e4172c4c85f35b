"""shapedp release: a noisy answer, and the certificate beside it."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from shapedp.cli.files import (
    Vector,
    beside_certificate,
    read_json,
    read_records,
    read_vector,
    suffix,
    write_columns,
    write_vector,
)
from shapedp.cli.options import add_json, add_no_header
from shapedp.cli.output import print_certificate, print_json
from shapedp.cli.paths import beside, writing
from shapedp.mechanisms import Additive
from shapedp.privacy import ROWS
from shapedp.sensitivity import L1, L2, Blocks, Box, Sensitivity

EXACT = 2**23  # rows whose clipped entries add up without rounding; see Sensitivity.clip
SHOWN = 12
SCOPE = (
    f"{ROWS} A row with a missing cell, or one that is no number, counts as zeros; a column of text makes all of them."
)


def register(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "release",
        help="add a mechanism's noise to a vector in a file",
        description="Release a vector (csv, npy or parquet) with secure randomness. Writes the noisy vector and, "
        "beside it, the certificate. Nothing is written unless the mechanism is certified. With --records the input "
        "is a table, one row per person: every row is clipped to the set that the mechanism was calibrated for "
        "(under --adjacency replace to half of it: an exchanged record changes a total twice), and the sum of the "
        "rows is released, a total per column. A row with a cell that is empty or no number counts as zeros. Name "
        "the columns of a csv file with --columns: they must stand in its first row; where that row is a record, say "
        "--no-header, and columns are named 0, 1, and so on.",
        epilog="examples: shapedp release mechanism.json answers.csv -o noisy.csv; "
        "shapedp release mechanism.json people.csv --records --columns age,visits -o totals.csv",
    )
    parser.add_argument("mechanism", type=Path, help="a mechanism written by calibrate")
    parser.add_argument("input", type=Path, help="the true answer: csv, npy or parquet")
    parser.add_argument("-o", "--output", type=Path, required=True, help="where the noisy answer goes")
    parser.add_argument("--column", help="the column to release, where the file has several")
    parser.add_argument("--records", action="store_true", help="clip and sum the rows of the input, then release")
    parser.add_argument("--columns", type=lambda text: text.split(","), help="with --records: these columns, in order")
    add_no_header(parser)
    parser.add_argument("--certificate", type=Path, help="where the certificate goes (default: beside the output)")
    parser.add_argument("--unsafe", action="store_true", help="release though the claim is not certified (research)")
    add_json(parser)
    writing(parser, "output", "certificate", certified=True)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Release and write."""
    certificate = beside(options)
    suffix(options.output)
    mechanism = Additive.from_json(read_json(options.mechanism))
    names: list[str] = []
    if options.records:
        names, vector = _total(mechanism, options)
    elif options.columns is not None:
        raise ValueError("--columns goes with --records; --column chooses the answer to release")
    else:
        vector = read_vector(options.input, options.column, header=False if options.no_header else None)
    if len(mechanism.shape) > 1 and options.output.suffix != ".npy":
        raise ValueError(f"the answer is a tensor of shape {mechanism.shape}: only npy files hold it")
    release = mechanism.release(vector.values, unsafe=options.unsafe)
    stated = replace(release.certificate, scope=SCOPE) if options.records else release.certificate
    record = {**stated.to_json(), "unsafe": release.unsafe}
    with beside_certificate(certificate, record):
        if names:
            errors = release.standard_error.tolist()
            write_columns(options.output, {"column": names, "value": release.value.tolist(), "standard_error": errors})
        else:
            write_vector(options.output, Vector(release.value, vector.name))
    if options.json:
        print_json(record)
        return 0
    print_certificate(stated)
    print(f"written    {options.output} and {certificate}")
    if release.unsafe:
        print("unsafe     the claim is NOT certified: do not publish this release")
    return 0


def _total(mechanism: Additive, options: argparse.Namespace) -> tuple[list[str], Vector]:
    """The names of the columns, and the sum of the clipped rows."""
    if options.column is not None:
        raise ValueError("--column chooses an answer; with --records name the columns with --columns")
    adjacency = mechanism.sensitivity.adjacency
    if adjacency is None:
        raise ValueError(
            "the mechanism does not say what a neighbour is, so rows cannot be clipped for it: calibrate it with "
            "--adjacency add-remove (a person comes or goes) or replace (a person is exchanged)"
        )
    if len(mechanism.shape) > 1:
        raise ValueError(
            f"--records makes a total per column, the answer is a tensor of shape {mechanism.shape}: release it alone"
        )
    names, rows = read_records(options.input, options.columns, header=not options.no_header)
    if rows.shape[1] != mechanism.law.dim:
        raise ValueError(
            f"the mechanism releases {mechanism.law.dim} totals, the table has {rows.shape[1]} columns "
            f"({', '.join(names)}): choose them with --columns"
        )
    if len(rows) > EXACT:
        raise ValueError(f"sums of more than {EXACT} rows are not exact in float64: release the table in parts")
    whole = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0.0)
    each = mechanism.sensitivity.scaled(0.5 if adjacency == "replace" else 1.0, None)
    clipped, _ = each.clip(whole, adjacency=adjacency)
    half = f" (half the {_NAMES[type(each)]}: an exchanged record changes a total twice)"
    print(f"rows clipped to {_described(each)}{half if adjacency == 'replace' else ''}", file=sys.stderr)
    return names, Vector(clipped.sum(axis=0))


_NAMES = {Box: "box", L1: "L1 ball", L2: "L2 ball", Blocks: "bounds of the blocks"}


def _described(each: Sensitivity) -> str:
    """The set that one row is clipped to."""
    match each:
        case Box():
            return _listed(each.profile)
        case Blocks():
            return f"L2 norms of {_listed(each.radii)} by block"
        case L2(scales=None) | L1():
            return f"an {'L1' if isinstance(each, L1) else 'L2'} norm of {each.radius:g}"
        case L2():
            return f"an L2 norm of {each.radius:g}, each column divided by its scale"
    raise TypeError(f"rows cannot be clipped to {each.kind}")


def _listed(bounds: np.ndarray[Any, np.dtype[np.float64]]) -> str:
    more = f" and {bounds.size - SHOWN} more" if bounds.size > SHOWN else ""
    return ", ".join(f"{bound:g}" for bound in bounds[:SHOWN]) + more
