"""Objective perturbation (Algorithm 3 and the exact accounting) on the data at hand.

The published variants follow the hyper-parameter-free settings of Iyengar et al. 2019, which the paper adopts:
epsilon_1 = 0.99 epsilon, epsilon_3 = max(epsilon_1/2, epsilon_1 - 0.99), Lambda = r beta/(epsilon_1 - epsilon_3) with
r = 2, gamma = 1/n^2, delta split alike (setting ours where the paper differs from itself). "exact Gaussian" is
`objective.mechanism` at the Lambda it chooses. The l2 error is the distance to the minimum of the same objective
without noise (setting ours).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from erm_output import LOSSES, QUICK, Row, _margins, problem_of

from shapedp.learn.losses import MarginLoss
from shapedp.learn.solvers.erm import objective
from shapedp.learn.solvers.erm.problem import Problem, Records, Risk
from shapedp.learn.solvers.linear.problem import Draws
from shapedp.noise import Gaussian
from shapedp.noise.radial import chi
from shapedp.numerics.convex import least_tolerance, minimum
from shapedp.privacy import GaussianLoss
from shapedp.recipes.product_noise import calibrated
from shapedp.sampling import source

EPSILONS = (1e-2, 1e-1, 1.0, 10.0)
VARIANTS = ("classic", "analytic", "product", "exact Gaussian")
LABELS = {
    "classic": "AMP, classic Gaussian",
    "analytic": "AMP, analytic Gaussian",
    "product": "AMP, product noise, REFUTED",
    "exact Gaussian": "exact accounting, Gaussian",
}


def split(epsilon: float, delta: float) -> tuple[float, float, float, float, float]:
    """epsilon_1, epsilon_2, epsilon_3, delta_1, delta_2."""
    first = 0.99 * epsilon
    return first, epsilon - first, max(first / 2, first - 0.99), 0.99 * delta, 0.01 * delta


def published(problem: Problem, variant: str) -> tuple[Problem, Any, Any]:
    """Algorithm 3: the problem with its Lambda, the law of n_1 (in units of the sum of gradients) and that of n_2."""
    n, dim = problem.records, problem.dim
    first, second, third, delta_1, delta_2 = split(problem.epsilon, problem.delta)
    strength = 2 * problem.smoothness / (first - third)  # the paper's Lambda, n times ours
    root = math.sqrt(problem.problems)
    radii = (2 * root, root * n * n**-2.0 / strength)

    def law(radius: float, epsilon: float, delta: float) -> Any:
        if variant == "product":
            return chi(1.0, calibrated(dim=dim, sensitivity=radius, epsilon=epsilon, delta=delta).sigma, dim)
        if variant == "analytic":
            return Gaussian(radius / GaussianLoss.calibrate(epsilon, delta).mu, dim)
        return Gaussian(radius * (1 + math.sqrt(2 * math.log(1 / delta))) / epsilon, dim)

    return (
        replace(problem, regularization=strength / n),
        law(radii[0], third, delta_1),
        law(radii[1], second, delta_2),
    )


def weights(problem: Problem, records: Records, variant: str, rng: np.random.Generator) -> tuple[Problem, np.ndarray]:
    """The problem that was solved and one private model."""
    if variant == "exact Gaussian":
        fixed = replace(problem, regularization=objective.default_regularization(problem))
        made = objective.mechanism(fixed, "gaussian")
        return fixed, objective.solve(fixed, records, made, Draws(rng))
    fixed, one, two = published(problem, variant)
    randomness, shape, n = source(rng), (problem.order, problem.problems), problem.records
    b = one.add_to(np.zeros(one.dim), randomness).reshape(shape)
    risk = Risk(fixed, records, b / n, float(np.linalg.norm(b)) / n)
    near = max(n**-2.0 / fixed.regularization, 2 * least_tolerance(risk))
    return fixed, two.add_to(minimum(risk, near).reshape(-1), randomness).reshape(shape)


def verdict(problem: Problem, variant: str) -> tuple[str, float]:
    """What the exact loss of the variant says; product noise by that of its n_1 as additive noise (Lemma 8)."""
    if variant == "exact Gaussian":
        fixed = replace(problem, regularization=objective.default_regularization(problem))
        certificate = objective.mechanism(fixed, "gaussian").certificate
        return certificate.verdict, certificate.bracket.upper
    fixed, one, _ = published(problem, variant)
    if variant == "product":
        from shapedp.privacy.losses.radial import RadialLoss

        radius = 2 * math.sqrt(problem.problems)
        shown = RadialLoss(one.dim, one.a, one.b, radius / one.scale).delta(problem.epsilon).lower
        return ("refuted" if shown > problem.delta else "undecided"), shown
    certificate = objective.perturbation(fixed, one).certificate
    return certificate.verdict, certificate.bracket.upper


def study(data: Any, loss: MarginLoss, *, epsilons: tuple[float, ...], repeats: int, draws: int) -> Iterator[Row]:
    """Rows for one data set."""
    from erm_sets import scores

    found: dict[tuple[float, str], list[tuple[float, float, float]]] = {}
    verdicts: dict[tuple[float, str], tuple[str, float]] = {}
    for seed, (records, test, y) in enumerate(data.splits(repeats)):
        rng = np.random.default_rng(2000 + seed)
        for epsilon in epsilons:
            problem = problem_of(data, records, loss, epsilon)
            for variant in VARIANTS:
                best = None
                for _ in range(draws):
                    fixed, noisy = weights(problem, records, variant, rng)
                    if best is None:
                        plain = Risk(fixed, records)
                        best = minimum(plain, max(1e-6, 2 * least_tolerance(plain)))
                        verdicts.setdefault((epsilon, variant), verdict(problem, variant))
                    away = float(np.linalg.norm(noisy - best))
                    found.setdefault((epsilon, variant), []).append((*scores(_margins(test, noisy), y), away))
    for (epsilon, variant), values in found.items():
        accuracy, wrong, error = np.array(values).T
        yield Row(
            data.name,
            epsilon,
            variant,
            float(accuracy.mean()),
            float(accuracy.std(ddof=1)) if len(accuracy) > 1 else 0.0,
            float(error.mean()),
            math.nan,
            float(wrong.mean()),
            float(wrong.std(ddof=1)) if len(wrong) > 1 else 0.0,
            *verdicts[epsilon, variant],
            len(values),
        )


# Every draw is a fit of its own: MNIST and Synthetic-H have 10,000 rows and one split (setting ours).
MOST = 10_000
SIZES = {"MNIST": (1, 3), "Synthetic-H": (1, 2)}
SIZE = (3, 3)


def run(
    loss: str, names: tuple[str, ...], full: bool, advance: Callable[[int, int, str], None]
) -> tuple[list[Row], list[str]]:
    """Rows of all sets, and the names of those whose data are not at hand."""
    from erm_sets import load

    rows: list[Row] = []
    absent: list[str] = []
    for done, name in enumerate(names):
        data = load(name, MOST if full else QUICK)
        if data is None:
            absent.append(name)
            continue
        repeats, draws = SIZES.get(name, SIZE) if full else (1, 2)
        rows += study(data, LOSSES[loss], epsilons=EPSILONS if full else (0.1, 1.0), repeats=repeats, draws=draws)
        advance(done + 1, len(names), name)
    return rows, absent
