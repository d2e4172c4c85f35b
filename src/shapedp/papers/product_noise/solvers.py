"""Objective perturbation with product noise: Algorithm 3, for reproduction."""

from __future__ import annotations

import math
from dataclasses import replace

from shapedp.learn.solvers.base import Solver
from shapedp.learn.solvers.erm.objective import perturbation, solve
from shapedp.learn.solvers.erm.problem import Problem, Risk
from shapedp.mechanisms.objective import ObjectivePerturbation
from shapedp.noise import radial
from shapedp.papers.product_noise.recipes import calibrated


def split(epsilon: float) -> tuple[float, float]:
    """epsilon_1 and epsilon_3 of the hyper-parameter-free setting that section 6.2 adopts (Iyengar et al. 2019)."""
    first = 0.99 * epsilon
    return first, max(first / 2, first - 0.99)


def least_regularization(problem: Problem) -> float:
    """Line 2: Lambda = r beta/(epsilon_1 - epsilon_3) with r = 2, in units of the mean loss."""
    first, third = split(problem.epsilon)
    return 2 * problem.smoothness / (first - third) / problem.records


def amp(problem: Problem) -> ObjectivePerturbation:
    """n_1 = sigma_M R h for the change 2 L of the sum of gradients, at epsilon_3 and 0.99 delta, k by Algorithm 1.

    The second noise, which rounding needs, is ours. Guarantee: none, see `recipes.product_noise`.
    Reference: product noise, Algorithm 3 and Corollary 5.
    """
    if problem.regularization < least_regularization(problem) * (1 - 1e-12):
        raise ValueError(f"Algorithm 3 needs a regularization of at least {least_regularization(problem):.6g}: omit it")
    radius = math.sqrt(problem.problems) * problem.gradient_change
    claim = {"epsilon": split(problem.epsilon)[1], "delta": 0.99 * problem.delta}
    noise = calibrated(dim=problem.dim, sensitivity=radius, **claim)
    return perturbation(problem, radial.chi(1.0, noise.sigma, problem.dim), recipe="product-noise")


AMP: Solver[Problem, Risk] = Solver(
    lambda problem: (amp(problem),),
    solve,
    completed=lambda problem: replace(problem, regularization=least_regularization(problem)),
)
