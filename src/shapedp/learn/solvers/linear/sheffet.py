"""Sheffet's threshold algorithm, mended, with his bound or with the Renyi curve of mixing."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from shapedp.learn.solvers.linear.mixing_paper import published_rows, solve
from shapedp.learn.solvers.linear.problem import Problem, Solver
from shapedp.recipes.sheffet import sheffet


@lru_cache(maxsize=8)  # no data enter
def _mechanisms(problem: Problem, analysis: str) -> tuple[Any, ...]:
    rows, bound = problem.sketch_rows or published_rows(problem), problem.bounds.row
    made = sheffet(rows=rows, row_bound=bound, epsilon=problem.epsilon, delta=problem.delta, analysis=analysis)
    return (replace(made, records=problem.records, dim=problem.order + 1),)


SHEFFET = Solver(lambda problem: _mechanisms(problem, "sheffet"), solve, adjacencies=("zero-out",))
SHEFFET_RDP = Solver(lambda problem: _mechanisms(problem, "renyi"), solve, adjacencies=("zero-out",))
