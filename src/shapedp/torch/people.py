"""The records of a piece by person: gradients of single records become those of persons."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from shapedp.torch.fused import Factors, Fused
from shapedp.torch.gradients import Gradients
from shapedp.torch.rules import WIDE
from shapedp.torch.single import GRAMS, Dense, Outer, Piece, Products, Scattered


@dataclass(frozen=True)
class People:
    """How many records each person of a piece has, in the order of the loader; `most` is the public cap."""

    sizes: tuple[int, ...]
    most: int

    def together(self, gradients: Gradients) -> Gradients:
        """The gradient of each person: the mean of those of their records.

        Guarantee: it depends on that person's records alone. One that is not finite makes the person's not finite.
        """
        return {place: self._piece(piece) for place, piece in gradients.items()}

    def _piece(self, piece: Piece) -> Piece:
        if isinstance(piece, Outer):
            return _product(self._side_by_side(piece.left[:, None], True), self._side_by_side(piece.right[:, None]))
        if isinstance(piece, Products):
            return _product(self._side_by_side(piece.left, True), self._side_by_side(piece.right))
        if isinstance(piece, Fused) and piece.factors.left is not None and piece.factors.right is not None:
            left, right = piece.factors.left.float(), piece.factors.right.float()
            return Fused(Factors(self._side_by_side(left, True), self._side_by_side(right)))
        if isinstance(piece, Scattered):
            values = self._side_by_side(piece.values, True)
            return Scattered(self._side_by_side(piece.index), values, piece.rows)
        values = piece.dense()
        slots, shares = self._slots(values)
        total = values.new_zeros(len(self.sizes), *values.shape[1:])
        for place, share in zip(slots.unbind(1), shares.unbind(1), strict=True):
            total += _shared(values[place.clamp(min=0)], share)
        return Dense(total)

    def _slots(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Tables of persons by places: the row that stands there, -1 for none; and its share of the mean."""
        sizes = torch.tensor(self.sizes, device=like.device)
        places = torch.arange(self.most, device=like.device)
        filled = places < sizes[:, None]
        rows = (sizes.cumsum(0) - sizes)[:, None] + places
        return torch.where(filled, rows, -1), filled.to(like.dtype) / sizes[:, None].to(like.dtype)

    def _side_by_side(self, values: Tensor, shared: bool = False) -> Tensor:
        """(records, positions, ...) as (persons, most positions, ...): zeros where a person has no more records."""
        slots, shares = self._slots(values if shared else values.new_zeros(0, dtype=torch.float64))
        rows = values[slots.clamp(min=0)].flatten(0, 1)
        kept = rows.masked_fill(slots.reshape(-1, *(1,) * (rows.ndim - 1)) < 0, 0)
        wide = _shared(kept, shares.reshape(-1)) if shared else kept
        return wide.reshape(len(self.sizes), self.most * values.shape[1], *values.shape[2:])


def _shared(values: Tensor, shares: Tensor) -> Tensor:
    """Rows times their shares; a share of 0 gives 0, whatever the row holds."""
    column = shares.reshape(-1, *(1,) * (values.ndim - 1))
    return values.masked_fill(column == 0, 0.0) * column


def _product(left: Tensor, right: Tensor) -> Piece:
    """sum_t left_t right_t^T for each person, laid out where that is cheaper or Gram matrices would round too much."""
    entries = left.shape[2] * right.shape[2]
    wide = entries >= WIDE and 2 * left.shape[1] ** 2 <= entries
    if wide and Products.size(left.shape[1:], right.shape[2]) <= GRAMS:
        return Products(left, right)
    return Dense(torch.bmm(left.transpose(1, 2), right))
