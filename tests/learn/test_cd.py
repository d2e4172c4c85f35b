"""Private coordinate descent: budgets, scales, exact optima without noise, replay audits through `fit`."""

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn import linear_model

import shapedp as sdp
from shapedp import audit
from shapedp.accounting import compose
from shapedp.learn import Lasso, Ridge
from shapedp.learn.losses import Logistic
from shapedp.learn.solvers.cd import SQUARED, Columns, Descent, Penalty, of_margin
from shapedp.privacy import GaussianLoss

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
CLAIM = {"epsilon": 1.0, "delta": 1e-5}


def unequal(n=400, d=4, seed=0):
    """Features of very different sizes, and a target within 5."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, d)) * 10.0 ** np.arange(d)
    return x, np.clip(x @ (rng.uniform(-1, 1, d) / 10.0 ** np.arange(d)) + 0.5, -5, 5)


def scheduled(noise, means=(1.0, 100.0, 0.01), **options):
    descent = Descent(1.0, 1e-5, "replace", passes=7, noise=noise, moments=tuple(means), **options)
    return descent, descent.schedule(np.array(means), 1000, 1.0, intercept=False)


def exactly(mechanism, query):
    """A release without noise, to see where the descent goes."""
    return np.asarray(query, dtype=np.float64)


@pytest.mark.parametrize("noise", ["objective", "parameter", "equal"])
@pytest.mark.parametrize("moments", [None, (1.0, 2.0, 3.0)])
def test_every_release_adds_up_to_the_claim(noise, moments):
    descent = Descent(1.0, 1e-5, "zero-out", passes=13, noise=noise, share=0.2, moments=moments)
    plan = descent.schedule(np.array([1.0, 2.0, 3.0]), 10, 1.0, intercept=False).plan()
    first = [] if moments else [(descent.estimate(np.ones(3)), 1)]
    spent = compose([*first, *((step.subject, step.count) for step in plan)])
    whole = GaussianLoss.calibrate(1.0, 1e-5).mu
    assert isinstance(spent, GaussianLoss)
    assert whole * (1 - 1e-9) < spent.mu <= whole
    assert spent.delta(1.0).upper <= 1e-5


@pytest.mark.parametrize(("noise", "power"), [("objective", 1), ("parameter", 0)])
def test_scales_minimise_what_they_are_for(noise, power):
    means = np.array([1.0, 100.0, 0.01])
    _, schedule = scheduled(noise)
    steps, reach = schedule.steps, schedule.reach

    def cost(scales):
        return float((means**power * steps**2 * scales**2).sum())

    rng, spent = np.random.default_rng(0), math.sqrt(float(np.square(reach / schedule.scales).sum()))
    for _ in range(200):
        other = schedule.scales * np.exp(0.3 * rng.standard_normal(3))
        other *= math.sqrt(float(np.square(reach / other).sum())) / spent  # the same mu
        assert cost(other) >= cost(schedule.scales) * (1 - 1e-12)


def test_equal_shares_are_the_best_for_the_objective_under_the_published_clips():
    """C_i ~ sqrt(M_i) makes DP-CD's noise the least for the objective: improved DP-CD can only raise it."""
    for seed in range(50):
        means = np.exp(np.random.default_rng(seed).normal(scale=3, size=6))
        by = {noise: scheduled(noise, means)[1] for noise in ("objective", "parameter", "equal")}
        np.testing.assert_allclose(by["objective"].scales, by["equal"].scales, rtol=1e-9)
        rise = {name: float((means * (one.steps * one.scales) ** 2).sum()) for name, one in by.items()}
        error = {name: float(((one.steps * one.scales) ** 2).sum()) for name, one in by.items()}
        assert rise["parameter"] > rise["equal"]
        assert error["parameter"] < error["equal"]
        ratio = np.sqrt(means).sum() * (1 / np.sqrt(means)).sum() / means.size**2
        assert rise["parameter"] / rise["equal"] == pytest.approx(ratio, rel=1e-9)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_without_noise_the_published_optimum_is_found(kind):
    x, y = unequal()
    rows = sparse.csr_array(x) if kind == "sparse" else x
    bounds = np.full(4, 2e3)
    descent = Descent(1.0, 1e-5, "zero-out", passes=300, clip=100.0, unit=10.0, moments=tuple((x**2).mean(axis=0)))
    cases = [
        (Penalty(l1=0.01), linear_model.Lasso(alpha=0.01, tol=1e-12, max_iter=10**5)),
        (Penalty(l2=3 / 400), linear_model.Ridge(alpha=3.0, tol=1e-12)),
    ]
    for penalty, reference in cases:
        columns = Columns.of(rows, y, bounds, intercept=True)
        means, _ = descent.means(columns, exactly)
        path = descent.schedule(means, 400, 1.0, intercept=True).run(columns, SQUARED, penalty, exactly)
        reference.fit(x, y)
        np.testing.assert_allclose(path[-1], [*reference.coef_, reference.intercept_], rtol=1e-3, atol=1e-6)


