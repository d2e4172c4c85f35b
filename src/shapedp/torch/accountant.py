"""The account of a training: steps taken, what they cost, and what may still be taken."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from shapedp.accounting import Plan, Step
from shapedp.boundary.values import boolean, plain
from shapedp.mechanisms import Additive, certify
from shapedp.mechanisms.certify import certify_near
from shapedp.numerics.checks import count
from shapedp.privacy import Bracket, Certificate
from shapedp.privacy.assumptions import known
from shapedp.torch.journal import Journal
from shapedp.torch.refusals import refusal

SCHEMA = 2
PERSONS = "persons"  # the premise of steps whose unit of privacy is a person with all records
SCOPE = (
    "The claim is per person: one person is one owner with all their records, however many, who joins or leaves. It "
    "says nothing about a change in a part of them."
)


class BudgetError(RuntimeError):
    """A further step would exceed the claim of the training; nothing was released.

    Examples
    --------
    >>> import shapedp as sdp
    >>> from shapedp.torch import Account
    >>> account = Account(sdp.accounting.Step(sdp.privacy.GaussianLoss(1.0)), 4.0, 1e-3, limit=1)
    >>> account.charge()
    >>> account.charge()
    Traceback (most recent call last):
        ...
    shapedp.torch.accountant.BudgetError: ...
    """


@dataclass(eq=False)
class Account:
    """The steps of a training, counted and charged against its claim.

    Parameters
    ----------
    step : the mechanism of one step and its sampling rate.
    epsilon, delta : the claim, or None where none was made.
    limit : the number of steps the claim allows, or None.
    journal : a file that grows by one byte before each release, so that a killed run is charged for what it started.
    taken, past : steps that this run, and runs before it, have taken.
    secure : whether the noise is drawn from secure randomness.
    note : what the certificate says of its scope beside.

    Guarantee: what was charged stays charged. Steps are told apart by their `identity`, in a journal and a checkpoint
    as well; those of another identity are composed, never renamed.

    Examples
    --------
    >>> import shapedp as sdp
    >>> from shapedp.torch import Account
    >>> account = Account(sdp.accounting.Step(sdp.privacy.GaussianLoss(1.0)), None, 1e-5, None)
    >>> account.charge()
    >>> account.taken, account.spent().upper < 5
    (1, True)
    """

    step: Step
    epsilon: float | None
    delta: float | None
    limit: int | None
    journal: Path | None = None
    taken: int = 0
    past: tuple[Step, ...] = ()
    secure: bool = True
    note: str = ""
    _spent: dict[int, Bracket] = field(default_factory=dict)
    _certified: dict[Any, Certificate] = field(default_factory=dict, repr=False)  # without scope and randomness
    _fresh: bool = True  # neither charged nor loaded yet

    def __post_init__(self) -> None:
        plain(self)
        if not isinstance(self.step, Step):
            raise TypeError("step must be a Step, the training step that is counted")
        self.taken = count("taken", self.taken, least=0)
        self._journal = None
        if self.journal is not None:
            self._journal = Journal(self.journal, identity(self.step), _premises(self.step))
            self._rest_on(self._journal.premises)
        self.taken = max(self.taken, self._journalled())

    def charge(self) -> None:
        """Count one step; raises before anything is released if the claim does not allow it."""
        if self._journal is None:
            self._allowed(self.taken)
            taken = self.taken + 1
        else:
            taken = self._journal.start(self.taken, self._allowed)
        self.taken, self._fresh = taken, False

    def _allowed(self, taken: int) -> None:
        """Raises unless the claim allows one more step after so many."""
        if self.limit is not None and taken >= self.limit:
            raise BudgetError(refusal("steps-used-up", limit=self.limit, epsilon=self.epsilon, delta=self.delta))

    def _journalled(self) -> int:
        return 0 if self._journal is None else self._journal.steps

    def _rest_on(self, premises: Iterable[str]) -> None:
        """Earlier steps of this identity count as this run's: what they rest on is assumed of all."""
        together = known((*_premises(self.step), *premises))
        if together != _premises(self.step):
            self.step = replace(self.step, subject=replace(self.step.subject, premises=together))

    @property
    def steps(self) -> tuple[Step, ...]:
        """What was charged so far, by this run and those before it."""
        return (*self.past, replace(self.step, count=self.taken)) if self.taken else self.past

    def plan(self) -> Plan:
        """The steps taken so far as a plan (all planned ones before the first)."""
        if not self.steps and not self.limit:
            raise ValueError(refusal("steps-not-planned"))
        return Plan(self.steps if self.taken or not self.limit else (*self.past, replace(self.step, count=self.limit)))

    def spent(self, delta: float | None = None) -> Bracket:
        """The epsilon of the steps taken so far, at the claim's delta unless another one is given."""
        delta = self._delta(delta)
        if not self.steps:
            return Bracket(0.0, 0.0)
        if delta != self.delta:
            return Plan(self.steps).epsilon(delta)
        if self.taken not in self._spent:
            plan = Plan(self.steps)
            self._spent = {self.taken: plan.epsilon(delta)}
            if self.epsilon is None and (self.taken or not self.limit):  # what `certificate` asks
                self._certified = {self._asked(False): certify_near(plan, self._spent[self.taken].upper, delta)}
        return self._spent[self.taken]

    def _delta(self, delta: float | None) -> float:
        found = self.delta if delta is None else delta
        if found is None:
            raise ValueError("no delta was named: pass one here, or to make_private")
        return found

    def certificate(self, early: bool = False) -> Certificate:
        """The claim against the steps taken (against all planned ones before the first).

        Without a claim of its own what is claimed is the epsilon spent, rounded up. With `early` the first step is
        tried alone before: a claim that it breaks is broken by more of them, and the bracket is then that of one step.
        """
        early = boolean("early", early) and self.epsilon is not None
        key = self._asked(early)
        if key not in self._certified:
            self._certified = {key: self._computed(early)}
        found = self._certified[key]
        scope = (SCOPE if PERSONS in _premises(self.step) else "", self.note)
        found = replace(found, scope=" ".join(filter(None, scope))) if any(scope) else found
        return found.with_randomness(self.secure) if self.steps else found

    def _asked(self, early: bool) -> Any:
        """All that a certificate depends on, and that may change without a load."""
        return self.taken, early, self.epsilon, self.delta, self.limit, self.step, self.past

    def _computed(self, early: bool) -> Certificate:
        """The certificate without its scope and its randomness."""
        delta = self._delta(None)
        plan = self.plan()
        if self.epsilon is not None:
            first = Plan((*self.past, replace(self.step, count=1)))
            found = certify(first if early else plan, epsilon=self.epsilon, delta=delta)
            steps = sum(step.count for step in plan.steps)
            if early and found.verdict != "refuted":
                found = certify(plan, epsilon=self.epsilon, delta=delta)
            elif early and steps > 1:
                found = replace(found, reason=f"the bracket is that of one step alone; all {steps} give away more")
        else:
            found = certify_near(plan, plan.epsilon(delta).upper, delta)
        return found

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must keep."""
        return {
            "schema": SCHEMA,
            "step": identity(self.step),
            "taken": self.taken,
            "steps": Plan(self.steps).to_json() if self.steps else None,
            "secure": self.secure,
            "journal": None if self._journal is None else self._journal.name,
        }

    def load_state_dict(self, state: Any) -> None:
        """Take over the steps of an earlier run, before the first step of this one.

        Refuses if together with the planned ones they break the claim. A journal that the earlier run kept counts its
        steps already; those of any other are added.
        """
        steps = steps_of(state)
        if not self._fresh:
            raise ValueError(refusal("state-too-late"))
        same_unit((self.step, *steps))
        own = [step for step in steps if identity(step) == identity(self.step)]
        past = tuple(step for step in steps if step not in own)
        taken = sum(step.count for step in own)
        Plan((*past, self.step))  # refuses steps under other neighbours
        self._rest_on(name for step in own for name in _premises(step))
        if self.epsilon is not None and self.delta is not None and self.limit is not None and past:
            together = Plan((*past, replace(self.step, count=self.limit)))
            certify(together, epsilon=self.epsilon, delta=self.delta).require()
        known = self._journal is not None and state["journal"] == self._journal.name
        self.taken = max(taken, self._journalled()) if known else taken + self._journalled()
        self.past, self._fresh = (*self.past, *past), not steps
        self.secure = self.secure and bool(state["secure"])
        self._spent.clear()
        self._certified.clear()

    def take_over(self, plan: Plan) -> None:
        """Count the steps of a plan that others have run on the same records, as `load_state_dict` does."""
        state = {"schema": SCHEMA, "step": identity(self.step), "taken": 0, "steps": plan.to_json(), "secure": False}
        self.load_state_dict(state | {"journal": None})


def _premises(step: Step) -> tuple[str, ...]:
    """What the step's mechanism assumes."""
    return step.subject.premises if isinstance(step.subject, Additive) else ()


def same_unit(steps: Iterable[Step]) -> None:
    """Raise where some steps protect persons with all their records and others single records."""
    if len({PERSONS in _premises(step) for step in steps}) > 1:
        raise ValueError(refusal("another-unit"))


def identity(step: Step) -> str:
    """A name for the step's mechanism, sampling and unit, whatever its count and what else is assumed about it."""
    data = step.to_json() | {"count": 1}
    premises = data["subject"].get("mechanism", {}).pop("premises", ())
    data |= {"unit": PERSONS} if PERSONS in premises else {}
    written = json.dumps(data, sort_keys=True)
    return hashlib.sha256(written.encode()).hexdigest()[:32]


def steps_of(state: Any) -> tuple[Step, ...]:
    """The steps that an account's state holds, if it is one and agrees with itself."""
    if not isinstance(state, dict) or state.get("schema") != SCHEMA:
        raise ValueError("not the state of an account, or of another schema: pass what state_dict returned")
    steps = () if state["steps"] is None else Plan.from_json(state["steps"]).steps
    if sum(step.count for step in steps if identity(step) == state["step"]) != state["taken"]:
        raise ValueError("the state contradicts itself about the number of steps: pass what state_dict returned")
    return steps
