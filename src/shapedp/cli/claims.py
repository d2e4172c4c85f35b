"""shapedp claims: published statements and their computed verdicts."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from shapedp.boundary.files import write_bytes
from shapedp.cli.output import DONE, REFUSED, show, table
from shapedp.cli.streams import progress
from shapedp.papers.register import CLAIMS, Claim, check
from shapedp.papers.register.pages import disagreements, documentation, page


def run(options: argparse.Namespace) -> int:
    """List or verify."""
    claims = _chosen(options.names)
    if options.page is not None:
        write_bytes(options.page, page(claims).encode())
    if options.verify:
        return _verify(claims, options)
    rows = [(claim.id, claim.standing, claim.statement, claim.witness) for claim in claims]
    return show(options, [_record(claim) for claim in claims], table(("claim", "verdict", "statement", "why"), rows))


def _verify(claims: list[Claim], options: argparse.Namespace) -> int:
    findings = []
    for done, claim in enumerate(claims, 1):
        progress(f"{done}/{len(claims)} {claim.id}", last=done == len(claims))
        findings.append(check(claim))
    docs = documentation()
    misprints = [] if docs is None else list(disagreements(docs))
    rows = [
        (
            f.claim.id,
            f.verdict,
            "verified" if f.verified else "DISAGREES: " + "; ".join(f.disagreements),
            ", ".join(f"{name} {value:.6g}" for name, value in f.values.items()),
        )
        for f in findings
    ]
    headers = ("claim", "verdict", "register", "computed")
    show(options, [finding.to_json() for finding in findings], table(headers, rows))
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
