"""The parser, and what each kind of failure exits with."""

from __future__ import annotations

import argparse
import csv
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from shapedp._version import __version__
from shapedp.boundary.values import printable
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
from shapedp.cli.output import DONE, INTERNAL, INTERRUPTED, REFUSED, WRONG_INPUT
from shapedp.cli.paths import check_files, note_words
from shapedp.cli.streams import guarded
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

LONGEST = 4000  # characters of a message that may repeat a word of a file
_EPILOG = """\
a first session:
  shapedp advise --l2 1.0 --dim 14 --epsilon 1 --delta 1e-5
  shapedp calibrate gaussian --box bounds.csv --epsilon 1 --delta 1e-6 -o mechanism.json
  shapedp release mechanism.json answers.csv -o noisy.csv
  shapedp certify classic-gaussian --dim 3 --epsilon 10 --delta 1e-5

exit codes: 0 done, 2 wrong input, 3 refused (a claim that is not certified), 1 a fault of shapedp itself,
130 interrupted
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
    note_words(top)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. What goes wrong is one line on stderr and an exit code; SHAPEDP_DEBUG=1 adds the traceback."""
    with guarded():
        try:
            options = parser().parse_args(arguments)
            check_files(options)
            code = int(options.run(options) or DONE)
            sys.stdout.flush()
            return code
        except Exception as error:
            if os.environ.get("SHAPEDP_DEBUG") == "1":
                traceback.print_exc()
            code, line = _explained(error)
        except KeyboardInterrupt:
            code, line = INTERRUPTED, "interrupted: nothing half-written is left behind"
        print(f"shapedp: {line}", file=sys.stderr)
        return code


def _explained(error: Exception) -> tuple[int, str]:
    """The exit code and the line of an exception; one that no command foresaw is not quoted, as it may hold data."""
    text = printable(str(error)[:LONGEST])
    match error:
        case NotCertifiedError():
            return REFUSED, f"refused: {text}"
        case MemoryError():
            return WRONG_INPUT, "error: not enough memory for an answer of this size"
        case RecursionError():
            return WRONG_INPUT, "error: the input is nested too deeply"
        case ArithmeticError():
            return WRONG_INPUT, "error: the numbers given are beyond what can be computed: use less extreme ones"
        case EOFError():
            return WRONG_INPUT, "error: an input file is cut short"
        case ValueError() | TypeError() | OSError() | ImportError() | csv.Error():
            return WRONG_INPUT, f"error: {text or type(error).__name__}"
    places = [frame for frame in traceback.extract_tb(error.__traceback__) if "shapedp" in Path(frame.filename).parts]
    where = f" in {Path(places[-1].filename).name}, line {places[-1].lineno}" if places else ""
    return INTERNAL, (
        f"internal error: {type(error).__name__}{where} of version {__version__}. This is a fault of shapedp: please "
        "report it as SECURITY.md says; SHAPEDP_DEBUG=1 prints a traceback, which may quote your data"
    )
