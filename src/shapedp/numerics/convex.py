"""Minima of strongly convex functions, with a bound on the distance to the exact minimum."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ABOVE_8, ABOVE_WIDE, ROUNDINGS_2, ROUNDINGS_4, ROUNDINGS_512

NEWTON_ORDER = 300  # up to this many variables second derivatives are factored
NEWTON_LAST = 3000  # up to this many where a quasi-Newton search has failed
_MEMORY = 12
_HALVINGS = 40
_ARMIJO = 1e-4


class Objective(Protocol):
    """Several functions of `order` variables each, one per column, evaluated together.

    Each is at least `modulus` and at most `smoothness` convex, modulus I <= Hessian <= smoothness I, and has its
    minimum within `radius` of 0.
    """

    order: int
    columns: int
    modulus: float
    smoothness: float
    radius: float

    def evaluate(self, w: Floats) -> tuple[Floats, Floats]:
        """Values (columns,) and gradients (order, columns) at w (order, columns)."""

    def hessian(self, w: Floats, column: int) -> Floats:
        """Second derivatives of one column's function at w (order,)."""

    def gradient_error(self, size: float) -> float:
        """A bound on the rounding error of one column's gradient where |w|_2 <= size."""

    def preconditioner(self) -> Callable[[Floats], Floats] | None:
        """An approximate inverse Hessian, or None."""


def minimum(objective: Objective, tolerance: float, *, limit: int = 1000) -> Floats:
    """w with |w_k - argmin f_k|_2 <= tolerance in every column k.

    Newton's method, or in many variables a limited-memory quasi-Newton method first, then a check: a gradient of
    length g, rounding included, proves a distance of g/modulus. Columns that fail it are finished by gradient
    descent with a number of steps fixed by theory, so that the bound holds whatever the function.

    Guarantee: raises ValueError at once, from the constants of the objective alone, where rounding does not allow
    the tolerance (`least_tolerance`); otherwise the bound holds.
    """
    if not least_tolerance(objective) <= tolerance:
        raise ValueError(f"a tolerance of {tolerance:g} is below what rounding allows")
    start = np.zeros((objective.order, objective.columns))
    goal = 0.25 * objective.modulus * tolerance
    w = _searched(objective, start, goal, limit, newton=objective.order <= NEWTON_ORDER)
    gap = distance(objective, w)
    if (gap > tolerance).any() and NEWTON_ORDER < objective.order <= NEWTON_LAST:
        w = _searched(objective, w, goal, limit, newton=True)
        gap = distance(objective, w)
    late = gap > tolerance
    if late.any():
        w[:, late] = _descent(objective, w, gap, tolerance)[:, late]
    return w


def distance(objective: Objective, w: Floats) -> Floats:
    """A bound on |w_k - argmin f_k|_2 per column, from the gradient and its rounding."""
    gradient = objective.evaluate(w)[1]
    up = 1 + (objective.order + 16) * ROUNDINGS_2
    errors = np.array([objective.gradient_error(float(size)) for size in _norms(w) * up])
    found = (_norms(gradient) * up + errors) / objective.modulus * ABOVE_8
    return np.where(np.isfinite(found), found, np.inf)


def least_tolerance(objective: Objective) -> float:
    """The tolerance that gradient descent is sure to reach: twice its rounding floor.

    A step w - eta g contracts distances by 1 - eta modulus, eta = 1/smoothness; the rounding of g and of the step add
    eta times at most `error` + 4 u size smoothness, which the contraction keeps below that over the modulus. All
    iterates lie within three radii of 0.
    """
    size = 3 * objective.radius
    return 2 * (objective.gradient_error(size) + ROUNDINGS_4 * size * objective.smoothness) / objective.modulus


def _norms(columns: Floats) -> Floats:
    return np.asarray(np.sqrt(np.einsum("ij,ij->j", columns, columns)))


