"""The scan over every public way to ask about the same composition, in every order.

Each way turns its answer into answers that `cases.judge` understands: a bracket, an upper end alone (its lower end is
0), or a claim that was accepted ("certified"). All of them are also held against each other.
"""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import cases
import numpy as np
from cases import Case, Fault, Outcome, Question
from kinds import Generator, Item, bare, box, calibrated, gaussian, laplace, mixed, prelude, radial, scale
from pass_kinds import base_of_pass, shuffled

import shapedp as sdp
from laws import Normal, Sampled
from shapedp.accounting import (
    ACCOUNTANTS,
    Plan,
    Step,
    allocate,
    compose,
    from_dp_accounting,
    from_event,
    from_opendp,
    membership_advantage,
    to_dp_accounting,
    to_event,
    to_opendp,
)
from shapedp.cli.main import main as command

Answer = tuple[Question, tuple[float, float] | str]
_CAPS = ("basic", "renyi", "gaussian", "either")


@dataclass
class Asked:
    """A composition of mechanisms as a plan, and what is asked about it."""

    case: Case
    steps: tuple[Step, ...]
    epsilon: float
    delta: float

    @property
    def plan(self) -> Plan:
        return Plan(self.steps)

    @cached_property
    def composed(self) -> Any:
        """One object, which several ways ask."""
        return compose(self.pairs)

    @property
    def pairs(self) -> list[tuple[Any, int]]:
        return [(step.loss, step.count) for step in self.steps]

    def brackets(self, loss: Any) -> Iterator[Answer]:
        for question in (Question("epsilon", delta=self.delta), Question("delta", self.epsilon)):
            yield question, question.ask(loss)

    def upper(self, epsilon: float) -> Answer:
        return Question("epsilon", delta=self.delta), (0.0, float(epsilon))

    def accepted(self, epsilon: float, delta: float) -> Answer:
        return Question("certify", epsilon, delta), "certified"


@lru_cache(maxsize=64)
def _gaussian_mechanism(epsilon: float, delta: float) -> Any:
    return sdp.calibrate("gaussian", sdp.L2(1.0, dim=2, adjacency="add-remove"), epsilon=epsilon, delta=delta)


def noisy(rng: Generator, extreme: bool) -> Item:
    """A calibrated Gaussian mechanism; its noise on a grid may be a little off the law, either way."""
    m = _gaussian_mechanism(float(np.round(scale(rng, -1, 0.7), 1)) or 0.1, float(10.0 ** -rng.integers(4, 10)))
    mu = next(loss.mu for loss in _gaussians(m.loss))
    laws = (Normal(mu * (1 - 1e-5)),), (Normal(mu * (1 + 1e-5)),)
    text = f"calibrate('gaussian', L2(1.0, dim=2), epsilon={m.certificate.epsilon!r}, delta={m.certificate.delta!r})"
    return Item("gaussian mechanism", text, lambda: m, laws[0], laws[1], relation="add-remove")


def _gaussians(loss: Any) -> Iterator[Any]:
    while not hasattr(loss, "mu"):
        loss = loss.base
    yield loss


def through_compose(asked: Asked) -> Iterator[Answer]:
    yield from asked.brackets(asked.composed)


def through_fresh(asked: Asked) -> Iterator[Answer]:
    yield from asked.brackets(compose(asked.pairs))


def through_plan(asked: Asked) -> Iterator[Answer]:
    yield from asked.brackets(asked.plan)


def through_certify(asked: Asked) -> Iterator[Answer]:
    for subject in (asked.plan, asked.composed):
        question = Question("certify", asked.epsilon, asked.delta)
        yield question, str(sdp.certify(subject, epsilon=asked.epsilon, delta=asked.delta).verdict)


def through_verify(asked: Asked) -> Iterator[Answer]:
    certificate = sdp.certify(asked.plan, epsilon=asked.epsilon, delta=asked.delta)
    again = sdp.verify(certificate)
    for one in (certificate, again):
        yield Question("delta", asked.epsilon), (one.bracket.lower, one.bracket.upper)


def through_accountants(asked: Asked) -> Iterator[Answer]:
    for accountant in ACCOUNTANTS.values():
        with contextlib.suppress(ValueError):  # what an accountant does not serve it refuses
            answer = accountant.answer(asked.pairs, asked.delta)
            if answer.certifies:
                yield asked.upper(answer.epsilon)


