"""A file of the steps that were started, which outlives a killed run."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shapedp.boundary.files import sync_folder
from shapedp.torch.refusals import refusal

_KIND = "shapedp-journal"


class Journal:
    """A file that grows by one byte before each release. Its first line names the step, the file and its assumptions.

    A file of another step is refused: its bytes would be charged at the wrong price. So is a file that was begun on
    fewer assumptions (`premises`) than this run rests on. Older files have no assumptions written down.

    Guarantee: the file is locked from the reading of the count to the writing of the next byte, so that all runs that
    share it, in other processes and threads, are counted.
    """

    def __init__(self, path: Path, step: str, premises: Sequence[str] = ()) -> None:
        self.path = path
        with _locked(path, os.O_RDWR | os.O_CREAT) as file:
            if not os.fstat(file).st_size:
                _write(file, f"{_KIND} {step} {secrets.token_hex(8)} {','.join(premises) or '-'}\n".encode())
                sync_folder(path.parent)
            line = os.pread(file, 1024, 0).partition(b"\n")
        words = line[0].decode("ascii", "replace").split()
        if len(words) not in (3, 4) or words[0] != _KIND or not line[1]:
            raise ValueError(f"{path} is not a journal of steps: name a file of its own for each training")
        if words[1] != step:
            raise ValueError(refusal("journal-of-other-steps", path=path))
        self.premises = tuple(premises) if len(words) == 3 else tuple(one for one in words[3].split(",") if one != "-")
        if not set(premises) <= set(self.premises):
            raise ValueError(refusal("journal-of-other-assumptions", path=path))
        self.name, self._head = words[2], len(line[0]) + 1

    @property
    def steps(self) -> int:
        """The number of steps that were started."""
        return self.path.stat().st_size - self._head

    def start(self, taken: int, allowed: Callable[[int], Any]) -> int:
        """Write one more step than `taken` and than the file counts to the disk, and return the new number.

        `allowed` is called with the number so far, while the file is locked. It raises if no further step may follow.
        """
        with _locked(self.path, os.O_RDWR) as file:
            counted = os.fstat(file).st_size - self._head
            so_far = max(taken, counted)
            allowed(so_far)
            os.lseek(file, 0, os.SEEK_END)
            _write(file, b"." * (so_far + 1 - counted))
        return so_far + 1


@contextmanager
def _locked(path: Path, flags: int) -> Iterator[int]:
    """The file, open for this block alone; whoever else opens it so waits."""
    try:
        import fcntl
    except ImportError:  # Windows
        raise OSError("a journal needs file locks (flock), which this system lacks: leave journal= out") from None
    file = os.open(path, flags, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        fcntl.flock(file, fcntl.LOCK_UN)  # a child forked by another thread meanwhile holds the file open
        os.close(file)


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]
    os.fsync(file)
