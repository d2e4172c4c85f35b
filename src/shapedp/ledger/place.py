"""One name for one SQLite file: the rollback journal is found by name, so that two names lose spends after a crash."""

from __future__ import annotations

import json
import os
from pathlib import Path

from shapedp.ledger.errors import LedgerPlaceError

_MOUNTS = Path("/proc/self/mountinfo")


def check_one_name(path: str) -> None:
    """Refuses a file that has a second name: a hard link, or a mount of this single file."""
    try:
        found = os.stat(path)
    except OSError:
        return  # the database says why it cannot be opened
    if found.st_nlink > 1:
        raise LedgerPlaceError(
            f"the ledger {path} has {found.st_nlink} names (hard links): a crash under one of them undoes spends made "
            "under another; remove the links, and copy the file for a backup"
        )
    if os.path.realpath(path) in _mounted():
        raise LedgerPlaceError(
            f"the ledger {path} is mounted as a single file, so that it has another name elsewhere: mount its folder"
        )


def place_of(path: str) -> str:
    """What is kept in the file about itself: its own name, device and inode."""
    real = os.path.realpath(path)
    found = os.stat(real)
    return json.dumps({"name": os.path.basename(real), "device": found.st_dev, "inode": found.st_ino})


def check_place(path: str, kept: object) -> None:
    """Refuses a file that says it is another one. A device may be numbered anew by a restart, an inode may not."""
    here = json.loads(place_of(path))
    try:
        said = json.loads(str(kept))
        same = (said["name"], said["inode"]) == (here["name"], here["inode"])
    except (ValueError, KeyError, TypeError, RecursionError):
        same = False
    if not same:
        raise LedgerPlaceError(
            f"the ledger {path} is a copy or was renamed: spends made in the original are missing here, or will be "
            "there. Use the original; or, once no other copy will ever be spent from, take this one over with "
            "`shapedp ledger adopt`"
        )


def _mounted() -> set[str]:
    """The mount points of this process; none where the system does not tell."""
    try:
        lines = _MOUNTS.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return set()
    return {_unescaped(words[4]) for words in (line.split(" ") for line in lines) if len(words) > 4}


def _unescaped(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text
