"""A composition seen through few views: bounds that hold everywhere, in a fraction of the time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shapedp.accounting.composed import ComposedLoss
from shapedp.accounting.pld import View
from shapedp.numerics.arrays import Floats
from shapedp.privacy import Loss

_FADED = 1e-14
_MOST = 20
_CHECKED = 512  # of many epsilons, about so many are held against the floor


@dataclass(frozen=True)
class Outline(Loss):
    """The profile of a composition, for pictures and wherever many epsilons are asked for.

    A view of a composition bounds delta at every epsilon and is tight near one of them. A composition solves a view
    near each epsilon it is asked for; an outline solves one only where the one before is no longer tight.
    Guarantee: lower <= delta <= upper, as for the composition itself; `gap` is about how far these are apart.

    Example:
        >>> from shapedp import GaussianLoss
        >>> from shapedp.accounting import ComposedLoss
        >>> whole = ComposedLoss(((GaussianLoss(0.1), 25),))
        >>> whole.delta(1.0).upper <= Outline(whole).delta(1.0).upper <= 1.1 * whole.delta(1.0).upper
        True
    """

    base: ComposedLoss
    gap: float = 0.05  # the relative gap of delta that a line in a figure hides

    def __post_init__(self) -> None:
        self._inherit((self.base,))

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return self.base.symmetric

    @property
    def pure(self) -> float:  # type: ignore[override]
        return self.base.pure

    @cached_property
    def _views(self) -> tuple[tuple[View, ...], ...]:
        return tuple(tuple(self._walk(reverse)) for reverse in (False, *([] if self.symmetric else [True])))

    def _walk(self, reverse: bool) -> list[View]:
        """Views from epsilon 0 on, each solved where the one before has become loose."""
        views: list[View] = []
        at = 0.0
        for _ in range(_MOST):
            view = self.base.view(at, reverse=reverse, accuracy=self.gap)
            if views and view is views[-1]:  # the one before is the nearest still
                at += view.upper.spread
                continue
            views.append(view)
            ahead = at + view.upper.spread * np.arange(1, 65) / 4
            lower, upper = view.bounds(ahead)
            loose = np.flatnonzero((upper - lower > 3 * self.gap * upper) | (upper < _FADED))
            end = loose[0] if loose.size else -1
            if upper[end] < _FADED:
                break
            at = float(ahead[end])
        return views

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        views = self._views[reverse and not self.symmetric]

        foci = np.array([view.focus for view in views])

        def best(at: Floats) -> tuple[Floats, Floats]:
            """From the views on both sides: farther ones are looser."""
            lower, upper = np.zeros(at.shape), np.ones(at.shape)
            after = np.searchsorted(foci, at, side="right")
            for k, view in enumerate(views):
                here = (after == k) | (after == k + 1)
                if here.any():
                    low, high = view.bounds(at[here])
                    lower[here], upper[here] = np.maximum(lower[here], low), np.minimum(upper[here], high)
            return lower, upper

        return self.base.through(best, epsilon, reverse, max(epsilon.size // _CHECKED, 1))
