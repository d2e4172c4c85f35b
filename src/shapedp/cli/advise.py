"""shapedp advise: which noise serves a query best."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from shapedp.cli.options import add_claim, add_json, add_sensitivity, sensitivity, weights
from shapedp.cli.output import print_json, table
from shapedp.cli.paths import writing
from shapedp.mechanisms import Advice, advise


def register(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "advise",
        help="rank every family of noise for a query",
        description="Calibrate every family of noise to (epsilon, delta) and rank them by expected error.",
        epilog="example: shapedp advise --box 1,0.1,0.01 --epsilon 1 --delta 1e-6",
    )
    add_sensitivity(parser)
    add_claim(parser)
    parser.add_argument(
        "--error",
        default="squared",
        help="what to minimise: squared, absolute, l3 (any power >= 1) or max (the worst coordinate); default squared",
    )
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the noise scale of each coordinate here")
    add_json(parser)
    writing(parser, "plot")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the ranking."""
    query = sensitivity(options)
    ranked = advise(
        query,
        epsilon=options.epsilon,
        delta=options.delta,
        weights=weights(options),
        error=options.error,
        exact_zeros=options.exact_zeros,
    )
    if options.plot is not None:
        from shapedp.report.scales import draw

        draw(ranked, options.plot)
    if options.json:
        print_json([_record(advice) for advice in ranked])
    else:
        rows = [_row(advice, query.dim) for advice in ranked]
        print(table(("family", "expected error", "rms per coordinate", "certificate", "why"), rows))
        if ranked[0].why:
            print(f"\n{ranked[0].why}")
    return 0


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
