"""Questions that no single noise answers: sums, quantiles and unknown keys or bounds, under one certificate.

Every part that draws gets a share of epsilon. Sums get Laplace noise of their share, or the Gaussian noise that the
exact composition of all parts leaves, whichever errs less; where no noise is Gaussian, the shares add up to epsilon.

Guarantee: the certificate is that of a plan which is fixed before a row is read. Unknown keys and bounds are released
first, and what follows depends on them: its kind of noise is fixed, and its mu is at most the one planned. A pair that
dominates each step, whatever came before, dominates all of them together.
Reference: Zhu, Dong and Wang 2022, Theorem 10.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from shapedp.accounting.plan import Plan, Step
from shapedp.mechanisms.base import Rng
from shapedp.mechanisms.certify import certify
from shapedp.numerics.checks import probability
from shapedp.numerics.outward import BELOW_8192
from shapedp.privacy import Certificate, GaussianLoss, NotCertifiedError
from shapedp.private.answers import Answers, Noisy, answered
from shapedp.private.drawn import (
    Columns,
    How,
    group_columns,
    group_counts,
    in_all,
)
from shapedp.private.dropped import Dropped, DroppedRows
from shapedp.private.engine import counted
from shapedp.private.layout import Layout, layout
from shapedp.private.leftover import check_budget, left_for_sums
from shapedp.private.planned import Planned
from shapedp.private.questions import DRAWN, SUMMED, Aggregate, Question
from shapedp.private.several import AnyPart, PrefixPart, Unit, units_of
from shapedp.private.table import PrivateTable
from shapedp.private.unknown import First, firsts_of, unknown_of
from shapedp.workloads import AnswerMechanism, WorkloadMechanism
from shapedp.workloads.calibration import LEAST, agreeing


@dataclass(frozen=True)
class Share:
    """What a part of the budget is spent on."""

    what: str
    share: float | None  # of epsilon; None for sums and prefix counts with Gaussian noise, which share the rest
    epsilon: float  # that this part alone has, at the delta of the claim


@dataclass(frozen=True, eq=False)
class MixedRelease:
    """What was released of all parts."""

    certificate: Certificate
    sums: Noisy | None
    found: Mapping[str, Any]  # the keys and bounds that were unknown
    dropped: Dropped | None = None


@dataclass(frozen=True, eq=False)
class MixedPlan(Planned):
    """Questions to a private table whose answers come from several mechanisms. Made by `PrivateTable.plan`.

    Example:
        >>> import pandas as pd
        >>> import shapedp as sdp
        >>> t = sdp.table(pd.DataFrame({"hours": [1, 2, 3]}), person=None, bounds={"hours": (0, 10)})
        >>> plan = t.plan(t.median("hours"), epsilon=1.0, delta=0.0)
        >>> plan.certificate.verdict, [one.what for one in plan.shares]
        ('certified', ['median(hours)'])
    """

    firsts: tuple[First, ...] = field(init=False, repr=False)
    drawn: tuple[AnyPart, ...] = field(init=False, repr=False)
    mu: float = field(init=False, repr=False)  # of Gaussian noise of the sums; 0 where there is none
    sums: WorkloadMechanism | AnswerMechanism | None = field(init=False, repr=False)  # known where nothing is unknown
    lost: DroppedRows | None = field(init=False, repr=False)

    def _compute(self) -> None:
        if self.noise not in (LEAST, "gaussian"):
            raise ValueError(
                "noise= is 'least' (Laplace or Gaussian) or 'gaussian' beside quantiles and what is unknown"
            )
        if self.dropped is not None:
            _check_dropped(self.table, self.dropped, self.first)
        self._keep(**parted(self))

    @cached_property
    def plan(self) -> Plan:
        """Every mechanism that is released, as the certificate describes it."""
        steps = [Step(one) for first in self.firsts for one in first.mechanisms]
        steps += [Step(one) for one in (self.lost.mechanisms if self.lost is not None else ())]
        steps += [Step(one) for part in self.drawn for one in part.mechanisms]
        if self.sums is not None or self.mu:
            steps.append(Step(self.sums or GaussianLoss(self.mu, 0.0, adjacency=self.adjacency)))
        return Plan(tuple(steps))

    @cached_property
    def certificate(self) -> Certificate:
        """What all answers together are worth."""
        return replace(certify(self.plan, epsilon=self.epsilon, delta=self.delta), scope=self.scope)

    @property
    def shares(self) -> tuple[Share, ...]:
        """What is spent on which part."""
        before = (*self.firsts, *([] if self.lost is None else [self.lost]))
        found = [(first.what, sum(one.epsilon for one in first.mechanisms)) for first in before]
        pure = [part for part in self.drawn if not isinstance(part, PrefixPart)]
        found += [(part.what, sum(one.epsilon for one in part.mechanisms)) for part in pure]
        listed = [Share(what, spent / self.epsilon, spent) for what, spent in found]
        noisy = [(part.what, part.mu) for part in self.drawn if isinstance(part, PrefixPart)]
        for what, mu in (*noisy, ("sums", self.mu)):
            if mu:
                listed.append(Share(what, None, GaussianLoss(mu).epsilon(self.delta).upper))
        if self.sums is not None and not self.mu:
            listed.append(Share("sums", self.sums.epsilon / self.epsilon, self.sums.epsilon))
        return tuple(listed)

    def release(self, *, ledger: Any = None, dataset: str | None = None, rng: Rng = None) -> Answers:
        """Aggregate the rows, draw, answer. With a ledger the budget of `dataset` is spent, before a row is read."""
        check_budget(ledger, dataset, rng)
        self.certificate.require()
        if ledger is None:
            return self._released(rng)
        with ledger.stating(person=self.table.person).spend(dataset, self.certificate) as spend:
            return replace(self._released(None), spend=spend)

    def _released(self, rng: Rng) -> Answers:
        table, questions, found = self.table, self.questions, dict[str, Any]()
        for first in self.firsts:
            table, questions = first.released(table, questions, rng, found)
        sums, made = None, None
        if summed := _summed(questions):
            made = layout(table, summed)
            noise = self.sums or self._noise(made)
            sums = noise.release(counted(table, made, noise.needed()), rng=rng)
        drawn: dict[tuple[int, str], Columns] = {}
        for part in self.drawn:
            question = questions[part.question]
            if not _empty(question):
                columns = part.columns(group_counts(part, table, question), table, rng)
                drawn |= {(part.question, name): columns for name in part.names}
        dropped = None if self.lost is None else self._dropped(table, questions, made, rng)
        release = MixedRelease(self.certificate.with_randomness(rng is None), sums, found, dropped)
        return self._answers(table, questions, release, made, drawn, self.confidence)

    def _dropped(self, table: PrivateTable, questions: Sequence[Question], made: Layout | None, rng: Rng) -> Dropped:
        """Of the rows that the sums look at; where none are asked, of those that the groups of the draws do."""
        assert self.lost is not None
        if made is None:
            table = in_all(table)
            groups = [replace(one, asked={"n": Aggregate("count")}) for one in questions if not _empty(one)]
            made = layout(table, groups) if groups else None
        return self.lost.released(table, made, rng)

    def _noise(self, made: Layout) -> WorkloadMechanism:
        """The noise of sums whose groups or bounds were unknown: Gaussian, and never more than was planned is spent."""
        found = _noise(made, self.mu, self.delta, self.options)
        if not found.loss.mu <= self.mu:
            raise AssertionError("the noise of sums is below what was planned")
        return found

    def _answers(
        self,
        table: PrivateTable,
        questions: Sequence[Question],
        release: MixedRelease,
        made: Layout | None,
        drawn: Mapping[tuple[int, str], Columns],
        confidence: float,
    ) -> Answers:
        """The tables of all questions; ends that were drawn hold for the confidence that was planned, or less."""
        if probability("confidence", confidence) > self.confidence and self.drawn:
            raise ValueError(
                f"intervals of quantiles were drawn for confidence {self.confidence:g}: ask(confidence=...)"
            )
        rows: list[Mapping[str, list[Any]]] = []
        if release.sums is not None and made is not None:
            rows = list(answered(_summed(questions), made, release.sums, table.measures, confidence).tables)
        tables = [_table(k, question, rows, drawn) for k, question in enumerate(questions)]
        return Answers(
            tuple(questions),
            tuple(tables),
            release,
            confidence,
            lambda level: self._answers(table, questions, release, made, drawn, level),
            dropped=release.dropped,
        )


def _table(
    place: int, question: Question, rows: list[Mapping[str, list[Any]]], drawn: Mapping[tuple[int, str], Columns]
) -> Columns:
    """One question's columns in the order in which they were asked; takes the next of `rows` where it has sums."""
    empty = _empty(question)
    own = rows.pop(0) if not empty and _sums_of(question) else {}
    found: Columns = {} if empty else group_columns(question.by, _repeat(question))
    if empty:
        found = {one.name: [] for one in question.by}
    for name, ask in question.asked.items():
        columns = drawn.get((place, name), own)
        found |= {one: [] if empty else columns[one] for one in ask.columns(name)}
    return found


