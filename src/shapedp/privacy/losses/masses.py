"""Masses of a loss on a grid: what upper and lower sets are made of."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ROUNDINGS_8, ROUNDINGS_32
from shapedp.numerics.sums import dot
from shapedp.numerics.tailsums import hockey_stick_sums, underflow

_TINY = 5e-324


@dataclass(frozen=True, eq=False)
class Masses:
    """P-masses of a loss at the points (first + i) step, less `shift` >= 0, and the mass at infinity.

    In a lower set that mass is taken for infinite at a price: its Q-mass, the logarithm of which is `log_price`.

    Guarantee: H(eps) of these masses is at least (an upper set) or at most (a lower set) the loss's own at every
    real eps, and so is that of any composition: all masses are >= 0 and both statements are monotone in them.
    """

    step: float
    first: int
    masses: Floats
    infinity: float = 0.0
    shift: float = 0.0
    log_price: float = -math.inf

    @cached_property
    def losses(self) -> Floats:
        """The points of the grid, before the shift."""
        return self.step * (self.first + np.arange(self.masses.size, dtype=np.float64))

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """Which of the points hold any mass."""
        return np.flatnonzero(self.masses)

    @cached_property
    def held(self) -> tuple[Floats, Floats]:
        """The points that hold any mass, and the logarithms of their masses."""
        return self.step * (self.first + self.places.astype(np.float64)), np.log(self.masses[self.places])

    @cached_property
    def span(self) -> tuple[int, int]:
        """The first and the last node that hold any mass."""
        held = self.places
        return (self.first + int(held[0]), self.first + int(held[-1])) if held.size else (0, 0)

    def about(self, epsilon: Floats) -> Floats:
        """The hockey-stick divergence at a few eps, to plain rounding: it compares and never certifies."""
        losses, masses = self.held[0] - self.shift, self.masses[self.places]
        with np.errstate(over="ignore"):
            return np.array([dot(masses, -np.expm1(np.minimum(one - losses, 0.0))) for one in epsilon]) + self.infinity

    def apart(self, cap: float) -> Masses:
        """The last point set apart where it lies beyond the cap: its mass at infinity, and the log of its Q-mass."""
        last, kept = self.span[1], self.masses[: self.span[1] - self.first]
        if self.infinity or last * self.step < cap or not kept.any():
            return self
        mass, loss = float(self.masses[last - self.first]), last * self.step - self.shift
        log_price = math.log(mass) - loss
        log_price += ROUNDINGS_32 * (1 + abs(math.log(mass)) + loss)
        return replace(self, masses=kept, infinity=mass, log_price=log_price)

    def clipped(self, last: int) -> Masses:
        """All that lies beyond a node, at infinity too, on that node."""
        end = max(last - self.first, 0)
        beyond = float(self.masses[end:].sum()) + self.infinity
        return replace(self, masses=np.append(self.masses[:end], beyond), infinity=0.0)

    @property
    def _exact(self) -> bool:
        """Whether every point of the grid is a float: short steps times short integers are."""
        reach = max(abs(self.first), abs(self.first + self.masses.size))
        return math.frexp(self.step)[0] * 2.0**26 % 1 == 0 and reach < 2**26

    @cached_property
    def _sums(self) -> tuple[Floats, Floats, float]:
        return hockey_stick_sums(self.masses, self.step)

    def hockey_stick(self, epsilon: Floats, *, upper: bool) -> Floats:
        """E[(1 - e^(eps - L))_+] at each real eps, rounded up or down."""
        epsilon = np.asarray(epsilon, dtype=np.float64) + self.shift
        if self.shift or not self._exact:  # points and eps are rounded: look from a little below or above
            epsilon = epsilon + (-ROUNDINGS_8 if upper else ROUNDINGS_8) * (np.abs(epsilon) + self.step)
        points, (at_node, tail, relative) = self.losses, self._sums
        order = np.searchsorted(points, epsilon, side="right")
        near = order < points.size
        index = np.minimum(order, points.size - 1)
        with np.errstate(under="ignore", over="ignore"):
            raw = at_node[index] - np.expm1(np.minimum(epsilon - points[index], 0.0)) * tail[index]
        hidden = underflow(points.size, self.step) + _TINY
        if upper:
            return np.minimum(np.where(near, raw * (1 + relative) + hidden, 0.0) + self.infinity, 1.0)
        found = np.maximum(raw * (1 - relative) - hidden, 0.0)
        return np.minimum(np.where(near, found, 0.0) + self.infinity, 1.0)
