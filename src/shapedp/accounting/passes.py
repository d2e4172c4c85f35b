"""Passes over the data in which each person takes part once."""

from __future__ import annotations

from typing import Any, Literal

from shapedp.accounting.compose import loss_from
from shapedp.accounting.subsample import SCHEMES, SubsampledLoss, subsample
from shapedp.numerics.checks import count, one_of
from shapedp.privacy import Loss
from shapedp.privacy.losses.allocation import AllocatedLoss
from shapedp.privacy.losses.base import adjacency_of
from shapedp.privacy.losses.shuffle import ShuffledLoss
from shapedp.sensitivity import ADJACENCIES

Way = Literal["poisson", "without-replacement", "allocation", "shuffle"]
WAYS: tuple[Way, ...] = (*SCHEMES, "allocation", "shuffle")
PASSES = ("allocation", "shuffle")
_ROUGH = 400  # points of a sum, where only a scale is looked for


def allocate(item: Any, batches: int, *, adjacency: str | None = None) -> Loss:
    """The loss of a pass of `batches` runs in which each person is placed in one run, uniformly and independently.

    `adjacency` is needed for a bare loss, and is read from a mechanism's sensitivity: "add-remove" or "zero-out".

    Guarantee: as `AllocatedLoss`. Several passes, each drawn anew, compose; with the same places in each of them,
    allocate the composition of the runs instead.

    Example:
        >>> from shapedp import GaussianLoss
        >>> round(allocate(GaussianLoss(1.0), 100, adjacency="add-remove").epsilon(1e-6).upper, 2)
        0.86
    """
    loss, relation = _under(item, adjacency)
    return AllocatedLoss(loss, count("batches", batches), adjacency=relation)


def one_run(item: Any, rate: float, way: Way, batches: int, *, rough: bool = False) -> Loss:
    """The loss of one sampled run, or of one pass of `batches` runs."""
    one_of("scheme", way, WAYS)
    if way == "allocation":
        loss, relation = _under(item, None if not isinstance(item, Loss) else adjacency_of(item) or "add-remove")
        return AllocatedLoss(loss, batches, _ROUGH if rough else None, adjacency=relation)
    if way == "shuffle":
        loss, relation = _under(item, None if not isinstance(item, Loss) else adjacency_of(item) or "zero-out")
        return ShuffledLoss(loss, batches, adjacency=relation)
    if rate == 1 and way == "poisson":
        return loss_from(item)
    return SubsampledLoss(item, rate, way) if isinstance(item, Loss) else subsample(item, rate, way)


def _under(item: Any, adjacency: str | None) -> tuple[Loss, str]:
    """The loss of an item and the one neighbour relation that is named."""
    own, adjacency = adjacency_of(item), one_of("adjacency", adjacency, (*ADJACENCIES, None))
    if own is not None and adjacency is not None and own != adjacency:
        raise ValueError(f"adjacency {adjacency!r} was asked for, but the mechanism was derived under {own!r}")
    relation = own or adjacency
    if relation is None:
        raise ValueError(
            "no adjacency is named, and what a random order saves depends on it: derive the sensitivity with "
            "adjacency='add-remove' (allocation) or 'zero-out', or pass it here"
        )
    return loss_from(item), relation
