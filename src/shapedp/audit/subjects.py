"""What is audited: something that draws outputs at two neighbouring inputs and scores them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.audit.equality import same
from shapedp.mechanisms import Additive
from shapedp.noise import Law
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import finite

Score = Callable[[Floats], Floats]
Generator = np.random.Generator
BLOCK = 1 << 20
CALLS = 1 << 12


class Subject(ABC):
    """Two distributions of outputs and a score: large where the first input is the likelier one."""

    method: str

    @abstractmethod
    def draw(self, side: int, n: int, rng: Generator | None) -> Floats:
        """n outputs at input 0 or 1, one per row; secure randomness where rng is None and the subject has it."""

    @abstractmethod
    def score(self, outputs: Floats) -> Floats:
        """One number per output; the best is the log-likelihood ratio."""

    @property
    @abstractmethod
    def block(self) -> int:
        """How many outputs to draw at once."""


@dataclass(frozen=True, eq=False)
class AdditiveSubject(Subject):
    """A mechanism of the library through its own `release`, scored by its law's density."""

    mechanism: Additive
    inputs: tuple[Floats, Floats]
    method: str = "likelihood ratio"

    def draw(self, side: int, n: int, rng: Generator | None) -> Floats:
        return released(self.mechanism, self.inputs[side], rng, n)

    def score(self, outputs: Floats) -> Floats:
        return log_ratio(self.mechanism.law, *self.inputs, outputs)

    @property
    def block(self) -> int:
        return min(max(BLOCK // self.mechanism.law.dim, 1), 1 << 16)


@dataclass(frozen=True, eq=False)
class CallableSubject(Subject):
    """A user's function f(x, rng), or f(x, rng, n) with n outputs in rows where `vectorized`.

    `given` is its score; None until one is learned from samples of its own.
    """

    function: Callable[..., Any]
    inputs: tuple[Any, Any]
    vectorized: bool = False
    given: Score | None = None
    method: str = "learned score"

    def draw(self, side: int, n: int, rng: Generator | None) -> Floats:
        secure = getattr(self.function, "secure", False)
        generator = np.random.default_rng() if rng is None and not secure else rng
        x = self.inputs[side]
        if self.vectorized:
            rows = np.asarray(self.function(x, generator, n), dtype=np.float64)
            if rows.shape[:1] != (n,):
                raise ValueError(f"a vectorized mechanism must return {n} outputs in rows, got shape {rows.shape}")
        else:
            rows = np.array([np.ravel(np.asarray(self.function(x, generator), dtype=np.float64)) for _ in range(n)])
        rows = rows.reshape(n, -1)
        if not rows.size or np.isnan(rows).all():
            raise ValueError("the audited function returned no number at all: check what it returns")
        return rows

    def score(self, outputs: Floats) -> Floats:
        assert self.given is not None  # it is learned first
        values = np.asarray(self.given(outputs), dtype=np.float64)
        if values.shape != (len(outputs),):
            raise ValueError(f"score must return one number per output ({len(outputs)}), got shape {values.shape}")
        return np.nan_to_num(values, nan=0.0, posinf=np.inf, neginf=-np.inf)

    @property
    def block(self) -> int:
        return 1 << 15 if self.vectorized else CALLS


def released(mechanism: Additive, x: Any, rng: Generator | None, n: int) -> Floats:
    """n releases of the query x, whether or not the claim is certified, one per row."""
    query: NDArray[Any] = np.asarray(x, dtype=np.float64).reshape(mechanism.shape)
    if mechanism.sensitivity.whole and (query == np.rint(query)).all():
        query = query.astype(np.int64)  # such a mechanism takes nothing else
    release = mechanism.release(np.broadcast_to(query, (n, *query.shape)), rng=rng, unsafe=True, batch=n)
    return np.asarray(release.value, dtype=np.float64).reshape(n, -1)


@singledispatch
def subject_of(mechanism: Any, neighbours: tuple[Any, Any] | None, score: Score | None, vectorized: bool) -> Subject:
    """The subject behind what the user passed; neighbours of a mechanism default to the worst of its set."""
    if not callable(mechanism):
        raise TypeError(f"audit takes a mechanism or a function f(x, rng), got {type(mechanism).__name__}")
    if neighbours is None:
        raise ValueError("neighbours must be given for a function: two inputs that one person's data sets apart")
    method = "learned score" if score is None else "given score"
    return CallableSubject(mechanism, pair_of(neighbours), vectorized, score, method)


@subject_of.register
def _(mechanism: Additive, neighbours: Any, score: Score | None, vectorized: bool) -> Subject:
    own_score(score)
    if neighbours is None:
        neighbours = (np.zeros(mechanism.law.dim), np.asarray(mechanism.sensitivity.extreme()))
    first, second = (np.ravel(finite("neighbours", side)) for side in pair_of(neighbours))
    if any(side.size != mechanism.law.dim for side in (first, second)):
        raise ValueError(f"neighbours must be two queries of shape {mechanism.shape}")
    return AdditiveSubject(mechanism, (first, second))


def own_score(score: Score | None) -> None:
    """Refuse a score where the density is known."""
    if score is not None:
        raise TypeError("score goes with a function: a mechanism of the library is scored by its density")


def pair_of(neighbours: Any) -> tuple[Any, Any]:
    """Two inputs that differ."""
    try:
        first, second = neighbours
    except (TypeError, ValueError):
        raise ValueError("neighbours must be a pair of inputs (x, x')") from None
    if same(first, second):
        raise ValueError("neighbours are equal, so nothing would be tested: give inputs that one person sets apart")
    return first, second


def log_ratio(law: Law, first: Floats, second: Floats, outputs: Floats) -> Floats:
    """log p(y - first) - log p(y - second); decisive where a coordinate without noise differs."""
    first, second, noisy = law.centre(first), law.centre(second), law.noisy()
    told: Floats | float = 0.0
    if not noisy.all():
        plain = ~noisy & (first != second)
        if plain.any():
            at = int(np.flatnonzero(plain)[0])
            told = np.where(outputs[:, at] == first[at], np.inf, -np.inf)
        if not noisy.any():
            return np.zeros(len(outputs)) + told
        law, first, second, outputs = law.of_coordinates(noisy), first[noisy], second[noisy], outputs[:, noisy]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = law.log_density(outputs - first) - law.log_density(outputs - second)
    return np.nan_to_num(ratio, nan=0.0, posinf=np.inf, neginf=-np.inf) + told
