"""Objective perturbation (Algorithm 3 and the exact accounting) on the data at hand.

The published variants follow the hyper-parameter-free settings of Iyengar et al. 2019, which the paper adopts:
epsilon_1 = 0.99 epsilon, epsilon_3 = max(epsilon_1/2, epsilon_1 - 0.99), Lambda = r beta/(epsilon_1 - epsilon_3) with
r = 2, gamma = 1/n^2, delta split alike (setting ours where the paper differs from itself). "exact Gaussian" and
"exact radial" are `objective.mechanism` at the Lambda it chooses. The l2 error is the distance to the minimum of the
same objective without noise (setting ours). All linear terms of one Lambda are minimised together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from erm_output import LOSSES, QUICK, REPEATS, Row, Tally, margins, problem_of

from shapedp.learn.solvers.erm import objective
from shapedp.learn.solvers.erm.problem import Problem, Records, Risk
from shapedp.mechanisms.objective import farthest, fine_draw
from shapedp.noise import Gaussian
from shapedp.noise.radial import chi
from shapedp.numerics.convex import least_tolerance, minimum
from shapedp.papers.product_noise.recipes import calibrated
from shapedp.privacy import GaussianLoss
from shapedp.privacy.losses.radial import RadialLoss
from shapedp.sampling import source

EPSILONS = (1e-2, 1e-1, 1.0, 10.0)
PUBLISHED = ("classic", "analytic", "product")
VARIANTS = (*PUBLISHED, "exact Gaussian", "exact radial")
LABELS = {
    "classic": "AMP, classic Gaussian",
    "analytic": "AMP, analytic Gaussian",
    "product": "AMP, product noise, REFUTED",
    "exact Gaussian": "exact accounting, Gaussian",
    "exact radial": "exact accounting, best radial",
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


Draw = tuple[Problem, dict[str, tuple[np.ndarray, Any]], float, float]


def drawn(problem: Problem, rng: np.random.Generator) -> tuple[Draw, Draw]:
    """The two objectives, as published and exactly accounted, with the linear term and second law of each variant.

    The last two numbers bound the linear terms and the distance to the minimum.
    """
    randomness, n = source(rng), problem.records
    terms = {}
    for variant in PUBLISHED:
        fixed, one, two = published(problem, variant)
        terms[variant] = (one.add_to(np.zeros(one.dim), randomness) / n, two)
    tilt = max(float(np.linalg.norm(b)) for b, _ in terms.values())
    near = max(n**-2.0 / fixed.regularization, 2 * least_tolerance(Risk(fixed, tilt=tilt)))
    exact, made = accounted(problem)
    both = {variant: (fine_draw(one.law, randomness) / n, one.output_law) for variant, one in made.items()}
    laws = [one.law for one in made.values()]
    return (
        (fixed, terms, tilt, near),
        (exact, both, max(map(farthest, laws)) / n, max(objective.tolerance(exact, law) for law in laws)),
    )


def accounted(problem: Problem) -> tuple[Problem, dict[str, objective.ObjectivePerturbation]]:
    """The problem with the Lambda of the exact accounting; Gaussian noise, and the best radial law (it may be that)."""
    fixed = replace(problem, regularization=objective.default_regularization(problem))
    noises = {"exact Gaussian": "gaussian", "exact radial": "radial"}
    return fixed, {variant: objective.mechanism(fixed, noise) for variant, noise in noises.items()}


def solved(draw: Draw, records: Records, rng: np.random.Generator) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The minimum without noise and the private model of each variant, all minimised in one run."""
    problem, terms, tilt, near = draw
    count = problem.problems * (1 + len(terms))
    blocks = [b.reshape(problem.order, problem.problems) for b, _ in terms.values()]
    linear = np.concatenate([np.zeros((problem.order, problem.problems)), *blocks], axis=1)
    together = Records(records.x, np.tile(records.signs, 1 + len(terms)))
    found = minimum(Risk(replace(problem, problems=count), together, linear, tilt), near)
    plain, *rest = np.split(found, 1 + len(terms), axis=1)
    randomness = source(rng)
    noisy = {
        variant: np.asarray(law.add_to(best.reshape(-1), randomness)).reshape(plain.shape)
        for best, (variant, (_, law)) in zip(rest, terms.items(), strict=True)
    }
    return plain, noisy


def verdict(problem: Problem, variant: str) -> tuple[str, float]:
    """What the exact loss of the variant says; product noise by that of its n_1 as additive noise (Lemma 8)."""
    if variant not in PUBLISHED:
        certificate = accounted(problem)[1][variant].certificate
        return certificate.verdict, certificate.bracket.upper
    fixed, one, _ = published(problem, variant)
    if variant == "product":
        radius = 2 * math.sqrt(problem.problems)
        shown = RadialLoss(one.dim, one.a, one.b, radius / one.scale).delta(problem.epsilon).lower
        return ("refuted" if shown > problem.delta else "undecided"), shown
    certificate = objective.perturbation(fixed, one).certificate
    return certificate.verdict, certificate.bracket.upper


def study(data: Any, losses: tuple[str, ...], *, epsilons: tuple[float, ...], repeats: int) -> Iterator[list[Row]]:
    """Rows of one data set after each split, one draw of every noise per split."""
    tally = Tally(data.name)
    for seed, (records, test, y) in enumerate(data.splits(repeats)):
        for loss in losses:
            rng = np.random.default_rng(2000 + seed)
            for epsilon in epsilons:
                problem = problem_of(data, records, LOSSES[loss], epsilon)
                for draw in drawn(problem, rng):
                    plain, models = solved(draw, records, rng)
                    for (variant, one), scored in zip(
                        models.items(), margins(test, list(models.values())), strict=True
                    ):
                        key = (loss, epsilon, variant)
                        if key not in tally.facts:
                            tally.facts[key] = (math.nan, *verdict(problem, variant))
                        tally.add(key, scored, y, float(np.linalg.norm(one - plain)))
        tally.splits += 1
        yield tally.rows()


MOST = 10_000  # rows of MNIST and Synthetic-H: every draw is a fit of its own (setting ours)


def run(losses: tuple[str, ...], name: str, full: bool, repeats: int = REPEATS) -> Iterator[list[Row]]:
    """Rows of a set after each split; none where its data are not at hand."""
    from erm_sets import load

    data = load(name, MOST if full else QUICK)
    if data is None:
        return
    yield from study(data, losses, epsilons=EPSILONS if full else (0.1, 1.0), repeats=repeats if full else 2)
