"""shapedp certify: what a published calibration or a mechanism is worth."""

from __future__ import annotations

import argparse
import inspect
from pathlib import Path
from typing import Any

from shapedp.cli.files import read_json
from shapedp.cli.options import add_claim, add_json, tensor_shape
from shapedp.cli.output import exit_code, own_claim, print_certificate, print_json
from shapedp.mechanisms import certify, mechanism_from_json
from shapedp.papers.recipes import GRADIENT_RECIPES, RECIPES
from shapedp.privacy import Certificate


def register(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "certify",
        help="compute what a recipe or a mechanism file is worth",
        description="Compute the exact delta of a published calibration, or of a mechanism file, and judge a claim. "
        f"Recipes: {', '.join((*RECIPES, *GRADIENT_RECIPES))}.",
        epilog="example: shapedp certify classic-gaussian --dim 3 --epsilon 10 --delta 1e-5 (refused: exit code 3)",
    )
    parser.add_argument("subject", metavar="RECIPE|FILE", help="a recipe's name, or a mechanism written by calibrate")
    parser.add_argument("--dim", type=int, help="dimension of the query (recipes)")
    parser.add_argument("--tensor", metavar="SHAPE", help="shape of the query, 28x28x64, instead of --dim (recipes)")
    parser.add_argument("--sensitivity", type=float, default=1.0, help="radius of the recipe's ball (default 1)")
    parser.add_argument("--batch", type=int, help="batch size of a recipe for gradients (geodp)")
    parser.add_argument("--beta", type=float, help="share of each angle's range that geodp counts, in (0, 1]")
    add_claim(parser, required=False)
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the certificate."""
    certificate = _certificate(options)
    if options.json:
        print_json(certificate.to_json())
    else:
        print_certificate(certificate)
    return exit_code(certificate)


def _certificate(options: argparse.Namespace) -> Certificate:
    claimed = options.epsilon is not None and options.delta is not None
    if options.subject in RECIPES:
        if not claimed or (options.dim is None) == (options.tensor is None):
            raise ValueError("a recipe needs --epsilon, --delta and either --dim or --tensor")
        recipe = RECIPES[options.subject]
        size = {"dim": options.dim} if options.tensor is None else {"shape": tensor_shape(options.tensor)}
        if "shape" in size and "shape" not in inspect.signature(recipe).parameters:
            raise ValueError(f"{options.subject} releases vectors: give --dim instead of --tensor")
        mechanism = recipe(**size, sensitivity=options.sensitivity, epsilon=options.epsilon, delta=options.delta)
        return mechanism.certificate
    if options.subject in GRADIENT_RECIPES:
        return _gradient_recipe(options, claimed)
    path = Path(options.subject)
    if not path.exists():
        names = ", ".join((*RECIPES, *GRADIENT_RECIPES))
        raise ValueError(f"{options.subject!r} is neither a file nor a recipe ({names})")
    mechanism = mechanism_from_json(read_json(path))
    if claimed:
        return certify(mechanism, epsilon=options.epsilon, delta=options.delta)
    if options.epsilon is not None or options.delta is not None:
        raise ValueError("give both --epsilon and --delta, or neither to judge the mechanism's own claim")
    return own_claim(mechanism, path)


def _gradient_recipe(options: argparse.Namespace, claimed: bool) -> Certificate:
    if not claimed or None in (options.dim, options.batch, options.beta):
        raise ValueError(f"{options.subject} needs --epsilon, --delta, --dim, --batch and --beta")
    return GRADIENT_RECIPES[options.subject](
        dim=options.dim,
        sensitivity=options.sensitivity,
        epsilon=options.epsilon,
        delta=options.delta,
        batch=options.batch,
        beta=options.beta,
    ).certificate