def through_command(asked: Asked) -> Iterator[Answer]:
    with tempfile.TemporaryDirectory() as folder:
        file, shown = Path(folder) / "plan.json", io.StringIO()
        file.write_text(json.dumps(asked.plan.to_json()))
        with contextlib.redirect_stdout(shown):
            status = command(["account", "--plan", str(file), "--delta", repr(asked.delta), "--json"])
        if status == 0:
            found = json.loads(shown.getvalue())["epsilon"]
            yield Question("epsilon", delta=asked.delta), (float(found["lower"]), float(found["upper"]))


def through_events(asked: Asked) -> Iterator[Answer]:
    """There and back: where a loss is only bounded from above, the event is of noise that dominates it."""
    bounded = any(item.best == () for item, _ in asked.case.items)
    for question, (lower, upper) in asked.brackets(from_event(to_event(asked.plan))):
        yield question, (0.0 if bounded else lower, upper)


def through_distributions(asked: Asked) -> Iterator[Answer]:
    loss = asked.composed
    theirs = to_dp_accounting(loss, step=max(loss.epsilon(1e-9).upper / 2000, 1e-6))
    yield Question("delta", asked.epsilon), (0.0, min(float(theirs.get_delta_for_epsilon(asked.epsilon)) + 1e-9, 1.0))
    found = from_dp_accounting(theirs).delta(asked.epsilon)
    yield Question("delta", asked.epsilon), (found.lower, min(found.upper + 1e-9, 1.0))


def through_opendp(asked: Asked) -> Iterator[Answer]:
    """Each mechanism as a measurement: its privacy map, and what is read back from it, composed."""
    prelude().enable_features("contrib", "honest-but-curious")
    if any(step.sampling_rate != 1 or not hasattr(step.subject, "sensitivity") for step in asked.steps):
        raise TypeError("a measurement is one mechanism, on everybody")
    there = [(to_opendp(step.subject, delta=min(asked.delta, 1e-6)), step.count) for step in asked.steps]
    if len(there) == there[0][1] == 1:
        yield asked.accepted(*map(float, there[0][0].map(1.0)))
    back = compose([(from_opendp(measurement, 1.0), n) for measurement, n in there])
    for question, answer in asked.brackets(back):
        yield question, (0.0, answer[1])  # a map bounds from above


def through_ledger(asked: Asked) -> Iterator[Answer]:
    """Whatever a ledger with this cap lets through, one spend after the other or as a plan, is within the cap."""
    from shapedp.ledger import Ledger, LedgerError

    with tempfile.TemporaryDirectory() as folder:
        for rule in _CAPS:
            with contextlib.suppress(LedgerError, ValueError, TypeError):
                cap = {"epsilon": asked.epsilon, "delta": asked.delta, "adjacency": "add-remove", "rule": rule}
                ledger = Ledger.create(Path(folder) / f"{rule}.db", dataset="one", **cap)
                for step in asked.steps:
                    with ledger.spend("one", step.subject, step.count):
                        pass
                yield asked.accepted(asked.epsilon, asked.delta)
            with contextlib.suppress(LedgerError, ValueError, TypeError):
                ledger = Ledger.open(Path(folder) / f"{rule}.db")
                ledger.add("plan", **cap)
                with ledger.spend("plan", asked.plan):
                    pass
                yield asked.accepted(asked.epsilon, asked.delta)


def through_risk(asked: Asked) -> Iterator[Answer]:
    found = membership_advantage(asked.composed)
    yield Question("delta", 0.0), (found.lower, found.upper)


WAYS: dict[str, Callable[[Asked], Iterator[Answer]]] = {
    "compose": through_compose,
    "fresh": through_fresh,
    "plan": through_plan,
    "certify": through_certify,
    "verify": through_verify,
    "accountants": through_accountants,
    "command": through_command,
    "events": through_events,
    "distributions": through_distributions,
    "opendp": through_opendp,
    "ledger": through_ledger,
    "risk": through_risk,
}
_WIDER = 1000  # cases from here on hold more kinds of losses
_PASSES = 2000  # and from here on passes
_REFUSED = (TypeError, ValueError)  # a way that does not serve a composition says so


