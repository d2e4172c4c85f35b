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
    `witness` tells in words what decides it; `command` recomputes it. `about` says whether the statement promises
    privacy, approximates it without promising, or speaks of something else (sizes, formulas).
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
    about: Literal["privacy", "approximation", "other"] = "privacy"

    @property
    def standing(self) -> str:
        """The verdict in the words of certificates, where the statement is about privacy."""
        if self.about == "approximation":
            return "approximate"
        if self.about == "other":
            return f"not a privacy claim; {self.verdict}"
        return "certified" if self.verdict == "holds" else "refuted"

    @property
    def slack(self) -> float | None:
        """Claimed over exact delta (or epsilon), where the claim compares them: above 1 there is room."""
        exact = self.found.get("exact", self.found.get("exact_at_least"))
        claimed = self.found.get("claimed")
        return None if exact is None or claimed is None or exact == 0 else claimed / exact

    @property
    def command(self) -> str:
        """What recomputes it on the command line."""
        return f"shapedp claims --verify {self.id}"
