"""shapedp account: what a composition of releases is worth."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from shapedp.accounting import ACCOUNTANTS, BareLoss, Plan, Step
from shapedp.cli.files import read_json
from shapedp.cli.options import add_json
from shapedp.cli.output import print_json
from shapedp.mechanisms import mechanism_from_json
from shapedp.privacy import GaussianLoss


def register(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "account",
        help="epsilon (or delta) of repeated, subsampled releases",
        description="Compose releases and print the bracket of epsilon at a delta, or of delta at an epsilon. "
        "In --json null stands for infinity.",
        epilog="example: shapedp account --gaussian 1.3 --rate 0.00427 --steps 10000 --delta 1e-5",
    )
    subject = parser.add_mutually_exclusive_group(required=True)
    subject.add_argument(
        "--gaussian", type=float, metavar="SIGMA", help="Gaussian noise of SIGMA times the sensitivity"
    )
    subject.add_argument(
        "--bare", nargs=2, type=float, metavar=("EPSILON", "DELTA"), help="a bare guarantee per release"
    )
    subject.add_argument("--mechanism", type=Path, metavar="FILE", help="a mechanism written by `shapedp calibrate`")
    subject.add_argument("--plan", type=Path, metavar="FILE", help="a plan written by `shapedp plan`")
    parser.add_argument("--rate", type=float, help="Poisson sampling rate per release (default 1: no sampling)")
    parser.add_argument("--steps", type=int, help="number of releases (default 1)")
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--delta", type=float, help="print epsilon at this delta")
    target.add_argument("--epsilon", type=float, help="print delta at this epsilon")
    parser.add_argument("--accountant", choices=tuple(ACCOUNTANTS), default="pld", help="how to account (with --delta)")
    add_json(parser)
    parser.set_defaults(run=run)


def _plan(options: argparse.Namespace) -> Plan:
    if options.plan is not None:
        if options.steps is not None or options.rate is not None:
            raise ValueError("--steps and --rate stand in the plan itself: leave them out with --plan")
        return Plan.from_json(read_json(options.plan))
    if options.gaussian is not None:
        if not options.gaussian > 0:
            raise ValueError(f"--gaussian must be > 0, got {options.gaussian!r}")
        subject: Any = GaussianLoss(1 / options.gaussian)
    elif options.bare is not None:
        subject = BareLoss(*options.bare)
    else:
        subject = mechanism_from_json(read_json(options.mechanism))
    rate, steps = options.rate, options.steps
    return Plan((Step(subject, 1.0 if rate is None else rate, 1 if steps is None else steps),))


def _finite(value: float) -> float | None:
    """A number for JSON, which has no infinity: null stands for it."""
    return value if math.isfinite(value) else None


def run(options: argparse.Namespace) -> int:
    """Compose and print."""
    plan = _plan(options)
    if options.delta is None and options.accountant != "pld":
        raise ValueError("--accountant goes with --delta: the others answer epsilon only")
    if options.delta is None:
        what, certifies, bracket = "delta", True, plan.delta(options.epsilon)
        at = {"epsilon": options.epsilon}
    else:
        at = {"delta": options.delta}
        what, certifies = "epsilon", True
        if options.accountant == "pld":
            bracket = plan.epsilon(options.delta)
        else:
            answer = ACCOUNTANTS[options.accountant].answer([(s.loss, s.count) for s in plan.steps], options.delta)
            certifies = answer.certifies
            data = {**at, "accountant": answer.accountant, "epsilon": _finite(answer.epsilon), "certifies": certifies}
            if options.json:
                print_json(data)
            else:
                note = "" if certifies else " (an approximation)"
                print(f"epsilon    {answer.epsilon:.8g} by {answer.accountant}{note}")
            return 0
    if options.json:
        ends = {"lower": _finite(bracket.lower), "upper": _finite(bracket.upper)}
        print_json({**at, "accountant": "pld", what: ends, "certifies": certifies})
    else:
        print(f"{what:<10} in [{bracket.lower:.10g}, {bracket.upper:.10g}]")
    return 0