def _sampled(rng: Generator, item: Item) -> tuple[Item, float]:
    """The item on a Poisson sample, where its law mirrors itself exactly."""
    if rng.random() < 0.7 or item.kind not in ("gaussian", "bare"):
        return item, 1.0
    rate = scale(rng, -2, -0.1)
    law = item.worst[0]
    text = f"Step({item.text}, {rate!r})"
    worst, back = (Sampled(law, rate),), (Sampled(law, rate, False),)
    return Item(item.kind, text, item.build, worst, None, back, relation="add-remove"), rate


def _pass(rng: Generator) -> tuple[Item, Callable[[int], Step]]:
    """A pass of randomly placed or shuffled records as a step of a plan."""
    if rng.random() < 0.25:
        item = shuffled(rng, False)
        loss: Any = item.build()
        return item, lambda n: Step(loss.base, count=n, scheme="shuffle", batches=loss.steps)
    text, build, runs, laws = base_of_pass(rng, False)
    (there, back), (best, best_back) = laws[0], laws[-1]
    item = Item(
        "allocation",
        f"Step({text}, scheme='allocation', batches={runs})",
        lambda: allocate(build(), runs, adjacency="add-remove"),
        (there,),
        (best,),
        (back,),
        (best_back,),
        "add-remove",
    )
    return item, lambda n: Step(build(), count=n, scheme="allocation", batches=runs)


def make(number: int) -> Asked:
    """The case of a number: mechanisms and losses that a plan can hold."""
    rng = np.random.default_rng([cases.SEED, number, 2])
    prelude()
    pool = (calibrated, calibrated, noisy, gaussian, bare)
    if number >= _WIDER:
        pool = (*pool, noisy, laplace, box, mixed, radial)
    items, steps = [], []
    for _ in range(int(rng.choice([1, 2, 3], p=[0.5, 0.3, 0.2]))):
        placed = number >= _PASSES and rng.random() < 0.3
        if placed:
            item, step = _pass(rng)
        else:
            item, rate = _sampled(rng, pool[int(rng.integers(len(pool)))](rng, False))
        n = 1 if rng.random() < 0.3 else int(10 ** rng.uniform(0.3, 2))
        items.append((item, n))
        steps.append(step(n) if placed else Step(item.build(), rate, n))
    case = Case(number, items, [], 2**11)
    epsilon = max(cases._epsilon(rng, case.side(True, False)), 1e-3)
    return Asked(case, tuple(steps), epsilon, float(10 ** -rng.uniform(3, 15 if rng.random() < 0.7 else 200)))


def _memories(answers: cases.Answers) -> Iterator[Fault]:
    """An object that was asked much in between answers as a fresh one does, bit for bit."""
    fresh = [(question, answer) for question, answer, who in answers if who == "through fresh"]
    for question, answer, who in answers:
        if who == "through compose" and fresh and (question, answer) not in fresh:
            yield Fault("memory", str(question), repr(answer), float("nan"))


def run(asked: Asked, timed: Callable[[Callable[[], Any]], Any] = lambda ask: ask()) -> Outcome:
    """Asks in a random order, twice the first way, and judges."""
    rng = np.random.default_rng([cases.SEED, asked.case.number, 3])
    outcome, answers = Outcome(asked.case), cases.Answers()
    order = [str(name) for name in rng.permutation(list(WAYS))]
    for name in [*order, order[0]]:
        begun = time.process_time()
        try:
            found = timed(lambda n=name: list(WAYS[n](asked)))
        except _REFUSED as refused:
            outcome.refused.append(f"{name}: {type(refused).__name__}")
            continue
        except Exception as error:
            outcome.raised.append(f"{name}: {type(error).__name__}: {error}"[:200])
            continue
        outcome.library += time.process_time() - begun
        answers += [(question, answer, f"through {name}") for question, answer in found]
    begun = time.process_time()
    for question, answer, who in answers:
        for fault in cases.judge(asked.case, question, answer):
            fault.question = f"{who}: {fault.question}"
            outcome.faults.append(fault)
    outcome.faults += cases.contradictions(answers)
    outcome.faults += _memories(answers)
    outcome.checks = time.process_time() - begun
    asked.case.questions = [question for question, _, _ in answers]
    return outcome
