"""Second names of a ledger's file, made and removed while a storm spends from it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from storm_workers import Forked, Log, mechanism

from shapedp.ledger import BudgetExceededError, Ledger, LedgerPlaceError

PAUSE = 0.25
"""Seconds between two second names: while a hard link is there every worker stops."""


class Names:
    """Harmless names that workers use, and a process that tries the others.

    A symbolic link and a second mount of the folder lead to the same journal. A hard link and a mount of the single
    file do not: each is made, tried and removed again. Mounts are left out where the system does not allow them.
    """

    def __init__(self, where: str, folder: Path) -> None:
        self.where, self.folder = where, folder
        self.tries = Log(folder / "tries")
        link, self.mounted = folder / "link.db", folder / "mounted"
        if not link.is_symlink():
            link.symlink_to(where)
        self.harmless = [where, str(link)]
        self.mounted.mkdir(exist_ok=True)
        self.mounts = _mount(folder, self.mounted)
        if self.mounts:
            self.harmless.append(str(self.mounted / Path(where).name))

    def begin(self) -> None:
        """Starts the attempts, once the workers' ledgers are open."""
        self.prober = Forked(self.probe)

    def probe(self) -> None:
        """Tries the dangerous names until it is told to stop."""
        going = [True]
        signal.signal(signal.SIGTERM, lambda *_: going.clear())
        other = self.folder / "other.db"
        while going:
            other.unlink(missing_ok=True)
            os.link(self.where, other)
            self.attempt("L", other)
            other.unlink()
            if self.mounts and going:
                other.touch()
                if _mount(Path(self.where), other):
                    self.attempt("M", other)
                    _unmount(other)
                other.unlink()
            time.sleep(PAUSE)

    def attempt(self, kind: str, other: Path) -> None:
        """Writes down the kind of the name, and a `+` where a spend by it was let through."""
        try:
            with Ledger.open(other).spend("d", mechanism(10**9)) as spend:
                spend.release([0.25])
            kind += "+"
        except BudgetExceededError:
            kind += "+"
        except LedgerPlaceError:
            pass
        self.tries.write(kind)

    def close(self) -> None:
        """Ends the attempts and removes what they made."""
        os.kill(self.prober.pid, signal.SIGTERM)
        while self.prober.poll() is None:
            time.sleep(0.01)
        if self.mounts:
            _unmount(self.mounted)

    def notes(self) -> list[str]:
        words = self.tries.path.read_text().split()
        links, mounts = (sum(word[0] == kind for word in words) for kind in "LM")
        found = f"{links} spends by a hard link and {mounts} by a mount of the file, all refused"
        return [found if self.mounts else f"{found}; no mounts allowed here"] if not self.faults() else []

    def faults(self) -> list[str]:
        words = self.tries.path.read_text().split() if self.tries.path.exists() else []
        through = sum("+" in word for word in words)
        if through or not words:
            return [f"{through} of {len(words)} spends by a second name went through"]
        return []


def _mount(what: Path, there: Path) -> bool:
    """Whether `what` is now mounted at `there` as well."""
    with suppress(OSError):
        return not subprocess.run(["mount", "--bind", what, there], capture_output=True, check=False).returncode
    return False


def _unmount(there: Path) -> None:
    subprocess.run(["umount", there], capture_output=True, check=True)
