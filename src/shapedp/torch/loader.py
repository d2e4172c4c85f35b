"""From batches of indices to batches of records."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from shapedp.torch.batches import PoissonBatches as PoissonBatches
from shapedp.torch.detour import RecordError
from shapedp.torch.madeup import leaves, mapped
from shapedp.torch.recorder import Recorder
from shapedp.torch.refusals import refusal
from shapedp.torch.secret import kept_states, secret_worker, seed_all
from shapedp.torch.training import Part as Part
from shapedp.torch.training import Training

_END = object()
_KEPT = ("num_workers", "pin_memory", "timeout", "multiprocessing_context", "generator")  # of your loader


@dataclass(frozen=True)
class _Pieces(Dataset[Any]):
    """Batches by their indices; an empty piece becomes one record of zeros, which the training gives no weight.

    With `placed` so does each index of -1, and each record is read with random numbers that belong to its place.
    """

    dataset: Any
    collate: Callable[[list[Any]], Any]
    placed: bool = False

    def __getitem__(self, indices: list[int]) -> Any:
        if self.placed:
            return self._at_places(indices)
        batch = self.collate([self.dataset[index] for index in indices or [0]])
        return batch if indices else mapped(batch, torch.zeros_like)

    def _at_places(self, indices: list[int]) -> Any:
        """Every place has a seed of its own: how many numbers one record takes changes none of another's."""
        count, empty = len(indices), torch.tensor(indices) < 0
        seeds = torch.randint(2**32, (count + 1,), dtype=torch.int64).tolist()
        seeded = type(self.dataset) is not TensorDataset  # which draws nothing
        with kept_states():
            spare, records = self.dataset[0] if empty.any() else None, []
            for index, seed in zip(indices, seeds, strict=False):
                if seeded:
                    seed_all(seed)
                records.append(spare if index < 0 else self.dataset[index])
            seed_all(seeds[-1])
            batch = self.collate(records)

        def blanked(leaf: torch.Tensor) -> torch.Tensor:
            if not leaf.ndim or len(leaf) != count:
                return leaf
            return leaf.masked_fill(empty.reshape(-1, *(1,) * (leaf.ndim - 1)), 0)

        return mapped(batch, blanked) if empty.any() else batch


def _unchanged(batch: Any) -> Any:
    return batch


@dataclass(eq=False, repr=False)
class PoissonLoader:
    """The records of your loader in batches drawn anew; iterating over it tells the training of each piece.

    `len` is the number of steps of an epoch, which is the number of batches unless `physical_batch_size` cuts them.
    Guarantee: records are read and collated while the global random generators run on secret states.
    """

    given: DataLoader[Any]
    batches: Callable[[Callable[[Part], None]], Any]
    steps: int
    recorder: Recorder
    privacy_: Training
    shapes: dict[int, list[Any]] = field(default_factory=dict)  # by the number of places, with types

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
        placed, workers = self.privacy_.planned.independent, self.given.worker_init_fn
        dataset = _Pieces(self.given.dataset, self.given.collate_fn, placed)
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
                part = parts.popleft()
                self._check_shapes(part.records, batch)
                self.privacy_.receive(part)
            except BaseException:
                del batch  # the error's frames hold no record
                raise
            self.recorder.show(batch)
            yield batch
            del batch

    def _check_shapes(self, places: int, batch: Any) -> None:
        """Where no record's gradient may depend on another one, all pieces of so many places have one shape.

        And one type: a record of floats among whole numbers turns, and rounds, the numbers of all.
        """
        found = [(leaf.shape, leaf.dtype) for leaf in leaves(batch)]
        if self.privacy_.planned.independent and found != self.shapes.setdefault(places, found):
            raise RecordError(refusal("shapes-differ"))
