"""The sum of clipped gradients: norms first, then one weighted product per parameter."""

from __future__ import annotations

import itertools

import torch

from shapedp.numerics.outward import UNIT
from shapedp.torch import gpu
from shapedp.torch.clips import Clip, NormClip
from shapedp.torch.fused import Alike, Rows
from shapedp.torch.layout import Layout
from shapedp.torch.single import CANCEL as CANCEL
from shapedp.torch.single import GRAMS as GRAMS
from shapedp.torch.single import Dense as Dense
from shapedp.torch.single import Outer as Outer
from shapedp.torch.single import Piece as Piece
from shapedp.torch.single import Products as Products
from shapedp.torch.single import Scattered as Scattered
from shapedp.torch.single import row_norms

Tensor = torch.Tensor
Gradients = dict[int, Piece]  # by the number of the parameter in the layout
Groups = list[tuple[tuple[int, ...], Piece]]  # gradients of the numbered parameters, measured and added together
TABLE = 1 << 30  # entries of the largest table of gradients laid out on a GPU


def added(pieces: list[Piece]) -> Piece:
    """The gradients of a parameter that one pass used several times."""
    first, *others = pieces
    for other in others:
        joined = first.joined(other) or other.joined(first)
        if joined is None:
            return Dense(torch.stack([piece.dense() for piece in pieces]).sum(0))
        first = joined
    return first


def summed_rows(
    clip: Clip, layout: Layout, records: int, gradients: Gradients, scale: float = 1.0, kept: Tensor | None = None
) -> Tensor:
    """The sum of the clipped rows of `scale` times each gradient; a record whose gradient is not finite adds zero.

    So does one that is not among the `kept`, whatever it holds.

    Guarantee: norms are rounded up before factors are formed; see `rounding.margin` for what that leaves.
    """
    if isinstance(clip, NormClip):
        return _by_norms(clip, layout, records, gradients, scale, kept)
    flat = _laid_out(layout, records, gradients) * scale
    good = torch.isfinite(row_norms(flat))
    good = good if kept is None else good & kept.to(good.device)
    flat.masked_fill_(~good[:, None], 0.0)
    return Dense(clip.rows(flat, layout)).without(~good).weighted_sum(good.double())


def _by_norms(
    clip: NormClip, layout: Layout, records: int, gradients: Gradients, scale: float, kept: Tensor | None
) -> Tensor:
    blocks = clip.blocks(layout)
    above = 1 + (layout.dim + 16) * UNIT
    if blocks[-1] == 0 and _worth_one_table(layout, records, gradients):
        groups: Groups = [((0,), Rows(_laid_out(layout, records, gradients)))]
        layout, blocks, gradients = Layout.single(layout.dim), (0,), {0: groups[0][1]}
    else:
        groups = _groups(gradients, records)
    found = [piece.squared_norms().reshape(len(places), records) for places, piece in groups]
    rows = torch.cat(found)
    order = tuple(blocks[place] for places, _ in groups for place in places)
    if blocks[-1] == 0:
        squares = rows.sum(0)[:, None]
    else:
        number = gpu.kept(order, rows.device)
        squares = rows.T @ (number[:, None] == torch.arange(blocks[-1] + 1, device=rows.device)).double()
    norms = squares.sqrt() * (scale * above)
    bad = ~torch.isfinite(norms).all(1)
    cleared = norms.is_cuda or bool(bad.any())  # asking a GPU would wait for it
    none = (bad if kept is None else bad | ~kept.to(bad.device))[:, None]
    norms = norms.masked_fill(none, 0.0)
    factors = (clip.factors(norms) * scale).masked_fill(none, 0.0)
    extra = clip.statistics(norms)
    total = norms.new_empty(layout.dim + (0 if extra is None else extra.shape[1]))
    ends = [*itertools.accumulate(layout.sizes, initial=0)]
    parts = [total[start:end] for start, end in itertools.pairwise(ends)]
    for place in set(range(len(parts))) - set(gradients):
        parts[place].zero_()
    each = factors.T.contiguous()
    each = each.expand(len(order), -1) if blocks[-1] == 0 else each[number]
    start = 0
    for places, piece in groups:
        one = piece.without(bad) if cleared and not piece.heeds else piece
        one.put([parts[place] for place in places], each[start : start + len(places)])
        start += len(places)
    if extra is not None:
        total[layout.dim :] = extra.masked_fill(none, 0.0).sum(0)
    return total


def _worth_one_table(layout: Layout, records: int, gradients: Gradients) -> bool:
    """Whether few launches on a GPU pay for a copy."""
    table = all(isinstance(p, Dense | Outer) and gpu.at_hand(getattr(p, p.cleared[0])) for p in gradients.values())
    return table and records * layout.dim <= TABLE


def _groups(gradients: Gradients, records: int) -> Groups:
    """Gradients with the numbers of their parameters; on a GPU small ones of one size share their launches."""
    groups: Groups = []
    alike: dict[int, list[int]] = {}
    for place, piece in gradients.items():
        one = piece
        if isinstance(one, Outer) and gpu.at_hand(one.left) and one.left[0].numel() * one.right.numel() <= TABLE:
            one = Dense(one.dense())
        if not isinstance(one, Dense) or not gpu.at_hand(one.values):
            groups.append(((place,), one))
        elif Alike.serves(one.values):
            alike.setdefault(one.values[0].numel(), []).append(place)
            gradients = gradients | {place: one}
        else:
            groups.append(((place,), Rows(one.values)))
    for places in alike.values():
        values = [gradients[place].dense().reshape(records, -1) for place in places]
        groups.append((tuple(places), Alike(torch.stack(values))))
    return groups


def _laid_out(layout: Layout, records: int, gradients: Gradients) -> Tensor:
    like = next(iter(gradients.values())).dense()
    parts = [
        gradients[place].dense().reshape(records, -1) if place in gradients else like.new_zeros(records, size)
        for place, size in enumerate(layout.sizes)
    ]
    return torch.cat(parts, dim=1)
