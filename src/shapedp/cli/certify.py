"""shapedp certify: what a published calibration or a mechanism is worth."""

from __future__ import annotations

import argparse
from pathlib import Path

from shapedp.cli.files import read_json
from shapedp.cli.options import claim, recipe
from shapedp.cli.output import certificate_lines, exit_code, own_claim, show
from shapedp.mechanisms import certify, mechanism_from_json
from shapedp.papers.recipes import GRADIENT_RECIPES, RECIPES
from shapedp.privacy import Certificate


def run(options: argparse.Namespace) -> int:
    """Print the certificate."""
    found = _certificate(options)
    return show(options, found.to_json(), *certificate_lines(found), code=exit_code(found))


def _certificate(options: argparse.Namespace) -> Certificate:
    if options.subject in RECIPES:
        return recipe(options).certificate
    if options.subject in GRADIENT_RECIPES:
        return _gradient_recipe(options)
    path = Path(options.subject)
    if not path.exists():
        names = ", ".join((*RECIPES, *GRADIENT_RECIPES))
        raise ValueError(f"{options.subject!r} is neither a file nor a recipe ({names})")
    mechanism = mechanism_from_json(read_json(path))
    if None not in claim(options).values():
        return certify(mechanism, **claim(options))
    if options.epsilon is not None or options.delta is not None:
        raise ValueError("give both --epsilon and --delta, or neither to judge the mechanism's own claim")
    return own_claim(mechanism, path)


def _gradient_recipe(options: argparse.Namespace) -> Certificate:
    given = {**claim(options), "dim": options.dim, "batch": options.batch, "beta": options.beta}
    if None in given.values():
        raise ValueError(f"{options.subject} needs --epsilon, --delta, --dim, --batch and --beta")
    return GRADIENT_RECIPES[options.subject](**given, sensitivity=options.sensitivity).certificate
