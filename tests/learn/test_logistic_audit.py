"""Trainers audited end to end through `fit`, on worst-case neighbours of tiny problems, at a claim of (1, 0.01).

The empirical lower bound (99.9% confidence) must stay below the certificate; the same audit must catch the trainer
when its noise is cut by 30%, and when product noise is used with its published calibration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import shapedp as sdp
from shapedp.audit.subjects import log_ratio
from shapedp.learn import HuberSVC, LogisticRegression
from shapedp.learn.solvers.erm import output
from shapedp.learn.solvers.erm.problem import Problem, Records
from shapedp.mechanisms import adaptive_mixing, mixing
from shapedp.mechanisms import objective as perturbing
from shapedp.noise.spread import SpreadLaw
from shapedp.recipes import product_noise
from shapedp.sampling import rounded_sum

EPSILON, DELTA, CUT = 1.0, 1e-2, 0.7
COMMON = {"epsilon": EPSILON, "delta": DELTA, "feature_bound": 1.0, "classes": [0, 1], "fit_intercept": False}


@dataclass(frozen=True)
class Fit:
    """A trainer as a function of the data and a generator: the released weights."""

    kind: Any
    options: dict[str, Any]

    def __call__(self, data, rng):
        return self.kind(**COMMON, **self.options, random_state=rng).fit(*data).coef_.ravel()


def lone(dim):
    """One record, or none: with the Huber hinge below its bend its slope is -1 and nothing bends."""
    x = np.eye(1, dim)
    return (x, np.array([1])), (np.full((1, dim), np.nan), np.array([1]))


def lopsided(n=120):
    """Short records drag the weights to where the long one's slope is steepest: what the logistic loss needs."""
    x = np.zeros((n, 2))
    x[:, 0] = 0.03
    x[0, 0] = -1.0
    other = x.copy()
    other[0] = np.nan
    return (x, np.ones(n, int)), (other, np.ones(n, int))


def first(outputs):
    """The weight along the record: the likelihood ratio of Gaussian noise rises with it."""
    return outputs[:, 0]


def fallen(outputs):
    return -outputs[:, 0]


TRAINERS = {
    "output": (Fit(HuberSVC, {"solver": "output", "noise": "gaussian", "regularization": 2.0}), lone(2), first),
    "output, logistic": (
        Fit(LogisticRegression, {"solver": "output", "noise": "gaussian", "regularization": 5e-3}),
        lopsided(),
        fallen,
    ),
    "bolt-on": (
        Fit(
            HuberSVC,
            {"solver": "bolt-on", "noise": "gaussian", "regularization": 2.0, "passes": 30, "batch_size": 1},
        ),
        lone(2),
        first,
    ),
    "objective": (Fit(HuberSVC, {"solver": "objective", "noise": "gaussian", "regularization": 400.0}), lone(2), first),
    "mixing": (Fit(LogisticRegression, {"solver": "mixing", "sketch_rows": 60}), lone(1), first),
}
OTHERS = {
    "objective, logistic": (
        Fit(LogisticRegression, {"solver": "objective", "noise": "gaussian", "regularization": 1.0}),
        lone(2),
        first,
    ),
    "kifer": (Fit(LogisticRegression, {"solver": "kifer"}), lone(2), first),
    "cd": (Fit(LogisticRegression, {"solver": "cd", "passes": 2}), lone(1), first),
}


def audited(name, samples, seed=0):
    fit, pair, score = (TRAINERS | OTHERS)[name]
    return sdp.audit.mechanism(
        fit,
        epsilon=EPSILON,
        delta=DELTA,
        neighbours=pair,
        samples=samples,
        confidence=0.999,
        score=score,
        seed=seed,
        early_stop=False,
    )


def cut_noise(monkeypatch, left=CUT):
    """Every sampler of the trainers draws too little."""

    def add_to(law, x, source):
        scales = law.scales
        return rounded_sum(x, law.kind, left * (scales[0] if scales.size == 1 else scales), None, source)

    def draw(law, source):
        return rounded_sum(
            np.zeros(law.dim), "gaussian", left * float(law.scales[0]), perturbing.fine_grid(law), source
        )

    def sketch(moments, rows, variance, last, source):
        return plain(moments, rows, left**2 * variance, left**2 * last, source)

    plain = mixing.draw_sketch
    monkeypatch.setattr(SpreadLaw, "add_to", add_to)
    monkeypatch.setattr(perturbing, "fine_draw", draw)
    monkeypatch.setattr(mixing, "draw_sketch", sketch)
    monkeypatch.setattr(adaptive_mixing, "draw_sketch", sketch)


@pytest.mark.parametrize("name", ["output", "objective"])
def test_a_few_thousand_runs(name, monkeypatch):
    """As below, with so few runs that only noise cut by half is sure to show."""
    assert not audited(name, 3_000).violation
    cut_noise(monkeypatch, 0.5)
    assert audited(name, 3_000).violation


@pytest.mark.slow
@pytest.mark.parametrize("name", [*TRAINERS, *OTHERS])
def test_the_lower_bound_stays_below_the_certificate(name):
    result = audited(name, 100_000)
    print(f"{name}: {result.explain()}")
    assert not result.violation
    assert result.delta_lower <= DELTA


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINERS)
def test_noise_cut_by_30_percent_is_caught(name, monkeypatch):
    cut_noise(monkeypatch)
    result = audited(name, 100_000)
    print(f"{name}: {result.explain()}")
    assert result.violation


def product_audit(solver, dim, samples):
    """Product noise as published, scored by its density at the two exact minima."""
    pair = lone(dim)
    options = {"solver": solver, "noise": "product-noise", "regularization": 2.0, "unsafe": True, "batch_size": 1}
    problem = Problem(HuberSVC(**COMMON)._loss(), 1, dim, 1, 1.0, 2.0, EPSILON, DELTA)
    radius = output.sensitivity(problem)
    law = product_noise(dim=dim, sensitivity=radius, epsilon=EPSILON, delta=DELTA).law
    centre = output.optimum(problem, Records(np.eye(1, dim), np.ones((1, 1))))[:, 0]
    return sdp.audit.mechanism(
        Fit(HuberSVC, options | {"passes": 30}),
        epsilon=EPSILON,
        delta=DELTA,
        neighbours=pair,
        samples=samples,
        confidence=0.999,
        score=lambda outputs: log_ratio(law, centre, np.zeros(dim), outputs),
        seed=0,
        early_stop=False,
    )


def test_product_noise_is_caught():
    assert product_audit("output", 20, 2_000).violation


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["output", "bolt-on"])
def test_product_noise_is_caught_in_every_trainer(solver):
    result = product_audit(solver, 20, 100_000)
    print(f"{solver}: {result.explain()}")
    assert result.violation


def test_neighbours_are_nearly_worst():
    """The pairs above use up most of the sensitivity, so that the audits have something to find."""
    problem = Problem(HuberSVC(**COMMON)._loss(), 1, 2, 1, 1.0, 2.0, EPSILON, DELTA)
    moved = np.linalg.norm(output.optimum(problem, Records(np.eye(1, 2), np.ones((1, 1)))))
    assert moved / output.sensitivity(problem) > 0.99
    (x, _), _ = lopsided()
    full = Problem(LogisticRegression(**COMMON)._loss(), len(x), 2, 1, 1.0, 5e-3, EPSILON, DELTA)
    ends = [output.optimum(full, Records(part, np.ones((len(x), 1)))) for part in (x, np.where(x < 0, 0.0, x))]
    assert np.linalg.norm(ends[0] - ends[1]) / output.sensitivity(full) > 0.75
