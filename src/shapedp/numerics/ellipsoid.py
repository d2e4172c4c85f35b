"""The best ellipsoid around a hull: minimise tr(G X^-1) over X with v'Xv <= 1 for every vertex v.

For weights lam on the vertices let A hold the columns sqrt(lam_k) G^(1/2) v_k. Then |A|_*^2, the squared sum of its
singular values, bounds tr(G X^-1) from below for every feasible X, and X = G^(1/2) (A A')^(-1/2) G^(1/2)/|A|_* has
sum lam_k v_k'Xv_k = 1. The fixed point lam_k <- lam_k v_k'Xv_k finds the weights for which the two ends meet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import BELOW_8, ROUNDINGS_8, UNIT
from shapedp.numerics.sums import sum_bounds

_VANISHING = 1e-13  # eigenvalues below this share of the largest are rounding
_ROUNDED = 1e-15  # and below this one nothing is known
_LIGHT = 1e-12  # vertices of less weight may be left out of a lower bound
_FLOOR = 0.1  # of the gap: no vertex and no query loses all its weight, so that it can come back
_LEAST_FLOOR = 1e-5  # of a query: where both kinds of weights shrink, their product stays far above rounding
_STEEPEST = 1e3


@dataclass(frozen=True, eq=False)
class Points:
    """The vertices of a hull, one per row, or (`pairs`) the differences of any two rows."""

    rows: Floats
    pairs: bool = False

    def even(self) -> Floats:
        """Equal weights; those of pairs form a symmetric matrix that names each pair twice."""
        count = len(self.rows)
        if not self.pairs:
            return np.full(count, 1 / count)
        return (1 - np.eye(count)) * (2 / max(count * (count - 1), 1))

    def normalised(self, weights: Floats) -> Floats:
        """Weights whose sum is 1."""
        return weights * ((2 if self.pairs else 1) / float(weights.sum()))

    def moment(self, weights: Floats) -> Floats:
        """sum_k weights_k v_k v_k'."""
        if self.pairs:
            return np.asarray(self.rows.T @ (weights.sum(axis=1)[:, None] * self.rows - weights @ self.rows))
        return np.asarray((self.rows.T * weights) @ self.rows)

    def forms(self, root: Floats) -> Floats:
        """|v_k root|_2^2 of every vertex."""
        moved = self.rows @ root
        norms = np.square(moved).sum(axis=1)
        if not self.pairs:
            return np.asarray(norms)
        return np.asarray(np.maximum(norms[:, None] + norms[None, :] - 2 * (moved @ moved.T), 0.0))

    def weighed(self, weights: Floats) -> tuple[Floats, float]:
        """The vertices that carry weight, each times the root of it, and a bound on the sum of these weights."""
        least = _LIGHT * float(weights.max())
        if self.pairs:
            first, second = np.nonzero(np.triu(weights, 1) > least)
            chosen, kept = self.rows[first] - self.rows[second], weights[first, second]
        else:
            heavy = np.flatnonzero(weights > least)
            chosen, kept = self.rows[heavy], weights[heavy]
        return chosen * np.sqrt(kept)[:, None], sum_bounds(kept)[1]


@dataclass(frozen=True, eq=False)
class Ellipsoid:
    """X^-1 of an almost best ellipsoid, up to a factor, and what no ellipsoid can be better than.

    `least` is a proved lower bound on tr(G X^-1), or on the largest weighted entry of the diagonal of X^-1;
    `gap` the relative distance that the search believes to be left; `rounds` what it took.
    """

    inverse: Floats
    least: float
    gap: float
    rounds: int


def nuclear_below(matrix: Floats, relative_error: float = 0.0) -> float:
    """A lower bound on the sum of singular values of a matrix whose entries are known to a relative error.

    Guarantee: |A|_* >= <A, Q>/|Q|_2 for every Q. Q is the polar factor, up to rounding; T = QQ' is nearly a
    projector, and |T|_2 <= 1 + |T^2 - T|_F. What rounding adds to T is counted.
    """
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    left, values, right = np.linalg.svd(wide, full_matrices=False)
    kept = values > float(values[0]) * _VANISHING
    polar = left[:, kept] @ right[kept]
    square = polar @ polar.T
    square = (square + square.T) / 2
    doubt = float(np.linalg.norm(square @ square - square))
    doubt += 4 * UNIT * (sum(wide.shape) + 8) * (float(np.square(polar).sum()) + float(np.square(square).sum()) + 1)
    low = sum_bounds((wide * polar).reshape(-1), relative_error + ROUNDINGS_8)[0]
    return max(low / math.sqrt(1 + doubt) * BELOW_8, 0.0)


