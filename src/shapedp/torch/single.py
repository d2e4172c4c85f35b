"""Gradients of single records, by parameter: their norms and weighted sums in float64, laid out only where needed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import torch

from shapedp.numerics.outward import UNIT

Tensor = torch.Tensor
CANCEL = 128.0  # how much longer than the gradient the terms it is a sum of may be before they count
POSITIONS = 1 << 20  # terms of one gradient
GRAMS = 1 << 14  # the most rows, columns and (twice) positions of a gradient whose norm comes from Gram matrices
_TAMED = (1e-100, 1e100)  # what float64 products can hold
_STEP = 4096  # rows of one product
_CACHED, _ON_DEVICE = 1 << 16, 1 << 25  # entries of a float64 copy: on the CPU it stays in a core's cache


@dataclass(frozen=True)
class Piece(ABC):
    """Gradients g_1 ... g_n of one parameter.

    Where a gradient is a sum of terms, reach_i is the norm it would have if none cancelled.
    Guarantee: with u = 2^-53 and h_i = max(|g_i|, reach_i/CANCEL), `squared_norms` lies between h_i^2 (1 - k u) and
    h_i^2 (1 + k u), k the number of entries of a gradient plus 16 (for sums of terms between h_i^2 (1 - k u) and
    h_i^2 (1 + 2^-23)); `weighted_sum` is within (s + 8) u sum_i |w_i| reach_i of the sum, s the number of additions
    behind an entry, whatever their order.
    """

    cleared: ClassVar[tuple[str, ...]]  # the fields whose rows are the records'
    heeds: ClassVar[bool] = False  # whether a weight of zero takes nothing even of what is not finite

    @abstractmethod
    def squared_norms(self) -> Tensor:
        """h_i^2, float64."""

    @abstractmethod
    def weighted_sum(self, weights: Tensor) -> Tensor:
        """sum_i w_i g_i for float64 weights, float64, in the parameter's shape."""

    @abstractmethod
    def dense(self) -> Tensor:
        """All gradients, shape (n, *shape), in their own precision."""

    def put(self, totals: list[Tensor], weights: Tensor) -> None:
        """Write the weighted sum of each parameter to its entry of `totals`, flat; a row of weights per parameter."""
        totals[0].copy_(self.weighted_sum(weights[0]).reshape(-1))

    def joined(self, other: Piece) -> Piece | None:
        """These gradients plus others of the same parameter, where that needs no layout; else None."""
        return None

    def without(self, bad: Tensor) -> Self:
        """The same with zeros for the records of the mask, whatever they hold."""
        held = {name: getattr(self, name) for name in self.cleared}
        return replace(self, **{k: v.masked_fill(bad.reshape(-1, *(1,) * (v.ndim - 1)), 0.0) for k, v in held.items()})


@dataclass(frozen=True)
class Dense(Piece):
    """Gradients laid out, shape (n, *shape)."""

    cleared = ("values",)
    values: Tensor

    def squared_norms(self) -> Tensor:
        return row_norms(self.values.reshape(len(self.values), -1)).square()

    def weighted_sum(self, weights: Tensor) -> Tensor:
        rows = self.values.reshape(len(self.values), -1)
        total = weights.new_zeros(rows.shape[1])
        for start, wide in _wide(rows):
            total.addmv_(wide.T, weights[start : start + len(wide)])
        return total.reshape(self.values.shape[1:])

    def dense(self) -> Tensor:
        return self.values


@dataclass(frozen=True)
class _Factors(Piece):
    """Gradients made of products of two factors.

    float64 factors below 1e-100 become zero, above 1e100 infinite: their products and squares stay in range.
    """

    cleared = ("left", "right")
    left: Tensor
    right: Tensor

    def __post_init__(self) -> None:
        for name, values in (("left", self.left), ("right", self.right)):
            if values.dtype == torch.float64:
                size = values.abs()
                tamed = torch.where(size < _TAMED[0], 0.0, torch.where(size > _TAMED[1], torch.inf, values))
                object.__setattr__(self, name, tamed)


@dataclass(frozen=True)
class Outer(_Factors):
    """g_i = left_i right_i^T: the weight of a linear layer seen once per record."""

    def squared_norms(self) -> Tensor:
        return (row_norms(self.left) * row_norms(self.right)).square()

    def weighted_sum(self, weights: Tensor) -> Tensor:
        return _products(self.left, self.right, weights)

    def dense(self) -> Tensor:
        return self.left[:, :, None] * self.right[:, None, :]


@dataclass(frozen=True)
class Products(_Factors):
    """g_i = sum_t left_it right_it^T over positions t: the weight of a wide linear layer on sequences.

    Factors have the shapes (n, positions, out) and (n, positions, in).
    Norms come from Gram matrices, |g_i|^2 = sum_ts <left_t, left_s> <right_t, right_s>: terms may cancel, so the bound
    (out + in + 2 positions + 8) 2^-53 reach^2 on the rounding of that sum is added, reach = sum_t |left_t| |right_t|.
    """

    def __post_init__(self) -> None:
        if self.size(self.left.shape[1:], self.right.shape[2]) > GRAMS:
            raise ValueError("a gradient of this size must be laid out: its Gram matrices would round too much")
        super().__post_init__()

    @staticmethod
    def size(left: tuple[int, ...], inputs: int) -> int:
        """out + in + 2 positions, which must not exceed GRAMS."""
        return 2 * left[0] + left[1] + inputs

    def squared_norms(self) -> Tensor:
        sure = (self.size(self.left.shape[1:], self.right.shape[2]) + 8) * UNIT
        found = []
        for first in range(0, len(self.left), few := _few(self.left[0].numel() + self.right[0].numel(), self.left)):
            left, right = self.left[first : first + few].double(), self.right[first : first + few].double()
            grams = torch.bmm(left, left.transpose(1, 2)) * torch.bmm(right, right.transpose(1, 2))
            reach = (torch.linalg.vector_norm(left, dim=2) * torch.linalg.vector_norm(right, dim=2)).sum(1).square()
            squares = grams.sum(2).sum(1).clamp(min=0.0) + sure * reach
            found.append(torch.maximum(squares, reach / CANCEL**2))
        return torch.cat(found)

    def weighted_sum(self, weights: Tensor) -> Tensor:
        spread = weights.repeat_interleave(self.left.shape[1])
        return _products(self.left.flatten(0, 1), self.right.flatten(0, 1), spread)

    def dense(self) -> Tensor:
        return torch.bmm(self.left.transpose(1, 2), self.right)


