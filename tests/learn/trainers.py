"""Every trainer on a tiny problem with neighbours as far apart as its certificate allows, and noise that is cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any
from unittest import mock

import numpy as np

from shapedp.audit.subjects import log_ratio
from shapedp.learn import (
    PCA,
    ElasticNet,
    GammaRegressor,
    HuberSVC,
    Lasso,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    PrivateImputer,
    PrivateScaler,
    PrivateSearch,
    Ridge,
)
from shapedp.learn.moments import Bounds
from shapedp.learn.solvers.erm import objective, output
from shapedp.learn.solvers.erm.bolt_on import BOLT_ON
from shapedp.learn.solvers.erm.output import OUTPUT
from shapedp.learn.solvers.erm.problem import Problem, Records
from shapedp.learn.solvers.linear import SOLVERS
from shapedp.learn.solvers.linear import Problem as LeastSquares
from shapedp.mechanisms import adaptive_mixing, mechanism_from_json, mixing
from shapedp.mechanisms import objective as perturbing
from shapedp.mechanisms.selection import recursion
from shapedp.noise.radial import Radial
from shapedp.noise.spread import SpreadLaw
from shapedp.papers.gaussian_mixing import recipes as published_mixing
from shapedp.papers.gaussian_mixing import sheffet as published_sheffet
from shapedp.privacy import Loss

CLAIM = {"epsilon": 1.0, "delta": 1e-2}
CUT = 0.7  # of the noise is left
BOUNDED = {**CLAIM, "feature_bound": 1.0, "fit_intercept": False}
BINARY = {**BOUNDED, "classes": [0, 1]}
DESCENT = {**CLAIM, "alpha": 0.0, "feature_bounds": 1.0, "target_bound": 1.0, "fit_intercept": False, "passes": 2}

Score = Callable[[Any], Any]


def weights(model: Any) -> Any:
    """What most trainers release."""
    return model.coef_


def described(model: Any) -> Loss:
    """The privacy loss of what the certificate describes."""
    return mechanism_from_json(dict(model.privacy_.subject)).loss


@dataclass(frozen=True)
class Trainer:
    """An estimator, neighbouring data, a score of what it shows (None: learned), and what it certifies.

    `kept` lists the shares of the noise at which it is audited besides.
    """

    kind: Any
    options: dict[str, Any]
    neighbours: tuple[Any, Any]
    score: Score | None = None
    shown: Callable[[Any], Any] = weights
    kept: tuple[float, ...] = (CUT,)
    profile: Callable[[Any], Loss] = described

    def model(self, data: Any, rng: Any) -> Any:
        return self.kind(**self.options, random_state=rng).fit(*data)

    def __call__(self, data: Any, rng: Any) -> Any:
        return np.ravel(self.shown(self.model(data, rng)))

    def certified(self) -> Loss:
        """What `privacy_` certifies, as a whole profile."""
        return self.profile(self.model(self.neighbours[0], np.random.default_rng(0)))


def first(outputs):
    """The first number: the likelihood ratio of Gaussian noise rises with it."""
    return outputs[:, 0]


def fallen(outputs):
    return -outputs[:, 0]


def total(outputs):
    return outputs.sum(axis=1)


def lone(dim, label=1):
    """One record, or none: with the Huber hinge below its bend its slope is -1 and nothing bends."""
    return (np.eye(1, dim), np.array([label])), (np.full((1, dim), np.nan), np.array([label]))


def lopsided(others, length):
    """Records on one side drag the weights to where the logistic slope of the one on the other side is steepest."""
    x = np.full((others + 1, 1), length)
    x[0] = -1.0
    without = x.copy()
    without[0] = np.nan
    return (x, np.ones(others + 1, int)), (without, np.ones(others + 1, int))


def among_zeros(n):
    """One record among zeros: its derivative is clipped in every pass, since mean squares are small."""
    x = np.zeros((n, 1))
    with_one = x.copy()
    with_one[0] = 1.0
    return (with_one, np.ones(n, int)), (x, np.ones(n, int))


def steep(slope, n=400):
    """Records on a line of negative slope, and one off it: both moments it moves lower, or raise, the same weight.

    The weight C/D changes by (dC - slope dD)/D; a slope of -var(C)/var(D) adds up both as a likelihood ratio does.
    """
    x, y = np.full((n, 1), min(1.0, 1 / slope)), np.full(n, -min(1.0, slope))
    x[0], y[0] = 1.0, 1.0
    without = x.copy()
    without[0] = np.nan
    return (x, y), (without, y)


def two_targets(slope, n=400):
    """As `steep`, with one more target equal to the first: the sum of both weights."""
    (x, y), (without, _) = steep(slope, n)
    both = np.column_stack([y, y])
    return (x, both), (without, both)


def unequal(slope, n=800):
    """As `steep`, with others of half the largest weight, and one of far more, which is pulled down to it."""
    (x, y), (without, _) = steep(slope, n)
    given = np.where(np.arange(n) == 0, 1e6, 1.0)
    return (x, y, given), (without, y, given)


def cells(first_cell, odd, even, n):
    """A column whose first cell is there or missing, among others of two values in turn."""
    x = np.where(np.arange(n) % 2, odd, even)[:, None]
    x[0] = first_cell
    without = x.copy()
    without[0] = np.nan
    return (x,), (without,)


def searched(n=200):
    """One record among others too short to matter, which a weight above 0 gets right: it decides which run is kept."""
    x = np.full((n, 1), 1e-6)
    x[0] = 1.0
    without = x.copy()
    without[0] = np.nan
    return (x, np.ones(n, int)), (without, np.ones(n, int))


def two_rows(first_row, target=True):
    """A row and zeros, or zeros alone."""
    x = np.array([first_row, [0.0] * len(first_row)])
    return ((x, np.array([1.0, 0.0])), (0 * x, np.zeros(2))) if target else ((x,), (0 * x,))


def huber(dim, strength):
    """The problem of a lone record."""
    return Problem(HuberSVC(**BINARY)._loss(), 1, dim, 1, 1.0, strength, **CLAIM)


def radial_output(outputs):
    """The likelihood ratio at the two exact minima."""
    problem = huber(2, 2.0)
    return log_ratio(OUTPUT.mechanisms(replace(problem, noise="radial"))[0].law, *centres(2), outputs)


def radial_objective(outputs):
    """The likelihood ratio of b = -J'(w), where the determinant is that of a constant."""
    law = objective.mechanism(huber(2, 400.0), "radial").law
    return log_ratio(law, -np.eye(1, 2)[0], np.zeros(2), -400.0 * outputs)