def best_ellipsoid(points: Points, weights: Floats, *, worst: bool = False, gap: float, rounds: int) -> Ellipsoid:
    """The ellipsoid of least sum_i w_i (X^-1)_ii, or (`worst`) of the least largest w_i (X^-1)_ii.

    `weights` has one entry > 0 per coordinate. The search stops at a relative `gap`, or after so many `rounds`.
    """
    top = float(np.abs(points.rows).max())
    unit = Points(points.rows / top, points.pairs)
    search = _Search(unit, weights / float(weights.max()), worst)
    done = search.run(gap, rounds)
    size = top * top * float(weights.max())
    return Ellipsoid(search.inverse() * top**2, search.least() * size * BELOW_8, search.gap, done)


class _Search:
    """The fixed point in both kinds of weights: lam of the vertices, share of the queries (for the worst of them).

    t(lam, share) is concave and no step is taken that makes it smaller, but for the plain one, which never does.
    """

    def __init__(self, points: Points, weights: Floats, worst: bool) -> None:
        self.points, self.weights, self.worst = points, weights, worst
        self.lam = self.first = points.even()
        self.share = np.full(weights.size, 1 / weights.size) if worst else np.ones(1)
        self.basis = None if worst else _span(points.rows * np.sqrt(weights))
        self._look()

    def _look(self) -> None:
        """t and both kinds of forms for the present weights."""
        scale = np.sqrt(self.weights * self.share)
        scaled = self.points.rows * scale
        flat = Points(scaled if self.basis is None else scaled @ self.basis, self.points.pairs)
        values, axes = np.linalg.eigh(flat.moment(self.lam))
        if self.worst:  # weights of both kinds shrink: no direction may look as if nobody moved it
            values = np.maximum(values, values[-1] * _ROUNDED)
        kept = values > values[-1] * (_ROUNDED / 2 if self.worst else _VANISHING)
        roots, self.axes = np.sqrt(values[kept]), axes[:, kept]
        self.roots, self.t = roots, float(roots.sum())
        self.forms = flat.forms(self.axes / np.sqrt(roots)) / self.t
        self.spread = np.square(self.axes) @ roots / (self.share * self.t) if self.worst else np.ones(1)
        self.gap = float(self.forms.max()) * float(self.spread.max()) - 1

    def run(self, gap: float, rounds: int) -> int:
        """Rounds until the gap is reached; the exponent of the step grows while that helps."""
        power, done, floor = 1.0, 0, gap * _FLOOR
        while self.gap > gap and done < rounds:
            before = (self.lam, self.share, self.t)
            moved = self.points.normalised(self.lam * self.forms**power)
            self.lam = self.points.normalised(np.maximum(moved, self.first * floor))
            if self.worst:
                share = np.maximum(self.share * self.spread**power, max(floor, _LEAST_FLOOR) / self.share.size)
                self.share = share / float(share.sum())
            self._look()
            done += 1
            if self.t >= before[2] or power == 1:
                power = min(1.3 * power, _STEEPEST)
                continue
            self.lam, self.share, _ = before
            self._look()
            power = max(power / 4, 1.0)
        return done

    def inverse(self) -> Floats:
        """X^-1 in the coordinates of the points, singular where they span less."""
        axes = self.axes if self.basis is None else self.basis @ self.axes
        scaled = axes / np.sqrt(self.weights * self.share)[:, None]
        return np.asarray((scaled * (self.roots * self.t)) @ scaled.T)

    def least(self) -> float:
        """The lower bound |A|_*^2, proved: weights that do not add up to 1 are divided by a bound on their sum."""
        rows, total = self.points.weighed(self.lam)
        shares = sum_bounds(self.share)[1] if self.worst else 1.0
        low = nuclear_below(rows * np.sqrt(self.weights * self.share), ROUNDINGS_8)
        return low * low / (total * shares) * BELOW_8


def _span(rows: Floats) -> Floats | None:
    """An orthonormal basis of what the rows span, one vector per column; None where that is everything."""
    if rows.shape[0] >= 2 * rows.shape[1]:
        values, axes = np.linalg.eigh(rows.T @ rows)
        kept = values > values[-1] * _VANISHING
        return None if kept.all() else np.asarray(axes[:, kept])
    _, values, axes = np.linalg.svd(rows, full_matrices=False)
    kept = values > values[0] * math.sqrt(_VANISHING)
    return None if kept.sum() == rows.shape[1] else np.asarray(axes[kept].T)
