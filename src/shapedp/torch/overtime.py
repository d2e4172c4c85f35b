"""Noise over time in a training: what is kept of earlier noise, in whole numbers, and who takes part when.

Let g_t be the sum of a step on a grid 2^-23 of the noise or finer, and w_j = u_j - g_j the noise that step j released.
Step t releases u_t = (r_t rounded)/c_tt where r_t is q_t + z_t on the law's grid, q_t = c_tt g_t - sum_(j<t) c_tj w_j.
As q_t = (C g)_t - sum_(j<t) c_tj u_j exactly, r_t is a function of (C g)_t + z_t and of what was released before: all
releases are post-processing of C g + z, in floating point as well. Whole numbers make it exact: g and w count grid
steps, the entries of C are multiples of 2^-18. Buffers are rounded; the plan widens the set by what that moves.

The w_j tell the sums: they stay in memory, and no state or checkpoint holds them. A run that goes on starts anew with
noise of its own, and its first unit is charged in full.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.noise import Gaussian
from shapedp.numerics.arrays import Floats
from shapedp.numerics.gram import Integers
from shapedp.sampling import Source, grid_for
from shapedp.torch.loader import PoissonBatches
from shapedp.torch.training import Part
from shapedp.workloads import Buffered, Correlation
from shapedp.workloads.time_bands import BITS, ONE, Bands

_FINER = 7  # bits between the grid of the law and that of the sums
_KEPT = 8  # bits between the grid of the sums and that of buffers
_MOST = 2**42  # grid steps of a sum: far beyond any that fits its noise

Draw = Callable[[], NDArray[Any]]
Watch = Callable[[Floats, Draw], NDArray[Any]]


class _History(ABC):
    """The noise of earlier steps, in grid steps of the sums."""

    @abstractmethod
    def pull(self) -> tuple[int, Integers]:
        """c_tt and sum_(j<t) c_tj w_j, both in units of 2^-18."""

    @abstractmethod
    def push(self, noise: Integers) -> None:
        """Keep the noise of this step."""


class _Columns(_History):
    """The last `bands` - 1 steps, at 4 bytes per entry."""

    def __init__(self, bands: Bands, dim: int) -> None:
        self.bands, self.step = bands, 0
        self.kept = np.zeros((bands.copies, dim), dtype=np.int32)
        self.limits = np.iinfo(np.int32)

    def pull(self) -> tuple[int, Integers]:
        row, total = self.bands.row(self.step), np.zeros(self.kept.shape[1], dtype=np.int64)
        for back in range(1, len(row)):
            total += self.kept[(self.step - back) % len(self.kept)] * row[back]
        return int(row[0]), total

    def push(self, noise: Integers) -> None:
        if len(self.kept):  # a number beyond 32 bits has a probability below 2^-180: rows of C^-1 have norm at most 8
            self.kept[self.step % len(self.kept)] = np.clip(noise, self.limits.min, self.limits.max)
        self.step += 1


class _Buffers(_History):
    """One sum per buffer, at 8 bytes per entry."""

    def __init__(self, buffered: Buffered, dim: int) -> None:
        self.kept = np.zeros((len(buffered.decays), dim), dtype=np.int64)
        self.lost = [round((1 - one) * ONE) for one in buffered.decays]
        self.weights = [round(one * ONE) for one in buffered.weights]

    def pull(self) -> tuple[int, Integers]:
        total = np.zeros(self.kept.shape[1], dtype=np.int64)
        for weight, sums in zip(self.weights, self.kept, strict=True):
            total += weight * sums
        return ONE, total >> _KEPT

    def push(self, noise: Integers) -> None:
        for lost, sums in zip(self.lost, self.kept, strict=True):
            sums -= (sums * lost + ONE // 2) >> BITS
            sums += noise << _KEPT


class Stream:
    """The noise of one run of a training, step after step.

    Guarantee: what `release` returns is a function of C g + z and of what it returned before, z drawn by `law`.
    """

    def __init__(self, correlation: Correlation, law: Gaussian) -> None:
        self.law, self.steps = law, correlation.steps
        self.grid = grid_for(law.scales)
        kind: Any = _Buffers if isinstance(correlation, Buffered) else _Columns
        self.history: _History = kind(correlation, law.dim)

    def release(self, total: Floats, source: Source, watch: Watch) -> Floats:
        """total + the noise of this step; `watch` is told what enters it and may answer in its place."""
        fine = self.grid * 2.0**-_FINER
        sums = np.clip(np.rint(total / fine), -_MOST, _MOST).astype(np.int64)
        first, pull = self.history.pull()
        query = first * sums - pull
        whole, part = query >> (BITS + _FINER), query & (2 ** (BITS + _FINER) - 1)
        unit = fine * 2.0**-BITS

        def draw() -> NDArray[Any]:
            return np.asarray(whole * self.grid + self.law.add_to(part * unit, source))

        drawn = np.rint(np.asarray(watch(query * unit, draw), dtype=np.float64) / self.grid)
        released = np.rint(drawn * (2.0 ** (BITS + _FINER) / first)).astype(np.int64)
        self.history.push(released - sums)
        return np.asarray(released * fine)


def drawn_groups(indices: range, separation: int, source: Source) -> Integers:
    """A group for each index, uniform and on its own, for the whole of a run."""
    return np.asarray(source.words(len(indices)) % np.uint64(separation)).astype(np.int64)


@dataclass(eq=False)
class CyclicBatches(PoissonBatches):
    """Draws from one group of the records at a time: draw k from group k mod `separation`, each with its number.

    Every index belongs to one of `groups`, drawn once for a run, so that a record that leaves moves no other.
    Guarantee: each index of the group is drawn with probability at most `rate`, the others are not.
    """

    groups: Integers | None = None
    separation: int = 1
    next_turn: Callable[[], int] = lambda: 0

    def __iter__(self) -> Iterator[list[int]]:
        assert self.groups is not None
        start, first, step = self.next_turn(), self.indices.start, self.indices.step
        for turn in range(start, start + self.draws):
            inside = self.groups == turn % self.separation
            drawn = [one for one in self._draw() if inside[(one - first) // step]]
            pieces = self._cut(drawn)
            for k, piece in enumerate(pieces):
                self.announce(Part(len(piece), k == len(pieces) - 1, k == 0, turn=turn))
                yield piece

    @property
    def pieces(self) -> int:
        """The number of pieces of every draw; groups are of random size, at any rate."""
        if self.most is None:
            return 1
        mean = self.rate * len(self.indices) / self.separation
        return max(-(-min(int(mean + 6 * mean**0.5 + 16), len(self.indices)) // self.most), 1)
