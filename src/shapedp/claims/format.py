"""One published statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

Values = Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Claim:
    """A published statement, where it stands, and what computing it found.

    `printed` holds numbers of the paper and the relative accuracy to which `compute` must give them again;
    `found` holds every number that `compute` returns; `judge` says from those whether the statement holds.
    `witness` tells in words what decides it; `command` recomputes it.
    """

    id: str
    statement: str
    source: str
    parameters: Values
    printed: Mapping[str, tuple[float, float]]
    found: Values
    verdict: Literal["holds", "false"]
    witness: str
    compute: Callable[[Values], Values]
    judge: Callable[[Values], bool]

    @property
    def command(self) -> str:
        """What recomputes it on the command line."""
        return f"shapedp claims --verify {self.id}"