def test_logistic_regression_without_noise():
    x, y = unequal()
    signs = np.where(y > 0.5, 1.0, -1.0)
    moments = tuple((x**2).mean(axis=0))
    descent = Descent(1.0, 1e-5, "zero-out", passes=3000, clip=100.0, step=1.0, moments=moments)
    columns = Columns.of(x, signs, np.full(4, 2e3), intercept=False)
    response, penalty = of_margin(Logistic()), Penalty(l2=0.01)
    means, _ = descent.means(columns, exactly)
    path = descent.schedule(means, 400, response.curvature_bound, intercept=False).run(
        columns, response, penalty, exactly
    )
    reference = linear_model.LogisticRegression(C=1 / (0.01 * 400), fit_intercept=False, tol=1e-10, max_iter=10**4)
    reference.fit(x, signs)

    def objective(weights):
        return np.logaddexp(0, -signs * (x @ weights)).mean() + 0.005 * weights @ weights

    assert objective(path[-1]) <= objective(reference.coef_[0]) * (1 + 1e-4)


def odd_record(rng, d):
    """A record anywhere: at the bound, far beyond it, tiny, zero, not finite."""
    x = rng.standard_normal(d) * 10.0 ** rng.choice([-300, -3, 0, 0, 3, 150])
    y = float(rng.standard_normal() * 10.0 ** rng.choice([-300, 0, 0, 3, 150]))
    kind = rng.integers(6)
    if kind == 0:
        x[rng.integers(d)] = rng.choice([math.nan, math.inf])
    elif kind == 1:
        y = math.nan
    return x, y


def pairs(count, adjacency, seed):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n, d = int(rng.integers(1, 30)), int(rng.integers(1, 4))
        x, y = rng.uniform(-1, 1, (n, d)) * rng.choice([0.01, 1.0, 30.0]), rng.uniform(-2, 2, n)
        at = rng.integers(n)
        x[at], y[at] = odd_record(rng, d)
        other, target = x.copy(), y.copy()
        other[at], target[at] = (0.0, 0.0) if adjacency == "zero-out" else odd_record(rng, d)
        yield (x, y), (other, target)


@pytest.mark.parametrize("kind", [Lasso, Ridge])
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("intercept", [True, False])
def test_replay_finds_no_leak(kind, adjacency, intercept):
    model = kind(
        alpha=0.1,
        **CLAIM,
        feature_bounds=1.0,
        target_bound=1.0,
        passes=3,
        adjacency=adjacency,
        fit_intercept=intercept,
        random_state=0,
    )
    found = audit.replay(model, pairs(25, adjacency, 1), adjacency=adjacency)
    assert found.passed, found.explain()
    assert found.largest > 0.5


def test_replay_sees_that_the_intercept_of_a_record_of_zeros_counts(monkeypatch):
    """Without the doubled bound of the intercept's derivative the audit reports it."""
    schedule = Descent.schedule

    def careless(self, means, records, curvature, *, intercept):
        return schedule(self, means, records, curvature, intercept=False)

    monkeypatch.setattr(Descent, "schedule", careless)
    model = Lasso(alpha=0.0, **CLAIM, feature_bounds=1.0, target_bound=1.0, passes=4, step=50.0, random_state=0)
    found = audit.replay(model, pairs(25, "zero-out", 2), adjacency="zero-out")
    assert not found.passed
    assert any(finding.what == "sensitivity" for finding in found.findings)


def test_a_clip_that_is_left_out_is_found(monkeypatch):
    monkeypatch.setattr(sdp.Box, "_clip", lambda self, rows: rows)
    model = Lasso(alpha=0.0, **CLAIM, feature_bounds=1.0, target_bound=1.0, passes=2, random_state=0)
    assert not audit.replay(model, pairs(10, "replace", 3), adjacency="replace").passed


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("passes", 0),
        ("step", 0.0),
        ("step", math.nan),
        ("clip", -1.0),
        ("noise", "none"),
        ("share", 1.0),
        ("delta", 0.0),
        ("moments", (1.0, 0.0)),
    ],
)
def test_bad_settings_are_refused(name, value):
    settings = {"epsilon": 1.0, "delta": 1e-5, "adjacency": "zero-out", name: value}
    with pytest.raises(ValueError, match=name):
        Descent(**settings)
