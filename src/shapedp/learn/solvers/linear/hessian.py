"""Iterative Hessian mixing: sketches of [x, c] as curvature, noisy sums of clipped residuals as gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from scipy import special

from shapedp.accounting import Plan
from shapedp.accounting.plan import Step
from shapedp.learn.moments import Moments
from shapedp.learn.solvers.linear.mixing import RICH
from shapedp.learn.solvers.linear.problem import Draws, Problem, Solution, Solver, solved
from shapedp.learn.solvers.linear.steps import step, stepped, whole_mu
from shapedp.mechanisms import AdaptiveMixing, Mixing, certify
from shapedp.mechanisms.mixing import Sketching, calibratable, eigenvalue_slip, rounding
from shapedp.numerics.outward import ABOVE_512
from shapedp.privacy.losses.mixing import MixingLoss

Made = TypeVar("Made", Mixing, AdaptiveMixing)
ROUNDS = 3
SKETCH, EIGENVALUE, FAILURE = 0.5, 0.05, 0.1  # shares of mu^2 for the sketches and the eigenvalue, of delta for tau


def published_rows(problem: Problem) -> int:
    """6 max(d, log(4 T/rho)) rows of each sketch, rho = delta/10: the published choice."""
    return 6 * max(problem.order, math.ceil(math.log(40 * ROUNDS / problem.delta)))


@lru_cache(maxsize=64)  # no data enter
def mechanisms(problem: Problem) -> tuple[Any, ...]:
    """The sketches of all rounds, one below the other, and the gradient steps, accounted together.

    Guarantee: T sketches of k rows with the same noise are one of T k rows; Gaussian releases beside it, chosen after
    it was seen, add up in mu^2. The certificate is that of the plan.
    """
    calibratable(problem.epsilon, problem.delta, problem.adjacency)  # type: ignore[arg-type]
    mu, rows = whole_mu(problem), ROUNDS * (problem.sketch_rows or published_rows(problem))
    steps = Step(step(problem, mu * math.sqrt((1 - SKETCH) / ROUNDS)), count=ROUNDS)
    plain = _plain(problem, rows, steps, mu)
    if RICH * problem.records / problem.order > plain.gamma / 4:
        adaptive = _adaptive(problem, rows, steps, mu)
        if RICH * problem.records / problem.order > adaptive.reach - plain.gamma + 1:
            return adaptive, steps
    return plain, steps


def _options(problem: Problem) -> dict[str, Any]:
    found: dict[str, Any] = {"row_bound": problem.bounds.design, "epsilon": problem.epsilon, "delta": problem.delta}
    return found | {"adjacency": problem.adjacency, "records": problem.records, "dim": problem.order}


def _gamma(problem: Problem, rows: int, aim: float, mu: float) -> float:
    relation: Any = problem.adjacency
    return MixingLoss.calibrate(rows, problem.epsilon, aim, neighbours=relation, mu=mu, tolerance=1e-6).gamma


def _meets(problem: Problem, sketch: Any, steps: Step) -> bool:
    plan = Plan((Step(sketch), steps))
    return certify(plan, epsilon=problem.epsilon, delta=problem.delta).verdict == "certified"


def _left(problem: Problem, rows: int, gamma: float) -> float:
    """What floating point leaves of delta."""
    lost = (1 + math.exp(problem.epsilon)) * rounding(rows, gamma, problem.records, problem.order) * ABOVE_512
    if not lost < problem.delta / 2:
        raise ValueError(Sketching.too_large(rows, problem.records, problem.order, problem.delta))
    return problem.delta - lost


def _grown(problem: Problem, made: Callable[[float], Made], steps: Step) -> Made:
    """The mechanism with the least gamma of a few, slightly larger ones that meets the claim."""
    for power in range(12):
        grown = made(2.0 ** (2**power - 20))
        if _meets(problem, grown, steps):
            return grown
    raise ValueError(Sketching.too_large(grown.rows, problem.records, problem.order, problem.delta))


def _plain(problem: Problem, rows: int, steps: Step, mu: float) -> Mixing:
    beside = mu * math.sqrt(1 - SKETCH) * ABOVE_512
    near = _gamma(problem, rows, problem.delta, beside)
    gamma = _gamma(problem, rows, _left(problem, rows, near), beside)
    return _grown(problem, lambda more: Mixing(rows, gamma=gamma * (1 + more), **_options(problem)), steps)


def _adaptive(problem: Problem, rows: int, steps: Step, mu: float) -> AdaptiveMixing:
    eigen = mu * math.sqrt(EIGENVALUE)
    beside = mu * math.sqrt(1 - SKETCH + EIGENVALUE)
    near = _gamma(problem, rows, problem.delta, beside)
    left = _left(problem, rows, near)
    tau = -float(special.ndtri(FAILURE * left)) + 2.0**-16 + eigen * eigenvalue_slip(problem.records, problem.order)
    gamma = _gamma(problem, rows, (1 - FAILURE) * left, beside)

    def made(more: float) -> AdaptiveMixing:
        return AdaptiveMixing(rows, gamma=gamma * (1 + more), eta=1 / eigen, tau=tau * (1 + more), **_options(problem))

    return _grown(problem, made, steps)


def solve(moments: Moments, mechanisms: tuple[Any, ...], draws: Draws) -> Solution:
    """theta += H_t^-1 (X^T clip(y - X theta) + noise), H_t the moments of sketch t, its noise left in as a ridge.

    Reference: Lev, Shenfeld, Srinivasan, Ligett and Wilson 2026, Iterative Hessian Mixing.
    """
    sketching, steps = mechanisms
    order, rounds = len(moments.cross), steps.count
    sketch = draws.sketch(sketching, moments.design, moments.records, order)
    weights = np.zeros(order)
    for rows in np.array_split(sketch.value, rounds):
        sums, _ = stepped(moments, steps.subject, draws, weights, moments.bounds.target)
        weights = weights + solved(rows.T @ rows / len(rows), sums)
    return Solution(weights)


HESSIAN_MIXING = Solver(mechanisms, solve, passes=1 + ROUNDS)
