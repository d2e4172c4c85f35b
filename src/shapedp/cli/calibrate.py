"""shapedp calibrate: the least-error mechanism that meets a claim, as a file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from shapedp.cli.files import write_json
from shapedp.cli.options import add_claim, add_json, add_sensitivity, numbers, sensitivity, weights
from shapedp.cli.output import print_certificate, print_json
from shapedp.cli.paths import writing
from shapedp.mechanisms import calibrate
from shapedp.noise import FAMILIES


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
    parser.add_argument("--shape", metavar="A,B", help="fix the radial law r^(A-dim) exp(-(r/s)^B) (default: search)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the mechanism here")
    add_json(parser)
    writing(parser, "output")
    parser.set_defaults(run=run)


def _radial(options: argparse.Namespace) -> dict[str, Any]:
    """The options of the radial family: a fixed shape, and a display while the best one is searched."""
    if options.family != "radial":
        if options.shape is not None:
            raise ValueError("--shape belongs to the radial family")
        return {}
    found: dict[str, Any] = {}
    if options.shape is not None:
        shape = numbers("shape", options.shape)
        if shape.size != 2:
            raise ValueError(f"--shape must be two numbers A,B, got {options.shape!r}")
        found["shape"] = (float(shape[0]), float(shape[1]))
    elif sys.stderr.isatty():
        found["progress"] = _show
    return found


def _show(done: int, shape: tuple[float, float], ratio: float) -> None:
    text = f"{done} shapes tried, best ({shape[0]:.4g}, {shape[1]:.4g}): {ratio:.4f} of the Gaussian's squared norm"
    print(f"\r{text:<100}", end="\r", file=sys.stderr, flush=True)


def run(options: argparse.Namespace) -> int:
    """Calibrate, write, print."""
    mechanism = calibrate(
        options.family,
        sensitivity(options),
        epsilon=options.epsilon,
        delta=options.delta,
        weights=weights(options),
        exact_zeros=options.exact_zeros,
        **_radial(options),
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
