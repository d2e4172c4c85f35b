"""The files that a command line names: no output is an input, and no two outputs are one file.

`commands.toml` says which options of a command name what it writes. Everything else on the command line that names a
file is an input, whether the command thinks of it as one or not.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shapedp.boundary.documents import dumps
from shapedp.boundary.files import atomic, guard

BESIDE = ".certificate.json"


def beside(options: argparse.Namespace) -> Path:
    """Where the certificate of an output goes: where --certificate says, or beside it."""
    return Path(options.certificate or options.output.with_suffix(BESIDE))


@contextmanager
def beside_certificate(path: Path, record: dict[str, Any]) -> Iterator[None]:
    """A block that writes what the certificate is of: where it fails, no certificate appears or changes."""
    with atomic(path) as stream:
        stream.write((dumps(record) + "\n").encode())
        yield


def check_files(options: argparse.Namespace) -> None:
    """Refuse, before anything is read or spent, a command line whose outputs would destroy something."""
    command = options.command
    given = vars(options)
    written = [given[name] for name in command.writes if given[name] is not None]
    if written and command.certified and options.certificate is None and options.output is not None:
        written.append(beside(options))
    if written:
        inputs = (value for name, value in given.items() if name not in {*command.writes, *command.words})
        guard(_files(inputs), written)


def _files(values: Iterator[object]) -> Iterator[Path]:
    """Every file or folder that some value names."""
    for value in values:
        for one in value if isinstance(value, list | tuple) else (value,):
            if isinstance(one, Path):
                yield one
            elif isinstance(one, str):
                path = _database(one)
                if os.path.isfile(path):
                    yield Path(path)


def _database(text: str) -> str:
    """The file of the address of a SQLite ledger, as the ledger reads it; any other text as it is."""
    if not text.startswith("sqlite") or "://" not in text:
        return text
    try:
        from shapedp.ledger.store import Store  # takes time, and needs an extra

        return Store.at(text, timeout=1.0).name
    except (ImportError, ValueError):  # the command says what is wrong
        return text
