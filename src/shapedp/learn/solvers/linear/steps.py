"""Noisy sums of clipped residuals: the step that `refined`, `hessian-mixing`, `boosted` and `descent` repeat."""

from __future__ import annotations

from dataclasses import replace

from shapedp.learn.moments import Moments
from shapedp.learn.residuals import gradient
from shapedp.learn.solvers.linear.problem import Draws, Problem
from shapedp.mechanisms import Additive
from shapedp.noise import Gaussian
from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ABOVE_512, BELOW_8192
from shapedp.privacy import GaussianLoss
from shapedp.sensitivity import L2


def step_set(problem: Problem) -> L2:
    """What one record changes in the sum of [x, c] r, |r| <= 1: its length, twice that if exchanged, and rounding."""
    unit = replace(problem, bounds=replace(problem.bounds, target=1.0))
    once = 1.0 if problem.adjacency == "zero-out" else 2.0
    return L2(problem.bounds.design * (once + unit.slip * ABOVE_512), problem.order, adjacency=problem.adjacency)


def whole_mu(problem: Problem) -> float:
    """The Gaussian mu of the claim, less what rounding of scales may take."""
    if not problem.delta > 0:
        raise ValueError("delta must be > 0 for Gaussian noise")
    return GaussianLoss.calibrate(problem.epsilon, problem.delta).mu * BELOW_8192


def step(problem: Problem, mu: float) -> Additive:
    """One step that spends mu."""
    one = step_set(problem)
    return Additive(Gaussian(one.radius / mu * ABOVE_512, one.dim), one, problem.epsilon, problem.delta)


def stepped(moments: Moments, mechanism: Additive, draws: Draws, weights: Floats, clip: float) -> tuple[Floats, float]:
    """[x, c]^T of the residuals of the weights clipped at `clip`, released, and the noise's standard deviation."""
    value = draws.release(mechanism, gradient(moments, weights, clip))
    return clip * value, clip * float(mechanism.law.marginal_scales()[0])
