"""Least squares on an exactly calibrated sketch of [X, c, y]."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shapedp.learn.moments import Bounds, Moments
from shapedp.learn.solvers.linear.problem import Draws, Floats, Problem, Solution, Solver
from shapedp.mechanisms import AdaptiveMixing, Mixing

RICH = 0.1  # of the most the least eigenvalue can be; above it releasing it is thought to pay


def default_rows(problem: Problem) -> int:
    """Rows of the sketch from the public sizes."""
    return 10 * (problem.order + 1)


def unit(bounds: Bounds) -> float:
    """The power of two that y is multiplied by in the sketch, so that its bound is near that of [x, c]."""
    return 2.0 ** round(math.log2(bounds.design / bounds.target))


def row_bound(bounds: Bounds) -> float:
    """The bound on a row [x, c, unit y]."""
    return math.hypot(bounds.design, unit(bounds) * bounds.target) * (1 + 2.0**-50)


def mechanisms(problem: Problem) -> tuple[Any, ...]:
    """`AdaptiveMixing` if releasing the least eigenvalue would pay at RICH n C^2/(d + 1), else `Mixing`."""
    options: dict[str, Any] = {
        "rows": problem.sketch_rows or default_rows(problem),
        "row_bound": row_bound(problem.bounds),
        "epsilon": problem.epsilon,
        "delta": problem.delta,
        "adjacency": problem.adjacency,
        "records": problem.records,
        "dim": problem.order + 1,
    }
    plain = Mixing.calibrate(**options)
    least = RICH * problem.records / (problem.order + 1)
    if least <= plain.gamma / 4:  # the eigenvalue alone costs more
        return (plain,)
    adaptive = AdaptiveMixing.calibrate(**options)
    return (adaptive,) if least > adaptive.reach - plain.gamma + 1 else (plain,)


def scaled(moments: Moments) -> Floats:
    """The Gram matrix of [x, c, unit y]; the unit is a power of two, so nothing is rounded."""
    factors = np.ones(len(moments.gram))
    factors[-1] = unit(moments.bounds)
    return np.asarray(moments.gram * factors * factors[:, None])


def solve(moments: Moments, mechanisms: tuple[Any, ...], draws: Draws) -> Solution:
    """Least squares on the rows of the sketch."""
    (mechanism,) = mechanisms
    sketch = mechanism.release_gram(
        scaled(moments), moments.records, len(moments.gram), rng=draws.rng, unsafe=draws.unsafe
    )
    weights, spread = least_squares(sketch.value)
    return Solution(weights / unit(moments.bounds), spread / unit(moments.bounds) ** 2, sketch.noise_variance)


def least_squares(rows: Floats) -> tuple[Floats, Floats]:
    """The least-squares weights of the last column on the others, and their covariance given the sketched data."""
    x, y = rows[:, :-1], rows[:, -1]
    k, order = x.shape
    inverse = np.linalg.pinv(x.T @ x, hermitian=True)
    weights = inverse @ (x.T @ y)
    left = float(np.square(y - x @ weights).sum()) / max(k - order, 1)
    return np.asarray(weights), np.asarray(left * inverse)


MIXING = Solver(mechanisms, solve)
