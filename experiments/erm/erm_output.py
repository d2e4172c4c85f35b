"""Output perturbation on every data set: one exact minimum per split, many draws of each noise.

    SHAPEDP_DATA=... python experiments/erm/erm_output.py [--full] [--loss huber] [--sets Adult,MNIST]

Neighbours replace a record; one-vs-rest problems are accounted jointly. delta = 1e-5, as the tables need it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shapedp.learn.losses import HuberHinge, Logistic, MarginLoss
from shapedp.learn.solvers.erm import output
from shapedp.learn.solvers.erm.noise import additive
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
    runs: int


def problem_of(data: Any, records: Records, loss: MarginLoss, epsilon: float) -> Problem:
    """The public side of a split."""
    sparse = not isinstance(records.x, np.ndarray)
    n, order = records.x.shape
    return Problem(loss, n, order, records.signs.shape[1], 1.0, data.regularization, epsilon, DELTA, "replace", sparse)


def study(
    data: Any, loss: MarginLoss, *, epsilons: tuple[float, ...], noises: tuple[str, ...], repeats: int, draws: int
) -> Iterator[Row]:
    """Rows for one data set; the row of epsilon = infinity is the model without noise."""
    from erm_sets import scores

    found: dict[tuple[float, str], list[tuple[float, float, float]]] = {}
    mechanisms: dict[tuple[float, str], Any] = {}
    for seed, (records, test, y) in enumerate(data.splits(repeats)):
        problem = problem_of(data, records, loss, 1.0)
        best = output.optimum(problem, records)
        found.setdefault((math.inf, "none"), []).append((*scores(_margins(test, best), y), 0.0))
        rng = np.random.default_rng(1000 + seed)
        for epsilon in epsilons:
            for noise in noises:
                if noise == "radial" and not any(math.isclose(epsilon, at) for at in DECADES):
                    continue
                asked = replace(problem, epsilon=epsilon)
                key = (epsilon, noise)
                mechanisms[key] = additive(noise, output.sensitivity(asked), asked.dim, epsilon, DELTA, "replace")
                for _ in range(draws):
                    value = np.asarray(mechanisms[key].release(best.reshape(-1), rng=rng, unsafe=True).value)
                    noisy = value.reshape(best.shape)
                    away = float(np.linalg.norm(noisy - best))
                    found.setdefault(key, []).append((*scores(_margins(test, noisy), y), away))
    for (epsilon, noise), values in found.items():
        accuracy, wrong, error = np.array(values).T
        made = mechanisms.get((epsilon, noise))
        yield Row(
            data.name,
            epsilon,
            noise,
            float(accuracy.mean()),
            float(accuracy.std(ddof=1)) if len(accuracy) > 1 else 0.0,
            float(error.mean()),
            0.0 if made is None else math.sqrt(made.expected_squared_error),
            float(wrong.mean()),
            float(wrong.std(ddof=1)) if len(wrong) > 1 else 0.0,
            "none" if made is None else made.certificate.verdict,
            0.0 if made is None else made.certificate.bracket.lower,
            len(values),
        )


def _margins(x: Any, w: np.ndarray) -> np.ndarray:
    return np.asarray(x @ (w if not isinstance(x, np.ndarray) else w.astype(x.dtype)))


# Sizes of a run: (splits, draws per split). MNIST and Synthetic-H have fewer splits than the paper's 10 (setting ours).
SIZES = {"MNIST": (2, 5), "Synthetic-H": (1, 10)}
SIZE = (10, 10)
QUICK = 2_000


def run(
    loss: str, names: tuple[str, ...], full: bool, advance: Callable[[int, int, str], None]
) -> tuple[list[Row], list[str]]:
    """Rows of all sets, and the names of those whose data are not at hand."""
    from erm_sets import load

    rows: list[Row] = []
    absent: list[str] = []
    for done, name in enumerate(names):
        data = load(name, None if full else QUICK)
        if data is None:
            absent.append(name)
            continue
        repeats, draws = SIZES.get(name, SIZE) if full else (2, 3)
        epsilons = EPSILONS if full else (1e-2, 1e-1)
        noises = NOISES if full else tuple(n for n in NOISES if n != "radial")
        rows += study(data, LOSSES[loss], epsilons=epsilons, noises=noises, repeats=repeats, draws=draws)
        advance(done + 1, len(names), name)
    return rows, absent
