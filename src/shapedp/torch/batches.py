"""Which records are in which batch: exactly what the certificate of each way of sampling speaks of."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from shapedp.sampling import Source
from shapedp.torch.training import Part

Indices = NDArray[np.int64]
_CHUNK = 1 << 20


class Batches(ABC):
    """Lists of indices, drawn and cut into pieces of at most `most`; `announce` is told of each piece.

    Guarantee: all draws have the same number of pieces, the last ones empty if need be: what counts them (a scheduler)
    learns nothing of a draw. Where sizes are random, one draw in 10^8 or fewer fills its last piece with more.
    """

    indices: range
    most: int | None
    announce: Callable[[Part], None]
    whole_pass = False  # whether one iteration is a pass in which each index is in one draw

    @abstractmethod
    def _draws(self) -> Iterator[Indices]:
        """The draws of one iteration, each as places in `indices`."""

    @abstractmethod
    def _likely(self) -> float:
        """A size that a draw hardly ever exceeds."""

    def __iter__(self) -> Iterator[list[int]]:
        origin = object() if self.whole_pass else None
        first, step = self.indices.start, self.indices.step
        for drawn in self._draws():
            pieces = self._cut([int(first + step * k) for k in drawn])
            for k, piece in enumerate(pieces):
                self.announce(Part(len(piece), k == len(pieces) - 1, k == 0, origin=origin))
                yield piece

    @property
    def pieces(self) -> int:
        """The number of pieces of every draw."""
        if self.most is None:
            return 1
        return max(-(-min(math.ceil(self._likely()), len(self.indices)) // self.most), 1)

    def _cut(self, drawn: list[int]) -> list[list[int]]:
        size, pieces = self.most or 0, self.pieces
        return [*(drawn[k * size : (k + 1) * size] for k in range(pieces - 1)), drawn[(pieces - 1) * size :]]


@dataclass(eq=False)
class PoissonBatches(Batches):
    """Every index is in every draw with the same probability, on its own.

    Guarantee: each index is in a draw with probability at most `rate`, within 2^-64 of it, independently.
    """

    indices: range
    rate: float
    draws: int
    source: Source
    most: int | None
    announce: Callable[[Part], None]

    def _draws(self) -> Iterator[Indices]:
        for _ in range(self.draws):
            yield self._draw()

    def _likely(self) -> float:
        mean = self.rate * len(self.indices)
        return mean + 6 * math.sqrt(mean) + 16 if self.rate < 1 else mean

    def _draw(self) -> Indices:
        if self.rate >= 1:
            return np.arange(len(self.indices))
        bound = np.uint64(min(math.floor(self.rate * 2.0**64), 2**64 - 1))
        found = []
        for start in range(0, len(self.indices), _CHUNK):
            words = self.source.words(min(_CHUNK, len(self.indices) - start))
            found.append(np.flatnonzero(words < bound) + start)
        return np.concatenate(found)


@dataclass(eq=False)
class AllocatedBatches(Batches):
    """A pass of `draws` draws: every index is placed in one of them, on its own.

    Guarantee: each place is exactly as likely as any other, whatever the places of all other indices are.
    """

    indices: range
    draws: int
    source: Source
    most: int | None
    announce: Callable[[Part], None]
    whole_pass = True

    def _draws(self) -> Iterator[Indices]:
        places = self._places()
        order = np.argsort(places, kind="stable")
        yield from np.split(order, np.searchsorted(places[order], np.arange(1, self.draws)))

    def _likely(self) -> float:
        mean = len(self.indices) / self.draws
        return mean + 6 * math.sqrt(mean) + 16 if self.draws > 1 else mean

    def _places(self) -> Indices:
        """Uniform integers below `draws`: words of 64 bits beyond the last whole multiple are drawn again."""
        bound = 2**64 - 2**64 % self.draws
        places = np.empty(len(self.indices), dtype=np.int64)
        open_ = np.arange(places.size)
        while open_.size:
            words = self.source.words(open_.size)
            fits = words <= np.uint64(bound - 1)
            places[open_[fits]] = (words[fits] % np.uint64(self.draws)).astype(np.int64)
            open_ = open_[~fits]
        return places


@dataclass(eq=False)
class ShuffledBatches(Batches):
    """A pass over a random order in batches of exactly `size`; the last one takes what is left.

    Guarantee: every order is as likely as any other.
    """

    indices: range
    size: int
    source: Source
    most: int | None
    announce: Callable[[Part], None]
    whole_pass = True

    def _draws(self) -> Iterator[Indices]:
        order = uniform_order(len(self.indices), self.source)
        for start in range(0, order.size, self.size):
            yield order[start : start + self.size]

    def _likely(self) -> float:
        return self.size


@dataclass(eq=False)
class FixedBatches(Batches):
    """Draws of exactly `size` different indices, each anew.

    Guarantee: in a draw every set of `size` indices is as likely as any other, whatever was drawn before.
    """

    indices: range
    size: int
    draws: int
    source: Source
    most: int | None
    announce: Callable[[Part], None]

    def _draws(self) -> Iterator[Indices]:
        for _ in range(self.draws):
            yield np.sort(uniform_order(len(self.indices), self.source)[: self.size])

    def _likely(self) -> float:
        return self.size


@dataclass(eq=False)
class PlacedBatches:
    """Draws whose records stand at random among `places`, in pieces of one size; -1 is a place without a record.

    `drawn` draws the records; 0 places mean as many as each draw has records, where that is fixed.
    Guarantee: whoever is drawn, each set of places for them is as likely as any other, in every order. So a record that
    joins takes one of the places that are free, each as likely, and moves nobody. Only a draw of more records than
    places has more of them.
    """

    drawn: Any  # one of the above, or of what draws for noise over time
    places: int
    source: Source
    most: int | None
    announce: Callable[[Part], None]

    def __iter__(self) -> Iterator[list[int]]:
        parts: deque[Part] = deque()
        for drawn in replace(self.drawn, announce=parts.append, most=None):
            part, pieces = parts.popleft(), self._placed(drawn)
            for k, piece in enumerate(pieces):
                kept = torch.from_numpy(piece >= 0)
                last = k == len(pieces) - 1
                self.announce(replace(part, records=len(piece), last=last, first=k == 0, kept=kept))
                yield piece.tolist()

    def _placed(self, drawn: list[int]) -> Indices:
        """One row per piece."""
        places = self.places or len(drawn)
        pieces = 1 if self.most is None else -(-places // self.most)
        size = -(-places // pieces)
        pieces = max(pieces, -(-len(drawn) // size))
        rows = np.full(pieces * size, -1, dtype=np.int64)
        rows[uniform_order(rows.size, self.source)[: len(drawn)]] = drawn
        return rows.reshape(pieces, size)


def uniform_order(count: int, source: Source) -> Indices:
    """The numbers below `count` in an order that is exactly uniform: by random words, all drawn again if two agree."""
    while True:
        words = source.words(count)
        order = np.argsort(words)
        if not (np.diff(words[order]) == 0).any():
            return order
