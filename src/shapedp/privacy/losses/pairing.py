"""From a noise law and a sensitivity set to the privacy loss of adding one to a query bounded by the other."""

from __future__ import annotations

from functools import singledispatch

from shapedp.noise import Law
from shapedp.privacy.losses.base import Loss
from shapedp.sensitivity import Sensitivity


@singledispatch
def _rule(law: Law, sensitivity: Sensitivity) -> Loss:
    raise TypeError(f"no privacy loss is known for {type(law).__name__} noise")


class LossOf:
    """The loss of `f(D) + law` when neighbours move f by a vector of `sensitivity`, under its neighbour relation.

    Each law registers its own rule beside its loss. Refuses what cannot be computed with the reason.
    """

    register = staticmethod(_rule.register)

    def __call__(self, law: Law, sensitivity: Sensitivity) -> Loss:
        return _rule(law, sensitivity).under(sensitivity.adjacency)


loss_of = LossOf()
