"""Tables and JSON on standard output."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from shapedp.boundary.documents import dumps, write
from shapedp.boundary.values import printable
from shapedp.cli.codes import DONE
from shapedp.privacy import Bracket, Certificate


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Columns padded to their widest entry; the numbers' columns are the caller's to format."""
    cells = [[printable(str(cell)) for cell in row] for row in (headers, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headers))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    rule = "  ".join("-" * width for width in widths)
    return "\n".join(line.rstrip() for line in (lines[0], rule, *lines[1:]))


def show(options: argparse.Namespace, data: Any, *lines: str, code: int = DONE) -> int:
    """Print the data as indented JSON where --json was given, otherwise the lines; returns the exit code."""
    print(dumps(data) if options.json else "\n".join(lines))
    return code


def save_or_show(path: Path | None, data: Any) -> int:
    """Write the data as JSON to a file and say so, or print them where no file was named."""
    if path is None:
        print(dumps(data))
    else:
        write(path, data)
        print(*written(path), sep="\n")
    return DONE


def written(*paths: Path | None) -> list[str]:
    """The line that names the files written; no line for none."""
    names = [str(path) for path in paths if path is not None]
    return [f"written    {' and '.join(names)}"] if names else []


def certificate_lines(certificate: Certificate) -> list[str]:
    """The claim, the bracket and the verdict, a line each."""
    return [
        f"verdict    {certificate.verdict}",
        f"claim      epsilon {certificate.epsilon:.6g}, delta {certificate.delta:.6g}",
        f"neighbours {certificate.adjacency or 'as the user vouches'}",
        f"delta      in {certificate.bracket}, by {certificate.method}",
        certificate.explain(),
    ]


def finite(value: float) -> float | None:
    """A number for JSON, which has no infinity: null stands for it."""
    return value if math.isfinite(value) else None


def ends(bracket: Bracket) -> dict[str, float | None]:
    """Both ends of a bracket, for JSON."""
    return {"lower": finite(bracket.lower), "upper": finite(bracket.upper)}
