"""To and from `dp_accounting`'s privacy-loss distributions (an optional dependency)."""

from __future__ import annotations

from typing import Any

import numpy as np

from shapedp.boundary.values import boolean
from shapedp.numerics.checks import positive
from shapedp.numerics.outward import ABOVE_8192
from shapedp.privacy import Loss
from shapedp.privacy.losses.discrete import DiscreteLoss
from shapedp.privacy.losses.masses import Masses

_ACCURACY = 1e-2  # to which a loss that is slow to compute is tabulated, a fortieth of it
_FAR = 1e5  # as far as a distribution is laid out


def _library() -> tuple[Any, Any]:
    try:
        from dp_accounting.pld import pld_pmf, privacy_loss_distribution
    except ImportError as error:
        raise ImportError("dp_accounting is needed for this: pip install 'shapedp[accounting]'") from error
    return pld_pmf, privacy_loss_distribution


def to_dp_accounting(loss: Loss, *, step: float = 1e-4, tail: float = 1e-20, pessimistic: bool = True) -> Any:
    """A `PrivacyLossDistribution` with the upper (or, not pessimistic, the lower) masses of a loss.

    Masses below `tail` go to infinity, and so does what a loss keeps at every epsilon: a failure, a sampler's error.
    Guarantee: the masses handed over bound the loss; what the other library computes from them is its own.

    Example:
        >>> from shapedp import GaussianLoss
        >>> theirs = to_dp_accounting(GaussianLoss(0.5), step=1e-3)
        >>> round(theirs.get_epsilon_for_delta(1e-6), 2)
        2.25
    """
    pessimistic = boolean("pessimistic", pessimistic)
    pmf, distribution = _library()
    loss = loss.tabulated(_ACCURACY)
    sides = (False,) if loss.symmetric else (False, True)
    kept = max(float(loss.profile(np.array([_FAR]), reverse=side)[1][0]) for side in sides)
    grid = DiscreteLoss.of(loss, step=positive("step", step), tail=max(positive("tail", tail), kept * ABOVE_8192))

    def convert(masses: Masses) -> Any:
        missing = 0.0 if pessimistic else max(0.0, 1 - float(masses.masses.sum()))
        probabilities = masses.masses.copy()
        probabilities[0] += missing
        first = masses.first - 1 if masses.shift else masses.first  # less than a step: the grid holds no smaller one
        return pmf.DensePLDPmf(masses.step, first, probabilities, masses.infinity, pessimistic)

    forward, backward = (grid.upper, grid.reverse_upper) if pessimistic else (grid.lower, grid.reverse_lower)
    remove = convert(forward)
    return distribution.PrivacyLossDistribution(remove, remove if grid.symmetric else convert(backward))


def from_dp_accounting(distribution: Any, *, adjacency: str | None = None) -> DiscreteLoss:
    """A loss whose upper masses are those of a pessimistic `PrivacyLossDistribution`; its lower end is trivial.

    A distribution names no neighbour relation: `adjacency` does.
    Guarantee: as good as the masses: an upper bound if the other library's pessimistic masses are one.

    Example:
        >>> from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism
        >>> loss = from_dp_accounting(from_gaussian_mechanism(2.0), adjacency="add-remove")
        >>> round(loss.delta(1.0).upper, 3)
        0.007
    """
    _library()

    def convert(pmf: Any) -> Masses:
        if not getattr(pmf, "_pessimistic_estimate", True):
            raise ValueError(
                "an optimistic distribution bounds nothing from above: build it with pessimistic estimates"
            )
        dense = pmf.to_dense_pmf()
        masses = np.maximum(np.asarray(dense._probs, dtype=np.float64), 0.0)
        return Masses(float(dense._discretization), int(dense._lower_loss), masses, float(dense._infinity_mass))

    remove = convert(distribution._pmf_remove)
    symmetric = distribution._pmf_add is distribution._pmf_remove
    add = remove if symmetric else convert(distribution._pmf_add)
    nothing = Masses(remove.step, 0, np.array([1.0]))
    return DiscreteLoss(nothing, remove, nothing, add, adjacency=adjacency)
