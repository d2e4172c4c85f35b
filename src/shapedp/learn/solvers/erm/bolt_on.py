"""Output perturbation of permutation-based stochastic gradient descent ("bolt-on")."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from shapedp.boundary.progress import bar
from shapedp.boundary.refusals import refusal
from shapedp.learn.solvers.base import Draws, Solution, Solver
from shapedp.learn.solvers.erm.output import default_regularization, noisy, perturbation
from shapedp.learn.solvers.erm.problem import Problem, Records, Risk
from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ABOVE_32, ROUNDINGS_4


def steps(problem: Problem) -> int:
    """How many steps are taken."""
    return problem.passes * -(-problem.records // problem.batch)


def reachable(problem: Problem) -> float:
    """The regularization from which on so many steps come near the minimum: twice the smoothness over their number."""
    return 2 * problem.smoothness / steps(problem)


def sensitivity(problem: Problem) -> float:
    """The most one record moves the last iterate, all problems together, whatever the permutation.

    Step t goes from w to (1 - eta_t Lambda) w - (eta_t/b) (sum of the batch's gradients), eta_t = min(1/(beta +
    Lambda), 1/(Lambda t)). On equal records a step contracts differences by 1 - eta_t Lambda; the batch that holds the
    changed record adds eta_t D/b, of which at most D/(b Lambda T) is left after the last of the T steps. Once per pass:
    D/(b Lambda T/passes) in all, less than D/(n Lambda), and the rounding of both runs on top. Dividing by b even
    where a batch is short keeps this exact; nothing needs to be projected, since |w| <= L/Lambda throughout.
    Reference: Wu et al. 2017, Lemma 9 and Algorithm 2, whose Lipschitz constant holds the regulariser too.
    """
    strength, each = problem.regularization, problem.batch * -(-problem.records // problem.batch)
    exact = problem.gradient_change / (strength * each)
    size = problem.lipschitz / strength
    rounding = Risk(problem).gradient_error(size) / strength + ROUNDINGS_4 * size * steps(problem)
    if not rounding <= exact:
        raise ValueError(f"regularization {strength:g} is too small: rounding would exceed what one record can change")
    return math.sqrt(problem.problems) * (exact + 2 * rounding) * ABOVE_32


def descend(
    problem: Problem, records: Records, rng: np.random.Generator, advance: Callable[[int], object] = lambda n: None
) -> Floats:
    """The last iterate (order, problems), a fresh permutation in every pass."""
    w = np.zeros((problem.order, problem.problems))
    strength, top = problem.regularization, problem.smoothness + problem.regularization
    turn = 0
    for _ in range(problem.passes):
        order = rng.permutation(problem.records)
        for start in range(0, problem.records, problem.batch):
            turn += 1
            some = order[start : start + problem.batch]
            x, signs = records.x[some], records.signs[some]
            gradient = x.T @ problem.loss.slope_at(x @ w, signs) / problem.batch
            w = w - min(1 / top, 1 / (strength * turn)) * (gradient + strength * w)
        advance(1)
    return np.asarray(w)


def mechanisms(problem: Problem) -> tuple[Any, ...]:
    """The mechanism, with a warning where so few steps will not come near the minimum."""
    if problem.regularization < reachable(problem):
        warnings.warn(refusal("learn", "too-few-steps"), ConvergenceWarning, stacklevel=5)
    return perturbation(problem, sensitivity(problem))


def solve(risk: Risk, mechanisms: tuple[Any, ...], draws: Draws) -> Solution:
    """Noisy weights (order, problems)."""
    problem = risk.problem
    rng = np.random.default_rng() if draws.rng is None else draws.rng
    with bar(problem.passes, " passes", draws.progress) as advance:
        weights = descend(problem, risk.data, rng, advance)
    return noisy(weights, mechanisms, draws)


def completed(problem: Problem) -> Problem:
    """The regularization of output perturbation, or as much as it takes to come near the minimum."""
    strength = max(default_regularization(problem), reachable(problem))
    return replace(problem, regularization=strength)


BOLT_ON = Solver(mechanisms, solve, completed=completed)
