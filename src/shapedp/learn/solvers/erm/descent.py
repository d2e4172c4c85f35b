"""Logistic regression from sums over records: released second moments as the metric of noisy gradient steps."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from shapedp.accounting.plan import Step
from shapedp.learn.moments import Moments
from shapedp.learn.residuals import gradient
from shapedp.learn.solvers.linear.adassp import moved
from shapedp.learn.solvers.linear.problem import Draws, Problem, Solution, Solver, solved
from shapedp.learn.solvers.linear.steps import step, whole_mu
from shapedp.learn.solvers.linear.suffstats import NoisyMoments, cleaned
from shapedp.mechanisms import Additive
from shapedp.noise import Gaussian
from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ABOVE_512
from shapedp.sensitivity.symmetric import symmetric_matrix, upper_triangle

# These were set on four generated sets: fewer steps leave large weights short, more of them add up more noise.
SHARE = 0.1  # of mu^2 for X^T X; the steps share the rest equally
STEPS = 10
MOMENTUM = 0.6
REACHED = 12.0  # scores of this size are to be expected


def half(score: Floats) -> Floats:
    """tanh(s/2) = 2 sigma(s) - 1: the mean of a label -1 or +1."""
    return np.asarray(np.tanh(score / 2))


@lru_cache(maxsize=8)  # no data enter
def mechanisms(problem: Problem) -> tuple[Any, ...]:
    """X^T X once, then the steps, accounted together as one Gaussian release of the claim's mu."""
    mu = whole_mu(problem)
    square = moved(problem, isometric=True)[1]
    assert square.scales is not None
    spread = square.radius / (mu * math.sqrt(SHARE)) * ABOVE_512
    first = Additive(Gaussian(spread * square.scales), square, problem.epsilon, problem.delta)
    return first, Step(step(problem, mu * math.sqrt((1 - SHARE) / STEPS)), count=STEPS)


def solve(moments: Moments, mechanisms: tuple[Any, ...], draws: Draws) -> Solution:
    """w += (A/4 + r I)^-1 (sum of [x, c] (label - mean) + noise - r w), A the released X^T X, cleaned of noise.

    A label is 0 or 1 here, so that no residual is cut off. A/4 is at least the second derivative everywhere, so that
    without noise every step lowers the loss; steps look ahead by `MOMENTUM`. r weighs a score of `REACHED` against the
    noise of a step.
    Reference: Bohning and Lindsay 1988, Monotonicity of quadratic-approximation algorithms.
    """
    first, steps = mechanisms
    order = len(moments.cross)
    values = draws.release(first, upper_triangle(moments.design))
    scale = float(steps.subject.law.marginal_scales()[0])
    noisy = NoisyMoments(symmetric_matrix(values), np.zeros(order), float(first.law.marginal_scales()[0]), scale)
    turned, vectors = np.linalg.eigh(noisy.design)
    ridge = scale * moments.bounds.design / (REACHED * math.sqrt(steps.count))
    metric = (vectors * (cleaned(turned, noisy.edge)[0] / 4 + ridge)) @ vectors.T
    weights = before = np.zeros(order)
    for _ in range(steps.count):
        ahead = weights + MOMENTUM * (weights - before)
        sums = draws.release(steps.subject, gradient(moments, ahead, 2.0, half))
        weights, before = ahead + solved(metric, sums - ridge * ahead), weights
    return Solution(weights)


DESCENT: Solver = Solver(mechanisms, solve, passes=1 + STEPS)
