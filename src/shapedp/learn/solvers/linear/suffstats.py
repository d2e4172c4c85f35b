"""One Gaussian release of [X^T X, X^T y, y^T y], shaped by blocks, then a ridge chosen from what was released."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shapedp.learn.moments import Moments
from shapedp.learn.solvers.linear.problem import Draws, Floats, Problem, Solution, Solver
from shapedp.learn.solvers.linear.ridge import NoisyMoments, best_ridge
from shapedp.mechanisms import calibrate
from shapedp.sensitivity import L2, Adjacency
from shapedp.sensitivity.symmetric import symmetric, symmetric_matrix, upper_triangle

SHARES = (0.64, 0.34, 0.02)  # of mu^2 for X^T X, X^T y and y^T y
UP = 1 + 2.0**-44


def reach(adjacency: Adjacency) -> float:
    """sqrt of the most that sum_m share_m |v_m|^2/bound_m^2 can be, v_m the change of block m, bound_m its size.

    Zero-out: a record of full length moves every block by its bound. Replacement of unit (x, y) by (x', y') with
    x.x' = rho, y y' = -1: 2 (1 - rho^2) q_1 + 2 (1 + rho) q_2, largest at rho = q_2/(2 q_1); shorter records move
    less, and y^T y by at most its bound.
    """
    q1, q2, q3 = SHARES
    if adjacency == "zero-out":
        return math.sqrt(q1 + q2 + q3) * UP
    rho = min(q2 / (2 * q1), 1.0)
    return math.sqrt(2 * (1 - rho**2) * q1 + 2 * (1 + rho) * q2 + q3) * UP


def shape(problem: Problem) -> L2:
    """The ellipsoid in which neighbours' moments differ, rounding of the Gram matrix included."""
    design, target = problem.bounds.design, problem.bounds.target
    scales = [bound / math.sqrt(q) for bound, q in zip((design**2, design * target, target**2), SHARES, strict=True)]
    triangle = symmetric(1.0, problem.order).scales
    assert triangle is not None
    axes = np.concatenate([triangle * scales[0], np.full(problem.order, scales[1]), [scales[2]]])
    radius = reach(problem.adjacency) + 2 * problem.error / min(scales) * UP
    return L2(radius, axes.size, scales=axes, adjacency=problem.adjacency)


def mechanisms(problem: Problem) -> tuple[Any, ...]:
    """One Gaussian release."""
    return (calibrate("gaussian", shape(problem), epsilon=problem.epsilon, delta=problem.delta),)


def solve(moments: Moments, mechanisms: tuple[Any, ...], draws: Draws) -> Solution:
    """The ridge of least estimated risk."""
    (mechanism,) = mechanisms
    order = len(moments.cross)
    triangle = order * (order + 1) // 2
    query = np.concatenate([upper_triangle(moments.design), moments.cross, [moments.gram[-1, -1]]])
    value = mechanism.release(query, rng=draws.rng, unsafe=draws.unsafe).value
    scales = mechanism.law.marginal_scales()
    noisy = NoisyMoments(
        symmetric_matrix(value[:triangle]), value[triangle:-1], float(scales[0]), float(scales[triangle])
    )
    weights, ridge = best_ridge(noisy)
    residual = float(value[-1] - 2 * weights @ noisy.cross + weights @ noisy.design @ weights)
    return Solution(weights, covariance(noisy, weights, ridge, residual / moments.records), ridge)


def covariance(noisy: NoisyMoments, weights: Floats, ridge: float, variance: float) -> Floats:
    """M (Var(E theta) + s_b^2 I + r^2 A) M, with what was released in place of A and the residual variance r^2."""
    order = len(weights)
    values, vectors = np.linalg.eigh(noisy.design)
    inverse = (vectors / (values + ridge)) @ vectors.T
    own = (vectors * np.maximum(values, 0.0)) @ vectors.T
    spread = 0.5 * noisy.design_scale**2 * (weights @ weights * np.eye(order) + np.outer(weights, weights))
    spread += noisy.cross_scale**2 * np.eye(order) + max(variance, 0.0) * own
    return np.asarray(inverse @ spread @ inverse)


SUFFSTATS = Solver(mechanisms, solve)
