"""shapedp certify and verify: what a published calibration, a mechanism or a certificate is worth."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from shapedp import mechanisms
from shapedp.boundary.documents import read
from shapedp.cli.codes import DONE, REFUSED
from shapedp.cli.options import claim, recipe
from shapedp.cli.output import certificate_lines, show
from shapedp.mechanisms import mechanism_from_json
from shapedp.papers.recipes import GRADIENT_RECIPES, RECIPES
from shapedp.privacy import Certificate


def certify(options: argparse.Namespace) -> int:
    """Judge a recipe, or the claim of a mechanism file."""
    return _print(_certificate(options), options)


def verify(options: argparse.Namespace) -> int:
    """Recompute a certificate offline."""
    data = read(options.file)
    if options.independent:
        return _independent(data, options)
    if str(data.get("kind")).endswith("-regression"):
        raise ValueError(f"this is a model; verify {options.file.with_suffix('.certificate.json')}")
    if data.get("kind") == "certificate":
        return _print(mechanisms.verify(Certificate.from_json(data)), options)
    return _print(_own_claim(mechanism_from_json(data), options.file), options)


def _print(found: Certificate, options: argparse.Namespace) -> int:
    code = DONE if found.verdict == "certified" else REFUSED
    return show(options, found.to_json(), *certificate_lines(found), code=code)


def _certificate(options: argparse.Namespace) -> Certificate:
    if options.subject in RECIPES:
        return recipe(options).certificate
    if options.subject in GRADIENT_RECIPES:
        return _gradient_recipe(options)
    path = Path(options.subject)
    if not path.exists():
        names = ", ".join((*RECIPES, *GRADIENT_RECIPES))
        raise ValueError(f"{options.subject!r} is neither a file nor a recipe ({names})")
    mechanism = mechanism_from_json(read(path))
    if None not in claim(options).values():
        return mechanisms.certify(mechanism, **claim(options))
    if options.epsilon is not None or options.delta is not None:
        raise ValueError("give both --epsilon and --delta, or neither to judge the mechanism's own claim")
    return _own_claim(mechanism, path)


def _gradient_recipe(options: argparse.Namespace) -> Certificate:
    given = {**claim(options), "dim": options.dim, "batch": options.batch, "beta": options.beta}
    if None in given.values():
        raise ValueError(f"{options.subject} needs --epsilon, --delta, --dim, --batch and --beta")
    return GRADIENT_RECIPES[options.subject](**given, sensitivity=options.sensitivity).certificate


def _own_claim(subject: Any, path: Path) -> Certificate:
    """The certificate of what a file describes; a plan, which claims nothing of itself, is refused."""
    found = getattr(subject, "certificate", None)
    if not isinstance(found, Certificate):
        raise ValueError(f"{path} makes no claim of its own: judge one by `certify` with --epsilon and --delta")
    return found


def _independent(data: Any, options: argparse.Namespace) -> int:
    """The verdict of a program that shares no code with this one."""
    try:
        from shapedp_check import check
        from shapedp_check.cli import describe
    except ImportError:
        raise ValueError("--independent needs the checker: pip install 'shapedp[check]'") from None
    answer = check(data)
    return show(options, answer.to_json(), describe(answer), code=DONE if answer.verdict == "certified" else REFUSED)
