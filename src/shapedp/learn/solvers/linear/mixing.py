"""Least squares on an exactly calibrated sketch of [X, c, y]."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from shapedp.learn.moments import Moments
from shapedp.learn.solvers.linear.problem import Draws, Problem, Solution, Solver, row_bound, solved, unit
from shapedp.learn.solvers.linear.suffstats import NoisyMoments, Shrunk, positive_part, shrunk
from shapedp.mechanisms import AdaptiveMixing, Mixing
from shapedp.numerics.arrays import Floats
from shapedp.privacy import GaussianLoss
from shapedp.privacy.losses import MixingLoss

ENTRIES = 2**19  # of a sketch: drawing them takes about a tenth of a second
RICH = 0.1  # of the most the least eigenvalue can be; above it releasing it is thought to pay


def default_rows(problem: Problem) -> int:
    """Rows of the sketch from the public sizes: as many as leave sketching a quarter of the error of privacy noise.

    A sketch of k rows costs d/k of the residual variance, noise about d^2/(mu n)^2 of C_Y^2: k = 4 (mu n)^2/d, but at
    least 10 rows per column, and beyond those at most ENTRIES numbers in all.
    """
    columns = problem.order + 1
    mu = GaussianLoss.calibrate(problem.epsilon, problem.delta).mu
    wanted = 4 * (mu * problem.records) ** 2 / columns
    return math.ceil(max(min(wanted, ENTRIES / columns), 10 * columns))


@lru_cache(maxsize=64)  # no data enter: the next fit of the same sizes finds it
def mechanisms(problem: Problem) -> tuple[Any, ...]:
    """`AdaptiveMixing` where releasing the least eigenvalue is expected to pay, else `Mixing`.

    The eigenvalue is guessed, from public sizes, to be RICH n C^2 over the number of columns.
    """
    rows, dim = problem.sketch_rows or default_rows(problem), problem.order + problem.targets
    options: dict[str, Any] = {"rows": rows, "row_bound": row_bound(problem.bounds, problem.targets)}
    options |= {"epsilon": problem.epsilon, "delta": problem.delta, "adjacency": problem.adjacency}
    options |= {"records": problem.records, "dim": dim}
    relation: Any = problem.adjacency
    about = MixingLoss.calibrate(rows, problem.epsilon, problem.delta, neighbours=relation, tolerance=1e-4).gamma
    least = RICH * problem.records / dim
    if least > about / 4:  # otherwise the eigenvalue alone costs more
        adaptive = AdaptiveMixing.calibrate(**options, plain=about)
        if least > adaptive.reach - about + 1:
            return (adaptive,)
    return (Mixing.calibrate(**options),)


def scaled(moments: Moments) -> Floats:
    """The Gram matrix of [x, c, unit y]; the unit is a power of two, so nothing is rounded."""
    factors = np.ones(len(moments.gram))
    factors[-1] = unit(moments.bounds)
    return np.asarray(moments.gram * factors * factors[:, None])


def solve(moments: Moments, mechanisms: tuple[Any, ...], draws: Draws) -> Solution:
    """The sketch's moments less the noise variance, then shrunk as moments with Gaussian noise would be."""
    (mechanism,) = mechanisms
    width, factor = len(moments.gram), unit(moments.bounds)
    sketch = draws.sketch(mechanism, scaled(moments), moments.records, width)
    rows, variance, total = len(sketch.value), sketch.noise_variance, sketch.gram()
    floor = max(variance, row_bound(moments.bounds) ** 2)  # a sketch without noise still errs by its rows
    noisy = NoisyMoments(total[:-1, :-1], total[:-1, -1], math.sqrt(2 / rows) * floor, floor / math.sqrt(rows))
    found = shrunk(noisy)
    spread = covariance(total, variance, found, rows, moments.records)
    return Solution(found.weights / factor, spread / factor**2)


def covariance(total: Floats, variance: float, found: Shrunk, rows: int, records: int) -> Floats:
    """H (Var + r^2 A) H: Var = (v B + s^4 theta theta^T)/k of the sketch, B = A + s^2 I, v its residual variance."""
    theta, design = found.weights, positive_part(total[:-1, :-1])
    full = np.append(-theta, 1.0)
    residual = max(float(full @ total @ full), 0.0)
    inside = (residual + variance * float(full @ full)) * (design + variance * np.eye(len(theta)))
    inside += variance**2 * np.outer(theta, theta)
    return np.asarray(found.operator @ (inside / rows + residual / records * design) @ found.operator)


def least_squares(rows: Floats) -> Floats:
    """The least-squares weights of the last column on the others, of least norm where they are not unique."""
    total = rows.T @ rows
    return solved(total[:-1, :-1], total[:-1, -1])


MIXING = Solver(mechanisms, solve)
