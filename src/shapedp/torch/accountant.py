"""The account of a training: steps taken, what they cost, and what may still be taken."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shapedp.accounting import Plan, Step
from shapedp.mechanisms import certify
from shapedp.privacy import Bracket, Certificate

SCHEMA = 1


class BudgetError(RuntimeError):
    """A further step would exceed the claim the training was planned for."""


@dataclass(eq=False)
class Account:
    """Steps of one mechanism under a claim, after those of earlier runs (`past`).

    `limit` is the number of steps the claim allows, None where no claim was made. With a `journal` (a file that grows
    by one byte before each release) a killed run is charged for every step it started.
    """

    step: Step
    epsilon: float | None
    delta: float | None
    limit: int | None
    journal: Path | None = None
    taken: int = 0
    past: tuple[Step, ...] = ()
    secure: bool = True
    _spent: dict[int, Bracket] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.journal is not None:
            self.taken = max(self.taken, self._journalled())

    def charge(self) -> None:
        """Count one step; raises before anything is released if the claim does not allow it."""
        if self.limit is not None and self.taken >= self.limit:
            raise BudgetError(
                f"all {self.limit} planned steps have been taken: a further one would exceed epsilon = "
                f"{self.epsilon:g} at delta = {self.delta:g}; plan for more epochs, or train on with a new claim"
            )
        self.taken += 1
        if self.journal is not None:
            with open(self.journal, "ab", buffering=0) as file:
                file.write(b"." * max(self.taken - self._journalled(), 0))
                os.fsync(file.fileno())

    def _journalled(self) -> int:
        return self.journal.stat().st_size if self.journal is not None and self.journal.exists() else 0

    def plan(self, taken: int | None = None) -> Plan:
        """The steps taken so far as a plan (all planned ones before the first)."""
        count = (self.taken or self.limit or 1) if taken is None else taken
        own = (Step(self.step.subject, self.step.sampling_rate, count),) if count else ()
        return Plan((*self.past, *own))

    def spent(self, delta: float | None = None) -> Bracket:
        """The epsilon of the steps taken so far, at the claim's delta unless another one is given."""
        delta = self._delta(delta)
        if not self.taken and not self.past:
            return Bracket(0.0, 0.0)
        if delta != self.delta:
            return self.plan(self.taken).epsilon(delta)
        if self.taken not in self._spent:
            self._spent = {self.taken: self.plan(self.taken).epsilon(delta)}
        return self._spent[self.taken]

    def _delta(self, delta: float | None) -> float:
        found = self.delta if delta is None else delta
        if found is None:
            raise ValueError("no delta was named: pass one here, or to make_private")
        return found

    def certificate(self) -> Certificate:
        """The claim against the steps taken (against all planned ones before the first).

        Without a claim of its own what is claimed is the epsilon spent, rounded up.
        """
        delta = self._delta(None)
        plan = self.plan()
        if self.epsilon is not None:
            found = certify(plan, epsilon=self.epsilon, delta=delta)
        else:
            spent = plan.epsilon(delta).upper
            for room in (1e-9, 1e-6, 1e-4, 1e-2):  # another grid may put delta a little higher there
                found = certify(plan, epsilon=spent * (1 + room), delta=delta)
                if found.verdict == "certified":
                    break
        return found.with_randomness(self.secure) if self.taken or self.past else found

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must keep."""
        steps = self.plan(self.taken).to_json() if self.taken or self.past else None
        return {"schema": SCHEMA, "taken": self.taken, "steps": steps, "secure": self.secure}

    def load_state_dict(self, state: Any) -> None:
        """Take over the steps of an earlier run; refuses if together with the planned ones they break the claim."""
        if not isinstance(state, dict) or state.get("schema") != SCHEMA:
            raise ValueError("not the state of an account, or of another schema: pass what state_dict returned")
        steps = () if state["steps"] is None else Plan.from_json(state["steps"]).steps
        own = self.step.to_json() | {"count": None}
        same = [step for step in steps if step.to_json() | {"count": None} == own]
        taken = sum(step.count for step in same)
        past = tuple(step for step in steps if step not in same)
        if self.epsilon is not None and self.delta is not None and self.limit is not None and past:
            certify(Plan((*past, Step(self.step.subject, self.step.sampling_rate, self.limit))), epsilon=self.epsilon,
                    delta=self.delta).require()  # fmt: skip
        self.taken, self.past = max(taken, self._journalled()), past
        self.secure = self.secure and bool(state["secure"])
        self._spent.clear()
