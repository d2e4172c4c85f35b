"""shapedp release: a noisy answer, and the certificate beside it."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from shapedp.boundary.documents import read
from shapedp.boundary.refusals import refusal
from shapedp.boundary.values import printable
from shapedp.cli.output import certificate_lines, show, written
from shapedp.cli.paths import beside, beside_certificate
from shapedp.mechanisms import Additive
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count as whole
from shapedp.numerics.outward import BELOW_8
from shapedp.privacy import ROWS, Certificate
from shapedp.sensitivity import L1, L2, Blocks, Box, Sensitivity
from shapedp.tables.vectors import Vector, read_ids, read_records, read_vector, suffix, write_columns, write_vector

EXACT = 2**23  # rows whose clipped entries add up without rounding; see Sensitivity.clip
SHOWN = 12
CELLS = "A row with a missing cell, or one that is no number, counts as zeros; a column of text makes all of them."
SCOPE = f"{ROWS} {CELLS}"


@dataclass(frozen=True)
class Answer:
    """What is to be released: the names of the columns where it is a total of rows, the values, and its scope."""

    names: list[str]
    vector: Vector
    scope: str | None

    @classmethod
    def of(cls, mechanism: Additive, options: argparse.Namespace) -> Answer:
        """The answer in the file that the options name; nothing is written."""
        suffix(options.output)
        if not options.records and (options.columns is not None or options.person is not None):
            raise ValueError("--columns and --person go with --records; --column chooses the answer to release")
        if options.rows is not None and options.person is None:
            raise ValueError("--rows bounds the rows of one person: name their column with --person")
        if options.records:
            names, vector = _total(mechanism, options)
            answer = cls(names, vector, _scope(options))
        else:
            header = False if options.no_header else None
            answer = cls([], read_vector(options.input, options.column, header=header), None)
        if len(mechanism.shape) > 1 and options.output.suffix != ".npy":
            raise ValueError(f"the answer is a tensor of shape {mechanism.shape}: only npy files hold it")
        return answer

    def stated(self, certificate: Certificate) -> Certificate:
        """The certificate with who a person is."""
        return certificate if self.scope is None else replace(certificate, scope=self.scope)

    def write(self, made: Any, output: Path, certificate: Path) -> dict[str, Any]:
        """The release and, beside it, its certificate; the certificate as it was written."""
        record = {**self.stated(made.certificate).to_json(), "unsafe": made.unsafe}
        with beside_certificate(certificate, record):
            if self.names:
                errors = made.standard_error.tolist()
                columns = {"column": self.names, "value": made.value.tolist(), "standard_error": errors}
                write_columns(output, columns)
            else:
                write_vector(output, Vector(made.value, self.vector.name))
        return record


def release(options: argparse.Namespace) -> int:
    """Release and write."""
    certificate = beside(options)
    mechanism = Additive.from_json(read(options.mechanism))
    answer = Answer.of(mechanism, options)
    made = mechanism.release(answer.vector.values, unsafe=options.unsafe)
    record = answer.write(made, options.output, certificate)
    warning = ["unsafe     the claim is NOT certified: do not publish this release"] if made.unsafe else []
    lines = certificate_lines(answer.stated(made.certificate))
    return show(options, record, *lines, *written(options.output, certificate), *warning)


def _scope(options: argparse.Namespace) -> str:
    if options.person is None:
        return SCOPE
    who = f"A person is a value of the column {printable(options.person)!r}"
    return f"{who}; the first {options.rows or 1} row(s) of each are counted. Rows without one are left out. {CELLS}"


def _total(mechanism: Additive, options: argparse.Namespace) -> tuple[list[str], Vector]:
    """The names of the columns, and the sum of the clipped rows."""
    if options.column is not None:
        raise ValueError("--column chooses an answer; with --records name the columns with --columns")
    adjacency = mechanism.sensitivity.adjacency
    if adjacency is None:
        raise ValueError(refusal("cli", "no-relation"))
    if len(mechanism.shape) > 1:
        raise ValueError(refusal("cli", "records-of-a-tensor", shape=mechanism.shape))
    owners = _owners(options)
    names, rows = read_records(options.input, options.columns, header=not options.no_header)
    if rows.shape[1] != mechanism.law.dim:
        listed = ", ".join(names)
        raise ValueError(refusal("cli", "other-columns", law=mechanism.law, columns=rows.shape[1], names=listed))
    if len(rows) > EXACT:
        raise ValueError(f"sums of more than {EXACT} rows are not exact in float64: release the table in parts")
    finite = np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0.0)
    most = owners.get("max_rows", 1)
    share = (0.5 if adjacency == "replace" else 1.0) * (BELOW_8 / most if most > 1 else 1.0)
    each = mechanism.sensitivity.scaled(share, None)
    clipped, _ = each.clip(finite, adjacency=adjacency, **owners)
    half = f" (half the {_NAMES[type(each)]}: an exchanged record changes a total twice)"
    print(f"rows clipped to {_described(each)}{half if adjacency == 'replace' else ''}", file=sys.stderr)
    return names, Vector(clipped.sum(axis=0))


def _owners(options: argparse.Namespace) -> dict[str, Any]:
    """Whose row each one is, and how many of a person count; nothing where each row is another person."""
    if options.person is None:
        return {}
    if options.columns is None or options.person in options.columns:
        raise ValueError("--person needs --columns, the columns to sum, without the column of persons")
    most = whole("rows", 1 if options.rows is None else options.rows)
    return {"owner": read_ids(options.input, options.person, header=not options.no_header), "max_rows": most}


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
