"""A privacy loss on a grid, bounded from both sides to second order in the grid step.

Per direction let k = e^eps and u(k) = E_Q[(r - k)_+], r = dP/dQ: convex, decreasing, u(0) = 1. A polygon above u
with knots on the grid belongs to a pair that dominates (P, Q); a polygon below u to one that is dominated. The
P-mass at a knot is k times the change of slope. Everything is done on the excess w = u - (1 - k)_+, which is
e^eps H(Q, P; -eps) for eps < 0: same changes of slope away from k = 1, and no cancellation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import count, positive
from shapedp.numerics.outward import ROUNDINGS_4, ROUNDINGS_8, ROUNDINGS_8192
from shapedp.privacy.losses.base import Loss
from shapedp.privacy.losses.masses import Masses
from shapedp.privacy.losses.polygons import SUB, lower_polygon, sub_nodes, upper_polygon

_NEAREST, _FARTHEST = 1e-12, 1e5  # where the end of a loss is sought
_SHIFT = ROUNDINGS_8192
NODE_LIMIT = 2**22
_WIDEST = 600.0  # e^step is a float


def excess(
    loss: Loss, epsilon: Floats, *, reverse: bool, shift: float = 0.0, move: float = 0.0
) -> tuple[Floats, Floats]:
    """Bounds on w = u - (1 - e^eps)_+ of the loss L + shift at sorted eps, each eps known to a relative `move`.

    u of L + s is u(k e^-s): for k < 1 its excess is (1 - e^-s) k + w(k e^-s).
    """
    split = int(np.searchsorted(epsilon, 0.0))
    above, below = epsilon[split:], -epsilon[:split]
    factor = np.exp(-below)
    if not shift and not move:
        (low, high), (back_low, back_high) = (
            loss.profile(above, reverse=reverse),
            loss.profile(below, reverse=not reverse),
        )
    else:
        low = loss.hockey_stick(above * (1 + move) - shift, reverse=reverse)[0]
        high = loss.hockey_stick(above * (1 - move) - shift, reverse=reverse)[1]
        gain = -math.expm1(-shift)
        back_low = gain + (1 - gain) * loss.profile(below * (1 + move) + shift, reverse=not reverse)[0]
        back_high = gain + (1 - gain) * loss.profile(below * (1 - move) + shift, reverse=not reverse)[1]
    lower = np.concatenate([back_low * factor * (1 - ROUNDINGS_8), low])
    upper = np.concatenate([back_high * factor * (1 + ROUNDINGS_8), high])
    return np.minimum(lower, upper), upper


def bound_masses(
    loss: Loss, step: float, first: int, last: int, *, reverse: bool, knots: np.ndarray | None = None
) -> tuple[Masses, Masses]:
    """Lower and upper masses of one direction of a loss on the nodes first..last (first < 0 < last) of a grid.

    `knots` are those of its nodes that hold mass, first, 0 and last among them, all of them by default.

    Guarantee: see `Masses`. The mass below the first node is raised to it (upper) or dropped (lower); what lies
    beyond the last goes to infinity (upper) or is dropped (lower).
    Reference: Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022, Connect the dots (the upper polygon).
    """
    own = loss.masses_on(step, reverse=reverse) if isinstance(loss, DiscreteLoss) else None
    if own is not None:
        return own
    if knots is None:
        knots = np.arange(first, last + 1)
    at = np.asarray(sub_nodes(knots) * (step / SUB), dtype=np.float64)
    move, shift = _displaced(step)
    pair = loss.lower_pair
    with np.errstate(under="ignore", over="ignore"):
        if pair is loss:
            lower, upper = excess(loss, at, reverse=reverse, move=move)
            top = upper_polygon(step, knots, upper[1:-1:SUB])
        else:
            top = upper_polygon(step, knots, excess(loss, at[1:-1:SUB], reverse=reverse, move=move)[1])
        if shift or pair is not loss:
            lower, upper = excess(pair, at, reverse=reverse, shift=shift, move=move)
        bottom = lower_polygon(step, knots, lower, upper, shift)
        far = np.array([0.0, step * int(knots[-1]) / 8])
        held = bottom.about(far)
        if held[0] < 0.5 * lower[1 + SUB * int(np.searchsorted(knots, 0))]:
            # perhaps one step hides all negative losses: move them to 0
            least = -support(pair, 1.0, reverse=reverse, left_tail=1e-60)[0]
            if shift < least < step:
                lower, upper = excess(pair, at, reverse=reverse, shift=least, move=move)
                moved = lower_polygon(step, knots, lower, upper, least)
                bottom = moved if moved.about(far).sum() > held.sum() else bottom
    return bottom, top


def upper_masses(
    loss: Loss, step: float, first: int, last: int, *, reverse: bool, knots: np.ndarray | None = None
) -> Masses:
    """The upper masses of `bound_masses` alone."""
    own = loss.masses_on(step, reverse=reverse) if isinstance(loss, DiscreteLoss) else None
    if own is not None:
        return own[1]
    if knots is None:
        knots = np.arange(first, last + 1)
    nodes = np.asarray(knots * step, dtype=np.float64)
    with np.errstate(under="ignore", over="ignore"):
        upper = excess(loss, nodes, reverse=reverse, move=_displaced(step)[0])[1]
        return upper_polygon(step, knots, upper)


def _displaced(step: float) -> tuple[float, float]:
    """How far nodes may be rounded, relatively, and how far lower masses move: an atom near a node counts there."""
    return (0.0, 0.0) if math.frexp(step)[0] * 2.0**26 % 1 == 0 else (ROUNDINGS_4, _SHIFT)


def support(loss: Loss, tail: float, *, reverse: bool, left_tail: float | None = None) -> tuple[float, float]:
    """An interval of losses outside which w is at most `tail` (where any up to 1e5 is), or `left_tail` below 0."""

    def reach(backward: bool, weighted: bool, tail: float) -> float:
        low, high = _NEAREST, _FARTHEST
        for points in (np.geomspace(low, high, 18), None, None):
            at = np.linspace(low, high, 33) if points is None else points
            values = loss.profile(at, reverse=backward)[1]
            with np.errstate(under="ignore"):
                small = np.flatnonzero((values * np.exp(-at) if weighted else values) <= tail)
            if not small.size:
                return high
            index = int(small[0])
            if index == 0:
                return float(at[0])
            low, high = float(at[index - 1]), float(at[index])
        return high

    return -reach(not reverse, True, tail if left_tail is None else left_tail), reach(reverse, False, tail)


def coarse_step(step: float) -> float:
    """The step rounded down to 24 bits, so that every node of the grid is exact."""
    mantissa, exponent = math.frexp(step)
    return math.ldexp(math.floor(mantissa * 2**24) / 2**24, exponent)


@dataclass(frozen=True, eq=False)
class DiscreteLoss(Loss):
    """A privacy-loss distribution: lower and upper masses for each direction.

    Guarantee: lower <= truth <= upper for every eps, as far as the masses given are bounds. `premises` are those of the
    loss it was made of.
    """

    lower: Masses
    upper: Masses
    reverse_lower: Masses
    reverse_upper: Masses
    premises: tuple[str, ...] = field(default=(), kw_only=True, repr=False)

    @property
    def symmetric(self) -> bool:  # type: ignore[override]
        return self.upper is self.reverse_upper and self.lower is self.reverse_lower

    @property
    def lattice(self) -> float:
        """The step of the grid: a composition on a fraction of it loses nothing."""
        return self.upper.step

    def masses_on(self, step: float, *, reverse: bool) -> tuple[Masses, Masses] | None:
        """Its own lower and upper masses, if they lie on the grid of that step."""
        low, high = (self.reverse_lower, self.reverse_upper) if reverse else (self.lower, self.upper)
        return (low, high) if step == low.step == high.step else None

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        low, high = (self.reverse_lower, self.reverse_upper) if reverse else (self.lower, self.upper)
        upper = high.hockey_stick(epsilon, upper=True)
        return np.minimum(low.hockey_stick(epsilon, upper=False), upper), upper

    @classmethod
    def of(cls, loss: Loss, *, step: float | None = None, tail: float = 1e-40, nodes: int = 2**14) -> DiscreteLoss:
        """A loss on a grid of the given step, or of about `nodes` nodes; masses below `tail` are cut."""
        tail = positive("tail", tail)
        ends = [support(loss, tail, reverse=False)]
        if not loss.symmetric:
            ends.append(support(loss, tail, reverse=True))
        width = max(end for _, end in ends) - min(start for start, _ in ends)
        size = width / count("nodes", nodes) if step is None else positive("step", step)
        size = coarse_step(size) if step is None else size
        if size > _WIDEST:
            raise ValueError(f"a step of {size:.4g} says nothing: choose one of at most {_WIDEST:g}, or more nodes")
        if width / size > NODE_LIMIT:
            raise ValueError(
                f"step {size!r} needs {width / size:.3g} nodes: choose one of at least {width / NODE_LIMIT:.3g}"
            )
        sides = []
        for backward, (start, end) in enumerate(ends):
            first, last = min(math.floor(start / size), -1), max(math.ceil(end / size), 1) + 2
            sides.append(bound_masses(loss, size, first, last, reverse=bool(backward)))
        (low, high), (back_low, back_high) = sides[0], sides[-1]
        return cls(low, high, back_low, back_high)
