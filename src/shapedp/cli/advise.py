"""shapedp advise: which noise serves a query best."""

from __future__ import annotations

import argparse
import math
from typing import Any

from shapedp.cli.options import claim, sensitivity, weights
from shapedp.cli.output import show, table
from shapedp.mechanisms import Advice, advise


def run(options: argparse.Namespace) -> int:
    """Print the ranking."""
    query = sensitivity(options)
    ranked = advise(
        query, **claim(options), weights=weights(options), error=options.error, exact_zeros=options.exact_zeros
    )
    if options.plot is not None:
        from shapedp.report.scales import draw

        draw(ranked, options.plot)
    rows = [_row(advice, query.dim) for advice in ranked]
    shown = table(("family", "expected error", "rms per coordinate", "certificate", "why"), rows)
    why = [f"\n{ranked[0].why}"] if ranked[0].why else []
    return show(options, [_record(advice) for advice in ranked], shown, *why)


def _row(advice: Advice, dim: int) -> tuple[str, ...]:
    if advice.mechanism is None:
        return (advice.family, "-", "-", "-", advice.reason)
    rms = math.sqrt(advice.mechanism.expected_squared_error / dim)
    verdict = advice.mechanism.certificate.verdict
    return (advice.family, f"{advice.expected_error:.6g}", f"{rms:.6g}", verdict, advice.reason)


def _record(advice: Advice) -> dict[str, Any]:
    served = advice.mechanism is not None
    return {
        "family": advice.family,
        "expected_error": advice.expected_error if served else None,
        "reason": advice.reason,
        "why": advice.why,
        "mechanism": advice.mechanism.to_json() if advice.mechanism is not None else None,
    }
