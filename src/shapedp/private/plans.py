"""The plan of some questions: their noise, known before any row is read; then the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from shapedp.mechanisms.base import Rng
from shapedp.numerics.checks import one_of, probability
from shapedp.private.answers import Answers, Noisy, answered
from shapedp.private.engine import counted
from shapedp.private.layout import Layout, layout
from shapedp.private.leftover import check_budget
from shapedp.private.mixed import BIAS, FIRST, MixedPlan, is_mixed, mixed_plan
from shapedp.private.questions import Question
from shapedp.private.table import PrivateTable
from shapedp.workloads import AnswerMechanism, WorkloadMechanism
from shapedp.workloads.calibration import LEAST, NOISES
from shapedp.workloads.counting import Counted

RECORDS = 1 << 31  # with sums of measures, as many as Laplace noise is added to exactly


@dataclass(frozen=True, eq=False)
class TablePlan:
    """Questions to a private table, and the noise that answers them. Made by `PrivateTable.plan`.

    Example:
        >>> import pandas as pd
        >>> import shapedp as sdp
        >>> t = sdp.table(pd.DataFrame({"sex": ["F", "M"]}), person=None, domains={"sex": ["F", "M"]})
        >>> plan = t.plan(t.group_by("sex").count(), epsilon=1.0, delta=1e-6)
        >>> plan.mechanism.standard_error("sex").round(2)
        array([1.36, 1.36])
    """

    table: PrivateTable
    questions: tuple[Question, ...]
    layout: Layout
    mechanism: WorkloadMechanism | AnswerMechanism
    confidence: float = 0.95

    @property
    def scope(self) -> str:
        """Who a person is, and what the intervals leave out."""
        return f"{self.table.sentence} {BIAS}"

    def release(self, *, ledger: Any = None, dataset: str | None = None, rng: Rng = None) -> Answers:
        """Aggregate the rows, add noise, answer. With a ledger the budget of `dataset` is spent."""
        check_budget(ledger, dataset, rng)
        if ledger is None:
            return self.answers(self.mechanism.release(self.exact_tables(), rng=rng))
        spend, tables = self.spend(ledger, dataset)
        with spend:
            return replace(self.answers(spend.release(tables, rng=rng)), spend=spend)

    def spend(self, ledger: Any, dataset: Any) -> tuple[Any, Counted]:
        """A spend of a ledger that is yet to be entered, and the tables to release in it, WITHOUT noise.

        What the budget does not cover is refused before a row is read.
        """
        stated = ledger.stating(person=self.table.person)
        spend = stated.spend(dataset, self.mechanism)
        if ledger.affords(dataset, self.mechanism) == 0:
            with spend:
                pass  # refused, and says why
        return spend, self.exact_tables()

    def exact_tables(self) -> Counted:
        """The aggregated tables WITHOUT noise: they go into a release, not out."""
        self.mechanism.certificate.require()
        return counted(self.table, self.layout, self.mechanism.needed())

    def answers(self, release: Noisy, confidence: float | None = None) -> Answers:
        """The answers in a release of `mechanism` from `exact_tables`, with intervals of this confidence."""
        stated = replace(release, certificate=replace(release.certificate, scope=self.scope))
        return answered(self.questions, self.layout, stated, self.table.measures, confidence or self.confidence)


def planned(
    table: PrivateTable,
    questions: Sequence[Question],
    *,
    epsilon: float,
    delta: float,
    adjacency: Any = "add-remove",
    records: int = RECORDS,
    gap: float = 1e-4,
    first: float = FIRST,
    confidence: float = 0.95,
    noise: str = LEAST,
    dropped: float | None = None,
) -> TablePlan | MixedPlan:
    """The plan of questions to one table, possibly with different conditions."""
    if not questions or any(not isinstance(one, Question) for one in questions):
        raise TypeError("ask takes questions, such as t.count() or t.group_by('sex').mean('hours')")
    for one in questions:
        if one.table.source is not table.source or one.table.measures is not table.measures:
            raise ValueError("questions that are asked together must be made from one table")
    conditions = {repr(one) for one in table.conditions}
    if any(not conditions <= {repr(limit) for limit in one.table.conditions} for one in questions):
        raise ValueError("a question was made before this table was filtered by where(...): ask the table it came from")
    if table.groups:
        raise ValueError("ask goes to the table: put group_by(...) into the questions")
    if not 0 < probability("confidence", confidence) < 1 or not 0 < probability("first", first) < 1:
        raise ValueError("confidence, and first, the share of unknown keys and bounds, must lie between 0 and 1")
    if dropped is not None:
        _check_dropped(table, probability("dropped", dropped), first)
    options = {"adjacency": adjacency, "records": records, "gap": gap}
    if dropped is not None or is_mixed(table, questions):
        if one_of("noise", noise, (LEAST, *NOISES)) not in (LEAST, "gaussian"):
            raise ValueError(
                "noise= is 'least' (Laplace or Gaussian) or 'gaussian' beside quantiles and what is unknown"
            )
        claim: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "noise": noise}
        return mixed_plan(table, questions, options, **claim, first=first, confidence=confidence, dropped=dropped)
    made = layout(table, questions)
    mechanism = made.workload.calibrate(epsilon=epsilon, delta=delta, noise=noise, **options)
    assert isinstance(mechanism, WorkloadMechanism | AnswerMechanism)
    return TablePlan(table, tuple(questions), made, mechanism, confidence)


def _check_dropped(table: PrivateTable, share: float, first: float) -> None:
    if table.person is None:
        raise ValueError("dropped= asks what the bounds per person drop: name the column of persons with person=")
    if not (share > 0 and share + first < 1):
        raise ValueError("dropped, the share of epsilon for the rows dropped, must be above 0, and below 1 with first")
