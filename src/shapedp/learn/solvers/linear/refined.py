"""Second moments with half of the budget; the rest sharpens the weights by clipped residuals, in three more passes."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from shapedp.accounting.plan import Step
from shapedp.learn.moments import Moments
from shapedp.learn.solvers.linear.problem import Draws, Problem, Solution, Solver
from shapedp.learn.solvers.linear.steps import step, step_set, stepped, whole_mu
from shapedp.learn.solvers.linear.suffstats import NoisyMoments, covariance, shape, shrunk
from shapedp.mechanisms import Additive
from shapedp.noise import Gaussian
from shapedp.numerics.outward import ABOVE_512
from shapedp.sensitivity.symmetric import symmetric_matrix, upper_triangle

SHARES = (0.3, 0.16, 0.02)  # of mu^2 for X^T X, X^T y and y^T y; the steps share the rest equally
STEPS = 3
LEAST = 2.0**-6  # of the target bound: the least clip
SEEN = 3.0  # standard deviations of the noise of y^T y: a smaller sum of squared residuals is not known


def wide(problem: Problem) -> float:
    """The clip in estimated standard deviations of the residual: so wide that the noise hides what is cut off.

    0.7 sqrt(2 log(1 + n mu/d)): it grows with the records, so that what clipping takes vanishes with the noise.
    """
    return 0.7 * math.sqrt(2 * math.log1p(problem.records * whole_mu(problem) / problem.order))


@lru_cache(maxsize=8)  # no data enter
def mechanisms(problem: Problem) -> tuple[Any, ...]:
    """The moments once, then the steps: what they can move, by their shares, is together what the claim allows."""
    first, each = shape(problem, SHARES), step_set(problem)
    once = problem.bounds.design / math.sqrt((1 - sum(SHARES)) / STEPS)
    spread = math.hypot(first.radius, math.sqrt(STEPS) * each.radius / once) / whole_mu(problem) * ABOVE_512
    assert first.scales is not None
    moments = Additive(Gaussian(first.scales * spread), first, problem.epsilon, problem.delta)
    return moments, Step(step(problem, each.radius / (once * spread)), count=STEPS)


def solve(moments: Moments, mechanisms: tuple[Any, ...], draws: Draws) -> Solution:
    """Shrunk least squares on the moments, then on the residuals of what was found so far, clipped near their size.

    A step's error comes from its own noise and, to second order, from that of X^T X: residuals are smaller than y, so
    clipping them brings less noise than y would. Everything but the residuals is computed from what was released.
    """
    first, again = mechanisms
    order, target = len(moments.cross), moments.bounds.target
    corner = order * (order + 1) // 2
    query = np.concatenate([upper_triangle(moments.design), moments.cross, [moments.gram[-1, -1]]])
    value = draws.release(first, query)
    scales = first.law.marginal_scales()
    noisy = NoisyMoments(symmetric_matrix(value[:corner]), value[corner:-1], float(scales[0]), float(scales[corner]))
    found = shrunk(noisy, wary=True)
    weights = found.weights
    left = float(value[-1]) + found.risk
    residual = max(left, 0.0) / moments.records
    given = Problem(moments.records, order, moments.bounds, first.epsilon, first.delta, first.sensitivity.adjacency)
    clip = min(max(wide(given) * math.sqrt(residual), LEAST * target), target)
    for _ in range(again.count):
        sums, scale = stepped(moments, again.subject, draws, weights, clip)
        noisy = NoisyMoments(noisy.design, sums, noisy.design_scale, scale)
        found = shrunk(noisy)
        weights = weights + found.weights
    resolved = float(np.linalg.eigvalsh(noisy.design)[0]) / noisy.edge if left > SEEN * float(scales[-1]) else 0.0
    return Solution(weights, covariance(noisy, found, residual), resolved)


REFINED = Solver(mechanisms, solve, passes=1 + STEPS)