def _empty(question: Question) -> bool:
    """Whether a question has no group, since no key was published."""
    return any(not one.size for one in question.by)


def _repeat(question: Question) -> int:
    return max((one.k or 1) for one in question.asked.values())


def _sums_of(question: Question) -> dict[str, Aggregate]:
    return {name: one for name, one in question.asked.items() if one.verb in SUMMED}


def _summed(questions: Sequence[Question]) -> list[Question]:
    """The questions with what is computed from sums alone."""
    return [replace(one, asked=_sums_of(one)) for one in questions if _sums_of(one) and not _empty(one)]


def _noise(made: Layout, mu: float, delta: float, options: Mapping[str, Any]) -> WorkloadMechanism:
    """Gaussian noise for the sums, of at most this mu."""
    return _claimed(made, GaussianLoss(mu * BELOW_8192).epsilon(delta).lower * BELOW_8192, delta, options)


def _claimed(made: Layout, epsilon: float, delta: float, options: Mapping[str, Any]) -> WorkloadMechanism:
    """Gaussian noise for the sums."""
    found = made.workload.calibrate(epsilon=epsilon, delta=delta, noise="gaussian", **options)
    assert isinstance(found, WorkloadMechanism)
    return found


def is_mixed(table: PrivateTable, questions: Sequence[Question]) -> bool:
    """Whether sums alone do not answer these questions."""
    drawn = any(one.verb in DRAWN for question in questions for one in question.asked.values())
    return drawn or any(unknown_of(table, questions))


