"""shapedp verify: recompute a certificate offline."""

from __future__ import annotations

import argparse
from typing import Any

from shapedp.cli.files import read_json
from shapedp.cli.output import DONE, REFUSED, certificate_lines, exit_code, own_claim, show
from shapedp.mechanisms import mechanism_from_json, verify
from shapedp.privacy import Certificate


def run(options: argparse.Namespace) -> int:
    """Recompute and print."""
    data = read_json(options.file)
    if options.independent:
        return _independent(data, options)
    if data.get("kind") == "certificate":
        found = verify(Certificate.from_json(data))
    elif str(data.get("kind")).endswith("-regression"):
        raise ValueError(f"this is a model; verify {options.file.with_suffix('.certificate.json')}")
    else:
        found = own_claim(mechanism_from_json(data), options.file)
    return show(options, found.to_json(), *certificate_lines(found), code=exit_code(found))


def _independent(data: Any, options: argparse.Namespace) -> int:
    """The verdict of a program that shares no code with this one."""
    try:
        from shapedp_check import check
        from shapedp_check.cli import describe
    except ImportError:
        raise ValueError("--independent needs the checker: pip install 'shapedp[check]'") from None
    answer = check(data)
    return show(options, answer.to_json(), describe(answer), code=DONE if answer.verdict == "certified" else REFUSED)
