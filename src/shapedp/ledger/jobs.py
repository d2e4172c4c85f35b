"""What is spent as a whole: a plan at its composed loss, a certificate at its proven claim."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from shapedp.accounting.bare import BareLoss
from shapedp.accounting.plan import Plan
from shapedp.accounting.repeat import Repetition
from shapedp.boundary.refusals import refusal
from shapedp.boundary.values import is_text
from shapedp.ledger.charges import pure_epsilon
from shapedp.ledger.errors import SpendRefusedError
from shapedp.ledger.filters import BasicFilter, Filter
from shapedp.ledger.fixed import Charge
from shapedp.mechanisms import Mechanism, verify
from shapedp.mechanisms.certify import certify_near, class_of, mechanism_from_json
from shapedp.numerics.outward import ROUNDINGS_8192
from shapedp.privacy import Certificate, Loss

_LEAST = ROUNDINGS_8192
_NAME = 200


@dataclass(frozen=True)
class Job:
    """A plan or a certificate as something that a ledger spends; its releases are made elsewhere in the block.

    `certificate` is computed here wherever the subject can be; `described` is what a certificate describes, None where
    it describes nothing that this library computes.
    """

    subject: Plan | Certificate
    loss: Loss
    certificate: Certificate
    described: Any

    def release(self, x: Any, **options: Any) -> Any:
        raise SpendRefusedError(refusal("ledger", "spent-as-a-whole", kind=type(self.subject).__name__))


def spendable(subject: Any, budget: Filter) -> Mechanism:
    """What is charged for `subject`: a mechanism is charged as it is."""
    if isinstance(subject, Plan):
        return _plan(subject, budget)
    if isinstance(subject, Certificate):
        return _certificate(subject)
    if isinstance(getattr(subject, "plan", None), Plan):
        raise TypeError(f"a ledger spends a {type(subject).__name__} by its plan, before the first step: pass .plan")
    if isinstance(getattr(subject, "privacy_", None), Certificate):
        raise TypeError(f"a ledger spends a fitted {type(subject).__name__} by its certificate: pass .privacy_")
    return subject  # type: ignore[no-any-return]


def price(job: Mechanism, budget: Filter) -> Charge:
    """The charge: of the mechanism that a certificate describes where the dataset's rule has a price for it, else of
    the bare claim."""
    if isinstance(job, Job) and job.described is not None:
        with suppress(SpendRefusedError):
            return budget.charge(replace(job, loss=job.described.loss))
    return budget.charge(job)


def voucher(job: Mechanism, vouching: bool, vouched_by: object) -> str | None:
    """The person who answers for what nobody can compute again; None where everything was computed.

    Raises SpendRefusedError where the dataset does not allow it, or nobody is named.
    """
    if not _stated(job):
        return None
    if not vouching:
        raise SpendRefusedError(refusal("ledger", "stated-only"))
    if not isinstance(vouched_by, str) or not vouched_by.strip() or len(vouched_by) > _NAME or not is_text(vouched_by):
        raise SpendRefusedError(refusal("ledger", "no-voucher", most=_NAME))
    return vouched_by


def _stated(subject: Any) -> bool:
    """Whether the guarantee rests on a loss that is only stated."""
    if isinstance(subject, Job):
        return _stated(subject.described)
    if isinstance(subject, Plan):
        return any(_stated(step.subject) for step in subject.steps)
    if isinstance(subject, Repetition):
        return _stated(subject.subject)
    return subject is None or isinstance(getattr(subject, "loss", subject), BareLoss)


def _certificate(stated: Certificate) -> Job:
    """The certificate computed again from what it describes. Whether its randomness was secure is taken as stated."""
    if stated.secure is False:
        raise SpendRefusedError("a fit with random_state= or rng= was handed to the ledger: it must not be published")
    loss = BareLoss(stated.epsilon, stated.delta, attained=False)
    if stated.subject is None or class_of(stated.subject.get("kind")) is None:
        return Job(stated, loss, stated, None)
    try:
        found = verify(stated)
    except ValueError as false:
        raise SpendRefusedError(f"the certificate is not that of the mechanism it describes: {false}") from false
    return Job(stated, loss, found, mechanism_from_json(dict(stated.subject)))


def _plan(plan: Plan, budget: Filter) -> Job:
    """The evidence kept of a plan is its certificate at the cap's delta; the charge does not depend on it."""
    if isinstance(budget, BasicFilter) and not pure_epsilon(plan.loss) < float("inf"):
        raise SpendRefusedError(refusal("ledger", "plan-makes-no-claim"))
    spent = max(plan.epsilon(budget.delta).upper, _LEAST)
    if not spent < float("inf"):
        raise SpendRefusedError(refusal("ledger", "no-finite-epsilon", delta=budget.delta, rule=budget.rule))
    return Job(plan, plan.loss, certify_near(plan, spent, budget.delta), plan)
