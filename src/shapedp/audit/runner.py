"""Draws in blocks: reproducible by seed, in several processes, with progress."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.audit.events import Event
from shapedp.audit.subjects import Subject
from shapedp.boundary.progress import bar
from shapedp.numerics.arrays import Floats

Reduce = Callable[[Subject, Floats], Any]


def _run(subject: Subject, reduce: Reduce, seed: int | None, block: tuple[tuple[int, int, int], int]) -> Any:
    """What is made of one block of outputs: the key of its random stream (stage, input, number) and its size."""
    key, n = block
    rng = None if seed is None else np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
    return reduce(subject, subject.draw(key[1], n, rng))


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


class Runner(ExitStack):
    """Draws from both inputs in blocks of fixed size, so that the result does not depend on the processes.

    Guarantee: with a seed every block has a stream of its own, keyed by stage, input and number; without one
    the subject draws its own (for mechanisms of the library: secure) randomness.
    """

    def __init__(self, seed: int | None, parallel: int, progress: bool, total: int) -> None:
        super().__init__()
        self.seed, self.drawn, self._stage = seed, 0, 0
        self._map: Callable[..., Iterable[Any]] = map
        if parallel > 1:
            context = multiprocessing.get_context("spawn")
            self._map = self.enter_context(ProcessPoolExecutor(parallel, mp_context=context)).map
        self._advance = self.enter_context(bar(total, " outputs", progress))

    def stage(self) -> None:
        """Begin a new stage: its blocks share no stream with those before."""
        self._stage += 1

    def both(self, subject: Subject, start: int, stop: int, reduce: Reduce) -> tuple[list[Any], list[Any]]:
        """What `reduce` makes of the blocks that hold outputs start..stop of this stage, at either input."""
        found: tuple[list[Any], list[Any]] = ([], [])
        firsts = range(start, stop, subject.block)
        keys = [(self._stage, side, first) for first in firsts for side in (0, 1)]
        work = [(key, min(subject.block, stop - key[2])) for key in keys]
        answers = self._map(partial(_run, subject, reduce, self.seed), work)
        for ((_, side, _), n), value in zip(work, answers, strict=True):
            found[side].append(value)
            self.drawn += n
            self._advance(n)
        return found
