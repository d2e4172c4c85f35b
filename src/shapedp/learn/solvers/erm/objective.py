"""Objective perturbation with approximate minima, exactly accounted."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from shapedp._papers import PROVIDED, published
from shapedp.boundary.refusals import refusal
from shapedp.learn.solvers.base import Draws, Solution, Solver
from shapedp.learn.solvers.erm.output import CERTIFIED, shape_for
from shapedp.learn.solvers.erm.problem import Problem, Risk, two_classes
from shapedp.mechanisms.objective import ObjectivePerturbation, farthest, grid_error
from shapedp.noise import Gaussian, Law
from shapedp.noise.radial import Radial
from shapedp.numerics import SearchError, first_true
from shapedp.numerics.arrays import Floats
from shapedp.numerics.convex import least_tolerance, minimum
from shapedp.numerics.outward import ABOVE_128, BELOW_8192
from shapedp.privacy import GaussianLoss
from shapedp.privacy.losses.radial import RadialLoss

FINE = 2.0**-28  # of the noise's effect on the weights: how exactly the minimum is found, rounding permitting
FINEST = 2.0**-14
SHARE = 2.0**-8
MOST_RADIAL = 500.0  # epsilon beyond which rounding costs the other radial laws more than they save


def log_ratio(problem: Problem) -> float:
    """What one record changes of log det J'', all problems together.

    One record adds a matrix of rank 1 and size at most beta to J'' >= n Lambda: det(A + a x x^T) <= (1 + beta/(n
    Lambda)) det A. Under replace both determinants lie above that of the records they share.
    Erratum: product-noise, Lemma 9, takes 1/(1 - x) <= e^x for x = r beta/Lambda, which is false.
    """
    return problem.problems * math.log1p(problem.smoothness / (problem.records * problem.regularization)) * ABOVE_128


def tolerance(problem: Problem, law: Law) -> float:
    """How far each problem's weights may be from the minimum for the drawn b."""
    sharp = problem.records * problem.regularization
    spread = math.sqrt(law.second_moment / problem.problems) / sharp
    return max(FINE * spread, least_tolerance(Risk(problem, tilt=farthest(law) / problem.records)) * ABOVE_128)


def perturbation(problem: Problem, law: Law, recipe: str | None = None) -> ObjectivePerturbation:
    """The mechanism with noise `law` on the gradient, and as much on the output as it takes.

    For Gaussian noise the two mu^2 are split so that the sum of both errors in w is least, at a typical Hessian; for
    radial noise the part `SHARE` of epsilon and of delta goes to the second.
    """
    sharp = problem.records * problem.regularization
    count = math.sqrt(problem.problems)
    second = 2 * (count * tolerance(problem, law) + grid_error(law) / sharp) * ABOVE_128
    first = count * problem.gradient_change / (problem.records * typical_hessian(problem))
    share = 0.0 if isinstance(law, Gaussian) else SHARE
    if isinstance(law, Gaussian):
        mu = count * problem.gradient_change / float(law.scales[0]) * math.sqrt(second / first)
    else:
        mu = GaussianLoss.calibrate(share * problem.epsilon, share * problem.delta).mu * BELOW_8192
    claim, after = (problem.epsilon, problem.delta, problem.adjacency), Gaussian(second / mu * ABOVE_128, law.dim)
    moved = (problem.lipschitz, problem.problems, log_ratio(problem))
    signed = problem.loss.signed
    return ObjectivePerturbation(law, *moved, after, second, *claim, share * problem.epsilon, recipe, signed)


@lru_cache(maxsize=256)
def mechanism(problem: Problem, noise: str) -> ObjectivePerturbation:
    """The least noise of a kind ("gaussian", which "auto" stands for, or "radial") that meets the claim.

    A Gaussian is a radial law too, and the one to take where the second noise costs the others more than they save.
    """
    left = problem.epsilon - log_ratio(problem)
    if not left > 0.01 * problem.epsilon:
        least, spent = least_regularization(problem, 0.5), problem.epsilon - left
        raise ValueError(refusal("learn", "regularization-below-curvature", problem=problem, spent=spent, least=least))
    noise = "gaussian" if noise == "auto" else noise
    if noise not in CERTIFIED:
        raise ValueError(
            f"objective perturbation takes the noise 'gaussian', 'radial' or 'product-noise', got {noise!r}"
        )
    change = math.sqrt(problem.problems) * problem.gradient_change
    shape = shape_for(problem.dim, left, problem.delta) if noise == "radial" and left <= MOST_RADIAL else None

    def law(scale: float) -> Law:
        return Gaussian(scale, problem.dim) if shape is None else Radial(problem.dim, *shape, scale)

    def holds(scale: float) -> bool:
        return perturbation(problem, law(scale)).certificate.verdict == "certified"

    if shape is None:
        guess = change / GaussianLoss.calibrate(left, problem.delta).mu
    else:
        guess = change / RadialLoss.approximate(problem.dim, *shape, left, problem.delta)
    try:
        found = perturbation(problem, law(first_true(holds, guess, 16 * guess, relative=FINEST)))
        return found if shape is None else min(found, mechanism(problem, "gaussian"), key=partial(error, problem))
    except SearchError:
        if shape is not None:
            return mechanism(problem, "gaussian")
        raise ValueError(refusal("learn", "no-noise-found", problem=problem)) from None


