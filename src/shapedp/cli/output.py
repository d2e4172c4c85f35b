"""Tables and JSON on standard output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shapedp.boundary.documents import dumps
from shapedp.boundary.values import printable
from shapedp.privacy import Certificate

DONE, INTERNAL, WRONG_INPUT, REFUSED, INTERRUPTED = 0, 1, 2, 3, 130


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns padded to their widest entry; the numbers' columns are the caller's to format."""
    cells = [[printable(str(cell)) for cell in row] for row in (headers, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headers))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
    rule = "  ".join("-" * width for width in widths)
    return "\n".join(line.rstrip() for line in (lines[0], rule, *lines[1:]))


def print_json(data: Any) -> None:
    """Indented JSON."""
    print(dumps(data))


def print_certificate(certificate: Certificate) -> None:
    """The claim, the bracket and the verdict, a line each."""
    print(f"verdict    {certificate.verdict}")
    print(f"claim      epsilon {certificate.epsilon:.6g}, delta {certificate.delta:.6g}")
    print(f"neighbours {certificate.adjacency or 'as the user vouches'}")
    print(f"delta      in {certificate.bracket}, by {certificate.method}")
    print(certificate.explain())


def exit_code(certificate: Certificate) -> int:
    """0 if certified, otherwise 3."""
    return DONE if certificate.verdict == "certified" else REFUSED


def own_claim(subject: Any, name: object) -> Certificate:
    """The certificate of what a file describes; a plan, which claims nothing of itself, is refused."""
    found = getattr(subject, "certificate", None)
    if not isinstance(found, Certificate):
        raise ValueError(f"{name} makes no claim of its own: judge one by `certify` with --epsilon and --delta")
    return found
