"""What every plan of a private table is made of: the table, the questions and the claim. All else is computed of them.

Guarantee: a plan holds no noise that was not computed of its own table. One with another table, other questions or
another claim (`dataclasses.replace`) is planned anew; its noise cannot be handed in.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from shapedp.numerics.checks import count, entries, one_of, positive, probability
from shapedp.private.questions import Question
from shapedp.private.table import PrivateTable
from shapedp.sensitivity import ADJACENCIES, Adjacency
from shapedp.workloads.calibration import LEAST, NOISES

BIAS = (
    "Rows beyond a person's bound, values beyond their bounds and groups outside the domains are cut: intervals hold "
    "for what is left, and leave out that bias."
)
FIRST = 0.2  # share of epsilon for unknown keys and bounds
RECORDS = 1 << 31  # with sums of measures, as many as Laplace noise is added to exactly


@dataclass(frozen=True, eq=False)
class Planned(ABC):
    """Questions to one private table under one claim; a subclass computes their noise, and answers them."""

    table: PrivateTable
    questions: tuple[Question, ...]
    _: KW_ONLY
    epsilon: float
    delta: float
    adjacency: Adjacency = "add-remove"
    records: int = RECORDS
    gap: float = 1e-4
    first: float = FIRST
    confidence: float = 0.95
    noise: str = LEAST
    dropped: float | None = None

    def __post_init__(self) -> None:
        made: dict[str, Any] = {
            "questions": checked(self.table, self.questions),
            "epsilon": positive("epsilon", self.epsilon),
            "delta": probability("delta", self.delta),
            "adjacency": one_of("adjacency", self.adjacency, ADJACENCIES),
            "records": count("records", self.records),
            "gap": positive("gap", self.gap),
            "first": probability("first", self.first),
            "confidence": probability("confidence", self.confidence),
            "noise": one_of("noise", self.noise, (LEAST, *NOISES)),
            "dropped": None if self.dropped is None else probability("dropped", self.dropped),
        }
        self._keep(**made)
        if not 0 < self.confidence < 1 or not 0 < self.first < 1:
            raise ValueError("confidence, and first, the share of unknown keys and bounds, must lie between 0 and 1")
        self._compute()

    @abstractmethod
    def _compute(self) -> None:
        """Keep the noise, computed of the fields above alone."""

    def _keep(self, **made: Any) -> None:
        for name, value in made.items():
            object.__setattr__(self, name, value)

    @property
    def options(self) -> dict[str, Any]:
        """How noise is calibrated, besides the claim itself."""
        return {"adjacency": self.adjacency, "records": self.records, "gap": self.gap}

    @property
    def calibrated(self) -> dict[str, Any]:
        """The same with delta."""
        return {**self.options, "delta": self.delta}

    @property
    def scope(self) -> str:
        """Who a person is, and what the intervals leave out."""
        return f"{self.table.sentence} {BIAS}"


def checked(table: PrivateTable, questions: Sequence[Question]) -> tuple[Question, ...]:
    """The questions, all made from this table, possibly with more conditions."""
    asked: tuple[Any, ...] = entries("questions", questions)
    if not asked or any(not isinstance(one, Question) for one in asked):
        raise TypeError("ask takes questions, such as t.count() or t.group_by('sex').mean('hours')")
    for one in asked:
        one.check()
        if not one.table.like(table):
            raise ValueError("questions that are asked together must be made from one table")
    conditions = {repr(one) for one in table.conditions}
    if any(not conditions <= {repr(limit) for limit in one.table.conditions} for one in asked):
        raise ValueError("a question was made before this table was filtered by where(...): ask the table it came from")
    if table.groups:
        raise ValueError("ask goes to the table: put group_by(...) into the questions")
    return asked
