"""Output perturbation on every data set: one exact minimum per split, many draws of each noise.

Neighbours replace a record; one-vs-rest problems are accounted jointly. delta = 1e-5, as the tables need it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shapedp.learn.losses import HuberHinge, Logistic, MarginLoss
from shapedp.learn.solvers.erm import output
from shapedp.learn.solvers.erm.output import additive
from shapedp.learn.solvers.erm.problem import Problem, Records

DELTA = 1e-5
EPSILONS = tuple(10**e for e in (-4, -3.5, -3, -2.5, -2, -1.5, -1, 0))
DECADES = tuple(10.0**e for e in (-4, -3, -2, -1, 0))  # where the search for the best radial law is made
NOISES = ("classic-gaussian", "gaussian", "multivariate-laplace", "radial", "product-noise")
LABELS = {
    "classic-gaussian": "classic Gaussian",
    "gaussian": "analytic Gaussian",
    "multivariate-laplace": "multivariate Laplace",
    "radial": "best radial",
    "product-noise": "product noise, REFUTED",
}
LOSSES: dict[str, MarginLoss] = {"logistic": Logistic(), "huber": HuberHinge(0.1)}


@dataclass(frozen=True)
class Row:
    """One noise at one epsilon: means over splits and draws, standard deviations, and what the certificate says."""

    loss: str
    dataset: str
    epsilon: float
    noise: str
    accuracy: float
    accuracy_sd: float
    error: float
    expected_error: float
    false_positives: float
    false_positives_sd: float
    verdict: str
    exact_delta: float
    splits: int
    runs: int


class Tally:
    """(accuracy, false positives, l2 error) of every run, by loss, epsilon and noise."""

    def __init__(self, dataset: str) -> None:
        self.dataset, self.splits = dataset, 0
        self.values: dict[tuple[str, float, str], list[tuple[float, float, float]]] = {}
        self.facts: dict[tuple[str, float, str], tuple[float, str, float]] = {}

    def add(self, key: tuple[str, float, str], margins: np.ndarray, y: np.ndarray, error: float) -> None:
        """One run."""
        from erm_sets import scores

        self.values.setdefault(key, []).append((*scores(margins, y), error))

    def rows(self) -> list[Row]:
        """What all runs so far say; `facts` holds the expected error, the verdict and delta."""
        found = []
        for key, values in self.values.items():
            loss, epsilon, noise = key
            accuracy, wrong, error = np.array(values).T
            spread = [float(part.std(ddof=1)) if len(values) > 1 else 0.0 for part in (accuracy, wrong)]
            means = [float(part.mean()) for part in (accuracy, wrong, error)]
            expected, verdict, delta = self.facts[key]
            found.append(
                Row(loss, self.dataset, epsilon, noise, means[0], spread[0], means[2], expected, means[1], spread[1],
                    verdict, delta, self.splits, len(values))
            )  # fmt: skip
        return found


def problem_of(data: Any, records: Records, loss: MarginLoss, epsilon: float) -> Problem:
    """The public side of a split."""
    sparse = not isinstance(records.x, np.ndarray)
    n, order = records.x.shape
    return Problem(loss, n, order, records.signs.shape[1], 1.0, data.regularization, epsilon, DELTA, "replace", sparse)


def study(
    data: Any,
    losses: tuple[str, ...],
    *,
    epsilons: tuple[float, ...],
    noises: tuple[str, ...],
    repeats: int,
    draws: int,
) -> Iterator[list[Row]]:
    """Rows of one data set after each split; those of epsilon = infinity are without noise.

    A split is drawn once for all losses, its minimum found once for all noises, and all draws of one noise are
    scored in one product.
    """
    tally = Tally(data.name)
    for seed, (records, test, y) in enumerate(data.splits(repeats)):
        for loss in losses:
            problem = problem_of(data, records, LOSSES[loss], 1.0)
            best = output.optimum(problem, records)
            tally.add((loss, math.inf, "none"), margins(test, [best])[0], y, 0.0)
            tally.facts[loss, math.inf, "none"] = (0.0, "none", 0.0)
            rng = np.random.default_rng(1000 + seed)
            for epsilon in epsilons:
                for noise in noises:
                    if noise == "radial" and not any(math.isclose(epsilon, at) for at in DECADES):
                        continue
                    asked = replace(problem, epsilon=epsilon)
                    made = additive(noise, output.sensitivity(asked), asked.dim, epsilon, DELTA, "replace")
                    released = [made.release(best.reshape(-1), rng=rng, unsafe=True).value for _ in range(draws)]
                    noisy = [np.asarray(value).reshape(best.shape) for value in released]
                    key, certificate = (loss, epsilon, noise), made.certificate
                    expected = math.sqrt(made.expected_squared_error)
                    tally.facts[key] = (expected, certificate.verdict, certificate.bracket.lower)
                    for one, scored in zip(noisy, margins(test, noisy), strict=True):
                        tally.add(key, scored, y, float(np.linalg.norm(one - best)))
        tally.splits += 1
        yield tally.rows()


def margins(x: Any, models: list[np.ndarray]) -> list[np.ndarray]:
    """x @ w of several models in one product, in the precision of x."""
    together = np.concatenate(models, axis=1)
    found = np.asarray(x @ (together.astype(x.dtype) if isinstance(x, np.ndarray) else together))
    return np.split(found, len(models), axis=1)


REPEATS = DRAWS = 10  # splits, as in the paper, and draws of each noise per split
QUICK = 2_000


def run(losses: tuple[str, ...], name: str, full: bool, repeats: int = REPEATS) -> Iterator[list[Row]]:
    """Rows of a set after each split; none where its data are not at hand."""
    from erm_sets import load

    data = load(name, None if full else QUICK)
    if data is None:
        return
    epsilons = EPSILONS if full else (1e-2, 1e-1)
    noises = NOISES if full else tuple(n for n in NOISES if n != "radial")
    sizes = {"repeats": repeats, "draws": DRAWS} if full else {"repeats": 2, "draws": 3}
    yield from study(data, losses, epsilons=epsilons, noises=noises, **sizes)
