"""Output perturbation: the exact minimum of the regularised risk, and noise."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Any

from shapedp._papers import published
from shapedp.boundary.refusals import refusal
from shapedp.learn.solvers.base import Draws, Solution, Solver
from shapedp.learn.solvers.erm.problem import Problem, Records, Risk
from shapedp.mechanisms import Additive, calibrate
from shapedp.noise.radial_shape import best_shape
from shapedp.noise.request import DoesNotApplyError
from shapedp.numerics.arrays import Floats
from shapedp.numerics.convex import least_tolerance, minimum
from shapedp.numerics.outward import ABOVE_32
from shapedp.privacy import GaussianLoss
from shapedp.sensitivity import L2, Adjacency

CERTIFIED = ("gaussian", "radial")
PUBLISHED = ("classic-gaussian", "analytic-gaussian", "multivariate-laplace", "product-noise", "r1smg")
NOISES = ("auto", *CERTIFIED, *PUBLISHED)
SEARCHED = 100  # weights up to which the best radial law saves enough to be worth its search
SHARE = 2.0**-11  # of the sensitivity, left for the distance to the exact minimum on either side


shape_for = lru_cache(maxsize=512)(best_shape)


@lru_cache(maxsize=512)
def additive(
    noise: str, radius: float, dim: int, epsilon: float, delta: float, adjacency: Adjacency | None = None
) -> Additive:
    """The mechanism that adds the noise named to `dim` weights, one record moving them by at most `radius`.

    "gaussian" and "radial" are exactly calibrated; a Gaussian is a radial law too, and the one to take where rounding
    in floats costs the others more than they save. "auto" is the best radial law in few dimensions, where it saves
    most. The rest are published recipes, worth what their certificate says.
    """
    ball = L2(radius, dim=dim, adjacency=adjacency)
    if noise not in ("auto", *CERTIFIED):
        made: Additive = published("recipe", noise)(dim=dim, sensitivity=radius, epsilon=epsilon, delta=delta)
        return replace(made, sensitivity=ball)
    gaussian = calibrate("gaussian", ball, epsilon=epsilon, delta=delta)
    if noise == "gaussian" or dim == 1 or (noise == "auto" and dim > SEARCHED):
        return gaussian
    try:
        radial = calibrate("radial", ball, epsilon=epsilon, delta=delta, shape=shape_for(dim, epsilon, delta))
    except DoesNotApplyError:
        return gaussian
    return min(radial, gaussian, key=lambda made: made.expected_squared_error)


def tolerance(problem: Problem) -> float:
    """How far from the exact minimum each problem's weights may be; from public quantities."""
    exact = problem.gradient_change / (problem.records * problem.regularization)
    found = max(SHARE * exact, least_tolerance(Risk(problem)) * ABOVE_32)
    if not found <= exact:
        raise ValueError(refusal("learn", "regularization-below-rounding", problem=problem))
    return found


def sensitivity(problem: Problem) -> float:
    """The most one record moves all weights, in the L2 norm.

    F and F' differ by a function of Lipschitz constant D/n, D = L for zero-out and 2 L for replace; both are
    Lambda-convex, so their minima are at most D/(n Lambda) apart: Lambda |w - w'|^2 <= (grad F'(w') - grad F(w'))
    . (w - w'). Each is found to within the tolerance. One record is in every problem: sqrt(problems) in all.
    Reference: Chaudhuri, Monteleoni and Sarwate 2011, Lemma 7 and Corollary 8.
    """
    exact = problem.gradient_change / (problem.records * problem.regularization)
    return math.sqrt(problem.problems) * (exact + 2 * tolerance(problem)) * ABOVE_32


def perturbation(problem: Problem, radius: float) -> tuple[Any, ...]:
    """The mechanism that adds the problem's kind of noise to weights that one record moves by at most `radius`."""
    return (additive(problem.noise, radius, problem.dim, problem.epsilon, problem.delta, problem.adjacency),)


def optimum(problem: Problem, records: Records) -> Floats:
    """The weights (order, problems) that minimise the risk, within `tolerance`."""
    return minimum(Risk(problem, records), tolerance(problem))


def solve(risk: Risk, mechanisms: tuple[Any, ...], draws: Draws) -> Solution:
    """Noisy weights (order, problems)."""
    return noisy(optimum(risk.problem, risk.data), mechanisms, draws)


def noisy(weights: Floats, mechanisms: tuple[Any, ...], draws: Draws) -> Solution:
    """Weights (order, problems), released through the one mechanism."""
    return Solution(draws.release(mechanisms[0], weights.reshape(-1)).reshape(weights.shape))


@lru_cache(maxsize=256)
def default_regularization(problem: Problem, margin: float = 6.0) -> float:
    """Lambda from public quantities: bias (Lambda/2) |w|^2 against the noise's second-order risk.

    Gaussian noise moves a margin by R sqrt(problems) D/(n Lambda mu), which costs an eighth of its square; the bias is
    taken at |w| = `margin`/R.
    """
    mu = GaussianLoss.calibrate(problem.epsilon, max(problem.delta, 1e-12)).mu
    change = problem.gradient_change / problem.row_bound
    noise = problem.problems * (change / (margin * problem.records * mu)) ** 2 / 2
    return float(problem.row_bound**2 * max(noise ** (1 / 3), 1e-6))


OUTPUT: Solver[Problem, Risk] = Solver(
    lambda problem: perturbation(problem, sensitivity(problem)),
    solve,
    completed=lambda problem: replace(problem, regularization=default_regularization(problem)),
)
