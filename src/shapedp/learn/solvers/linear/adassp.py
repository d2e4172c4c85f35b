"""AdaSSP: least eigenvalue, X^T X and X^T y, each released with Gaussian noise, and a ridge that fits them."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from shapedp.learn.moments import Moments
from shapedp.learn.solvers.linear.problem import Draws, Problem, Solution, Solver, solved
from shapedp.mechanisms import Additive
from shapedp.noise import Gaussian
from shapedp.numerics.gram import eigenvalue_error, least_eigenvalue
from shapedp.privacy import GaussianLoss
from shapedp.sensitivity import L2
from shapedp.sensitivity.symmetric import symmetric, symmetric_matrix, upper_triangle

RHO = 0.05  # the failure probability of its utility theorem
JOINT_SHARES = (0.06, 0.58, 0.36)  # of mu^2: eigenvalue, X^T X, X^T y
UP = 1 + 2.0**-44


def _bounds(problem: Problem) -> tuple[float, float, float]:
    """By how much a record moves the least eigenvalue, X^T X (Frobenius) and X^T y, rounding included."""
    design, cross = problem.bounds.design**2, problem.bounds.design * problem.bounds.target
    slip = problem.slip * UP
    eigen = design * (1 + slip + 2 * eigenvalue_error(problem.order) * problem.records)
    if problem.adjacency == "zero-out":
        return eigen, design * (1 + slip), cross * (1 + slip)
    return eigen, design * (math.sqrt(2) * UP + slip), cross * (2 + slip)


@lru_cache(maxsize=8)  # no data enter
def _published(problem: Problem) -> tuple[Any, ...]:
    """Three releases, each with sqrt(log(6/delta))/(epsilon/3) times what a record moves, as printed."""
    if not problem.delta > 0:
        raise ValueError("delta must be > 0 for Gaussian noise")
    factor = math.sqrt(math.log(6 / problem.delta)) / (problem.epsilon / 3)
    eigen, design, cross = _bounds(problem)
    claim = (problem.epsilon, problem.delta)
    triangle = L2(design, problem.order * (problem.order + 1) // 2, adjacency=problem.adjacency)
    return (
        Additive(Gaussian(factor * eigen, 1), L2(eigen, 1, adjacency=problem.adjacency), *claim, recipe="adassp"),
        Additive(Gaussian(factor * design, triangle.dim), triangle, *claim, recipe="adassp"),
        Additive(
            Gaussian(factor * cross, problem.order),
            L2(cross, problem.order, adjacency=problem.adjacency),
            *claim,
            recipe="adassp",
        ),
    )


@lru_cache(maxsize=8)  # no data enter
def _joint(problem: Problem) -> tuple[Any, ...]:
    """The same three releases, isometric for X^T X, accounted together and split by JOINT_SHARES."""
    mu = GaussianLoss.calibrate(problem.epsilon, problem.delta).mu * (1 - 2.0**-40)
    eigen, design, cross = _bounds(problem)
    sets = [
        L2(eigen, 1, adjacency=problem.adjacency),
        symmetric(design, problem.order, adjacency=problem.adjacency),
        L2(cross, problem.order, adjacency=problem.adjacency),
    ]
    made = []
    for share, one in zip(JOINT_SHARES, sets, strict=True):
        sigma = one.radius / (mu * math.sqrt(share)) * UP
        law = Gaussian(sigma, one.dim) if one.scales is None else Gaussian(sigma * one.scales)
        made.append(Additive(law, one, problem.epsilon, problem.delta))
    return tuple(made)


def solve(moments: Moments, mechanisms: tuple[Any, ...], draws: Draws) -> Solution:
    """(X^T X + E + r I)^-1 (X^T y + e) with r = max(0, s sqrt(d log(2 d^2/rho)) - l), l the noisy eigenvalue, lowered.

    s is the standard deviation of an entry of E off the diagonal. Reference: Wang 2018, Algorithm 2.
    """
    eigen, square, cross = mechanisms
    order = len(moments.cross)
    release = {"rng": draws.rng, "unsafe": draws.unsafe}
    noisy = float(eigen.release([least_eigenvalue(moments.design)], **release).value[0])
    least = max(noisy - lowered(eigen), 0.0)
    design = symmetric_matrix(square.release(upper_triangle(moments.design), **release).value)
    target = cross.release(moments.cross, **release).value
    off = float(square.law.marginal_scales()[1]) if order > 1 else float(square.law.marginal_scales()[0])
    ridge = max(0.0, off * math.sqrt(order * math.log(2 * order**2 / RHO)) - least)
    return Solution(solved(design + ridge * np.eye(order), target))


def lowered(eigen: Additive) -> float:
    """By how much the noisy eigenvalue is lowered: sqrt(log(6/delta)) standard deviations, as printed."""
    return float(eigen.law.scales[0]) * math.sqrt(math.log(6 / eigen.delta))


ADASSP = Solver(_published, solve)
ADASSP_JOINT = Solver(_joint, solve)