def _descent(objective: Objective, w: Floats, gap: Floats, tolerance: float) -> Floats:
    """Gradient descent for as many steps as make the distance at most the tolerance, by contraction alone."""
    w = np.where(gap <= objective.radius, w, 0.0)
    start = float(np.minimum(gap, objective.radius).max())
    rate = 1 / objective.smoothness
    steps = math.ceil(math.log(2 * start / tolerance + 1) / -math.log1p(-objective.modulus * rate) * ABOVE_WIDE)
    for turn in range(steps):
        w = w - rate * objective.evaluate(w)[1]
        if turn % 256 == 255 and (distance(objective, w) <= tolerance).all():
            break
    return w


def _line_search(
    objective: Objective, w: Floats, value: Floats, gradient: Floats, step: Floats, active: NDArray[np.bool_]
) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """Halve each active column's step until its value falls enough; which columns moved."""
    slope = np.einsum("ij,ij->j", gradient, step)
    scale = np.where(active & (slope < 0), 1.0, 0.0)
    slack = ROUNDINGS_512 * (1 + np.abs(value))
    for _ in range(_HALVINGS):
        trial = w + scale * step
        with np.errstate(over="ignore", invalid="ignore"):
            new_value, new_gradient = objective.evaluate(trial)
            good = new_value <= value + _ARMIJO * scale * slope + slack
        if good.all():
            return trial, new_value, new_gradient, scale > 0
        scale = np.where(good, scale, scale / 2)
    return w, value, gradient, np.zeros_like(active)


def _searched(objective: Objective, w: Floats, goal: float, limit: int, *, newton: bool) -> Floats:
    """Newton's method, or limited-memory BFGS in many variables: one memory per column, one evaluation for all."""
    apply = None if newton else objective.preconditioner()
    value, gradient = objective.evaluate(w)
    moves: list[tuple[Floats, Floats, Floats]] = []
    for _ in range(limit):
        active = ~(_norms(gradient) <= goal)
        if not active.any():
            break
        if newton:
            step = _newton_step(objective, w, gradient, active)
        else:
            step = _two_loops(gradient, moves, apply, objective.smoothness)
            step = np.where(np.einsum("ij,ij->j", step, gradient) < 0, step, -gradient / objective.smoothness)
        before, slope = w, gradient
        w, value, gradient, moved = _line_search(objective, w, value, gradient, step, active)
        if not moved.any():
            if not moves:
                break
            moves = []
        elif not newton:
            s, y = w - before, gradient - slope
            curvature = np.einsum("ij,ij->j", s, y)
            with np.errstate(divide="ignore", invalid="ignore"):
                inverse = np.where(curvature > 0, 1 / curvature, 0.0)
            moves = [*moves[-_MEMORY + 1 :], (s, y, inverse)]
    return w


def _newton_step(objective: Objective, w: Floats, gradient: Floats, active: NDArray[np.bool_]) -> Floats:
    step = np.zeros_like(w)
    for k in np.flatnonzero(active).tolist():
        try:
            root = linalg.cho_factor(objective.hessian(w[:, k], k), check_finite=False)
            step[:, k] = -linalg.cho_solve(root, gradient[:, k], check_finite=False)
        except linalg.LinAlgError:
            step[:, k] = -gradient[:, k] / objective.smoothness
    return step


def _two_loops(
    gradient: Floats,
    moves: list[tuple[Floats, Floats, Floats]],
    apply: Callable[[Floats], Floats] | None,
    smoothness: float,
) -> Floats:
    """The quasi-Newton direction. Reference: Nocedal and Wright 2006, Algorithm 7.4."""
    q = -gradient
    kept = []
    for s, y, inverse in reversed(moves):
        a = inverse * np.einsum("ij,ij->j", s, q)
        q = q - a * y
        kept.append(a)
    q = q if apply is None else apply(q)
    if moves:
        s, y, inverse = moves[-1]
        squares = np.einsum("ij,ij->j", y, y if apply is None else apply(y))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            q = q * np.where(inverse > 0, 1 / (inverse * squares), 1.0 if apply else 1 / smoothness)
    elif apply is None:
        q = q / smoothness
    for (s, y, inverse), a in zip(moves, reversed(kept), strict=True):
        q = q + (a - inverse * np.einsum("ij,ij->j", y, q)) * s
    return np.asarray(q)
