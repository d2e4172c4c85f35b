"""Draws in blocks: reproducible by seed, in several processes, with progress."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.audit.events import Event
from shapedp.audit.subjects import Subject
from shapedp.numerics.arrays import Floats

Reduce = Callable[[Subject, Floats], Any]


@dataclass(frozen=True)
class _Block:
    """One block of outputs at one input, and the key of its random stream."""

    subject: Subject
    side: int
    n: int
    seed: int | None
    key: tuple[int, ...]
    reduce: Reduce


def _run(block: _Block) -> Any:
    rng = None
    if block.seed is not None:
        rng = np.random.default_rng(np.random.SeedSequence(block.seed, spawn_key=block.key))
    return block.reduce(block.subject, block.subject.draw(block.side, block.n, rng))


def outputs(subject: Subject, rows: Floats) -> Floats:
    """The outputs themselves."""
    return rows


def scores(subject: Subject, rows: Floats) -> Floats:
    """The score of each output."""
    return subject.score(rows)


@dataclass(frozen=True)
class Hits:
    """How many outputs fall into each event."""

    events: tuple[Event, ...]

    def __call__(self, subject: Subject, rows: Floats) -> NDArray[np.int64]:
        values = subject.score(rows)
        return np.array([event.hits(values) for event in self.events], dtype=np.int64)


@dataclass
class Runner:
    """Draws from both inputs in blocks of fixed size, so that the result does not depend on the processes.

    Guarantee: with a seed every block has a stream of its own, keyed by stage, input and number; without one
    the subject draws its own (for mechanisms of the library: secure) randomness.
    """

    seed: int | None
    parallel: int = 1
    progress: bool = False
    total: int = 0
    drawn: int = 0
    _stage: int = 0
    _stack: ExitStack = field(default_factory=ExitStack)
    _pool: ProcessPoolExecutor | None = None
    _bar: Any = None

    def __enter__(self) -> Runner:
        if self.parallel > 1:
            context = multiprocessing.get_context("spawn")
            self._pool = self._stack.enter_context(ProcessPoolExecutor(self.parallel, mp_context=context))
        if self.progress:
            self._bar = _bar(self.total)
            if self._bar is not None:
                self._stack.callback(self._bar.close)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def stage(self) -> None:
        """Begin a new stage: its blocks share no stream with those before."""
        self._stage += 1

    def both(self, subject: Subject, start: int, stop: int, reduce: Reduce) -> tuple[list[Any], list[Any]]:
        """What `reduce` makes of the blocks that hold outputs start..stop of this stage, at either input."""
        found: tuple[list[Any], list[Any]] = ([], [])
        work = [
            _Block(subject, side, n, self.seed, (self._stage, side, first), reduce)
            for first, n in _cut(start, stop, subject.block)
            for side in (0, 1)
        ]
        for block, value in zip(work, self._map(work), strict=True):
            found[block.side].append(value)
            self.drawn += block.n
            if self._bar is not None:
                self._bar.update(block.n)
        return found

    def _map(self, work: list[_Block]) -> Iterator[Any]:
        if self._pool is None:
            return map(_run, work)
        return self._pool.map(_run, work)


def _cut(start: int, stop: int, size: int) -> list[tuple[int, int]]:
    return [(first, min(size, stop - first)) for first in range(start, stop, size)]


def _bar(total: int) -> Any:
    try:
        from tqdm import tqdm
    except ImportError:
        return None
    return tqdm(total=total, unit=" outputs", unit_scale=True)
