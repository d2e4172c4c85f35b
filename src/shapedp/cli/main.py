"""Run one command; what each kind of failure exits with."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from shapedp._version import __version__
from shapedp.cli.codes import DONE, INTERNAL, INTERRUPTED, REFUSED, UNSHOWN, WRONG_INPUT
from shapedp.cli.commands import parser
from shapedp.cli.streams import ended_as_interrupted, guarded

__all__ = ["main", "parser"]

LONGEST = 4000  # characters of a message that may repeat a word of a file


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. What goes wrong is one line on stderr and an exit code; SHAPEDP_DEBUG=1 adds the traceback.

    Parameters
    ----------
    arguments
        The words after `shapedp`; None: those of the process.

    Returns
    -------
    int
        0 done, 2 wrong input, 3 refused, 1 a fault of shapedp itself, 130 interrupted; 4 done, with every file written,
        but standard output could not be written to.

    Examples
    --------
    >>> main(["account", "--bare", "0.5", "0", "--delta", "0"])
    epsilon    in [0.5, 0.5]
    0
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    with guarded() as shown:
        try:
            code = _run(words)
            if not shown.lost:
                return code
            line = (
                f"standard output could not be written to ({shown.lost}); the command itself has ended, with its files"
            )
            code = code if code != DONE else UNSHOWN
        except Exception as error:
            if os.environ.get("SHAPEDP_DEBUG") == "1":
                traceback.print_exc()
            code, line = _explained(error)
        except KeyboardInterrupt:
            code, line = INTERRUPTED, "interrupted: nothing half-written is left behind"
        print(f"shapedp: {line}", file=sys.stderr)
        return code


def _run(words: Sequence[str]) -> int:
    with ended_as_interrupted():
        options = parser(next((word for word in words if not word.startswith("-")), "")).parse_args(words)
        from shapedp.cli.paths import check_files  # loads numpy, which `shapedp --help` does not wait for

        check_files(options)
        found = import_module(f"shapedp.cli.{options.command.module}")
        code = int(getattr(found, options.command.name)(options))
        sys.stdout.flush()
        return code


def _explained(error: Exception) -> tuple[int, str]:
    """The exit code and the line of an exception; one that no command foresaw is not quoted, as it may hold data."""
    import csv

    from shapedp.boundary.values import printable
    from shapedp.privacy import NotCertifiedError

    text = printable(str(error)[:LONGEST])
    ledger = sys.modules.get("shapedp.ledger.errors")  # loaded where one of its errors was raised; it needs an extra
    if ledger is not None and isinstance(error, ledger.BudgetExceededError | ledger.SpendRefusedError):
        return REFUSED, f"refused: {text}"
    if ledger is not None and isinstance(error, ledger.LedgerError):
        return WRONG_INPUT, "\n".join((f"error: {text}", *map(printable, getattr(error, "__notes__", ()))))
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