def centres(dim):
    """The exact minima with the record and without."""
    return output.optimum(huber(dim, 2.0), Records(np.eye(1, dim), np.ones((1, 1))))[:, 0], np.zeros(dim)


def product_score(mechanism, outputs):
    """The likelihood ratio of product noise at the two exact minima."""
    return log_ratio(mechanism.law, *centres(mechanism.law.dim), outputs)


def three_way(outputs):
    """Along the signs of a record of the last of three classes."""
    return outputs @ np.array([-1.0, -1.0, 1.0])


def published(solver, model):
    """The loss of a published sketch: its certificate does not describe it."""
    problem = LeastSquares(1, 1, Bounds(1.0, 1.0), **CLAIM, sketch_rows=model.sketch_rows)
    return SOLVERS[solver].mechanisms(problem)[0].loss


def svc(solver, neighbours, score, **options):
    return Trainer(HuberSVC, {**BINARY, "noise": "gaussian", "solver": solver, **options}, neighbours, score)


def logistic(solver, neighbours, score, kept=(CUT,), **options):
    options = {**BINARY, "noise": "gaussian", "solver": solver, **options}
    return Trainer(LogisticRegression, options, neighbours, score, kept=kept)


def squares(solver, neighbours, kept=(CUT,), profile=described, **options):
    options = {**BOUNDED, "target_bound": 1.0, "solver": solver, **options}
    return Trainer(LinearRegression, options, neighbours, first, kept=kept, profile=profile)


def counts(kind, clip):
    """A lone record whose residual is cut off wherever the weights may lie: its slope is -1 and nothing bends."""
    options = {**BOUNDED, "target_bound": 1.0, "clip": clip, "regularization": 400.0}
    return Trainer(kind, options, lone(2), first)


def sketched(solver, kept):
    return squares(solver, ONE, kept, partial(published, solver), sketch_rows=60)


def search(repeats, kept, holdout=0.05):
    inner = HuberSVC(**BINARY, solver="output", noise="gaussian", regularization=0.01)
    options = {**CLAIM, "estimator": inner, "candidates": [{}], "repeats": repeats, "holdout": holdout}
    return Trainer(PrivateSearch, options, searched(), first, lambda model: model.best_estimator_.coef_, kept)


