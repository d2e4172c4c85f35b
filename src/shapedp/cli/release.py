"""shapedp release: a noisy answer, and the certificate beside it."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

import numpy as np

from shapedp.boundary.documents import read
from shapedp.boundary.refusals import refusal
from shapedp.cli.output import certificate_lines, show, written
from shapedp.cli.paths import beside, beside_certificate
from shapedp.mechanisms import Additive
from shapedp.numerics.arrays import Floats
from shapedp.privacy import ROWS
from shapedp.sensitivity import L1, L2, Blocks, Box, Sensitivity
from shapedp.tables.vectors import Vector, read_records, read_vector, suffix, write_columns, write_vector

EXACT = 2**23  # rows whose clipped entries add up without rounding; see Sensitivity.clip
SHOWN = 12
SCOPE = (
    f"{ROWS} A row with a missing cell, or one that is no number, counts as zeros; a column of text makes all of them."
)


def release(options: argparse.Namespace) -> int:
    """Release and write."""
    certificate = beside(options)
    suffix(options.output)
    mechanism = Additive.from_json(read(options.mechanism))
    names: list[str] = []
    if options.records:
        names, vector = _total(mechanism, options)
    elif options.columns is not None:
        raise ValueError("--columns goes with --records; --column chooses the answer to release")
    else:
        vector = read_vector(options.input, options.column, header=False if options.no_header else None)
    if len(mechanism.shape) > 1 and options.output.suffix != ".npy":
        raise ValueError(f"the answer is a tensor of shape {mechanism.shape}: only npy files hold it")
    made = mechanism.release(vector.values, unsafe=options.unsafe)
    stated = replace(made.certificate, scope=SCOPE) if options.records else made.certificate
    record = {**stated.to_json(), "unsafe": made.unsafe}
    with beside_certificate(certificate, record):
        if names:
            errors = made.standard_error.tolist()
            write_columns(options.output, {"column": names, "value": made.value.tolist(), "standard_error": errors})
        else:
            write_vector(options.output, Vector(made.value, vector.name))
    warning = ["unsafe     the claim is NOT certified: do not publish this release"] if made.unsafe else []
    return show(options, record, *certificate_lines(stated), *written(options.output, certificate), *warning)


def _total(mechanism: Additive, options: argparse.Namespace) -> tuple[list[str], Vector]:
    """The names of the columns, and the sum of the clipped rows."""
    if options.column is not None:
        raise ValueError("--column chooses an answer; with --records name the columns with --columns")
    adjacency = mechanism.sensitivity.adjacency
    if adjacency is None:
        raise ValueError(refusal("cli", "no-relation"))
    if len(mechanism.shape) > 1:
        raise ValueError(refusal("cli", "records-of-a-tensor", shape=mechanism.shape))
    names, rows = read_records(options.input, options.columns, header=not options.no_header)
    if rows.shape[1] != mechanism.law.dim:
        listed = ", ".join(names)
        raise ValueError(refusal("cli", "other-columns", law=mechanism.law, columns=rows.shape[1], names=listed))
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


def _listed(bounds: Floats) -> str:
    more = f" and {bounds.size - SHOWN} more" if bounds.size > SHOWN else ""
    return ", ".join(f"{bound:g}" for bound in bounds[:SHOWN]) + more
