"""Elastic net from released second moments: scikit-learn's where there is no noise, any penalty from one release."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn import linear_model
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.learn.conventions import checked
from tests.learn.test_linear_replay import pairs

from shapedp import audit
from shapedp.learn import ElasticNet, PublicScaler, certificate_of, make_pipeline
from shapedp.learn.register import fits
from shapedp.learn.solvers.linear.suffstats import NoisyMoments

CLAIM = {"epsilon": 1.0, "delta": 1e-5, "feature_bound": 1.0, "target_bound": 1.0}
PENALTIES = [(0.0, 0.5), (0.01, 0.5), (0.003, 1.0), (0.02, 0.0), (10.0, 1.0)]

pytestmark = pytest.mark.filterwarnings("ignore::shapedp.learn.RepeatedFitsWarning")


def made(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 6)) / math.sqrt(6)
    return x, np.clip(x @ [0.9, -0.6, 0.3, 0.0, 0.0, 0.0] + 0.2 + 0.05 * rng.standard_normal(n), -1, 1)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("alpha", "ratio"), PENALTIES)
def test_it_is_that_of_scikit_learn_where_there_is_hardly_noise(alpha, ratio, intercept):
    x, y = made(5000)
    options = {**CLAIM, "epsilon": 1e6, "delta": 1e-2, "fit_intercept": intercept, "random_state": 0}
    found = ElasticNet(alpha, l1_ratio=ratio, **options).fit(x, y)
    plain = linear_model.LinearRegression(fit_intercept=intercept)
    if alpha:
        plain = linear_model.ElasticNet(alpha, l1_ratio=ratio, fit_intercept=intercept, tol=1e-10)
    plain.fit(x, y)
    assert found.coef_ == pytest.approx(plain.coef_, abs=2e-3)
    assert found.intercept_ == pytest.approx(plain.intercept_, abs=2e-3)


def test_weights_that_are_not_needed_are_zero():
    x, y = made()
    found = ElasticNet(0.002, l1_ratio=1.0, **CLAIM).fit(x, y)
    assert found.privacy_.verdict == "certified"
    assert found.privacy_.secure
    assert (found.coef_[3:] == 0).all()
    assert (found.coef_[:3] != 0).all()
    assert found.score(x, y) > 0.5


def test_any_penalty_from_one_release():
    x, y = made()
    first = ElasticNet(0.01, **CLAIM, random_state=3).fit(x, y)
    before = sum(one.count for one in fits())
    for alpha, ratio in PENALTIES:
        again = first.refit(alpha=alpha, l1_ratio=ratio)
        whole = ElasticNet(alpha, l1_ratio=ratio, **CLAIM, random_state=3).fit(x, y)
        np.testing.assert_array_equal(again.coef_, whole.coef_)
        assert again.intercept_ == whole.intercept_
        assert again.privacy_ is first.privacy_
        assert (again.alpha, again.l1_ratio, again.n_features_in_) == (alpha, ratio, 6)
    assert sum(one.count for one in fits()) == before + len(PENALTIES)  # `refit` is no fit
    assert first.refit(l1_ratio=1.0).alpha == 0.01
    assert first.alpha == 0.01


@pytest.mark.parametrize("seed", range(20))
def test_whatever_noise_does_the_least_is_found(seed):
    """Optimality conditions on matrices that are mostly noise, some not positive definite."""
    from shapedp.learn import elastic

    rng = np.random.default_rng(seed)
    d, free = int(rng.integers(2, 7)), seed % 2
    noise = rng.standard_normal((d, d))
    noisy = NoisyMoments(
        noise + noise.T, rng.standard_normal(d) * 10, design_scale=float(rng.uniform(0.1, 3)), cross_scale=1
    )
    strength, ratio = float(rng.uniform(0, 5)), float(rng.choice([0.0, 0.3, 1.0]))
    found = elastic.penalized(noisy, strength, ratio, free)
    values, vectors = np.linalg.eigh(noisy.design)
    matrix = (vectors * elastic.cleaned(values, noisy.edge)[0]) @ vectors.T
    slope = matrix @ found - noisy.cross
    inside = slice(0, d - free)
    slope[inside] += strength * (1 - ratio) * found[inside]
    bent = strength * ratio
    assert slope[d - free :] == pytest.approx(0.0, abs=1e-4)
    moving = found[inside] != 0
    assert slope[inside][moving] == pytest.approx(-bent * np.sign(found[inside][moving]), abs=1e-4)
    assert (np.abs(slope[inside][~moving]) <= bent + 1e-4).all()


def test_files_dask_and_pipelines(tmp_path):
    x, y = made(9000)
    frame = pd.DataFrame(x, columns=list("abcdef")).assign(y=y)
    frame.to_parquet(tmp_path / "part.parquet")
    local = ElasticNet(0.001, **CLAIM, random_state=1).fit(x, y)
    from_file = ElasticNet(0.001, **CLAIM, random_state=1).fit(tmp_path / "part.parquet", "y")
    np.testing.assert_array_equal(from_file.coef_, local.coef_)
    assert from_file.feature_names_in_.tolist() == list("abcdef")
    da = pytest.importorskip("dask.array")
    from shapedp.learn import partitions

    far = ElasticNet(0.001, **CLAIM, random_state=1)
    partitions.fit(far, da.from_array(x, chunks=(4096, 6)), da.from_array(y, chunks=4096))
    np.testing.assert_array_equal(far.coef_, local.coef_)
    pipeline = make_pipeline(PublicScaler(-1, 1), ElasticNet(0.001, **{**CLAIM, "feature_bound": 2.5})).fit(x, y)
    assert certificate_of(pipeline).verdict == "certified"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"alpha": -1.0}, "alpha"),
        ({"alpha": math.nan}, "alpha"),
        ({"l1_ratio": 1.1}, "l1_ratio"),
        ({"delta": 0.0}, "delta"),
    ],
)
def test_odd_parameters_are_refused(options, words):
    x, y = made(50)
    with pytest.raises(ValueError, match=words):
        ElasticNet(**{**CLAIM, **options}).fit(x, y)


def test_refit_refuses_what_is_no_penalty():
    x, y = made(200)
    model = ElasticNet(**CLAIM).fit(x, y)
    with pytest.raises(TypeError, match="alpha and l1_ratio"):
        model.refit(epsilon=9.0)
    with pytest.raises(ValueError, match="alpha"):
        model.refit(alpha=-1.0)
    with pytest.raises(TypeError, match="sample_weight"):
        ElasticNet(**CLAIM).fit(x, y, sample_weight=np.ones(200))


CANNOT_HOLD = {
    "check_supervised_y_no_nan": "a record with a NaN or an infinity counts as none: an error tells of one person",
}


@parametrize_with_checks(
    [ElasticNet(0.0, epsilon=5.0, delta=1e-5, feature_bound=100.0, target_bound=100.0, random_state=0)],
)
@pytest.mark.filterwarnings("ignore")
def test_conventions_of_scikit_learn(estimator, check):
    checked(estimator, check, CANNOT_HOLD)


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
def test_neighbours(adjacency):
    model = ElasticNet(0.1, **{**CLAIM, "target_bound": 2.0}, adjacency=adjacency, random_state=0)
    result = audit.replay(model, pairs(100, adjacency, 5), adjacency=adjacency)
    assert result.passed, result.explain()
    assert result.releases == 100


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
def test_a_thousand_neighbours(adjacency):
    model = ElasticNet(0.1, **{**CLAIM, "target_bound": 2.0}, adjacency=adjacency, random_state=0)
    result = audit.replay(model, pairs(1000, adjacency, 6), adjacency=adjacency)
    assert result.passed, result.explain()
    assert 0.9 < result.largest <= 1 + 1e-9
