"""Gradients of single records on a GPU: measured and added by kernels of our own, mostly without being laid out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch

from shapedp.numerics.outward import UNIT
from shapedp.torch import gpu
from shapedp.torch.single import CANCEL, Dense, Piece, Scattered

Tensor = torch.Tensor
_SMALL = 1 << 22  # entries of gradients that share a launch
_POSITIONS = 1 << 15  # of a record, up to which what they add to a tied table is known closely enough
_MORE = 2.0**-20  # by how much a row of products may be shorter than its weight says


@dataclass(frozen=True)
class Rows(Dense):
    """Gradients laid out on a GPU."""

    heeds = True

    def squared_norms(self) -> Tensor:
        return gpu.row_squares(self.values.reshape(len(self.values), -1))

    def put(self, totals: list[Tensor], weights: Tensor) -> None:
        gpu.row_sums(self.values.reshape(len(self.values), -1), weights[0], totals[0])


@dataclass(frozen=True)
class Alike(Dense):
    """Small gradients of several parameters with as many entries each: shape (parameters, n, entries)."""

    heeds = True

    @staticmethod
    def serves(values: Tensor) -> bool:
        """Whether gradients are so small that launches count for more than copies."""
        return values.numel() <= _SMALL

    def squared_norms(self) -> Tensor:
        return gpu.row_squares(self.values.flatten(0, 1))

    def put(self, totals: list[Tensor], weights: Tensor) -> None:
        held = self.values.double().masked_fill(weights[:, :, None] == 0.0, 0.0)
        torch._foreach_copy_(totals, [*torch.bmm(weights[:, None, :], held).squeeze(1)])


@dataclass(eq=False)
class Factors:
    """The two factors of products over positions, on a GPU: shapes (n, positions, out) and (n, positions, in).

    Once measured, factors in float32 are held as pairs of float16 numbers, which times a power of two per record are
    the same to 2^-22 (and 2^-40 of the record's largest entry).
    """

    left: Tensor | None
    right: Tensor | None

    @cached_property
    def ready(self) -> gpu.Tiles:
        """The factors as the kernels take them; the given ones are let go."""
        assert self.left is not None
        assert self.right is not None
        left, right, self.left, self.right = self.left, self.right, None, None
        return gpu.tiles(left, right)


@dataclass(frozen=True)
class Fused(Piece):
    """g_i = sum_t left_it right_it^T as the matrix units compute it, in float32, tile by tile.

    Norms and sums are those of the same computed numbers. `squared_norms` is at least |g_i|^2, at most 2^-15 of it
    and (entries) 2^-125 (of factors scaled to about 2^15) more. `weighted_sum` adds rows that are at most
    |w_i| |g_i| long and differ from w_i g_i by 2^-21 of it; it is within 2^-35 sum_i |w_i| |g_i| of their sum.
    """

    factors: Factors
    heeds = True
    cleared = ()

    def squared_norms(self) -> Tensor:
        return gpu.tile_squares(self.factors.ready)

    def put(self, totals: list[Tensor], weights: Tensor) -> None:
        gpu.tile_sums(self.factors.ready, weights[0], totals[0])

    def weighted_sum(self, weights: Tensor) -> Tensor:
        tiles = self.factors.ready
        total = weights.new_empty(tiles.outs * tiles.ins)
        self.put([total], weights[None])
        return total.reshape(tiles.outs, tiles.ins)

    def dense(self) -> Tensor:
        tiles = self.factors.ready
        found = gpu.tile_products(tiles)
        return found if tiles.back is None else (found * tiles.back[:, None, None]).float()

    def joined(self, other: Piece) -> Piece | None:
        if isinstance(other, Scattered) and other.index.shape[1] <= _POSITIONS:
            return Tied(self, other)
        return None


@dataclass(frozen=True)
class Tied(Piece):
    """A table that is also a linear layer's weight: the sum of both gradients.

    |a + s|^2 = |a|^2 + |s|^2 + 2 <a, s>, and s has few rows: those of a are written down where it is measured.
    """

    product: Fused
    rows: Scattered
    heeds = True
    cleared = ()

    def squared_norms(self) -> Tensor:
        tiles, n = self.product.factors.ready, len(self.rows.index)
        keys, sums, reach = self.rows.summed
        slots = torch.full((n * tiles.outs,), -1, dtype=torch.int32, device=keys.device)
        positions = self.rows.index.shape[1]
        place = (self.rows.places - torch.arange(n, device=keys.device)[:, None] * positions).to(torch.int32)
        record = torch.arange(n, device=keys.device)[:, None] * tiles.outs
        slots[(record + self.rows.index).reshape(-1)] = place.reshape(-1)
        seen = torch.zeros(n, positions, tiles.ins, dtype=torch.float32, device=keys.device)
        first = gpu.tile_squares(tiles, slots, seen)
        second = torch.linalg.vector_norm(sums.reshape(n, -1), dim=1).square()
        cross = (seen.double().reshape(n, -1) * sums.reshape(n, -1)).sum(1)
        cross = cross if tiles.back is None else cross * tiles.back
        reached = first + reach.reshape(n, -1).sum(1)
        whole = torch.maximum(first + second + 2 * cross, reached / CANCEL**2)
        whole = whole + reached * ((sums.shape[1] * positions + 16) * UNIT)
        return (whole.sqrt() + reached.sqrt() * _MORE).square()  # rows of products are weighted by a little less

    def put(self, totals: list[Tensor], weights: Tensor) -> None:
        self.product.put(totals, weights)
        self.rows.add_to(totals[0], weights[0])

    def weighted_sum(self, weights: Tensor) -> Tensor:
        return self.product.weighted_sum(weights) + self.rows.weighted_sum(weights)

    def dense(self) -> Tensor:
        return self.product.dense() + self.rows.dense()