def parted(plan: MixedPlan) -> dict[str, Any]:
    """The noise of questions of which some are drawn, of which keys or bounds are unknown, or with rows dropped."""
    table, questions, epsilon, delta = plan.table, plan.questions, plan.epsilon, plan.delta
    names = unknown_of(table, questions)
    places = [
        (k, name, one)
        for k, question in enumerate(questions)
        for name, one in question.asked.items()
        if one.verb in DRAWN
    ]
    sums = sum(len(_sums_of(question)) for question in questions)
    if not delta and (names[0] or (sums and names[1])):
        raise ValueError("unknown keys, and sums beside unknown bounds, need delta > 0: claim one, such as 1e-6")
    if not delta and sums and plan.noise != LEAST:
        raise ValueError("Gaussian noise needs delta > 0: claim a small one, such as 1e-6, or leave out noise=")
    unknown = firsts_of(table, names, epsilon * plan.first, delta, plan.adjacency)
    lost = None if plan.dropped is None else DroppedRows.of(table, epsilon * plan.dropped, plan.adjacency)
    left = epsilon * (1 - (plan.first if unknown else 0.0) - (plan.dropped or 0.0))
    units = units_of(places, table, questions)
    each = left / (sum(unit.weight for unit in units) + sums)
    before = (*unknown, *([] if lost is None else [lost]))
    shares = _Parted(plan, tuple(units), before, each, sums)
    made = layout(table, _summed(questions)) if sums and not unknown else None
    plain = shares.plain(made) if made is not None and plan.noise == LEAST else None
    ways = [] if plain is None else [shares.beside(None, plain)]
    if plain is None or shares.may_be_less(made, plain):
        ways.append(shares.beside(made, None))
    found = min(ways, key=lambda one: one.cost)
    return {"firsts": unknown, "drawn": found.drawn, "mu": found.mu, "sums": found.noise, "lost": lost}