def descent(kind, row=(1.0, 1.0), score=total, shown=weights, **options):
    return Trainer(kind, {**DESCENT, "step": 0.01, **options}, two_rows(row), score, shown)


def estimated(model):
    """The weights and the mean squares that were released first."""
    return np.concatenate([model.coef_, model.mean_squares_])


def moments(model):
    """The covariance and the mean."""
    return np.concatenate([model.covariance_[np.triu_indices(2)], model.mean_])


def components(row, score=None, **options):
    options = {**CLAIM, "n_components": 1, "feature_bound": 1.0, "center": False, **options}
    return Trainer(PCA, options, two_rows(row, target=False), score, moments)


def sums_of(model, records=400):
    """The sums of u and of u^2 that the centre and the scale follow from, for the range [-1, 1]."""
    return records * np.array([model.center_, model.scale_**2 + model.center_**2])


def column(kind, neighbours, score, shown, **options):
    return Trainer(kind, {**CLAIM, "low": -1.0, "high": 1.0, **options}, neighbours, score, shown)


def filled(model):
    return model.fill_


def below_gap(outputs):
    """Whether the median lies left of the record: all that its likelihood ratio depends on."""
    return (outputs[:, 0] < GAP).astype(float)


GAP = -0.24  # left of it lies the share of places at which the two laws of the median are farthest apart
ONE = ((np.ones((1, 1)), np.ones(1)), (np.full((1, 1), np.nan), np.ones(1)))
THREE = {"classes": [0, 1, 2]}
TRAINERS: dict[str, Trainer] = {
    "HuberSVC, output": svc("output", lone(2), first, regularization=2.0),
    "HuberSVC, bolt-on": svc("bolt-on", lone(2), first, regularization=2.0, passes=30, batch_size=1),
    "HuberSVC, objective": svc("objective", lone(2), first, regularization=400.0),
    "LogisticRegression, output": logistic("output", lopsided(266, 0.03), fallen, regularization=3e-3),
    "LogisticRegression, bolt-on": logistic(
        "bolt-on", lopsided(270, 0.1), fallen, regularization=0.0185, passes=60, batch_size=271, kept=(CUT, 0.5)
    ),
    "LogisticRegression, objective": logistic("objective", lopsided(500, 0.1), fallen, regularization=0.01),
    "LogisticRegression, kifer": logistic("kifer", lopsided(500, 0.1), fallen, kept=(CUT, 0.2)),
    "LogisticRegression, cd": logistic("cd", among_zeros(100), first, passes=2),
    "LogisticRegression, mixing": logistic("mixing", lone(1), first, sketch_rows=60),
    "PrivateSearch, 1.001 runs": search(1.001, (CUT,), 0.005),
    "PrivateSearch, 2 runs": search(2.0, (CUT, 0.3)),
    "LinearRegression, suffstats": squares("suffstats", steep(0.45 / 0.53)),
    "LinearRegression, mixing": squares("mixing", ONE, sketch_rows=60),
    "LinearRegression, adassp-joint": squares("adassp-joint", steep(0.58 / 0.36)),
    "LinearRegression, adassp": squares("adassp", steep(1.0), kept=(CUT, 0.3)),
    "LinearRegression, mixing-paper": sketched("mixing-paper", (CUT, 0.3)),
    "LinearRegression, sheffet": sketched("sheffet", (CUT, 0.15)),
    "LinearRegression, sheffet-rdp": sketched("sheffet-rdp", (CUT, 0.3)),
    "HuberSVC, output, radial": svc("output", lone(2), radial_output, regularization=2.0, noise="radial"),
    "HuberSVC, objective, radial": svc("objective", lone(2), radial_objective, regularization=400.0, noise="radial"),
    "HuberSVC, output, three classes": svc("output", lone(1, 2), three_way, regularization=2.0, **THREE),
    "HuberSVC, objective, three classes": svc("objective", lone(1, 2), three_way, regularization=400.0, **THREE),
    "LogisticRegression, mixing, three classes": logistic("mixing", lone(1, 2), three_way, sketch_rows=60, **THREE),
    "ElasticNet": Trainer(ElasticNet, {**BOUNDED, "target_bound": 1.0, "alpha": 0.0}, steep(0.45 / 0.53), first),
    "LinearRegression, two targets": replace(squares("suffstats", two_targets(0.45 / 0.53)), score=total),
    "LinearRegression, sample weights": squares("suffstats", unequal(0.45 / 0.53), weight_bound=2.0),
    # the sum and the squares rise; the sum and the count raise the mean; left of the gap's cell a rank is gained
    "PrivateScaler": column(PrivateScaler, cells(1.0, 0.5, -0.5, 400), total, sums_of),
    "PrivateImputer, mean": column(PrivateImputer, cells(1.0, np.nan, -0.9, 800), first, filled),
    "PrivateImputer, median": column(PrivateImputer, cells(GAP, -1.0, 1.0, 120), below_gap, filled, strategy="median"),
    "PoissonRegressor": counts(PoissonRegressor, 0.8),
    "GammaRegressor": counts(GammaRegressor, 3.0),
    "Lasso, objective": descent(Lasso, mean_squares=[1.0, 1.0]),
    "Lasso, parameter": descent(Lasso, score=None, mean_squares=[1.0, 0.04], noise="parameter"),
    "Lasso, estimated": descent(Lasso, (1.0,), None, estimated, share=0.5, clip=0.5),
    "Ridge, equal": descent(Ridge, mean_squares=[1.0, 1.0], noise="equal"),
    "PCA, isometric": components((1.0, 0.0), first, release="isometric"),
    "PCA, centred": components((1.0, 0.0), release="isometric", center=True),
    "PCA, iid": components((1.0, 0.0), first, release="iid"),
    "PCA, clipped": components((0.8, 0.6), release="clipped"),
}

