"""Two baselines of clipped residuals: AdaSSP boosted, and gradient descent."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from shapedp.accounting.plan import Step
from shapedp.learn.moments import Moments
from shapedp.learn.solvers.linear.adassp import JOINT_SHARES, joint, ridged
from shapedp.learn.solvers.linear.problem import Draws, Problem, Solution, Solver, solved
from shapedp.learn.solvers.linear.steps import step, stepped, whole_mu

ROUNDS = 5
EPOCHS = 20


@lru_cache(maxsize=8)  # no data enter
def _boosting(problem: Problem) -> tuple[Any, ...]:
    """AdaSSP's eigenvalue and X^T X once; its share for X^T y is that of all rounds together."""
    eigen, square, _ = joint(problem)
    return eigen, square, Step(step(problem, whole_mu(problem) * math.sqrt(JOINT_SHARES[2] / ROUNDS)), count=ROUNDS)


def boost(moments: Moments, mechanisms: tuple[Any, ...], draws: Draws) -> Solution:
    """theta += (X^T X + E + r I)^-1 (X^T clip(y - X theta) + e), the matrix as AdaSSP released it.

    Reference: Tang et al. 2023, Improved differentially private regression via gradient boosting.
    """
    eigen, square, rounds = mechanisms
    design, weights = ridged(moments, eigen, square, draws), np.zeros(len(moments.cross))
    for _ in range(rounds.count):
        weights = weights + solved(design, stepped(moments, rounds.subject, draws, weights, moments.bounds.target)[0])
    return Solution(weights)


@lru_cache(maxsize=8)  # no data enter
def _descending(problem: Problem) -> tuple[Any, ...]:
    return (Step(step(problem, whole_mu(problem) / math.sqrt(EPOCHS)), count=EPOCHS),)


def descend(moments: Moments, mechanisms: tuple[Any, ...], draws: Draws) -> Solution:
    """theta += X^T clip(y - X theta)/(n C_X^2) + noise: steps as long as the bound on a row allows.

    Reference: Brown et al. 2024 (private gradient descent for linear regression), without its tuning.
    """
    (steps,) = mechanisms
    length, weights = 1 / (moments.records * moments.bounds.design**2), np.zeros(len(moments.cross))
    for _ in range(steps.count):
        weights = weights + length * stepped(moments, steps.subject, draws, weights, moments.bounds.target)[0]
    return Solution(weights)


BOOSTED = Solver(_boosting, boost, passes=1 + ROUNDS)
DESCENT = Solver(_descending, descend, passes=1 + EPOCHS)
