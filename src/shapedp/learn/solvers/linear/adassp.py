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
from shapedp.numerics.arrays import Floats
from shapedp.numerics.gram import eigenvalue_error, least_eigenvalue
from shapedp.numerics.outward import ABOVE_512, BELOW_8192
from shapedp.privacy import GaussianLoss
from shapedp.sensitivity import L2
from shapedp.sensitivity.symmetric import symmetric, symmetric_matrix, upper_triangle

RHO = 0.05  # the failure probability of its utility theorem
JOINT_SHARES = (0.06, 0.58, 0.36)  # of mu^2: eigenvalue, X^T X, X^T y


def moved(problem: Problem, *, isometric: bool) -> tuple[L2, L2, L2]:
    """What a record moves: the least eigenvalue, X^T X (in the Frobenius norm) and X^T y, rounding included."""
    order, adjacency = problem.order, problem.adjacency
    design, cross = problem.bounds.design**2, problem.bounds.design * problem.bounds.target
    slip = problem.slip * ABOVE_512
    eigen = design * (1 + slip + 2 * eigenvalue_error(order) * problem.records)
    once = adjacency == "zero-out"
    design *= (1.0 if once else math.sqrt(2) * ABOVE_512) + slip
    triangle = symmetric(design, order, adjacency=adjacency)
    return (
        L2(eigen, 1, adjacency=adjacency),
        triangle if isometric else L2(design, triangle.dim, adjacency=adjacency),
        L2(cross * ((1 if once else 2) + slip), order, adjacency=adjacency),
    )


@lru_cache(maxsize=8)  # no data enter
def _published(problem: Problem) -> tuple[Any, ...]:
    """Three releases, each with sqrt(log(6/delta))/(epsilon/3) times what a record moves, as printed."""
    if not problem.delta > 0:
        raise ValueError("delta must be > 0 for Gaussian noise")
    factor = math.sqrt(math.log(6 / problem.delta)) / (problem.epsilon / 3)
    return tuple(
        Additive(Gaussian(factor * one.radius, one.dim), one, problem.epsilon, problem.delta, recipe="adassp")
        for one in moved(problem, isometric=False)
    )


@lru_cache(maxsize=8)  # no data enter
def joint(problem: Problem) -> tuple[Any, ...]:
    """The same three releases, isometric for X^T X, accounted together and split by JOINT_SHARES."""
    mu = GaussianLoss.calibrate(problem.epsilon, problem.delta).mu * BELOW_8192
    made = []
    for share, one in zip(JOINT_SHARES, moved(problem, isometric=True), strict=True):
        sigma = one.radius / (mu * math.sqrt(share)) * ABOVE_512
        law = Gaussian(sigma, one.dim) if one.scales is None else Gaussian(sigma * one.scales)
        made.append(Additive(law, one, problem.epsilon, problem.delta))
    return tuple(made)


def solve(moments: Moments, mechanisms: tuple[Any, ...], draws: Draws) -> Solution:
    """(X^T X + E + r I)^-1 (X^T y + e) with r = max(0, s sqrt(d log(2 d^2/rho)) - l), l the noisy eigenvalue, lowered.

    s is the standard deviation of an entry of E off the diagonal. Reference: Wang 2018, Algorithm 2.
    """
    eigen, square, cross = mechanisms
    design = ridged(moments, eigen, square, draws)
    return Solution(solved(design, draws.release(cross, moments.cross)))


def ridged(moments: Moments, eigen: Additive, square: Additive, draws: Draws) -> Floats:
    """X^T X + E + r I, released."""
    order = len(moments.cross)
    noisy = float(draws.release(eigen, [least_eigenvalue(moments.design)])[0])
    least = max(noisy - lowered(eigen), 0.0)
    design = symmetric_matrix(draws.release(square, upper_triangle(moments.design)))
    off = float(square.law.marginal_scales()[1]) if order > 1 else float(square.law.marginal_scales()[0])
    ridge = max(0.0, off * math.sqrt(order * math.log(2 * order**2 / RHO)) - least)
    return np.asarray(design + ridge * np.eye(order))


def lowered(eigen: Additive) -> float:
    """By how much the noisy eigenvalue is lowered: sqrt(log(6/delta)) standard deviations, as printed."""
    return float(eigen.law.scales[0]) * math.sqrt(math.log(6 / eigen.delta))


ADASSP = Solver(_published, solve)
ADASSP_JOINT = Solver(joint, solve)
