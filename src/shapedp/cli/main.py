"""The parser, and what each kind of failure exits with."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from shapedp._version import __version__
from shapedp.cli import (
    account,
    advise,
    audit,
    calibrate,
    certify,
    claims,
    demo,
    fit,
    ledger,
    plan,
    release,
    report,
    reproduce,
    verify,
)
from shapedp.cli.output import DONE, REFUSED, WRONG_INPUT
from shapedp.privacy import NotCertifiedError

COMMANDS = (
    advise,
    calibrate,
    certify,
    verify,
    release,
    fit,
    account,
    plan,
    ledger,
    audit,
    claims,
    reproduce,
    report,
    demo,
)

_EPILOG = """\
a first session:
  shapedp advise --l2 1.0 --dim 14 --epsilon 1 --delta 1e-5
  shapedp calibrate gaussian --box bounds.csv --epsilon 1 --delta 1e-6 -o mechanism.json
  shapedp release mechanism.json answers.csv -o noisy.csv
  shapedp certify classic-gaussian --dim 3 --epsilon 10 --delta 1e-5

exit codes: 0 done, 2 wrong input, 3 refused (a claim that is not certified)
"""


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="shapedp",
        description="Differential privacy in high dimension: noise shaped to your query, a guarantee you can check.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"shapedp {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.register(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; errors go to stderr as one line, cause then remedy."""
    options = parser().parse_args(arguments)
    try:
        return int(options.run(options) or DONE)
    except NotCertifiedError as refusal:
        print(f"shapedp: refused: {refusal}", file=sys.stderr)
        return REFUSED
    except (ValueError, TypeError, OSError, ImportError) as error:
        print(f"shapedp: error: {error}", file=sys.stderr)
        return WRONG_INPUT
    except BrokenPipeError:
        return DONE
