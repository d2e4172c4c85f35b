"""shapedp calibrate: the least-error mechanism that meets a claim, as a file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from shapedp.cli.files import write_json
from shapedp.cli.options import add_claim, add_json, add_sensitivity, sensitivity, weights
from shapedp.cli.output import print_certificate, print_json
from shapedp.mechanisms import calibrate
from shapedp.mechanisms.families import FAMILIES


def register(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "calibrate",
        help="make the least-error mechanism that meets a claim",
        description="Find the least-error noise of a family that meets (epsilon, delta); write it as JSON.",
        epilog="example: shapedp calibrate gaussian --box bounds.csv --epsilon 1 --delta 1e-6 -o mechanism.json",
    )
    parser.add_argument("family", choices=tuple(FAMILIES))
    add_sensitivity(parser)
    add_claim(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the mechanism here")
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Calibrate, write, print."""
    mechanism = calibrate(
        options.family,
        sensitivity(options),
        epsilon=options.epsilon,
        delta=options.delta,
        weights=weights(options),
        exact_zeros=options.exact_zeros,
    )
    if options.output is not None:
        write_json(options.output, mechanism.to_json())
    if options.json:
        print_json(mechanism.to_json())
    else:
        print(f"mechanism  {mechanism.law.kind} in dimension {mechanism.law.dim}")
        print(f"error      {mechanism.expected_squared_error:.6g} expected squared")
        print_certificate(mechanism.certificate)
        if options.output is not None:
            print(f"written    {options.output}")
    return 0
