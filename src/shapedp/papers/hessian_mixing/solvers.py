"""Iterative Hessian mixing with the published parameters; its certificate comes from the exact losses."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from shapedp.accounting.plan import Step
from shapedp.learn.solvers.linear.hessian import solve
from shapedp.learn.solvers.linear.problem import Problem, Solver
from shapedp.learn.solvers.linear.steps import step_set
from shapedp.mechanisms import AdaptiveMixing, Additive
from shapedp.noise import Gaussian
from shapedp.papers.hessian_mixing.recipes import hessian_mixing


@lru_cache(maxsize=8)  # no data enter
def mechanisms(problem: Problem) -> tuple[Any, ...]:
    """All sketches as one, and the gradient steps.

    The noise of a sketch is gamma C^2 - max(l, 0), as printed, where the released eigenvalue l is at most 0; where it
    is larger, C^2 more.
    """
    found = hessian_mixing(
        columns=problem.order, epsilon=problem.epsilon, delta=problem.delta, rows=problem.sketch_rows
    )
    one, rows = step_set(problem), found.rounds * found.rows
    gradient = Additive(Gaussian(found.sigma * one.radius, one.dim), one, problem.epsilon, problem.delta)
    sketch = AdaptiveMixing(
        rows=rows,
        row_bound=problem.bounds.design,
        gamma=found.gamma + 1,
        eta=found.eta,
        tau=found.tau,
        epsilon=problem.epsilon,
        delta=problem.delta,
        records=problem.records,
        dim=problem.order,
    )
    return sketch, Step(gradient, count=found.rounds)


HESSIAN_MIXING_PAPER = Solver(mechanisms, solve, adjacencies=("zero-out",), passes=1 + 3)
