"""Coordinate descent of a loss of margins, on the records [x, c] with every entry within its bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from shapedp.learn.solvers.base import Draws, Solution, Solver
from shapedp.learn.solvers.cd import CD, Columns, Descent, Penalized, Penalty, of_margin
from shapedp.learn.solvers.erm.problem import Problem, Risk, two_classes


def mechanisms(problem: Problem) -> tuple[Any, ...]:
    """None beforehand: those of later passes depend on what the first release said."""
    two_classes(problem, "cd")
    return ()


def solve(risk: Risk, mechanisms: tuple[Any, ...], draws: Draws) -> Solution:
    """The weights after the last pass, as a column."""
    problem, bounds = risk.problem, risk.problem.bounds
    descent = Descent(problem.epsilon, problem.delta, problem.adjacency, passes=problem.passes, unit=1.0)
    each = np.full(problem.order, bounds.feature)
    if bounds.constant:
        each[-1] = bounds.constant
    columns = Columns.of(risk.data.x, risk.data.signs[:, 0], each, intercept=False)
    found = CD.solve(
        Penalized(descent, columns, of_margin(problem.loss), Penalty(l2=problem.regularization)), (), draws
    )
    return replace(found, weights=found.weights[:, None])


CLASSIFIER = Solver(mechanisms, solve, completed=lambda problem: replace(problem, regularization=0.0))
