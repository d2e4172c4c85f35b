"""Poisson batches: every record is in with the same probability, on its own."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from shapedp.sampling import Source
from shapedp.torch.madeup import mapped
from shapedp.torch.recorder import Recorder
from shapedp.torch.refusals import refusal
from shapedp.torch.secret import secret_worker
from shapedp.torch.training import Part as Part
from shapedp.torch.training import Training

_CHUNK = 1 << 20
_END = object()
_KEPT = ("num_workers", "pin_memory", "timeout", "multiprocessing_context", "generator")  # of your loader


@dataclass(eq=False)
class PoissonBatches:
    """Lists of indices, drawn independently and cut into pieces of at most `most`; `announce` is told of each piece.

    Guarantee: each index is in a draw with probability at most `rate`, within 2^-64 of it, independently. All draws
    have the same number of pieces, the last ones empty if need be: what counts them (a scheduler) learns nothing of a
    draw. One draw in 10^8 or fewer fills its last piece with more than `most`.
    """

    indices: range
    rate: float
    draws: int
    source: Source
    most: int | None
    announce: Callable[[Part], None]

    def __iter__(self) -> Iterator[list[int]]:
        for _ in range(self.draws):
            pieces = self._cut(self._draw())
            for k, piece in enumerate(pieces):
                self.announce(Part(len(piece), k == len(pieces) - 1, k == 0))
                yield piece

    @property
    def pieces(self) -> int:
        """The number of pieces of every draw."""
        if self.most is None:
            return 1
        mean = self.rate * len(self.indices)
        likely = mean + 6 * math.sqrt(mean) + 16 if self.rate < 1 else mean
        return max(-(-min(math.ceil(likely), len(self.indices)) // self.most), 1)

    def _cut(self, drawn: list[int]) -> list[list[int]]:
        size, pieces = self.most or 0, self.pieces
        return [*(drawn[k * size : (k + 1) * size] for k in range(pieces - 1)), drawn[(pieces - 1) * size :]]

    def _draw(self) -> list[int]:
        if self.rate >= 1:
            return list(self.indices)
        bound = np.uint64(min(math.floor(self.rate * 2.0**64), 2**64 - 1))
        found = []
        for start in range(0, len(self.indices), _CHUNK):
            words = self.source.words(min(_CHUNK, len(self.indices) - start))
            found.append(np.flatnonzero(words < bound) + start)
        first, step = self.indices.start, self.indices.step
        return [int(first + step * k) for k in np.concatenate(found)]


@dataclass(frozen=True)
class _Pieces(Dataset[Any]):
    """Batches by their indices; an empty piece becomes one record of zeros, which the training gives no weight."""

    dataset: Any
    collate: Callable[[list[Any]], Any]

    def __getitem__(self, indices: list[int]) -> Any:
        batch = self.collate([self.dataset[index] for index in indices or [0]])
        return batch if indices else mapped(batch, torch.zeros_like)


def _unchanged(batch: Any) -> Any:
    return batch


@dataclass(eq=False, repr=False)
class PoissonLoader:
    """The records of your loader in Poisson samples; iterating over it tells the training of each piece.

    `len` is the number of steps of an epoch, which is the number of batches unless `physical_batch_size` cuts them.
    Guarantee: records are read and collated while the global random generators run on secret states.
    """

    given: DataLoader[Any]
    batches: Callable[[Callable[[Part], None]], PoissonBatches]
    steps: int
    recorder: Recorder
    privacy_: Training

    @property
    def dataset(self) -> Any:
        """The data set of your loader."""
        return self.given.dataset

    @property
    def batch_sampler(self) -> Any:
        """Refused: draws are announced to the training as they are handed out."""
        raise AttributeError(refusal("no-batch-sampler"))

    def in_pieces(self, most: int) -> PoissonLoader:
        """The same loader, whose draws come in pieces of at most `most` records."""
        return replace(self, batches=lambda announce: replace(self.batches(announce), most=most))

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Any]:
        parts: deque[Part] = deque()  # one for each iteration: workers draw ahead
        dataset, workers = _Pieces(self.given.dataset, self.given.collate_fn), self.given.worker_init_fn
        options: dict[str, Any] = {name: getattr(self.given, name) for name in _KEPT}
        options["worker_init_fn"] = partial(secret_worker, workers, self.privacy_.source.secure)
        sampler = self.batches(parts.append)
        loader = DataLoader(dataset, batch_size=None, sampler=sampler, collate_fn=_unchanged, **options)
        with self.recorder.secret():
            batches = iter(loader)
        while True:
            with self.recorder.secret():
                batch = next(batches, _END)
            if batch is _END:
                return
            try:
                self.privacy_.receive(parts.popleft())
            except BaseException:
                del batch  # the error's frames hold no record
                raise
            self.recorder.show(batch)
            yield batch
            del batch
