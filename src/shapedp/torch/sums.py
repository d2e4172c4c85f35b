"""Clipped rows of records, summed in float64."""

from __future__ import annotations

import torch

from shapedp.torch.clips import Clip, NormClip
from shapedp.torch.layout import Layout
from shapedp.torch.pieces import ROUND, Dense, Outer, Piece, row_norms

Tensor = torch.Tensor
Gradients = dict[int, Piece]  # by the number of the parameter in the layout
TABLE = 1 << 30  # entries of the largest table of gradients laid out on a GPU


def summed_rows(clip: Clip, layout: Layout, records: int, gradients: Gradients, scale: float = 1.0) -> Tensor:
    """The sum of the clipped rows of `scale` times each gradient; a record whose gradient is not finite adds zero.

    Guarantee: norms are rounded up before factors are formed; see `rounding.margin` for what that leaves.
    """
    if isinstance(clip, NormClip):
        return _by_norms(clip, layout, records, gradients, scale)
    flat = _laid_out(layout, records, gradients) * scale
    good = torch.isfinite(row_norms(flat))
    if not bool(good.all()):
        flat = torch.where(good[:, None], flat, torch.zeros_like(flat))
    return Dense(clip.rows(flat, layout)).without(~good).weighted_sum(good.double())


def _by_norms(clip: NormClip, layout: Layout, records: int, gradients: Gradients, scale: float) -> Tensor:
    blocks = clip.blocks(layout)
    above = 1 + (layout.dim + 16) * ROUND
    if _worth_one_table(layout, records, gradients) and blocks[-1] == 0:
        gradients, layout = {0: Dense(_laid_out(layout, records, gradients))}, Layout.single(layout.dim)
        blocks = (0,)
    squares: list[Tensor | None] = [None] * (blocks[-1] + 1)
    for place, piece in gradients.items():
        found, before = piece.squared_norms(), squares[blocks[place]]
        squares[blocks[place]] = found if before is None else before + found
    like = next(one for one in squares if one is not None)
    each = [torch.zeros_like(like) if one is None else one for one in squares]
    norms = torch.stack(each, dim=1).sqrt() * (scale * above)
    bad = ~torch.isfinite(norms).all(1)
    if bool(bad.any()):
        gradients = {place: piece.without(bad) for place, piece in gradients.items()}
        norms = torch.where(bad[:, None], torch.zeros_like(norms), norms)
    factors = clip.factors(norms) * scale
    parts = []
    for place, size in enumerate(layout.sizes):
        if place in gradients:
            parts.append(gradients[place].weighted_sum(factors[:, blocks[place]]).reshape(-1))
        else:
            parts.append(like.new_zeros(size))
    extra = clip.statistics(norms)
    if extra is not None:
        parts.append(torch.where(bad[:, None], torch.zeros_like(extra), extra).sum(0))
    return torch.cat(parts)


def _worth_one_table(layout: Layout, records: int, gradients: Gradients) -> bool:
    """Whether one long product saves enough launches on a GPU to pay for a copy."""
    table = all(
        piece.values.is_cuda if isinstance(piece, Dense) else isinstance(piece, Outer) and piece.left.is_cuda
        for piece in gradients.values()
    )
    return table and records * layout.dim <= TABLE


def _laid_out(layout: Layout, records: int, gradients: Gradients) -> Tensor:
    like = next(iter(gradients.values())).dense()
    parts = [
        gradients[place].dense().reshape(records, -1) if place in gradients else like.new_zeros(records, size)
        for place, size in enumerate(layout.sizes)
    ]
    return torch.cat(parts, dim=1)
