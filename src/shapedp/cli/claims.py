"""shapedp claims: published statements and their computed verdicts."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from shapedp.boundary.files import write_bytes
from shapedp.cli.options import add_json
from shapedp.cli.output import DONE, REFUSED, print_json, table
from shapedp.cli.paths import writing
from shapedp.papers.register import CLAIMS, Claim, check
from shapedp.papers.register.pages import disagreements, documentation, page


def register(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "claims",
        help="published statements and their computed verdicts",
        description="List the register of published statements; --verify computes every one of them anew.",
        epilog="example: shapedp claims --verify product-noise (exit code 3 if the register disagrees)",
    )
    parser.add_argument("names", nargs="*", metavar="CLAIM", help="claims, or papers, to list (default: all)")
    parser.add_argument(
        "--verify",
        action="store_true",
        help="recompute and compare every constant, and inside a checkout every number of the register in the pages",
    )
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the register as a page in Markdown")
    add_json(parser)
    writing(parser, "page")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """List or verify."""
    claims = _chosen(options.names)
    if options.page is not None:
        write_bytes(options.page, page(claims).encode())
    if not options.verify:
        if options.json:
            print_json([_record(claim) for claim in claims])
        else:
            rows = [(claim.id, claim.standing, claim.statement, claim.witness) for claim in claims]
            print(table(("claim", "verdict", "statement", "why"), rows))
        return DONE
    findings = []
    for done, claim in enumerate(claims, 1):
        if sys.stderr.isatty():
            print(f"\r{done}/{len(claims)} {claim.id:<50}", end="", file=sys.stderr, flush=True)
        findings.append(check(claim))
    if sys.stderr.isatty():
        print(file=sys.stderr)
    docs = documentation()
    misprints = [] if docs is None else list(disagreements(docs))
    if options.json:
        print_json([finding.to_json() for finding in findings])
    else:
        rows = [
            (
                f.claim.id,
                f.verdict,
                "verified" if f.verified else "DISAGREES: " + "; ".join(f.disagreements),
                ", ".join(f"{name} {value:.6g}" for name, value in f.values.items()),
            )
            for f in findings
        ]
        print(table(("claim", "verdict", "register", "computed"), rows))
    if docs is None:
        print(
            "shapedp: note: the pages are not compared: docs/claims.md is in a checkout of the shapedp repository, "
            "beside experiments/published.toml; run there",
            file=sys.stderr,
        )
    for misprint in misprints:
        print(f"shapedp: misprint: {misprint}", file=sys.stderr)
    return DONE if all(finding.verified for finding in findings) and not misprints else REFUSED


def _chosen(names: list[str]) -> list[Claim]:
    chosen = [c for c in CLAIMS.values() if not names or any(c.id == n or c.id.startswith(n + "/") for n in names)]
    if not chosen:
        raise ValueError(f"no claim matches {', '.join(names)}; shapedp claims lists them all")
    return chosen


def _record(claim: Claim) -> dict[str, Any]:
    return {
        "id": claim.id,
        "statement": claim.statement,
        "source": claim.source,
        "parameters": dict(claim.parameters),
        "verdict": claim.verdict,
        "standing": claim.standing,
        "slack": claim.slack,
        "witness": claim.witness,
        "found": dict(claim.found),
        "command": claim.command,
    }
