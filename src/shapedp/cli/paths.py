"""The files a command line names: no output is an input, no two outputs are one file.

A command says which of its options name what it writes by `writing`. Everything else on the command line that names a
file is an input, whether the command thinks of it as one or not.
"""

from __future__ import annotations

import argparse
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

from shapedp.boundary.files import guard

BESIDE = ".certificate.json"


def writing(parser: argparse.ArgumentParser, *names: str, certified: bool = False) -> None:
    """Declare the options that name outputs; `certified` says that a certificate is written beside the first."""
    parser.set_defaults(writes=names, certified=certified)


def beside(options: argparse.Namespace) -> Path:
    """Where the certificate of an output goes: where --certificate says, or beside it."""
    chosen = getattr(options, "certificate", None)
    return Path(chosen) if chosen is not None else options.output.with_suffix(BESIDE)


def check_files(options: argparse.Namespace) -> None:
    """Refuse, before anything is read or spent, a command line whose outputs would destroy something."""
    names = getattr(options, "writes", ())
    written = [path for path in (getattr(options, name) for name in names) if path is not None]
    if written and options.certified and getattr(options, "certificate", None) is None:
        written.append(beside(options))
    if written:
        guard(_inputs(options, {*names, *getattr(options, "words", ())}), written)


def _inputs(options: argparse.Namespace, others: set[str]) -> Iterator[Path]:
    """Every file or folder that the command line names in an option that is not one of the others."""
    for value in (value for name, value in vars(options).items() if name not in others):
        for one in value if isinstance(value, list | tuple) else (value,):
            if isinstance(one, Path):
                yield one
            elif isinstance(one, str):
                path = Path(_database(one))
                if _is_file(path):
                    yield path


def _database(text: str) -> str:
    """The file of a sqlite:///... address; any other text as it is."""
    if not text.startswith("sqlite"):
        return text
    head, mark, tail = text.partition(":///")
    return urllib.parse.unquote(tail.partition("?")[0]) if mark and "/" not in head else text


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def note_words(parser: argparse.ArgumentParser) -> None:
    """Tell every command which of its options are words from a list, and so never files."""
    words: set[str] = set()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                note_words(one)
        elif action.choices is not None:
            words.add(action.dest)
    parser.set_defaults(words=frozenset(words))
