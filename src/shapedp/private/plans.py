"""The plan of some questions: their noise, known before any row is read; then the answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from shapedp.mechanisms.base import Rng
from shapedp.private.answers import Answers, Noisy, answered
from shapedp.private.engine import counted
from shapedp.private.layout import Layout, layout
from shapedp.private.leftover import check_budget
from shapedp.private.mixed import MixedPlan, is_mixed
from shapedp.private.planned import Planned, checked
from shapedp.private.questions import Question
from shapedp.private.table import PrivateTable
from shapedp.workloads import AnswerMechanism, WorkloadMechanism
from shapedp.workloads.counting import Counted


@dataclass(frozen=True, eq=False)
class TablePlan(Planned):
    """Questions to a private table, and the noise that answers them. Made by `PrivateTable.plan`.

    Example:
        >>> import pandas as pd
        >>> import shapedp as sdp
        >>> t = sdp.table(pd.DataFrame({"sex": ["F", "M"]}), person=None, domains={"sex": ["F", "M"]})
        >>> plan = t.plan(t.group_by("sex").count(), epsilon=1.0, delta=1e-6)
        >>> plan.mechanism.standard_error("sex").round(2)
        array([1.36, 1.36])
    """

    layout: Layout = field(init=False, repr=False)
    mechanism: WorkloadMechanism | AnswerMechanism = field(init=False, repr=False)

    def _compute(self) -> None:
        if self.dropped is not None or is_mixed(self.table, self.questions):
            raise ValueError("a TablePlan answers counts, sums, means and variances: plan with PrivateTable.plan")
        made = layout(self.table, self.questions)
        options = {**self.options, "noise": self.noise}
        self._keep(layout=made, mechanism=made.workload.calibrate(epsilon=self.epsilon, delta=self.delta, **options))

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
        if release.mechanism is not self.mechanism:
            raise ValueError("this is a release of another plan's mechanism: answers come from that plan")
        if release.certificate.scope != self.table.sentence:
            raise ValueError("what was released was not counted by this plan's table: release its exact_tables()")
        stated = replace(release, certificate=replace(release.certificate, scope=self.scope))
        return answered(self.questions, self.layout, stated, self.table.measures, confidence or self.confidence)


def planned(
    table: PrivateTable, questions: Sequence[Question], *, dropped: float | None = None, **claim: Any
) -> TablePlan | MixedPlan:
    """The plan of questions to one table, possibly with different conditions."""
    mixed = is_mixed(table, checked(table, questions)) or dropped is not None
    return (MixedPlan if mixed else TablePlan)(table, tuple(questions), dropped=dropped, **claim)
