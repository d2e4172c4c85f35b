"""shapedp account and plan: what a composition of releases is worth, and the noise that a budget allows."""

from __future__ import annotations

import argparse
from typing import Any

from shapedp import accounting
from shapedp.accounting import ACCOUNTANTS, BareLoss, Plan, Step
from shapedp.boundary.documents import read, write
from shapedp.cli.options import claim
from shapedp.cli.output import ends, finite, show, written
from shapedp.mechanisms import mechanism_from_json
from shapedp.privacy import GaussianLoss


def account(options: argparse.Namespace) -> int:
    """Compose and print."""
    steps = _steps(options)
    if options.delta is None and options.accountant != "pld":
        raise ValueError("--accountant goes with --delta: the others answer epsilon only")
    if options.accountant != "pld":
        answer = ACCOUNTANTS[options.accountant].answer([(s.loss, s.count) for s in steps.steps], options.delta)
        data = {"accountant": answer.accountant, "epsilon": finite(answer.epsilon), "certifies": answer.certifies}
        note = "" if answer.certifies else " (an approximation)"
        line = f"epsilon    {answer.epsilon:.8g} by {answer.accountant}{note}"
        return show(options, {"delta": options.delta, **data}, line)
    if options.delta is None:
        what, bracket, at = "delta", steps.delta(options.epsilon), {"epsilon": options.epsilon}
    else:
        what, bracket, at = "epsilon", steps.epsilon(options.delta), {"delta": options.delta}
    found = {**at, "accountant": "pld", what: ends(bracket), "certifies": True}
    return show(options, found, f"{what:<10} in [{bracket.lower:.10g}, {bracket.upper:.10g}]")


def _steps(options: argparse.Namespace) -> Plan:
    if options.plan is not None:
        if options.steps is not None or options.rate is not None:
            raise ValueError("--steps and --rate stand in the plan itself: leave them out with --plan")
        return Plan.from_json(read(options.plan))
    if options.gaussian is not None:
        if not options.gaussian > 0:
            raise ValueError(f"--gaussian must be > 0, got {options.gaussian!r}")
        subject: Any = GaussianLoss(1 / options.gaussian)
    elif options.bare is not None:
        subject = BareLoss(*options.bare)
    else:
        subject = mechanism_from_json(read(options.mechanism))
    rate, steps = options.rate, options.steps
    return Plan((Step(subject, 1.0 if rate is None else rate, 1 if steps is None else steps),))


def plan(options: argparse.Namespace) -> int:
    """The least noise a budget allows for a number of subsampled steps: plan, write, print."""
    found = accounting.plan(**claim(options), sampling_rate=options.rate, steps=options.steps, seconds=options.seconds)
    steps = Plan((Step(GaussianLoss(1 / found.scale), options.rate, options.steps),)).to_json()
    if options.output is not None:
        write(options.output, steps)
    data = {"noise_multiplier": found.scale, "delta": ends(found.delta), "plan": steps}
    noise = f"noise      {found.scale:.6g} times the sensitivity"
    delta = f"delta      in [{found.delta.lower:.6g}, {found.delta.upper:.6g}] at epsilon {options.epsilon:g}"
    return show(options, data, noise, delta, *written(options.output))
