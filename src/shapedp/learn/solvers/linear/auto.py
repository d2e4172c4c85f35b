"""Which solver `auto` takes, from n, d, epsilon and delta alone."""

from __future__ import annotations

from shapedp.learn.solvers.linear.problem import Problem


def choose(problem: Problem) -> str:
    """The name of a solver."""
    return "suffstats"