@dataclass(frozen=True)
class Scattered(Piece):
    """Gradients of rows of a table: record i adds values_it to the row index_it.

    What a record adds to a row is summed once, in float64; its norm and its share of the sum are those of that.
    """

    cleared = ("values",)
    heeds = True
    index: Tensor  # (n, positions)
    values: Tensor  # (n, positions, width)
    rows: int

    def __post_init__(self) -> None:
        if self.index.shape[1] > POSITIONS:
            raise ValueError(f"a record may look up at most {POSITIONS} rows of a table, got {self.index.shape[1]}")

    @cached_property
    def summed(self) -> tuple[Tensor, Tensor, Tensor]:
        """Record and row of each row that a record adds to, what it adds there, and the squared reach of that."""
        n, positions = self.index.shape
        place = self.places.reshape(-1)
        record = torch.arange(n, device=self.index.device)[:, None] * self.rows
        keys = record.repeat(1, positions).reshape(-1)  # a place that is not needed adds zero to row 0
        keys[place] = (record + self.index).reshape(-1)
        wide = self.values.reshape(n * positions, self.values.shape[2]).double()
        sums = torch.zeros_like(wide).index_add_(0, place, wide)
        reach = wide.new_zeros(len(keys)).index_add_(0, place, torch.linalg.vector_norm(wide, dim=1))
        return keys, sums, reach.square()

    @cached_property
    def places(self) -> Tensor:
        """(n, positions): where in a list of n times `positions` rows the row stands that a position adds to."""
        n, positions = self.index.shape
        rows, order = self.index.sort(dim=1)
        number = (rows[:, 1:] != rows[:, :-1]).cumsum(1)
        number = torch.cat([number.new_zeros(n, 1), number], dim=1)[:, :positions]
        number += torch.arange(n, device=number.device)[:, None] * positions
        return torch.empty_like(number).scatter_(1, order, number)

    def squared_norms(self) -> Tensor:
        keys, sums, reach = self.summed
        record = keys // self.rows
        none = reach.new_zeros(len(self.index))
        squares = none.index_add(0, record, torch.linalg.vector_norm(sums, dim=1).square())
        return torch.maximum(squares, none.index_add(0, record, reach) / CANCEL**2)

    def weighted_sum(self, weights: Tensor) -> Tensor:
        total = weights.new_zeros(self.rows, self.values.shape[2])
        self.add_to(total, weights)
        return total

    def put(self, totals: list[Tensor], weights: Tensor) -> None:
        self.add_to(totals[0].zero_(), weights[0])

    def add_to(self, total: Tensor, weights: Tensor) -> None:
        """total + the weighted sum, in place."""
        keys, sums, _ = self.summed
        each = weights[keys // self.rows, None]
        rows = (sums * each).masked_fill(each == 0.0, 0.0)
        total.view(self.rows, -1).index_add_(0, keys % self.rows, rows)

    def dense(self) -> Tensor:
        n = self.index.shape[0]
        total = self.values.new_zeros(n * self.rows, self.values.shape[2])
        record = torch.arange(n, device=self.index.device)[:, None]
        total.index_add_(0, (record * self.rows + self.index).reshape(-1), self.values.flatten(0, 1))
        return total.reshape(n, self.rows, -1)


def row_norms(rows: Tensor) -> Tensor:
    """|row|_2 of a matrix, float64: within (entries + 4) 2^-53 of itself, squares of float32 never leave the range."""
    found = rows.new_empty(len(rows), dtype=torch.float64)
    for start, wide in _wide(rows):
        torch.linalg.vector_norm(wide, dim=1, out=found[start : start + len(wide)])
    return found


def _wide(rows: Tensor) -> Iterator[tuple[int, Tensor]]:
    """(first row, rows in float64), some rows at a time in one buffer."""
    if rows.dtype == torch.float64:
        yield 0, rows
        return
    few = max(1, min(_few(rows.shape[1], rows), len(rows)))
    buffer = rows.new_empty(few, rows.shape[1], dtype=torch.float64)
    for start in range(0, len(rows), few):
        yield start, buffer[: len(rows) - start].copy_(rows[start : start + few])


def _products(left: Tensor, right: Tensor, weights: Tensor) -> Tensor:
    """sum_i w_i left_i right_i^T, some rows at a time."""
    total = weights.new_zeros(left.shape[1], right.shape[1])
    for start in range(0, len(left), _STEP):
        part = slice(start, start + _STEP)
        total.addmm_((left[part].double() * weights[part, None]).T, right[part].double())
    return total


def _few(entries: int, like: Tensor) -> int:
    """How many records of so many entries are copied to float64 at a time."""
    return max(1, (_CACHED if like.device.type == "cpu" else _ON_DEVICE) // max(entries, 1))
