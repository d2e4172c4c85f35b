"""Least squares on a sketch of [x, c, y_1 .. y_K]: the quadratic surrogate of logistic regression."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize

from shapedp.learn.solvers.base import Draws, Solution, Solver
from shapedp.learn.solvers.erm.problem import Problem, Records, Risk
from shapedp.learn.solvers.linear import mixing
from shapedp.learn.solvers.linear.problem import Problem as LeastSquares
from shapedp.learn.solvers.linear.problem import unit
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import positive
from shapedp.numerics.gram import BLOCK, gram_sum


def mechanisms(problem: Problem) -> tuple[Any, ...]:
    """As for one target, with 10 rows of the sketch per column."""
    rows = problem.sketch_rows or 10 * (problem.order + problem.problems)
    claim = (problem.epsilon, problem.delta, problem.adjacency)
    given = LeastSquares(problem.records, problem.order, problem.bounds, *claim, problem.problems, rows)
    return mixing.mechanisms(given)


def solve(risk: Risk, mechanisms: tuple[Any, ...], draws: Draws) -> Solution:
    """Least-squares weights (order, problems) for targets +1 and -1, to be scaled by the surrogate's."""
    problem, (mechanism,) = risk.problem, mechanisms
    one = unit(problem.bounds, problem.problems)
    bounds = column_bounds(problem, one)
    sketch = draws.sketch(mechanism, lambda: gram_sum(_rows(risk.data, one), bounds), problem.records, len(bounds))
    x, y = sketch.value[:, : problem.order], sketch.value[:, problem.order :]
    return Solution(np.asarray(np.linalg.pinv(x.T @ x, hermitian=True) @ (x.T @ y) / one))


def column_bounds(problem: Problem, one: float) -> Floats:
    """A bound on every column of [x, c, unit y_1 .. unit y_K]; the unit is `one`."""
    each = np.full(problem.order + problem.problems, one)
    each[: problem.order] = problem.bounds.feature
    if problem.bounds.constant > 0:
        each[problem.order - 1] = problem.bounds.constant
    return each


def _rows(records: Records, one: float) -> Iterator[Floats]:
    """Rows of the sketched matrix; the labels of a record of zeros are zeros too."""
    step = 8 * BLOCK
    for start in range(0, records.count, step):
        part = records.x[start : start + step]
        dense = part if isinstance(part, np.ndarray) else part.toarray()
        yield np.column_stack([dense, one * records.signs[start : start + step]])


@dataclass(frozen=True)
class Surrogate:
    """b0 + b1 s + b2 s^2, within `error` of -log(1 + e^-s) for |s| <= reach, and of no quadratic closer.

    Minimising it over records is least squares on targets `scale` y: scale = -b1/(2 b2).
    """

    reach: float
    b0: float
    b1: float
    b2: float
    error: float

    @property
    def scale(self) -> float:
        """What weights fitted to y = +1, -1 are multiplied by."""
        return -self.b1 / (2 * self.b2)


def quadratic_surrogate(reach: float) -> Surrogate:
    """The minimax quadratic on [-reach, reach].

    -log(1 + e^-s) = s/2 - log(2 cosh(s/2)): the even part g(u) = log(2 cosh(sqrt(u)/2)) is concave in u = s^2, so the
    closest line in u is parallel to its chord, halfway between chord and tangent: the error alternates at
    s = -reach, -m, 0, m, reach, five points for three coefficients (Chebyshev).
    Reference: Lev et al. 2025, section 5.2 and equation (10).
    """
    if not 1e-3 <= positive("surrogate_reach", reach) <= 1e3:
        raise ValueError(f"surrogate_reach must lie between 1e-3 and 1e3, got {reach!r}")
    chord = (_even(reach) - math.log(2)) / reach**2
    touch = float(optimize.brentq(lambda m: math.tanh(m / 2) / (4 * m) - chord, reach * 1e-6, reach, xtol=1e-14))
    error = (_even(touch) - chord * touch**2 - math.log(2)) / 2
    return Surrogate(reach, -(math.log(2) + error), 0.5, -chord, error)


def _even(s: float) -> float:
    """log(2 cosh(s/2))."""
    return abs(s) / 2 + math.log1p(math.exp(-abs(s)))


MIXING = Solver(mechanisms, solve)
