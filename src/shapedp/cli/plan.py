"""shapedp plan: the least noise a budget allows for a number of subsampled steps."""

from __future__ import annotations

import argparse

from shapedp.accounting import Plan, Step, plan
from shapedp.cli.files import write_json
from shapedp.cli.options import claim
from shapedp.cli.output import ends, show, written
from shapedp.privacy import GaussianLoss


def run(options: argparse.Namespace) -> int:
    """Plan, write, print."""
    found = plan(**claim(options), sampling_rate=options.rate, steps=options.steps, seconds=options.seconds)
    steps = Plan((Step(GaussianLoss(1 / found.scale), options.rate, options.steps),)).to_json()
    if options.output is not None:
        write_json(options.output, steps)
    return show(
        options,
        {"noise_multiplier": found.scale, "delta": ends(found.delta), "plan": steps},
        f"noise      {found.scale:.6g} times the sensitivity",
        f"delta      in [{found.delta.lower:.6g}, {found.delta.upper:.6g}] at epsilon {options.epsilon:g}",
        *written(options.output),
    )
