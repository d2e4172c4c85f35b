"""shapedp plan: the least noise a budget allows for a number of subsampled steps."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from shapedp.accounting import Plan, Step, plan
from shapedp.cli.files import write_json
from shapedp.cli.options import add_claim, add_json
from shapedp.cli.output import print_json
from shapedp.cli.paths import writing
from shapedp.privacy import GaussianLoss


def register(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "plan",
        help="the Gaussian noise multiplier for a budget, a sampling rate and a number of steps",
        description="Find the least noise multiplier whose composition is certified to meet (epsilon, delta).",
        epilog="example: shapedp plan --epsilon 2 --delta 1e-5 --rate 0.01 --steps 1000 -o plan.json",
    )
    add_claim(parser)
    parser.add_argument("--rate", type=float, required=True, help="Poisson sampling rate per step (1: no sampling)")
    parser.add_argument("--steps", type=int, required=True, help="number of steps")
    parser.add_argument("--seconds", type=float, default=60.0, help="give up after about this long (default 60)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the plan here")
    add_json(parser)
    writing(parser, "output")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Plan, write, print."""
    found = plan(
        epsilon=options.epsilon,
        delta=options.delta,
        sampling_rate=options.rate,
        steps=options.steps,
        seconds=options.seconds,
    )
    steps = Plan((Step(GaussianLoss(1 / found.scale), options.rate, options.steps),))
    if options.output is not None:
        write_json(options.output, steps.to_json())
    if options.json:
        ends = {"lower": found.delta.lower, "upper": found.delta.upper}
        print_json({"noise_multiplier": found.scale, "delta": ends, "plan": steps.to_json()})
    else:
        print(f"noise      {found.scale:.6g} times the sensitivity")
        print(f"delta      in [{found.delta.lower:.6g}, {found.delta.upper:.6g}] at epsilon {options.epsilon:g}")
        if options.output is not None:
            print(f"written    {options.output}")
    return 0
