"""Attackers who see all that a solver of several releases draws, and know every record but one.

A fit of `refined`, `boosted`, `hessian-mixing`, `adassp` or `descent` (of linear and of logistic regression) shows
weights that depend on several releases, each asked at what the earlier ones gave. Here the solver's own code runs
between releases; the attacker's score is the exact log-likelihood ratio of all releases together: the solver is run
again on the neighbour with the same answers.
Noise is drawn by the mechanisms' own samplers, in blocks, and added to the queries, so that a fit takes a millisecond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tests.learn.trainers import CLAIM

from shapedp.accounting import Plan
from shapedp.accounting.plan import Step
from shapedp.learn import GaussianNB, KMeans, kmeans, naive_bayes
from shapedp.learn.moments import Bounds, moments
from shapedp.learn.solvers.erm import descent
from shapedp.learn.solvers.linear import SOLVERS, Problem, steps
from shapedp.mechanisms import Mixing, mechanism_from_json
from shapedp.privacy import Loss
from shapedp.tables import InMemory

BLOCK = 4096
Data = tuple[Any, Any]


@dataclass
class Noise:
    """Noise of each mechanism, drawn by its own `release` of zeros, a block at a time."""

    rng: Any = None
    kept: dict[bytes, list[Any]] = field(default_factory=dict)

    def of(self, mechanism: Any) -> Any:
        """The next draw."""
        law = mechanism.law
        block = self.kept.setdefault(bytes([law.dim]) + law.scales.tobytes(), [])
        if not block:
            zeros = np.zeros((BLOCK, mechanism.law.dim))
            block.extend(np.asarray(mechanism.release(zeros, batch=BLOCK, rng=self.rng).value))
        return block.pop()


@dataclass
class Drawing:
    """Stands in for `Draws`: answers with noise, and keeps every query and answer."""

    noise: Noise
    progress: bool = False
    seen: list[tuple[Any, Any, Any]] = field(default_factory=list)

    def release(self, mechanism: Any, query: Any) -> Any:
        query = np.array(query, dtype=float)
        answer = query + self.noise.of(mechanism)
        self.seen.append((mechanism, query, answer))
        return answer

    def sketch(self, mechanism: Any, gram: Any, records: int, dim: int) -> Any:
        drawn = mechanism.release_gram(gram, records, dim, rng=self.noise.rng)
        self.seen.append((mechanism, np.array(gram), drawn))
        return drawn


@dataclass
class Repeating:
    """Stands in for `Draws`: gives the answers of another run, and keeps the queries."""

    answers: Iterator[tuple[Any, Any, Any]]
    progress: bool = False
    queries: list[Any] = field(default_factory=list)

    def release(self, mechanism: Any, query: Any) -> Any:
        self.queries.append(np.array(query, dtype=float))
        return next(self.answers)[2]

    def sketch(self, mechanism: Any, gram: Any, records: int, dim: int) -> Any:
        self.queries.append(np.array(gram))
        return next(self.answers)[2]


def ratio(mechanism: Any, answer: Any, one: Any, other: Any) -> float:
    """The log-likelihood of the answer where the query was `one`, less that where it was `other`."""
    if isinstance(mechanism, Mixing):
        rows, variance = answer.value, answer.noise_variance
        (near, far), square = (float(gram[0, 0]) + variance for gram in (one, other)), float(np.sum(rows * rows))
        return 0.5 * (square * (1 / far - 1 / near) - rows.shape[0] * np.log(near / far))
    scales = mechanism.law.scales
    return float(np.sum((one - other) * (answer - (one + other) / 2) / scales**2))


@dataclass(frozen=True, eq=False)
class Attack:
    """`run(data, draws)` is what is audited; the output is the score of the first data set against the second."""

    neighbours: tuple[Data, Data]
    run: Callable[[Any, Any], Any]
    prepared: tuple[Any, Any]
    loss: Loss
    once: bool = False  # one release: its query follows from the data alone, and is asked once
    noise: Noise = field(default_factory=Noise)
    asked: dict[int, Any] = field(default_factory=dict)

    def __call__(self, data: Data, rng: Any) -> Any:
        self.noise.rng = rng
        own = int(data[0] is not self.neighbours[0][0])
        if self.once and len(self.asked) == 2:
            mechanism, mine, other = self.asked[own]
            found = ratio(mechanism, mine + self.noise.of(mechanism), mine, other)
            return np.array([found if own == 0 else -found])
        drawn = Drawing(self.noise)
        self.run(self.prepared[own], drawn)
        repeated = Repeating(iter(drawn.seen))
        self.run(self.prepared[1 - own], repeated)
        self.asked[own] = (*drawn.seen[0][:2], repeated.queries[0])
        pairs = zip(drawn.seen, repeated.queries, strict=True)
        found = sum(ratio(mechanism, answer, mine, other) for (mechanism, mine, answer), other in pairs)
        return np.array([found if own == 0 else -found])

    def certified(self) -> Loss:
        return self.loss


@contextmanager
def swapped(module: Any, **names: Any) -> Iterator[None]:
    """Names of a module replaced; `mock.patch` would cost more than a fit."""
    kept = {name: getattr(module, name) for name in names}
    try:
        for name, value in names.items():
            setattr(module, name, value)
        yield
    finally:
        for name, value in kept.items():
            setattr(module, name, value)


@contextmanager
def plain_sums(known: dict[int, Data]) -> Iterator[None]:
    """Sums of clipped residuals as products in floats, of records found by the identity of their moments."""

    def gradient(given: Any, weights: Any, clip: float) -> Any:
        x, y = known[id(given)]
        return x.T @ np.clip((y - x @ weights) / clip, -1.0, 1.0)

    with swapped(steps, gradient=gradient):
        yield


def regression(solver: str, neighbours: tuple[Data, Data]) -> Attack:
    """A solver of least squares on tables within bounds of 1."""
    bounds = Bounds(1.0, 1.0)
    tables = [tuple(np.nan_to_num(part) for part in data) for data in neighbours]
    prepared = [moments(InMemory(x, y), bounds) for x, y in tables]
    known = {id(one): data for one, data in zip(prepared, tables, strict=True)}
    problem = Problem(len(tables[0][0]), 1, bounds, **CLAIM)
    made = SOLVERS[solver].mechanisms(problem)

    def run(given: Any, draws: Any) -> None:
        with plain_sums(known):
            SOLVERS[solver].solve(given, made, draws)

    plan = Plan(tuple(one if isinstance(one, Step) else Step(one) for one in made))
    return Attack(neighbours, run, (prepared[0], prepared[1]), plan.loss)


def classification(neighbours: tuple[Data, Data]) -> Attack:
    """Logistic regression from sums, on tables within bounds of 1, with labels -1 and +1."""
    bounds = Bounds(1.0, 1.0)
    tables = [tuple(np.nan_to_num(part) for part in data) for data in neighbours]
    prepared = [moments(InMemory(x, y), bounds) for x, y in tables]
    known = {id(one): data for one, data in zip(prepared, tables, strict=True)}
    made = descent.mechanisms(Problem(len(tables[0][0]), 1, bounds, **CLAIM))

    def sums(given: Any, weights: Any, clip: float, mean: Any) -> Any:
        x, y = known[id(given)]
        return x.T @ np.clip((y - mean(x @ weights)) / clip, -1.0, 1.0)

    def run(given: Any, draws: Any) -> None:
        with swapped(descent, gradient=sums):
            descent.solve(given, made, draws)

    plan = Plan(tuple(one if isinstance(one, Step) else Step(one) for one in made))
    return Attack(neighbours, run, (prepared[0], prepared[1]), plan.loss)


def fitted(model: Any, module: Any, neighbours: tuple[Data, Data]) -> Attack:
    """The fit of an estimator, with `Draws` replaced, and its certificate (of public sizes) computed once."""
    type(model).fit.__wrapped__(model, *neighbours[0])
    certificate = model.privacy_

    plain_fit = type(model).fit.__wrapped__  # the register of fits is not needed here

    def run(data: Data, draws: Any) -> None:
        with swapped(module, Draws=lambda *_: draws, certify=lambda *_, **__: certificate):
            plain_fit(model, *data)

    subject = mechanism_from_json(dict(certificate.subject))
    return Attack(neighbours, run, neighbours, subject.loss, once=not isinstance(subject, Plan))


def without(x: Any, y: Any) -> tuple[Data, Data]:
    """The records, and the same with the first one counted as none."""
    less = x.copy()
    less[0] = np.nan
    return (x, y), (less, np.where(np.arange(len(y)) == 0, 0, y))


def leaning(n: int = 400) -> tuple[Data, Data]:
    """A record at its bounds among others that hold the weight just below 0, so that its residual is cut off at 1."""
    y = np.full(n, -0.05)
    y[0] = 1.0
    return without(np.ones((n, 1)), y)


def outnumbered(n: int = 400) -> tuple[Data, Data]:
    """A record of one class among many of the other, which drive its residual to 1."""
    y = np.full(n, -1.0)
    y[0] = 1.0
    return without(np.ones((n, 1)), y)


def among(n: int = 50) -> tuple[Data, Data]:
    """A record at the upper end among others near the lower one."""
    x = np.full((n, 1), -0.9)
    x[0] = 1.0
    return without(x, np.zeros(n, int))


RANGE: dict[str, Any] = {**CLAIM, "low": -1.0, "high": 1.0, "random_state": 0}
TRANSCRIPTS: dict[str, Callable[[], Attack]] = {
    "LinearRegression, refined": lambda: regression("refined", leaning()),
    "LinearRegression, hessian-mixing": lambda: regression("hessian-mixing", without(np.ones((1, 1)), np.ones(1))),
    "LinearRegression, boosted": lambda: regression("boosted", leaning()),
    "LinearRegression, adassp": lambda: regression("adassp", without(np.ones((1, 1)), np.ones(1))),
    "LinearRegression, descent": lambda: regression("descent", leaning()),
    "LogisticRegression, descent": lambda: classification(outnumbered()),
    "GaussianNB": lambda: fitted(GaussianNB(**RANGE, classes=[0, 1]), naive_bayes, among()),
    "KMeans": lambda: fitted(KMeans(2, **RANGE, rounds=3), kmeans, among()),
}
