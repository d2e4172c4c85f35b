"""One Gaussian release of [X^T X, X^T y, y^T y], shaped by blocks; the noise's law guides what is made of it.

Eigenvalues are cleaned of the noise, and ridges weighed by their estimated risk.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from shapedp.learn.moments import Moments
from shapedp.learn.solvers.linear.problem import Draws, Problem, Solution, Solver
from shapedp.mechanisms import calibrate
from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ABOVE_8, ABOVE_512
from shapedp.sensitivity import L2, Adjacency
from shapedp.sensitivity.symmetric import symmetric, symmetric_matrix, upper_triangle

RIDGES = (0.0, *np.geomspace(2.0**-5, 4.0, 24).tolist())  # in units of the noise's spectral norm
FAR = (8.0, 16.0, 32.0, 64.0, 128.0, 256.0, math.inf)  # where the release may carry no signal: up to predicting 0
CALM, WARY = (0.5, 2.0), (2.0, 1.0)  # p and t of `shrunk`
SHARES = (0.45, 0.53, 0.02)  # of mu^2 for X^T X, X^T y and y^T y


def reach(adjacency: Adjacency, shares: tuple[float, float, float] = SHARES) -> float:
    """sqrt of the most that sum_m share_m |v_m|^2/bound_m^2 can be, v_m the change of block m, bound_m its size.

    Zero-out: a record of full length moves every block by its bound. Replacement of unit (x, y) by (x', y') with
    x.x' = rho, y y' = -1: 2 (1 - rho^2) q_1 + 2 (1 + rho) q_2, largest at rho = q_2/(2 q_1); shorter records move
    less, and y^T y by at most its bound.
    """
    q1, q2, q3 = shares
    if adjacency == "zero-out":
        return math.sqrt(q1 + q2 + q3) * ABOVE_512
    rho = min(q2 / (2 * q1), 1.0)
    return math.sqrt(2 * (1 - rho**2) * q1 + 2 * (1 + rho) * q2 + q3) * ABOVE_512


def shape(problem: Problem, shares: tuple[float, float, float] = SHARES) -> L2:
    """The ellipsoid in which neighbours' moments differ, rounding of the Gram matrix included.

    Several targets, each within the bound, are a vector y of length at most target sqrt(K): as one target moves X^T y
    and y^T y, they move X^T Y by at most |x| |y| and the squares of the columns by at most |y|^2 (`reach` takes the
    angle of two vectors y as it takes the sign of two numbers: opposite is the worst).
    """
    together = math.sqrt(problem.targets) * ABOVE_8 if problem.targets > 1 else 1.0
    design, target = problem.bounds.design, problem.bounds.target * together
    scales = [bound / math.sqrt(q) for bound, q in zip((design**2, design * target, target**2), shares, strict=True)]
    triangle = symmetric(1.0, problem.order).scales
    assert triangle is not None
    blocks = [np.full(problem.order * problem.targets, scales[1]), np.full(problem.targets, scales[2])]
    axes = np.concatenate([triangle * scales[0], *blocks])
    radius = reach(problem.adjacency, shares) + problem.slip * ABOVE_512
    return L2(radius, axes.size, scales=axes, adjacency=problem.adjacency)


@lru_cache(maxsize=8)  # no data enter
def mechanisms(problem: Problem) -> tuple[Any, ...]:
    """One Gaussian release."""
    return (calibrate("gaussian", shape(problem), epsilon=problem.epsilon, delta=problem.delta),)


def solve(moments: Moments, mechanisms: tuple[Any, ...], draws: Draws) -> Solution:
    """Release once, then shrink."""
    (mechanism,) = mechanisms
    order = len(moments.cross)
    corner = order * (order + 1) // 2
    query = np.concatenate([upper_triangle(moments.design), moments.cross, [moments.gram[-1, -1]]])
    value = draws.release(mechanism, query)
    scales = mechanism.law.marginal_scales()
    noisy = NoisyMoments(symmetric_matrix(value[:corner]), value[corner:-1], float(scales[0]), float(scales[corner]))
    found = shrunk(noisy)
    residual = max(float(value[-1]) + found.risk, 0.0) / moments.records
    spread = covariance(noisy, found, residual)
    return Solution(found.weights, spread, moments=noisy, records=moments.records)


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


@dataclass(frozen=True, eq=False)
class NoisyMoments:
    """A + E and b + e: E isometric (variance s_A^2 on the diagonal, half of it elsewhere), e of variance s_b^2 I."""

    design: Floats
    cross: Floats
    design_scale: float
    cross_scale: float

    @property
    def edge(self) -> float:
        """The spectral norm of E, about s_A sqrt(2 d)."""
        return self.design_scale * math.sqrt(2 * len(self.cross))


@dataclass(frozen=True, eq=False)
class Shrunk:
    """theta = operator (b + e), and an estimate of |y - X theta|^2 - |y|^2."""

    weights: Floats
    operator: Floats
    risk: float


def shrunk(noisy: NoisyMoments, *, wary: bool = False) -> Shrunk:
    """The estimate of X^+ y that the noisy moments allow.

    Noise moves a large eigenvalue l to w = l + (edge/2)^2/l and hides those below edge/2 (Benaych-Georges and
    Nadakuditi 2011), so w counts as (w + sqrt(w^2 - edge^2))/2, and as edge/2 where w < edge. To it ridges r >= 0 are
    added, and the solutions averaged with weights exp(-(risk + p spread)/(t s)): risk is unbiased, spread about its
    standard deviation, s the median of the spreads of RIDGES. p and t (CALM) were set on synthetic data. Everything
    here reads what was released, and the law of the noise.

    `wary` is for a first estimate that later steps correct: there are larger ridges too, up to predicting 0, and p
    and t (WARY) keep weights near 0 that the release does not show to explain anything.
    """
    values, vectors = np.linalg.eigh(noisy.design)
    turned = vectors.T @ noisy.cross
    edge = noisy.edge
    clean, slopes = cleaned(values, edge)
    ridges, penalty, width = (RIDGES + FAR, *WARY) if wary else (RIDGES, *CALM)
    factors = 1 / (clean + edge * np.array(ridges)[:, None])
    risks = risk(noisy, values, turned, factors, -factors * (factors * np.diag(slopes) + factors @ slopes))
    lengths = np.square(factors * turned).sum(1)
    spreads = np.sqrt(np.square(noisy.design_scale * lengths) + 4 * noisy.cross_scale**2 * lengths)
    costs = risks + penalty * spreads
    unit = width * float(np.median(spreads[: len(RIDGES)]))
    share = np.exp(-(costs - costs.min()) / max(unit, np.finfo(float).tiny))
    share /= share.sum()
    mean = share @ factors
    return Shrunk(vectors @ (mean * turned), (vectors * mean) @ vectors.T, float(share @ risks))


def cleaned(values: Floats, edge: float) -> tuple[Floats, Floats]:
    """The cleaned eigenvalues g(w), and their divided differences (g_i - g_j)/(w_i - w_j), g' on the diagonal."""
    root = np.sqrt(np.maximum(values - edge, 0.0) * (values + edge))
    clean = np.where(values > edge, (values + root) / 2, edge / 2)
    gaps = values[:, None] - values
    near = np.abs(gaps) <= 1e-9 * edge
    own = np.where(values > edge, (1 + values / np.maximum(root, 1e-6 * edge)) / 2, 0.0)
    slopes = np.where(near, (own[:, None] + own) / 2, (clean[:, None] - clean) / np.where(near, 1.0, gaps))
    return clean, slopes


def risk(noisy: NoisyMoments, values: Floats, turned: Floats, h: Floats, slope: Floats) -> Floats:
    """An unbiased estimate of theta^T A theta - 2 b^T theta for theta = h(A + E) (b + e), one for each row of h.

    In the eigenbasis of A + E, with the divided differences D_ij of h and slope_i = D_ii + sum_j D_ij, Stein's identity
    gives E theta^T E theta = s_A^2 E sum_i h_i b_i^2 slope_i and E e^T theta = s_b^2 E sum_i h_i.
    Reference: Stein 1981; Daleckii and Krein 1965 for the derivative of h.
    """
    energy = h * np.square(turned)
    noise = noisy.design_scale**2 * (energy * slope).sum(-1)
    seen = (h * energy * values).sum(-1) - 2 * energy.sum(-1)
    return np.asarray(seen - noise + 2 * noisy.cross_scale**2 * h.sum(-1))


SUFFSTATS = Solver(mechanisms, solve)
