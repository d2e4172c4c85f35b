"""The register as a page, and the numbers of other pages that come from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from itertools import groupby
from pathlib import Path

from shapedp.papers.register.format import READINGS, Claim
from shapedp.papers.register.harness import LIST
from shapedp.papers.register.register import CLAIMS

PAGE = "claims.md"
_MARK = re.compile(r"<!--claim (\S+) (\S+)-->`?([-+0-9.e,]*)")
_HEAD = """\
# The register of claims

Published statements, each with the numbers that decide it. `shapedp claims --verify` computes all of them anew and
compares this page; `shapedp claims --verify ID` one of them. *Certified* and *refuted* are about privacy: the exact
value is, or is not, within what is claimed; *slack* is the claimed value over the exact one. *Approximate* marks rules
that promise nothing. What is not a privacy claim holds or is false. Where the printed text, what is meant and the
authors' public code differ, an entry says what each does, and its verdict is on what is meant.

This page is written by `shapedp claims --page docs/claims.md`.
"""


def page(claims: Iterable[Claim] | None = None) -> str:
    """The register in Markdown, one section per paper."""
    chosen = list(CLAIMS.values() if claims is None else claims)
    parts = [_HEAD]
    for paper, group in groupby(sorted(chosen, key=lambda c: c.id.split("/")[0]), key=lambda c: c.id.split("/")[0]):
        parts.append(f"## {paper}\n")
        parts.extend(_entry(claim) for claim in group)
    return "\n".join(parts)


def _entry(claim: Claim) -> str:
    def listed(values: Iterable[tuple[str, float]]) -> str:
        return ", ".join(f"{name} = {value:.6g}" for name, value in values)

    slack = "" if claim.slack is None else f", slack {claim.slack:.3g}"
    lines = [
        f"### {claim.id.split('/', 1)[1]}: {claim.standing}{slack}\n",
        f"{claim.statement}. *{claim.source}*\n",
        f"- At {listed(claim.parameters.items())}.",
        f"- Computed: {listed(claim.found.items())}.",
    ]
    if claim.printed:
        lines.append(f"- Printed: {listed((name, pair[0]) for name, pair in claim.printed.items())}.")
    lines += [f"- *{READINGS[name]}*: {text}." for name, text in claim.readings.items()]
    lines += [f"- {claim.witness[0].upper()}{claim.witness[1:]}.", f"- `{claim.command}`\n"]
    return "\n".join(lines)


def documentation(start: Path | None = None) -> Path | None:
    """The docs folder of the nearest checkout at or above the working directory; None outside one."""
    here = (start or Path.cwd()).resolve()
    checkouts = (base for base in (here, *here.parents) if (base / "experiments" / LIST).is_file())
    return next((base / "docs" for base in checkouts if (base / "docs").is_dir()), None)


def disagreements(docs: Path) -> Iterator[str]:
    """What the pages print that the register does not hold.

    The register's own page must be as `page` writes it. Elsewhere a number behind `<!--claim ID NAME-->` must be that
    value, rounded to the digits printed.
    """
    own = docs / PAGE
    if not own.is_file() or own.read_text(encoding="utf-8") != page():
        yield f"{PAGE} is not what the register says: write it with shapedp claims --page {own}"
    for path in (*sorted(docs.rglob("*.md")), docs.parent / "README.md"):
        for identity, name, printed in _MARK.findall(path.read_text(encoding="utf-8")):
            claim = CLAIMS.get(identity)
            if claim is None or name not in claim.found:
                yield f"{path.name}: the register has no {identity} {name}"
            elif not _rounds_to(claim.found[name], printed):
                yield f"{path.name}: {identity} {name} is printed as {printed or 'nothing'}, is {claim.found[name]:.8g}"


def _rounds_to(value: float, printed: str) -> bool:
    try:
        number = Decimal(printed.replace(",", "").rstrip("."))
    except InvalidOperation:
        return False
    exponent = number.as_tuple().exponent
    return isinstance(exponent, int) and abs(Decimal(value) - number) <= Decimal(10) ** exponent * Decimal("0.5000001")
