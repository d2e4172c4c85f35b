"""A file of the steps that were started, which outlives a killed run."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

_KIND = "shapedp-journal"


class Journal:
    """A file whose first line names the step it counts and itself, and which grows by one byte before each release.

    A file of another step is refused: its bytes would be charged at this one's price.
    """

    def __init__(self, path: Path, step: str) -> None:
        self.path = path
        if not path.exists() or path.stat().st_size == 0:
            self._create(step)
        with open(path, "rb") as file:
            line = file.readline(1024)
        words = line.decode("ascii", "replace").split()
        if len(words) != 3 or words[0] != _KIND or not line.endswith(b"\n"):
            raise ValueError(f"{path} is not a journal of steps: name a file of its own for each training")
        if words[1] != step:
            raise ValueError(
                f"the journal {path} counts steps with other noise, clip or sampling: name another file, and load the "
                "earlier run's state_dict so that its steps stay in the account"
            )
        self.name, self._head = words[2], len(line)

    @property
    def steps(self) -> int:
        """The number of steps that were started."""
        return self.path.stat().st_size - self._head

    def grow(self, steps: int) -> None:
        """Write down, up to the disk, that this many steps have been started."""
        with open(self.path, "ab", buffering=0) as file:
            file.write(b"." * max(steps - self.steps, 0))
            os.fsync(file.fileno())

    def _create(self, step: str) -> None:
        name = secrets.token_hex(8)
        beside = self.path.with_name(f"{self.path.name}.{name}")
        with open(beside, "wb") as file:
            file.write(f"{_KIND} {step} {name}\n".encode())
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self.path)
        if os.name == "posix":
            folder = os.open(self.path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
