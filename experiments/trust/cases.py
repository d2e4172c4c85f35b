"""One numbered case of the scan: a composition, its questions, and what is wrong with the answers."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from bounds import Composition
from kinds import CHEAP, KINDS, Generator, Item, mixing, radial, slow
from pass_kinds import allocated, shuffled

import shapedp as sdp
from laws import Law
from shapedp.accounting import compose

SEED = 20261115
PASSES = 105_000  # from this case on there are passes: records placed in one run at random, and shuffles
LONGER = 50_000  # from this case on the quick kinds, too, are composed up to 10,000 times
SLOWER = 40_000  # from this case on there are slow tails and users' losses with mass at infinity
LATER = 20_000  # from this case on epsilons beside atoms are asked for; the cases before keep their questions
_SLOW = (radial, mixing)
_ROUND = 1e-9  # an epsilon is moved by this much to the harmless side before it is held against a bound


@dataclass(frozen=True)
class Question:
    """delta at an epsilon, epsilon at a delta, both ends of a profile, or a verdict on a claim."""

    what: str
    epsilon: float = 0.0
    delta: float = 0.0
    back: bool = False

    def ask(self, loss: Any) -> tuple[float, float] | str:
        if self.what == "delta":
            found = loss.delta(self.epsilon)
            return found.lower, found.upper
        if self.what == "epsilon":
            found = loss.epsilon(self.delta)
            return found.lower, found.upper
        if self.what == "profile":
            lower, upper = loss.profile(np.array([self.epsilon, self.epsilon * 1.5 + 1e-3]), reverse=self.back)
            return float(lower[0]), float(upper[0])
        return str(sdp.certify(loss, epsilon=self.epsilon, delta=self.delta).verdict)

    def __str__(self) -> str:
        if self.what == "epsilon":
            return f"epsilon({self.delta!r})"
        if self.what == "certify":
            return f"certify(epsilon={self.epsilon!r}, delta={self.delta!r})"
        return f"{self.what}({self.epsilon!r}{', reverse' if self.back else ''})"


@dataclass
class Fault:
    """Something false: its sort, the question, the answer, and the bound that it breaks."""

    sort: str
    question: str
    answer: str
    bound: float
    epsilon: float = math.nan  # where the bound on delta was taken, and the number that it contradicts
    claim: float = math.nan
    below: bool = True  # whether the claim lies below the truth
    back: bool | None = None  # the direction, None for the larger of both

    def __str__(self) -> str:
        return f"{self.sort}: {self.question} = {self.answer}, bound {self.bound!r}"


@dataclass
class Case:
    """Items with counts, and the questions about their composition."""

    number: int
    items: list[tuple[Item, int]]
    questions: list[Question]
    nodes: int
    accuracy: float | None = None
    fresh: int = 1
    _sides: dict[tuple[bool, bool], Composition] = field(default_factory=dict)

    @property
    def text(self) -> str:
        listed = ", ".join(f"({item.text}, {n})" for item, n in self.items)
        return f"compose([{listed}], accuracy={self.accuracy!r})"

    @property
    def kinds(self) -> str:
        return " + ".join(sorted({item.kind for item, _ in self.items}))

    @property
    def lopsided(self) -> bool:
        return any(item.lopsided for item, _ in self.items)

    def build(self) -> Any:
        return compose([(item.build(), n) for item, n in self.items], accuracy=self.accuracy)

    def parts(self, upper: bool, back: bool) -> list[tuple[Law, int]]:
        return [(law, n) for item, n in self.items for law in item.laws(upper, back)]

    def side(self, upper: bool, back: bool) -> Composition:
        """The bound that upper (lower) ends of one direction are held against."""
        back = back and self.lopsided
        if (upper, back) not in self._sides:
            self._sides[upper, back] = Composition(self.parts(upper, back), self.nodes)
        return self._sides[upper, back]

    def proved(self, fault: Fault) -> bool:
        """Whether ball arithmetic confirms a fault; False also where its lattice is too coarse to tell."""
        import settle

        if math.isnan(fault.claim):
            return True  # two answers contradict each other: no bound was needed
        sides = {False, self.lopsided} if fault.back is None else {fault.back and self.lopsided}
        for back in sides:
            found = settle.delta(self.parts(fault.below, back), fault.epsilon, up=not fault.below)
            if fault.below and found > fault.claim:
                return True
            if not fault.below and not found < fault.claim:
                return False
        return not fault.below

    def least(self, epsilon: float) -> float:
        """What every upper end of delta must reach."""
        return max(self.side(True, back).lower(epsilon) for back in {False, self.lopsided})

    def most(self, epsilon: float) -> float:
        """What no lower end of delta may pass."""
        return max(self.side(False, back).upper(epsilon) for back in {False, self.lopsided})


def _items(rng: Generator, cheap: bool, number: int) -> list[tuple[Item, int]]:
    extreme = rng.random() < 0.25
    pool = CHEAP if cheap and rng.random() < 0.85 else KINDS
    pool = (*pool, slow, slow) if number >= SLOWER else pool
    pool = (*pool, allocated, allocated, shuffled) if number >= PASSES else pool
    different = int(rng.choice([1, 2, 3, 4], p=[0.6, 0.3, 0.1, 0.0] if cheap else [0.4, 0.3, 0.2, 0.1]))
    most = 2 if cheap and number < LONGER else 4
    total = int(rng.integers(2, 9)) if rng.random() < 0.4 else int(10 ** rng.uniform(math.log10(2), most))
    chosen: list[Item] = []
    while len(chosen) < different:
        make = pool[int(rng.integers(len(pool)))]
        if make in _SLOW and (cheap or rng.random() < 0.7):
            continue
        item = make(rng, extreme)
        if item.relation is None or all(one.relation in (None, item.relation) for one in chosen):
            chosen.append(item)
    shares = rng.dirichlet(np.ones(different))
    return [(item, max(int(total * share), 1)) for item, share in zip(chosen, shares, strict=True)]


def _epsilon(rng: Generator, whole: Composition) -> float:
    """From 0 to beyond the sum of the tops, near the mean of the loss, or far out in its tail."""
    pure, where = whole.pure, rng.random()
    if where < 0.1:
        return 0.0
    if where < 0.5 and math.isfinite(pure):
        share = rng.choice([rng.uniform(0, 1), 1 - 10 ** rng.uniform(-6, -0.5), 1.0, 1 + 10 ** rng.uniform(-9, 0)])
        return float(pure * share)
    guide = whole._guide([math.inf] * len(whole.parts))
    mean = guide.mean(0.0)
    unit = math.sqrt(sum(n * float(np.max(np.abs(v))) ** 2 for v, n in zip(guide.values, guide.counts, strict=True)))
    spread = math.sqrt(max(mean, 0.0) * 2) or unit
    return float(min(max(mean + rng.uniform(-1, 25 if rng.random() < 0.3 else 6) * min(spread, unit), 0.0), 1e5))


def _beside_an_atom(rng: Generator, whole: Composition, epsilon: float) -> float:
    """A sum of the largest losses, some of them negative, up to a few roundings: nodes of a grid lie there."""
    tops = [(law.top, n) for law, n in whole.parts if law.top_mass and 0 < law.top < math.inf]
    if not tops:
        return epsilon
    value = abs(math.fsum(top * (2 * int(rng.integers(n // 2, n + 1)) - n) for top, n in tops))
    return max(value + int(rng.integers(-4, 5)) * math.ulp(value), 0.0)


def make(number: int, *, cheap: bool = False) -> Case:
    """The case of a number: always the same."""
    rng = np.random.default_rng([SEED, number, int(cheap)])
    items = _items(rng, cheap, number)
    case = Case(number, items, [], 2**13 if number % 10 == 0 and not cheap else 2**11)
    whole = case.side(True, False)

    def delta() -> float:
        return float(10 ** -rng.uniform(3, 20 if rng.random() < 0.6 else 300))

    def others() -> Iterator[Question]:
        yield Question("epsilon", delta=delta())
        yield Question("certify", max(_epsilon(rng, whole), 1e-6), delta())
        yield Question("profile", _epsilon(rng, whole), back=bool(rng.random() < 0.5))

    asked = [Question("delta", _epsilon(rng, whole)) for _ in range(2)]
    other = list(others())
    if cheap:  # one question in most cases, a second one in some
        asked = [asked[0]] if rng.random() < 0.6 else [other[int(rng.integers(3))]]
        asked += [Question("delta", _epsilon(rng, whole))] if rng.random() < 0.3 else []
    else:
        asked += [*other, Question("epsilon", delta=delta())]
    order = rng.permutation(len(asked))
    case.questions = [asked[i] for i in order]
    case.accuracy = None if not cheap and rng.random() < 0.15 else float(np.round(10 ** rng.uniform(-2, -0.5), 3))
    case.accuracy = 0.3 if cheap else case.accuracy
    case.fresh = int(rng.random() < (0.1 if cheap else 1.0))
    if number >= LATER:
        case.questions = [
            replace(one, epsilon=_beside_an_atom(rng, whole, one.epsilon))
            if one.what == "delta" and rng.random() < 0.5
            else one
            for one in case.questions
        ]
    return case


def judge(case: Case, question: Question, answer: tuple[float, float] | str) -> Iterable[Fault]:
    """An answer against bounds of our own."""
    e, d = question.epsilon, question.delta
    if isinstance(answer, str):
        if answer == "certified" and not case.least(e) <= d:
            yield Fault("false certificate", str(question), answer, case.least(e), e, d)
        if answer == "refuted" and not case.most(e) >= d:
            yield Fault("false refutation", str(question), answer, case.most(e), e, d, False)
        return
    lower, upper = answer
    if not 0 <= lower <= upper:
        yield Fault("not a bracket", str(question), repr(answer), math.nan)
    elif question.what == "epsilon":
        high, low = upper * (1 + _ROUND), lower * (1 - _ROUND)
        if upper < math.inf and not case.least(high) <= d:
            yield Fault("epsilon too small", str(question), repr(answer), case.least(high), high, d)
        if lower > 0 and not case.most(low) >= d:
            yield Fault("epsilon lower end too large", str(question), repr(answer), case.most(low), low, d, False)
    else:
        one_side = question.what == "profile"
        least = case.side(True, question.back).lower(e) if one_side else case.least(e) if upper < 1 else 0.0
        side = question.back if one_side else None
        if upper < least:
            yield Fault("delta too small", str(question), repr(answer), least, e, upper, True, side)
        if lower > 0:
            most = case.side(False, question.back).upper(e) if one_side else case.most(e)
            if lower > most:
                yield Fault("delta lower end too large", str(question), repr(answer), most, e, lower, False, side)


Answers = list[tuple[Question, tuple[float, float] | str, str]]


def contradictions(answers: Answers) -> Iterable[Fault]:
    """Answers about the same composition that cannot all be true, whatever the truth."""
    deltas = [(q.epsilon, a, w) for q, a, w in answers if q.what == "delta" and not isinstance(a, str)]
    epsilons = [(q.delta, a, w) for q, a, w in answers if q.what == "epsilon" and not isinstance(a, str)]
    verdicts = [(q.epsilon, q.delta, a, w) for q, a, w in answers if isinstance(a, str)]
    for e, (_, upper), who in deltas:
        for f, (lower, _), other in deltas:
            if f >= e and lower > upper:
                yield Fault("contradiction", f"delta({e!r}) {who}, delta({f!r}) {other}", repr(upper), lower)
        for d, (low, high), other in epsilons:
            if e < low * (1 - _ROUND) and upper < d:
                yield Fault("contradiction", f"delta({e!r}) {who}, epsilon({d!r}) {other}", repr(upper), low)
            if e > high * (1 + _ROUND) and next(a for x, a, w in deltas if (x, w) == (e, who))[0] > d:
                yield Fault("contradiction", f"delta({e!r}) {who}, epsilon({d!r}) {other}", repr(high), d)
    for d, (_, upper), who in epsilons:
        for c, (lower, _), other in epsilons:
            if c >= d and lower > upper * (1 + _ROUND):
                yield Fault("contradiction", f"epsilon({d!r}) {who}, epsilon({c!r}) {other}", repr(upper), lower)
    for e, d, verdict, who in verdicts:
        for f, c, opposite, other in verdicts:
            if (verdict, opposite) == ("certified", "refuted") and f >= e and c >= d:
                yield Fault("contradiction", f"certify({e!r}, {d!r}) {who} and {other}", verdict, math.nan)


@dataclass
class Outcome:
    """What came of a case: faults, exceptions, seconds spent by the library and by the checks."""

    case: Case
    faults: list[Fault] = field(default_factory=list)
    raised: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    library: float = 0.0
    checks: float = 0.0


def run(case: Case, timed: Callable[[Callable[[], Any]], Any] = lambda ask: ask()) -> Outcome:
    """Ask one object everything in order, and fresh ones some of it; then judge."""
    outcome, answers = Outcome(case), Answers()
    begun = time.process_time()
    try:
        whole = timed(case.build)
    except Exception as error:
        outcome.raised.append(f"build: {type(error).__name__}: {error}"[:200])
        return outcome
    plan = [(question, whole, "on one object") for question in case.questions]
    plan += [(question, None, "on a fresh object") for question in case.questions[::-1][: case.fresh]]
    for question, subject, who in plan:
        try:
            answers.append((question, timed(lambda q=question, s=subject: q.ask(s or case.build())), who))
        except Exception as error:
            outcome.raised.append(f"{question}: {type(error).__name__}: {error}"[:200])
    outcome.library = time.process_time() - begun
    begun = time.process_time()
    for question, answer, _ in answers:
        outcome.faults += judge(case, question, answer)
    outcome.faults += contradictions(answers)
    outcome.checks = time.process_time() - begun
    return outcome
