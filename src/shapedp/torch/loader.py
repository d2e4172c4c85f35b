"""Poisson batches: every record is in with the same probability, on its own."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils.data import (
    DataLoader,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    default_collate,
)

from shapedp.sampling import Source
from shapedp.torch.secret import SecretWorker

_USUAL = (RandomSampler, SequentialSampler, DistributedSampler)
_CHUNK = 1 << 20
_END = object()


@dataclass(frozen=True)
class Part:
    """A piece of one draw, as the loader hands it out: its number of records, whether it ends or begins the draw."""

    records: int
    last: bool
    first: bool = True


class PoissonBatches:
    """Index lists of independent draws, cut into pieces of `most`; `announce` is told what is handed out.

    Guarantee: each index is in a draw with probability at most `rate`, within 2^-64 of it, independently. All draws
    have the same number of pieces, the last ones empty if need be: what follows their number (a scheduler) tells
    nothing of a draw. One draw in 10^8 or fewer fills its last piece with more than `most`.
    """

    def __init__(
        self,
        indices: range,
        rate: float,
        draws: int,
        source: Source,
        most: int | None,
        announce: Callable[[Part], None],
    ) -> None:
        self.indices, self.rate, self.draws = indices, rate, draws
        self.source, self.most, self.announce = source, most, announce

    def __len__(self) -> int:
        return self.draws

    def __iter__(self) -> Iterator[list[int]]:
        for _ in range(self.draws):
            pieces = self._cut(self._draw())
            for k, piece in enumerate(pieces):
                self.announce(Part(len(piece), k == len(pieces) - 1, k == 0))
                yield piece or [-1]

    @property
    def pieces(self) -> int:
        """The number of pieces of every draw."""
        if self.most is None:
            return 1
        mean = self.rate * len(self.indices)
        largest = (
            min(math.ceil(mean + 6 * math.sqrt(mean) + 16), len(self.indices)) if self.rate < 1 else math.ceil(mean)
        )
        return max(-(-largest // self.most), 1)

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


class _WithEmpty:
    """A collate function; an empty draw becomes one record of zeros, which the training gives no weight."""

    def __init__(self, dataset: Any, collate: Callable[[list[Any]], Any] | None) -> None:
        self.dataset, self.collate = dataset, collate or default_collate

    def __call__(self, records: list[Any]) -> Any:
        batch = self.collate([one.example if isinstance(one, _Blank) else one for one in records])
        return _zeros(batch) if any(isinstance(one, _Blank) for one in records) else batch


@dataclass(frozen=True)
class _Blank:
    example: Any


class _Blanks(torch.utils.data.Dataset[Any]):
    """A dataset whose entry -1 stands for an empty draw."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __getitem__(self, index: int) -> Any:
        return _Blank(self.dataset[0]) if index == -1 else self.dataset[index]

    def __len__(self) -> int:
        return len(self.dataset)


def _zeros(batch: Any) -> Any:
    if isinstance(batch, torch.Tensor):
        return torch.zeros_like(batch)
    if isinstance(batch, dict):
        return {key: _zeros(value) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(_zeros, batch))
    return type(batch)(map(_zeros, batch)) if isinstance(batch, tuple | list) else batch


class PoissonLoader:
    """What the user's loader gave, in Poisson draws; iterating it announces each piece to the training.

    `len` is the number of pieces if no draw is cut, that is the number of steps of an epoch. Records are read and
    collated inside `secret()`, which puts the random generators on secret states; `show` is given each batch.
    """

    def __init__(
        self,
        loader: DataLoader[Any],
        batches: Callable[[Callable[[Part], None]], PoissonBatches],
        steps: int,
        receive: Callable[[Part], None],
        show: Callable[[Any], None],
        secret: Callable[[], AbstractContextManager[None]],
        secure: bool,
    ) -> None:
        self.dataset: Any = loader.dataset
        self._show, self._secret, self._secure = show, secret, secure
        self.privacy_: Any = None
        self._given, self._batches, self._steps, self._receive = loader, batches, steps, receive

    def __len__(self) -> int:
        return self._steps

    def __iter__(self) -> Iterator[Any]:
        parts: deque[Part] = deque()  # one for each iteration: workers draw ahead
        given = self._given
        loader: DataLoader[Any] = DataLoader(
            _Blanks(given.dataset),
            batch_sampler=self._batches(parts.append),
            collate_fn=_WithEmpty(given.dataset, given.collate_fn),
            num_workers=given.num_workers,
            pin_memory=given.pin_memory,
            timeout=given.timeout,
            worker_init_fn=SecretWorker(given.worker_init_fn, self._secure),
            multiprocessing_context=given.multiprocessing_context,
            generator=given.generator,
        )
        with self._secret():
            batches = iter(loader)
        while True:
            with self._secret():
                batch = next(batches, _END)
            if batch is _END:
                return
            try:
                self._receive(parts.popleft())
            except BaseException:
                del batch  # the error's frames hold no record
                raise
            self._show(batch)
            yield batch
            del batch


def checked_loader(loader: Any) -> tuple[int, int, int]:
    """(records, batch size, steps per epoch) of a loader whose batches can be drawn anew; refuses others."""
    if not isinstance(loader, DataLoader):
        raise TypeError(f"loader must be a torch DataLoader, got {type(loader).__name__}")
    if isinstance(loader.dataset, IterableDataset):
        raise ValueError("an IterableDataset cannot be Poisson-sampled: use a dataset with __len__ and __getitem__")
    if loader.batch_size is None:
        raise ValueError("the loader must have a batch_size: it is the expected size of the Poisson batches")
    if not isinstance(loader.sampler, _USUAL):
        raise ValueError(
            f"the loader draws with {type(loader.sampler).__name__}, but batches must be Poisson samples: leave the "
            "sampler out (weights per record would change the privacy accounting)"
        )
    records = len(loader.dataset)  # type: ignore[arg-type]
    if not 0 < loader.batch_size <= records:
        raise ValueError(f"batch_size must lie between 1 and the number of records {records}, got {loader.batch_size}")
    whole = records // loader.batch_size
    steps = whole if loader.drop_last else -(-records // loader.batch_size)
    return records, loader.batch_size, max(steps, 1)