def _check_dropped(table: PrivateTable, share: float, first: float) -> None:
    if table.person is None:
        raise ValueError("dropped= asks what the bounds per person drop: name the column of persons with person=")
    if not (share > 0 and share + first < 1):
        raise ValueError("dropped, the share of epsilon for the rows dropped, must be above 0, and below 1 with first")


class _Found(NamedTuple):
    """The parts that are drawn, the noise of sums, and what both cost: a product of variances, up to a factor."""

    drawn: tuple[AnyPart, ...]
    mu: float
    noise: WorkloadMechanism | AnswerMechanism | None
    cost: float


@dataclass(frozen=True, eq=False)
class _Parted:
    """How epsilon is parted: `each` for every answer that is drawn, so many times that for `sums`."""

    claim: Planned
    units: tuple[Unit, ...]
    before: tuple[Any, ...]
    each: float
    sums: int

    def plain(self, made: Layout) -> AnswerMechanism | None:
        """Laplace noise of the sums' share of epsilon; None where it does not serve, and answers would disagree."""
        how = {**self.claim.options, "noise": LEAST if not self.claim.delta or agreeing(made.workload) else "cells"}
        try:
            found = made.workload.calibrate(epsilon=self.each * self.sums * BELOW_8192, delta=0.0, **how)
        except (ValueError, NotCertifiedError):
            if not self.claim.delta:
                raise
            return None
        return found if isinstance(found, AnswerMechanism) else None

    def may_be_less(self, made: Layout | None, plain: AnswerMechanism) -> bool:
        """Whether Gaussian noise could err less, with all of the claim to itself."""
        if not self.claim.delta or made is None:
            return False
        alone = _claimed(made, self.claim.epsilon, self.claim.delta, self.claim.options)
        return alone.weighted_error < plain.weighted_error

    def beside(self, made: Layout | None, plain: AnswerMechanism | None) -> _Found:
        """All parts, the sums with Gaussian noise of what is left, or with this `plain` noise."""
        adjacency, each = self.claim.adjacency, self.each
        noisy = [unit.way(each, self.claim.delta, adjacency) == "prefixes" for unit in self.units]
        gaussian = self.sums if plain is None else 0
        shared = gaussian + sum(unit.weight for unit, own in zip(self.units, noisy, strict=True) if own)
        how = How(each, "exponential" if shared else "permute-and-flip", adjacency, self.claim.confidence)
        pure = {
            k: unit.parts(self.claim.table, how, self.claim.delta) for k, unit in enumerate(self.units) if not noisy[k]
        }
        parts = (*self.before, *(part for parts in pure.values() for part in parts))
        pieces = [one for part in parts for one in part.mechanisms] + ([] if plain is None else [plain])
        whole = left_for_sums(pieces, self.claim.epsilon, self.claim.delta, each * shared) if shared else 0.0
        mu = whole * math.sqrt(gaussian / shared) if gaussian else 0.0
        noise = plain if made is None or not mu else _noise(made, mu, self.claim.delta, self.claim.options)

        def prefixes(unit: Unit) -> PrefixPart:
            own = whole * math.sqrt(unit.weight / shared)
            return unit.prefixes(own, self.claim)

        drawn = tuple(part for k, unit in enumerate(self.units) for part in pure.get(k) or [prefixes(unit)])
        cost = 1.0 if noise is None else noise.weighted_error
        return _Found(drawn, mu, noise, cost / (whole**2 if any(noisy) else 1.0) * (shared if any(noisy) else 1.0))
