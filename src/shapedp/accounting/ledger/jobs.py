"""What is spent as a whole: a plan at its composed loss, a certificate at its proven claim."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shapedp.accounting.bare import BareLoss
from shapedp.accounting.ledger.charges import pure_epsilon
from shapedp.accounting.ledger.errors import SpendRefusedError
from shapedp.accounting.ledger.filters import BasicFilter, Filter
from shapedp.accounting.ledger.fixed import Charge
from shapedp.accounting.plan import Plan
from shapedp.mechanisms import Mechanism, certify, verify
from shapedp.mechanisms.certify import mechanism_from_json
from shapedp.privacy import Certificate, Loss

_LEAST = 2.0**-40
_ROOM = (1e-9, 1e-6, 1e-4, 1e-2)  # another grid may put delta a little higher


@dataclass(frozen=True)
class Job:
    """A plan or a certificate as something that a ledger spends; its releases are made elsewhere in the block."""

    subject: Plan | Certificate
    loss: Loss
    certificate: Certificate

    def release(self, x: Any, **options: Any) -> Any:
        raise SpendRefusedError(
            f"a {type(self.subject).__name__} is spent as a whole: run the training or the fit itself inside the block"
        )


def spendable(subject: Any, budget: Filter) -> Mechanism:
    """What is charged for `subject`: a mechanism is charged as it is."""
    if isinstance(subject, Plan):
        return _plan(subject, budget)
    if isinstance(subject, Certificate):
        if subject.secure is False:
            raise SpendRefusedError(
                "a fit with random_state= or rng= was handed to the ledger: it must not be published"
            )
        return Job(subject, BareLoss(subject.epsilon, subject.delta, attained=False), _again(subject))
    if isinstance(getattr(subject, "plan", None), Plan):
        raise TypeError(f"a ledger spends a {type(subject).__name__} by its plan, before the first step: pass .plan")
    if isinstance(getattr(subject, "privacy_", None), Certificate):
        raise TypeError(f"a ledger spends a fitted {type(subject).__name__} by its certificate: pass .privacy_")
    return subject  # type: ignore[no-any-return]


def price(job: Mechanism, budget: Filter) -> Charge:
    """The charge: of the mechanism that a certificate describes where the dataset's rule has a price for it, else of
    the bare claim."""
    if not isinstance(job, Job) or isinstance(job.subject, Plan) or isinstance(budget, BasicFilter):
        return budget.charge(job)
    described = mechanism_from_json(dict(job.subject.subject or {}))
    try:
        return budget.charge(Job(job.subject, described.loss, job.certificate))
    except SpendRefusedError:
        return budget.charge(job)


def _again(certificate: Certificate) -> Certificate:
    """The certificate computed again: a ledger takes no bracket, verdict or neighbour relation as stated."""
    try:
        return verify(certificate)
    except ValueError as refused:
        raise SpendRefusedError(f"a ledger spends only what it can compute again: {refused}") from refused


def _plan(plan: Plan, budget: Filter) -> Job:
    """The evidence kept of a plan is its certificate at the cap's delta; the charge does not depend on it."""
    if isinstance(budget, BasicFilter) and not pure_epsilon(plan.loss) < float("inf"):
        raise SpendRefusedError(
            "a basic ledger charges claims and a plan makes none: spend shapedp.certify(plan, epsilon=..., delta=...), "
            "or a training's .certificate"
        )
    spent = plan.epsilon(budget.delta).upper
    for room in _ROOM:
        found = certify(plan, epsilon=max(spent, _LEAST) * (1 + room), delta=budget.delta)
        if found.verdict == "certified":
            break
    return Job(plan, plan.loss, found)
