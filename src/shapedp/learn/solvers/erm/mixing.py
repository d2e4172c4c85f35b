"""Least squares on a sketch of [x, c, y_1 .. y_K]: the quadratic surrogate of logistic regression."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from shapedp.learn.solvers.base import Draws, Solution, Solver
from shapedp.learn.solvers.erm.problem import Problem, Records, Risk
from shapedp.learn.solvers.linear import mixing
from shapedp.learn.solvers.linear.problem import Problem as LeastSquares
from shapedp.learn.solvers.linear.problem import unit
from shapedp.numerics.arrays import Floats
from shapedp.numerics.gram import BLOCK, gram_sum


def mechanisms(problem: Problem) -> tuple[Any, ...]:
    """As for one target, with 10 rows of the sketch per column."""
    rows = problem.sketch_rows or 10 * (problem.order + problem.problems)
    claim = (problem.epsilon, problem.delta, problem.adjacency)
    return mixing.mechanisms(
        LeastSquares(problem.records, problem.order, problem.bounds, *claim, rows, problem.problems)
    )


def solve(risk: Risk, mechanisms: tuple[Any, ...], draws: Draws) -> Solution:
    """Least-squares weights (order, problems) for targets +1 and -1, to be scaled by the surrogate's."""
    problem, (mechanism,) = risk.problem, mechanisms
    one = unit(problem.bounds, problem.problems)
    sketch = mechanism.release_gram(
        lambda: gram_sum(_rows(risk.data, one), column_bounds(problem, one)),
        problem.records,
        problem.order + problem.problems,
        rng=draws.rng,
        unsafe=draws.unsafe,
    )
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


MIXING = Solver(mechanisms, solve)
