"""From a noise law and a sensitivity set to the privacy loss of adding one to a query bounded by the other."""

from __future__ import annotations

from functools import singledispatch

from shapedp.noise import Law
from shapedp.privacy.losses.base import Loss
from shapedp.sensitivity import Sensitivity


@singledispatch
def loss_of(law: Law, sensitivity: Sensitivity) -> Loss:
    """The loss of `f(D) + law` when neighbours move f by a vector of `sensitivity`.

    Each law registers its own rule beside its loss. Refuses what cannot be computed with the reason.
    """
    raise TypeError(f"no privacy loss is known for {type(law).__name__} noise")