def least_regularization(problem: Problem, share: float) -> float:
    """The regularization at which the curvature costs a share of epsilon."""
    cost = min(share * problem.epsilon / problem.problems, 700.0)  # beyond it any regularization will do
    return problem.smoothness / math.expm1(cost) / problem.records


def typical_hessian(problem: Problem) -> float:
    """A guess at the size of the Hessian: Lambda and, spread over the dimensions, what a loss typically bends."""
    bend = problem.loss.typical_curvature * problem.row_bound**2 / problem.order
    return problem.regularization + bend


def error(problem: Problem, mechanism: ObjectivePerturbation) -> float:
    """The expected squared error of the weights from both noises, at a typical Hessian."""
    first = mechanism.law.second_moment / (problem.records * typical_hessian(problem)) ** 2
    return first + mechanism.output_law.second_moment


def default_regularization(problem: Problem) -> float:
    """Lambda, and with it how epsilon is split between curvature and noise: the least of bias and noise together.

    Bias (Lambda/2) |w|^2 at |w| = `reached`/R, the scores to be expected; noise |b|^2/(2 n^2 h) with a typical Hessian
    h. Nothing here touches data: the hyper-parameter-free variant.
    """
    best = (math.inf, problem.regularization)
    change = math.sqrt(problem.problems) * problem.gradient_change
    for share in np.geomspace(1e-3, 0.9, 40).tolist():
        strength = max(least_regularization(problem, share), 1e-5 * problem.row_bound**2)
        mu = GaussianLoss.calibrate((1 - share) * problem.epsilon, problem.delta).mu
        hessian = typical_hessian(replace(problem, regularization=strength))
        noise = problem.order * (change / mu / problem.records) ** 2 / (2 * hessian)
        total = strength / 2 * (problem.loss.reached / problem.row_bound) ** 2 + noise
        best = min(best, (total, strength))
    return best[1]


@lru_cache(maxsize=256)
def kifer(problem: Problem) -> tuple[Problem, ObjectivePerturbation]:
    """Published calibration: n Lambda = 2 beta/epsilon and sigma = L sqrt(4 epsilon + 8 log(2/delta))/epsilon.

    The noise on the output, which rounding needs, is ours; so is the certificate.
    Reference: Kifer, Smith and Thakurta 2012, Algorithm 1 (Gaussian); Lev et al. 2025, Algorithm 6.
    """
    two_classes(problem, "kifer")
    if problem.delta == 0:
        raise ValueError("delta must be > 0: solver 'kifer' adds Gaussian noise, which cannot meet delta = 0")
    fixed = replace(problem, regularization=2 * problem.smoothness / problem.epsilon / problem.records)
    spread = math.sqrt(4 * problem.epsilon + 8 * math.log(2 / problem.delta)) / problem.epsilon
    law = Gaussian(problem.lipschitz * spread, problem.dim)
    return fixed, perturbation(fixed, law, recipe="kifer")


def solve(risk: Risk, mechanisms: tuple[Any, ...], draws: Draws) -> Solution:
    """Released weights (order, problems)."""
    problem, (mechanism,) = risk.problem, mechanisms
    shape, n = (problem.order, problem.problems), problem.records
    tilt, near = farthest(mechanism.law) / n, tolerance(problem, mechanism.law)

    def minimise(b: Floats) -> Floats:
        return minimum(Risk(problem, risk.records, b.reshape(shape) / n, tilt), near)

    gradient = risk.evaluate(np.zeros(shape))[1] * n
    return Solution(mechanism.release(gradient, minimise, rng=draws.rng, unsafe=draws.unsafe).value.reshape(shape))


CERTIFYING: Solver[Problem, Risk] = Solver(
    lambda problem: (mechanism(problem, problem.noise),),
    solve,
    completed=lambda problem: replace(problem, regularization=default_regularization(problem)),
)


def _by_noise(problem: Problem) -> Solver[Problem, Risk]:
    """The exactly accounted solver, or that of a paper whose noise was named."""
    known = problem.noise in PROVIDED["objective noise"]
    return published("objective noise", problem.noise) if known else CERTIFYING


OBJECTIVE: Solver[Problem, Risk] = Solver(
    lambda problem: _by_noise(problem).mechanisms(problem),
    solve,
    completed=lambda problem: _by_noise(problem).completed(problem),
)
KIFER = Solver(lambda problem: (kifer(problem)[1],), solve, completed=lambda problem: kifer(problem)[0])
