"""Naive Bayes and k-means: what a record moves, replay through `fit`, conventions, accuracy, odd records."""

import math

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB as Plain
from sklearn.utils.estimator_checks import parametrize_with_checks

from shapedp import audit
from shapedp.accounting import Plan
from shapedp.audit import gauge
from shapedp.learn import GaussianNB, KMeans, PublicScaler, certificate_of, make_pipeline
from shapedp.learn.groups import GroupSums
from shapedp.mechanisms import certify
from shapedp.noise import Gaussian

CLAIM = {"epsilon": 1.0, "delta": 1e-6}
IRIS = {"low": [4, 2, 1, 0], "high": [8, 5, 7, 3], "classes": [0, 1, 2]}


def sums(adjacency="zero-out", squares=True, columns=3, times=1):
    return GroupSums(1.0, 1e-6, adjacency, 4, columns, squares, times)


@pytest.mark.parametrize("squares", [True, False])
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("columns", [1, 3])
def test_no_pair_moves_the_sums_further_than_the_set_says(adjacency, squares, columns):
    rng = np.random.default_rng(0)
    one = sums(adjacency, squares, columns)
    reached = []
    for _ in range(4000):
        kind = rng.integers(3)
        u = rng.uniform(-1, 1, (2, columns)) if kind == 0 else rng.choice([-1.0, 0.0, 0.5, 1.0], (2, columns))
        u[1] = -u[0] if kind == 2 else u[1]
        group = rng.integers(0, 2, 2) if adjacency == "replace" else np.array([0, -1])
        before, after = (one.query(u[[i]], group[[i]]) for i in (0, 1))
        reached.append(gauge(one.mechanism.sensitivity, before - after))
    assert max(reached) <= 1
    assert max(reached) > 1 - 1e-6


@pytest.mark.parametrize("squares", [True, False])
def test_sums_and_means_by_hand(squares):
    rng = np.random.default_rng(1)
    u, group = rng.uniform(-1, 1, (9000, 3)), rng.integers(-1, 4, 9000)
    counts, means, second = sums(squares=squares).read(sums(squares=squares).query(u, group))
    for k in range(4):
        assert counts[k] == (group == k).sum()
        assert means[k] == pytest.approx(u[group == k].mean(axis=0), abs=1e-8)
        if squares:
            assert second[k] == pytest.approx(np.square(u[group == k]).mean(axis=0), abs=1e-8)


def test_the_claim_is_spent_and_thirty_percent_less_noise_is_refuted():
    for times in (1, 5):
        one = sums(times=times)
        assert certify(one.subject, epsilon=1.0, delta=1e-6).verdict == "certified"
        made = one.mechanism
        quieter = type(made)(Gaussian(made.law.marginal_scales() * 0.7), made.sensitivity, 1.0, 1e-6)
        plan = Plan((type(one.subject.steps[0])(quieter, count=times),)) if times > 1 else quieter
        assert certify(plan, epsilon=1.0, delta=1e-6).verdict == "refuted"


def estimators(adjacency):
    shared = {**CLAIM, "low": -1, "high": 1, "adjacency": adjacency, "random_state": 0}
    return GaussianNB(**shared, classes=[0, 1, 2]), KMeans(3, **shared, rounds=4)


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("count", [30, pytest.param(1000, marks=pytest.mark.slow)])
def test_replay_of_neighbours(adjacency, which, count):
    rng = np.random.default_rng(2)

    def odd():
        x = rng.normal(size=2) * 10.0 ** rng.choice([-300, -2, 0, 3, 200])
        return np.where(rng.random(2) < 0.1, rng.choice([math.nan, math.inf], 2), x), rng.choice([0, 1, 2, 7])

    def pairs():
        for _ in range(count):
            n = int(rng.integers(1, 60))
            x, y = rng.uniform(-1.5, 1.5, (n, 2)), rng.integers(0, 3, n)
            at = rng.integers(n)
            x[at], y[at] = odd()
            if np.isnan(x[at]).all():
                x[at] = 0.5
            other, less = x.copy(), y.copy()
            other[at], less[at] = odd() if adjacency == "replace" else (np.full(2, math.nan), y[at])
            yield (x, y), (other, less)

    result = audit.replay(estimators(adjacency)[which], pairs(), adjacency=adjacency)
    assert result.passed, result.explain()
    assert 0.5 < result.largest <= 1 + 1e-9


def test_iris_and_blobs_near_the_answers_without_privacy():
    x, y = load_iris(return_X_y=True)
    found = [GaussianNB(epsilon=5.0, delta=1e-5, **IRIS, random_state=s).fit(x.copy(), y).score(x, y) for s in range(9)]
    assert np.median(found) > Plain().fit(x, y).score(x, y) - 0.06
    rng = np.random.default_rng(0)
    places = np.array([[-5.0, -5], [5, 5], [-5, 5], [5, -5]])
    rows = places[rng.integers(0, 4, 8000)] + rng.normal(size=(8000, 2))
    centres = KMeans(4, **CLAIM, low=-10, high=10, random_state=0).fit(rows).cluster_centers_
    gaps = np.linalg.norm(centres[:, None] - places, axis=2)
    assert sorted(gaps.argmin(axis=1)) == [0, 1, 2, 3]
    assert gaps.min(axis=1).max() < 0.3


def test_a_pipeline_with_naive_bayes_is_certified():
    x, y = load_iris(return_X_y=True)
    model = GaussianNB(**CLAIM, low=0, high=1, classes=[0, 1, 2])
    fitted = make_pipeline(PublicScaler(IRIS["low"], IRIS["high"]), model).fit(x, y)
    assert certificate_of(fitted).verdict == "certified"


def test_variances_are_smoothed_after_the_release():
    x, y = load_iris(return_X_y=True)
    plain, smooth = (
        GaussianNB(**CLAIM, **IRIS, random_state=0, var_smoothing=share).fit(x, y) for share in (0.0, 0.25)
    )
    half = (np.asarray(IRIS["high"]) - np.asarray(IRIS["low"])) / 2
    np.testing.assert_allclose(smooth.var_, plain.var_ + 0.25 * half**2)
    np.testing.assert_array_equal(smooth.theta_, plain.theta_)
    assert smooth.privacy_.to_json() == plain.privacy_.to_json()
    for odd in (-1e-9, math.nan, math.inf):
        with pytest.raises(ValueError, match="var_smoothing must be"):
            GaussianNB(**CLAIM, **IRIS, var_smoothing=odd).fit(x, y)


def test_bad_input_is_refused_before_anything_is_released():
    x, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="delta must be > 0"):
        GaussianNB(epsilon=1.0, delta=0.0, **IRIS).fit(x, y)
    with pytest.raises(ValueError, match="low must be less than high"):
        KMeans(2, **CLAIM, low=1, high=1).fit(x)
    with pytest.raises(TypeError, match="weight"):
        GaussianNB(**CLAIM, **IRIS).fit(x, y, sample_weight=np.ones(150))
    with pytest.raises(ValueError, match="n_clusters"):
        KMeans(0, **CLAIM, low=0, high=1).fit(x)


@parametrize_with_checks(
    [
        GaussianNB(epsilon=20.0, delta=1e-5, low=-10, high=10, random_state=0),
        KMeans(2, epsilon=20.0, delta=1e-5, low=-10, high=10, random_state=0),
    ]
)
@pytest.mark.filterwarnings("ignore")
def test_conventions_of_scikit_learn(estimator, check):
    check(estimator)
