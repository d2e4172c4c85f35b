"""shapedp account: what a composition of releases is worth."""

from __future__ import annotations

import argparse
from typing import Any

from shapedp.accounting import ACCOUNTANTS, BareLoss, Plan, Step
from shapedp.cli.files import read_json
from shapedp.cli.output import ends, finite, show
from shapedp.mechanisms import mechanism_from_json
from shapedp.privacy import GaussianLoss


def run(options: argparse.Namespace) -> int:
    """Compose and print."""
    plan = _plan(options)
    if options.delta is None and options.accountant != "pld":
        raise ValueError("--accountant goes with --delta: the others answer epsilon only")
    if options.accountant != "pld":
        answer = ACCOUNTANTS[options.accountant].answer([(s.loss, s.count) for s in plan.steps], options.delta)
        data = {"accountant": answer.accountant, "epsilon": finite(answer.epsilon), "certifies": answer.certifies}
        note = "" if answer.certifies else " (an approximation)"
        line = f"epsilon    {answer.epsilon:.8g} by {answer.accountant}{note}"
        return show(options, {"delta": options.delta, **data}, line)
    if options.delta is None:
        what, bracket, at = "delta", plan.delta(options.epsilon), {"epsilon": options.epsilon}
    else:
        what, bracket, at = "epsilon", plan.epsilon(options.delta), {"delta": options.delta}
    found = {**at, "accountant": "pld", what: ends(bracket), "certifies": True}
    return show(options, found, f"{what:<10} in [{bracket.lower:.10g}, {bracket.upper:.10g}]")


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
