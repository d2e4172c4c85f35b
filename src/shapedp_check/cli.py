"""shapedp-check FILE...: recompute certificates."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from shapedp_check.files import NotDescribed
from shapedp_check.verdict import SECONDS, Answer, check

DONE, INVALID, REFUSED = (
    0,
    2,
    3,
)  # as the library's command: 3 where a claim is not certified, 2 where input is unusable


def read(text: str) -> Any:
    """JSON without the liberties that Python takes: no NaN, no name twice in one object."""
    return json.loads(text, parse_constant=_refuse, object_pairs_hook=_once)


def _refuse(name: str) -> Any:
    raise NotDescribed(f"{name} is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise NotDescribed("a name stands twice in one object")
    return result


def main(arguments: list[str] | None = None) -> int:
    """0 if every file is certified, 3 if one is not, 2 if one cannot be read."""
    parser = argparse.ArgumentParser(
        prog="shapedp-check",
        description="Recompute the claims of certificates with rigorous interval arithmetic. Nothing stated in a file "
        "is trusted; what a file does not describe is said.",
        epilog="exit codes: 0 all certified, 3 a claim is not certified, 2 a file cannot be read",
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a certificate, as JSON")
    parser.add_argument("--json", action="store_true", help="print one JSON object per file")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="undecided after so long (default %(default)s)")
    options = parser.parse_args(arguments)
    return max(_one(path, options) for path in options.files)


def _one(path: Path, options: argparse.Namespace) -> int:
    try:
        data = read(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as problem:
        print(plain(f"{path}: cannot be read: {problem}"), file=sys.stderr)
        return INVALID
    try:
        answer = check(data, seconds=options.seconds)
    except RuntimeError as fault:  # the other files are still checked
        print(plain(f"{path}: not checked: {fault}"), file=sys.stderr)
        return REFUSED
    print(
        json.dumps({"file": str(path), **answer.to_json()})
        if options.json
        else f"{plain(str(path))}: {describe(answer)}"
    )
    return DONE if answer.verdict == "certified" else REFUSED


def describe(answer: Answer) -> str:
    """The answer in a few lines."""
    lines = [f"{answer.verdict}: {answer.reason} ({answer.seconds:.2f} s)"]
    lines += [f"  formula  {formula}" for formula in answer.formulas]
    lines += [f"  note     {note}" for note in answer.notes]
    return "\n".join(plain(line) for line in [*lines, f"  digest   {answer.digest}"])


def plain(text: str) -> str:
    """Text of a file on one line: a file must not write lines of its own, or move the cursor."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)
