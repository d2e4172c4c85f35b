"""Which solver `auto` takes, from n, d, epsilon and delta alone."""

from __future__ import annotations

from shapedp.learn.solvers.linear.problem import Problem


def choose(problem: Problem) -> str:
    """The name of a solver: the same for all sizes and claims, as frozen by experiments/gaussian_mixing/auto_rule.py.

    Over n from 100 to 1e5 and d from 2 to 100 no other solver was more than 4.4 percent ahead anywhere.
    """
    return "suffstats"
