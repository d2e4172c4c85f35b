"""Regression solvers as published: LinearMixing as printed, and Sheffet's threshold algorithm, mended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from shapedp.learn.moments import Moments
from shapedp.learn.solvers.linear.mixing import least_squares
from shapedp.learn.solvers.linear.problem import Draws, Problem, Solution, Solver
from shapedp.papers.gaussian_mixing.recipes import modified_gauss_mix
from shapedp.papers.gaussian_mixing.sheffet import sheffet


def published_rows(problem: Problem) -> int:
    """Four times the columns: within the paper's grid of 1.5 d to 7.5 d."""
    return 4 * (problem.order + 1)


def solve(moments: Moments, mechanisms: tuple[Any, ...], draws: Draws) -> Solution:
    """Least squares on the rows of the sketch, y in its own units."""
    sketch = draws.sketch(mechanisms[0], moments.gram, moments.records, len(moments.gram))
    return Solution(least_squares(sketch.value))


def _solver(recipe: Callable[..., Any]) -> Solver:
    """Least squares on the sketch that a recipe makes."""

    @lru_cache(maxsize=8)  # no data enter
    def mechanisms(problem: Problem) -> tuple[Any, ...]:
        rows, bound = problem.sketch_rows or published_rows(problem), problem.bounds.row
        made = recipe(rows=rows, row_bound=bound, epsilon=problem.epsilon, delta=problem.delta)
        return (replace(made, records=problem.records, dim=problem.order + 1),)

    return Solver(mechanisms, solve, adjacencies=("zero-out",))


MIXING_PAPER = _solver(modified_gauss_mix)  # Algorithm 1 with the gamma, eta and tau of Algorithm 2
SHEFFET = _solver(partial(sheffet, analysis="sheffet"))
SHEFFET_RDP = _solver(partial(sheffet, analysis="renyi"))
