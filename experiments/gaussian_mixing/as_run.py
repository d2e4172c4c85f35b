"""Figures 2 and 4 of the mixing paper as the authors ran them, beside the same with everything as it is meant.

    shapedp reproduce gaussian-mixing/authors-settings [--full]

Settings read from the authors' public code (github.com/omrilev1/GaussMix at 746a96b, Code_LinearRegression.py; read and
not copied): delta = 1/n^2, k = 2.5 max(d, log 1e10), epsilon from 0.063 to 31.6 in six steps, x over its largest norm,
y over its largest magnitude, C_X = C_Y = 1, AdaSSP with failure probability 1e-10. Their linear mixing releases the
eigenvalue with the deviation sqrt(sigma/sqrt(k)) (not private, see the register), their two Sheffets lack the factor
C^2 in the comparison.
AdaSSP is Algorithm 3 here; their code divides by the slack that it should subtract. Crime is standardised before rows
are left out, as in their code, wine is the red one without duplicates; Tecator has its 100 absorbances and 172 rows.
Means over 1,000 runs, 50 on each of twenty splits (250 on one split in their code). "Ahead" and "behind" are by more
than two standard errors of the mean over the splits.
Expected: as run, mixing is ahead of AdaSSP and Sheffet at all 16 points of the four middle epsilons, 0.22 to 9.1, and
at four of them, on tecator and crime, level with the authors' second method, Sheffet's with the new analysis. With a
failure probability of 0.05, as is usual, AdaSSP overtakes it on wine and on boston from epsilon 0.76 on. One split does
not tell there: on the authors' own split of boston (seed 50) the gap at 0.76 is 0.0013 of 0.08, and in 20 repetitions
of 250 runs AdaSSP was ahead in 13; from 2.6 on every split and every repetition agrees.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from mixing_data import LOADERS
from mixing_simulated import wishart_factor

from shapedp.numerics.gram import factor, least_eigenvalue
from shapedp.papers.gaussian_mixing.claims import code_gamma
from shapedp.papers.gaussian_mixing.recipes import rdp_gamma, theorem_1_gamma
from shapedp.papers.gaussian_mixing.sheffet import sheffet

SETS = ("boston", "wine", "tecator", "communities-crime")
EPSILONS = tuple(np.logspace(-1.2, 1.5, 6).tolist())
SQUARE = 2.0  # C_X^2 + C_Y^2
SPLITS = 20
OWN, FAIR = "mixing, as run", "AdaSSP, 0.05"
BASELINES = ("Sheffet, as run", "AdaSSP, 1e-10")
Rng = np.random.Generator


def rows(name: str, rng: Rng) -> tuple[Any, Any]:
    """[x, y] of the training and of the test part, scaled by the largest norms of the training part."""
    data = LOADERS[name]()
    x, y = data.split("usual" if name == "tecator" else "red") if name in ("tecator", "wine") else (data.x, data.y)
    both = np.column_stack([x, y]).astype(np.float64)
    if name == "wine":
        both = np.unique(both, axis=0)
    if name == "communities-crime":
        at = data.feature_names.index("racepctblack")
        kept, both = both[:, at] >= 0.1, np.delete(both, at, axis=1)
        both[:, :-1] = (both[:, :-1] - both[:, :-1].mean(axis=0)) / both[:, :-1].std(axis=0, ddof=1)
        both = both[kept]
    both = rng.permutation(both)
    train, test = np.split(both, [int(0.8 * len(both))])
    scale = np.full(both.shape[1], np.linalg.norm(train[:, :-1], axis=1).max())
    scale[-1] = np.abs(train[:, -1]).max()
    return train / scale, test / scale


def sketched(gram: Any, k: int, noise: float, rng: Rng) -> Any:
    """Least squares on k rows of covariance gram + noise I."""
    upper = wishart_factor(len(gram), k, rng) @ factor(gram + noise * np.eye(len(gram)))
    return np.linalg.lstsq(upper[:, :-1], upper[:, -1], rcond=None)[0]


def adassp(gram: Any, epsilon: float, delta: float, failure: float, rng: Rng) -> Any:
    """Algorithm 3, C_X = C_Y = 1."""
    d, unit, log = len(gram) - 1, 3 / epsilon, math.log(6 / delta)
    least = least_eigenvalue(gram[:-1, :-1]) + math.sqrt(log) * unit * rng.standard_normal() - log * unit
    ridge = max(math.sqrt(d * log * math.log(2 * d**2 / failure)) * unit - max(least, 0.0), 0.0)
    noise = np.triu(rng.standard_normal((d, d)))
    design = gram[:-1, :-1] + math.sqrt(log) * unit * (noise + np.triu(noise, 1).T) + ridge * np.eye(d)
    return np.linalg.solve(design, gram[:-1, -1] + math.sqrt(log) * unit * rng.standard_normal(d))


def mixing(least: float, gamma: float, deviation: float, delta: float, rng: Rng, unit: float = 1.0) -> float:
    """The variance of the noise, the least eigenvalue released with a deviation; all in plain units.

    The eigenvalue is left alone if gamma times `unit` is at most tau: 1 in Algorithm 1, C^2 in the code.
    """
    tau = math.sqrt(2 * math.log(3 / delta))
    if gamma * unit <= tau:
        return gamma * SQUARE
    return max(gamma * SQUARE - max(least - deviation * (tau - rng.standard_normal()), 0.0), 0.0)


def point(train: Any, test: Any, epsilon: float, runs: int, rng: Rng) -> dict[str, float]:
    """Mean test errors of every method at one epsilon."""
    gram, delta, d = train.T @ train, len(train) ** -2.0, train.shape[1] - 1
    least, k = least_eigenvalue(gram), int(2.5 * max(d, math.log(1e10)))
    code, meant = code_gamma(k, epsilon, delta), theorem_1_gamma(k, epsilon, delta)
    deviations = math.sqrt(code * SQUARE / math.sqrt(k)), meant * SQUARE / math.sqrt(k)
    bound, slack = 4 / epsilon * (math.sqrt(2 * k * math.log(8 / delta)) + math.log(8 / delta)), 4 / epsilon
    ours = SQUARE * rdp_gamma(k, epsilon / 2, delta)
    limits = {
        "Sheffet, as run": (bound + slack * math.log(1 / delta), slack, bound),
        "Sheffet (ours), as run": (ours / 2 + slack * math.log(1 / delta), slack, ours),
    }
    for name, analysis in (("Sheffet", "sheffet"), ("Sheffet (ours)", "renyi")):
        fair = sheffet(rows=k, row_bound=math.sqrt(SQUARE), epsilon=epsilon, delta=delta, analysis=analysis)
        limit = SQUARE * (fair.threshold + fair.slack)
        limits[f"{name}, as meant"] = (limit, SQUARE * fair.scale, SQUARE * fair.variance)

    def threshold(kind: str) -> Any:
        limit, scale, noise = limits[kind]
        return sketched(gram, k, 0.0 if least > limit + rng.laplace(0.0, scale) else noise, rng)

    methods = {
        "mixing, as run": lambda: sketched(gram, k, mixing(least, code, deviations[0], delta, rng, SQUARE), rng),
        "Sheffet, as run": lambda: threshold("Sheffet, as run"),
        "Sheffet (ours), as run": lambda: threshold("Sheffet (ours), as run"),
        "AdaSSP, 1e-10": lambda: adassp(gram, epsilon, delta, 1e-10, rng),
        "mixing, as meant": lambda: sketched(gram, k, mixing(least, meant, deviations[1], delta, rng), rng),
        "Sheffet, as meant": lambda: threshold("Sheffet, as meant"),
        "Sheffet (ours), as meant": lambda: threshold("Sheffet (ours), as meant"),
        "AdaSSP, 0.05": lambda: adassp(gram, epsilon, delta, 0.05, rng),
    }
    return {
        name: float(np.mean([np.square(test @ np.append(fit(), -1.0)).mean() for _ in range(runs)]))
        for name, fit in methods.items()
    }


@dataclass(frozen=True)
class Point:
    """Means over the splits at one epsilon; by how much each other method differs from mixing as run, and the error.

    `ahead` counts the splits on which AdaSSP at 0.05 has less than mixing as run.
    """

    epsilon: float
    errors: dict[str, float]
    gaps: dict[str, tuple[float, float]]
    ahead: int

    def standing(self, others: tuple[str, ...]) -> str:
        """Mixing as run is ahead of all the others, behind one, or level with the best within two standard errors."""
        gaps = [self.gaps[other] for other in others]
        if all(gap > 2 * error for gap, error in gaps):
            return "ahead"
        return "behind" if any(gap < -2 * error for gap, error in gaps) else "level"


def compared(epsilon: float, parts: list[dict[str, float]]) -> Point:
    """The means of several splits, and the gaps with the standard errors of their means."""
    means = {method: float(np.mean([part[method] for part in parts])) for method in parts[0]}
    apart = {method: np.array([part[method] - part[OWN] for part in parts]) for method in parts[0]}
    gaps = {method: (float(gap.mean()), float(gap.std(ddof=1)) / math.sqrt(len(gap))) for method, gap in apart.items()}
    return Point(epsilon, means, gaps, int((apart[FAIR] < 0).sum()))


def study(name: str, runs: int, epsilons: tuple[float, ...] = EPSILONS) -> list[Point]:
    """Mean test errors over `runs` runs on each of the splits."""
    rng = np.random.default_rng(50)
    splits = [rows(name, rng) for _ in range(SPLITS)]
    return [compared(epsilon, [point(*split, epsilon, runs, rng) for split in splits]) for epsilon in epsilons]


def crossing(found: list[Point]) -> float | None:
    """The first epsilon from which on AdaSSP stays ahead by more than two standard errors, or None."""
    last = max((one.epsilon for one in found if one.standing((FAIR,)) != "behind"), default=0.0)
    return next((one.epsilon for one in found if one.epsilon > last), None)
