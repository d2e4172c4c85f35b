"""One Gaussian release of [X^T X, X^T y, y^T y], shaped by blocks; the noise's law guides what is made of it."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from shapedp.learn.moments import Moments
from shapedp.learn.solvers.linear.problem import Draws, Problem, Solution, Solver
from shapedp.learn.solvers.linear.shrink import NoisyMoments, Shrunk, shrunk
from shapedp.mechanisms import calibrate
from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ABOVE_512
from shapedp.sensitivity import L2, Adjacency
from shapedp.sensitivity.symmetric import symmetric, symmetric_matrix, upper_triangle

SHARES = (0.45, 0.53, 0.02)  # of mu^2 for X^T X, X^T y and y^T y


def reach(adjacency: Adjacency) -> float:
    """sqrt of the most that sum_m share_m |v_m|^2/bound_m^2 can be, v_m the change of block m, bound_m its size.

    Zero-out: a record of full length moves every block by its bound. Replacement of unit (x, y) by (x', y') with
    x.x' = rho, y y' = -1: 2 (1 - rho^2) q_1 + 2 (1 + rho) q_2, largest at rho = q_2/(2 q_1); shorter records move
    less, and y^T y by at most its bound.
    """
    q1, q2, q3 = SHARES
    if adjacency == "zero-out":
        return math.sqrt(q1 + q2 + q3) * ABOVE_512
    rho = min(q2 / (2 * q1), 1.0)
    return math.sqrt(2 * (1 - rho**2) * q1 + 2 * (1 + rho) * q2 + q3) * ABOVE_512


def shape(problem: Problem) -> L2:
    """The ellipsoid in which neighbours' moments differ, rounding of the Gram matrix included."""
    design, target = problem.bounds.design, problem.bounds.target
    scales = [bound / math.sqrt(q) for bound, q in zip((design**2, design * target, target**2), SHARES, strict=True)]
    triangle = symmetric(1.0, problem.order).scales
    assert triangle is not None
    axes = np.concatenate([triangle * scales[0], np.full(problem.order, scales[1]), [scales[2]]])
    radius = reach(problem.adjacency) + problem.slip * ABOVE_512
    return L2(radius, axes.size, scales=axes, adjacency=problem.adjacency)


@lru_cache(maxsize=8)  # no data enter
def mechanisms(problem: Problem) -> tuple[Any, ...]:
    """One Gaussian release."""
    return (calibrate("gaussian", shape(problem), epsilon=problem.epsilon, delta=problem.delta),)


def solve(moments: Moments, mechanisms: tuple[Any, ...], draws: Draws) -> Solution:
    """Release once, then shrink."""
    (mechanism,) = mechanisms
    order = len(moments.cross)
    triangle = order * (order + 1) // 2
    query = np.concatenate([upper_triangle(moments.design), moments.cross, [moments.gram[-1, -1]]])
    value = draws.release(mechanism, query)
    scales = mechanism.law.marginal_scales()
    noisy = NoisyMoments(
        symmetric_matrix(value[:triangle]), value[triangle:-1], float(scales[0]), float(scales[triangle])
    )
    found = shrunk(noisy)
    residual = max(float(value[-1]) + found.risk, 0.0) / moments.records
    return Solution(found.weights, covariance(noisy, found, residual))


def covariance(noisy: NoisyMoments, found: Shrunk, residual: float) -> Floats:
    """H (Var(E theta) + s_b^2 I + r^2 A) H, with what was released in place of A and of the residual variance r^2."""
    theta, order = found.weights, len(found.weights)
    spread = 0.5 * noisy.design_scale**2 * (theta @ theta * np.eye(order) + np.outer(theta, theta))
    spread += noisy.cross_scale**2 * np.eye(order) + residual * positive_part(noisy.design)
    return np.asarray(found.operator @ spread @ found.operator)


def positive_part(matrix: Floats) -> Floats:
    """The nearest positive semidefinite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


SUFFSTATS = Solver(mechanisms, solve)
