"""One name for one SQLite file: the rollback journal is found by name, so that two names lose spends after a crash."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path

from shapedp.boundary.refusals import refusal
from shapedp.ledger.errors import LedgerPlaceError

_MOUNTS = Path("/proc/self/mountinfo")
_OURS = {  # the first bytes of what SQLite itself keeps beside a database: zeros in a journal that has ended
    "-journal": (bytes.fromhex("d9d505f920a163d7"), bytes(8)),
    "-wal": (bytes.fromhex("377f0682"), bytes.fromhex("377f0683")),
}


def check_one_name(path: str) -> None:
    """Refuses a file that has a second name: a hard link, or a mount of this single file."""
    try:
        found = os.stat(path)
    except OSError:
        return  # the database says why it cannot be opened
    if not stat.S_ISREG(found.st_mode):
        raise LedgerPlaceError(f"the ledger {path} is a folder, a pipe or a device: name a plain file")
    if found.st_nlink > 1:
        raise LedgerPlaceError(refusal("ledger", "hard-links", path=path, number=found.st_nlink))
    if os.path.realpath(path) in _mounted():
        raise LedgerPlaceError(f"the ledger {path} is mounted as a single file, so has a second name: mount its folder")


def check_beside(path: str) -> None:
    """Refuses a new database beside a file of somebody that SQLite would take for its own, and overwrite or remove."""
    if os.path.isfile(path) and os.path.getsize(path):
        return
    path = os.path.realpath(path)  # a link that leads to no file yet: SQLite works beside its end
    for ending, beginnings in _OURS.items():
        other = Path(path + ending)
        if not os.path.lexists(other):
            continue
        if other.is_file():
            with other.open("rb") as stream:
                first = stream.read(8)
            if not first or first.startswith(beginnings):
                continue
        raise LedgerPlaceError(f"a ledger at {path} would overwrite {other}, which is not its own: choose another name")


def place_of(path: str) -> str:
    """What is kept in the file about itself: its own name, device, volume (the file system's own number) and inode."""
    real = os.path.realpath(path)
    found = os.stat(real)
    volume = os.statvfs(real).f_fsid if hasattr(os, "statvfs") else 0
    return json.dumps({"name": os.path.basename(real), "device": found.st_dev, "volume": volume, "inode": found.st_ino})


def check_place(path: str, kept: object) -> None:
    """Refuses a file that says it is another one.

    A device may be numbered anew by a restart, and some file systems number their volumes by the device; an inode is
    not, but each file system counts its own. So name and inode must agree, and the device or the volume.
    """
    here = json.loads(place_of(path))
    try:
        said = json.loads(str(kept))
        alike = {what for what in here if said.get(what, here[what] if what == "volume" else None) == here[what]}
        same = {"name", "inode"} <= alike and bool(alike & {"device", "volume"})
    except (ValueError, AttributeError, TypeError, RecursionError):
        same = False
    if not same:
        raise LedgerPlaceError(refusal("ledger", "copied-or-renamed", path=path))


def _mounted() -> set[str]:
    """The mount points of this process; none where the system does not tell."""
    try:
        lines = _MOUNTS.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return set()
    points = [words[4] for words in (line.split(" ") for line in lines) if len(words) > 4]
    return {re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), point) for point in points}
