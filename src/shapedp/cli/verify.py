"""shapedp verify: recompute a certificate offline."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from shapedp.cli.files import read_json
from shapedp.cli.options import add_json
from shapedp.cli.output import DONE, REFUSED, exit_code, own_claim, print_certificate, print_json
from shapedp.mechanisms import mechanism_from_json, verify
from shapedp.privacy import Certificate


def register(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "verify",
        help="recompute a certificate from the mechanism it describes",
        description="Recompute the bracket of a certificate (or of a mechanism's own claim). A certificate whose "
        "numbers do not follow from its mechanism is an error.",
        epilog="example: shapedp verify noisy.certificate.json",
    )
    parser.add_argument("file", type=Path, help="a certificate or a mechanism, as JSON")
    parser.add_argument(
        "--independent",
        action="store_true",
        help="recompute with shapedp-check, which shares no code with this library (pip install 'shapedp[check]')",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Recompute and print."""
    data = read_json(options.file)
    if options.independent:
        return _independent(data, options.json)
    if data.get("kind") == "certificate":
        certificate = verify(Certificate.from_json(data))
    elif str(data.get("kind")).endswith("-regression"):
        raise ValueError(f"this is a model; verify {options.file.with_suffix('.certificate.json')}")
    else:
        certificate = own_claim(mechanism_from_json(data), options.file)
    if options.json:
        print_json(certificate.to_json())
    else:
        print_certificate(certificate)
    return exit_code(certificate)


def _independent(data: Any, as_json: bool) -> int:
    """The verdict of a program that shares no code with this one."""
    try:
        from shapedp_check import check
        from shapedp_check.cli import describe
    except ImportError:
        raise ValueError("--independent needs the checker: pip install 'shapedp[check]'") from None
    answer = check(data)
    if as_json:
        print_json(answer.to_json())
    else:
        print(describe(answer))
    return DONE if answer.verdict == "certified" else REFUSED
