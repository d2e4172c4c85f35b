"""Iterative Hessian mixing as published: half of epsilon for the sketches and the eigenvalue, half for the gradients.

Erratum: the eigenvalue is priced by sqrt(2 log(1.25/delta))/eta, a bound proved only where that is at most 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from shapedp.numerics import first_true
from shapedp.numerics.checks import count, positive
from shapedp.papers.classics.recipes import analytic_gaussian
from shapedp.papers.gaussian_mixing.recipes import mixing_rdp, positive_delta

ROUNDS = 3
DELTA_SKETCH = 0.75  # of delta: a third of it each for the eigenvalue, for tau and for the sketches


@dataclass(frozen=True)
class HessianMixing:
    """The parameters of the published algorithm, in units of the bound on a row.

    `rows` of each of `rounds` sketches; gamma, eta and tau as in `AdaptiveMixing`; `sigma` of a gradient step.
    """

    rounds: int
    rows: int
    gamma: float
    eta: float
    tau: float
    sigma: float


def published_rows(columns: int, rounds: int, delta: float) -> int:
    """6 max(d, log(4 T/rho)), rho = delta/10. Reference: Lev et al. 2026, section 5."""
    return max(6 * columns, int(6 * math.log(40 * rounds / delta)))


def sketch_epsilon(gamma: float, rows: int, rounds: int, delta: float) -> float:
    """The epsilon claimed for the eigenvalue and T sketches: Renyi curves added up, and the classic Gaussian bound."""

    def value(v: float) -> float:
        alpha = 1 + (gamma - 1) * float(special.expit(v))
        if not 1 < alpha < gamma:
            return math.inf
        rest = math.log1p(-1 / alpha) - math.log(alpha * delta) / (alpha - 1)
        return rounds * mixing_rdp(alpha, rows, gamma) + rest

    found = optimize.minimize_scalar(value, bounds=(-25.0, 15.0), method="bounded", options={"xatol": 1e-9})
    return float(found.fun) + math.sqrt(2 * math.log(1.25 / delta) * rows) / gamma


def hessian_mixing(
    *, columns: int, epsilon: float, delta: float, rounds: int = ROUNDS, rows: int | None = None
) -> HessianMixing:
    """The published parameters: sketches at (epsilon/2, 3 delta/4), gradients at (epsilon/2, delta/4).

    Reference: Lev, Shenfeld, Srinivasan, Ligett and Wilson 2026, Algorithm 1 and section 5.
    """
    epsilon, delta = positive("epsilon", epsilon), positive_delta(delta)
    count("columns", columns)
    k = published_rows(columns, count("rounds", rounds), delta) if rows is None else count("rows", rows)
    inner = DELTA_SKETCH * delta / 3
    gamma = first_true(lambda g: sketch_epsilon(g, k, rounds, inner) <= epsilon / 2, 1 + 1e-9, 1e12, relative=1e-12)
    tau = math.sqrt(2 * math.log(max(4 / delta, 40 / delta)))
    one = analytic_gaussian(dim=1, sensitivity=1.0, epsilon=epsilon / 2, delta=delta / 4)
    sigma = float(np.max(one.law.scales)) * math.sqrt(rounds)
    return HessianMixing(rounds, k, gamma, gamma / math.sqrt(k), tau, sigma)