# What a certificate leaves unused hides 30 % less noise: by calibration as published (the claim is kept all the same),
# by a bound that is not attained, or by neighbours that move the weights less than the sensitivity.
ROOM = {
    "LogisticRegression, kifer",
    "LogisticRegression, bolt-on",
    "LinearRegression, adassp",
    "LinearRegression, mixing-paper",
    "LinearRegression, sheffet",
    "LinearRegression, sheffet-rdp",
    "PrivateSearch, 2 runs",
}


def product(kind, solver, dim=20):
    """Product noise with its published calibration, on a lone record."""
    problem = huber(dim, 2.0)
    made = OUTPUT.mechanisms(replace(problem, noise="product-noise"))[0]
    options = {"solver": solver, "noise": "product-noise", "regularization": 2.0, "unsafe": True}
    if solver == "bolt-on":
        made = BOLT_ON.mechanisms(replace(problem, noise="product-noise", passes=30, batch=1))[0]
        options |= {"passes": 30, "batch_size": 1}
    return Trainer(kind, {**BINARY, **options}, lone(dim), partial(product_score, made))


PRODUCT = {f"HuberSVC, {solver}, product noise": product(HuberSVC, solver) for solver in ("output", "bolt-on")}


@contextmanager
def noise_times(factor: float) -> Iterator[None]:
    """Every sampler of the trainers draws `factor` times its noise, while certificates say otherwise."""
    spread, radial, fine, sketch = SpreadLaw.add_to, Radial.add_to, perturbing.fine_draw, mixing.draw_sketch
    rounded, choose = published_mixing.rounded_sum, recursion.exponential_choice

    def weaker(law):
        if isinstance(law, Radial):
            return Radial(law.dim, law.a, law.b, factor * law.scale)
        scales = factor * law.scales
        return type(law)(float(scales[0]), law.dim) if scales.size == 1 else type(law)(scales)

    def less(moments, rows, variance, last, source):
        return sketch(moments, rows, factor**2 * variance, factor**2 * last, source)

    def sum_of(x, kind, scale, grid, source):
        return rounded(x, kind, factor * scale, grid, source)

    def bolder(gaps, weights, rate, bits):
        return choose(gaps, weights, rate / Fraction(factor).limit_denominator(100), bits)

    patches = [
        mock.patch.object(recursion, "exponential_choice", bolder),
        mock.patch.object(SpreadLaw, "add_to", lambda law, x, source: spread(weaker(law), x, source)),
        mock.patch.object(Radial, "add_to", lambda law, x, source: radial(weaker(law), x, source)),
        mock.patch.object(perturbing, "fine_draw", lambda law, source: fine(weaker(law), source)),
        *(mock.patch.object(one, "draw_sketch", less) for one in (mixing, adaptive_mixing)),
        *(mock.patch.object(one, "draw_sketch", less) for one in (published_mixing, published_sheffet)),
        *(mock.patch.object(one, "rounded_sum", sum_of) for one in (published_mixing, published_sheffet)),
        mock.patch.object(adaptive_mixing, "rounded_sum", sum_of),
    ]
    with ExitStack() as stack:
        for one in patches:
            stack.enter_context(one)
        yield
