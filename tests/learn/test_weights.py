"""Sample weights of linear regression, and what is refused with a remedy: partial_fit."""

import math

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.linear_model import LinearRegression as Plain
from sklearn.model_selection import cross_validate
from sklearn.preprocessing import FunctionTransformer

from shapedp import audit, learn
from shapedp.learn import LinearRegression, PublicScaler
from shapedp.learn.moments import Bounds, moments
from shapedp.learn.weights import weighted

CLAIM = {"epsilon": 1.0, "delta": 1e-5, "feature_bound": 1.0, "target_bound": 1.0}


def made(n=4000, seed=0):
    """Two lines: records of weight 1 follow one, those of weight 0 another."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 2)) / math.sqrt(2)
    kept = rng.random(n) < 0.5
    return x, np.where(kept, x @ [0.8, -0.4] + 0.1, x @ [-0.8, 0.4] - 0.3), kept.astype(float)


def fitted(x, y, w, **options):
    return LinearRegression(**{**CLAIM, "epsilon": 50.0, "random_state": 0, "weight_bound": 1.0, **options}).fit(
        x, y, w
    )


@pytest.mark.parametrize("solver", ["auto", "suffstats", "adassp-joint", "boosted"])
@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e6])
def test_a_weighted_fit_is_that_of_scikit_learn(solver, unit):
    x, y, w = made()
    plain = Plain().fit(x, y, w)
    found = fitted(x, y, unit * w, weight_bound=unit, solver=solver)
    assert found.coef_ == pytest.approx(plain.coef_, abs=0.03)
    assert found.intercept_ == pytest.approx(plain.intercept_, abs=0.02)
    assert found.privacy_.verdict == "certified"
    assert abs(fitted(x, y, None).coef_[0] - plain.coef_[0]) > 0.3


def test_rows_stay_within_their_bounds_whatever_records_and_weights_are():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((3000, 3)) * 10.0 ** rng.choice([-300, -3, 0, 3, 300], (3000, 1))
    y = rng.standard_normal(3000) * 10.0 ** rng.choice([-300, 0, 300], 3000)
    w = rng.choice([0.0, 1e-300, 0.5, 2.0, 7.0, 1e300], 3000)
    bounds = Bounds.of(1.5, 0.7, intercept=True)
    table = weighted(x, y, w, 2.0, bounds)
    lengths = np.linalg.norm(table.x, axis=1)
    assert lengths.max() <= bounds.design * (1 + 1e-12)
    assert lengths.max() > bounds.design * (1 - 1e-12)
    assert np.abs(table.y).max() == bounds.target
    full = w >= 2
    assert table.x[full, -1] == pytest.approx(bounds.constant)


def test_a_weight_that_is_no_weight_counts_as_no_record():
    x, y, w = made(50)
    bounds = Bounds.of(1.0, 1.0, intercept=True)
    for bad in (math.nan, -1.0, math.inf, -math.inf):
        spoilt = w.copy()
        spoilt[3] = bad
        without = w.copy()
        without[3] = 0.0
        one, other = (moments(weighted(x, y, v, 1.0, bounds), Bounds(bounds.design, 1.0)) for v in (spoilt, without))
        assert (one.gram == other.gram).all()


class Weighted(LinearRegression):
    """Reads the weight from the last column, so that `replay` can exchange it."""

    def fit(self, X, y):
        return super().fit(X[:, :-1], y, sample_weight=X[:, -1])


class Unbounded(LinearRegression):
    """Takes the bound on weights from the data."""

    def fit(self, X, y):
        self.weight_bound = float(np.nanmax(np.abs(X[:, -1])))
        return super().fit(X[:, :-1], y, sample_weight=X[:, -1])


def pairs(count, adjacency):
    rng = np.random.default_rng(2)
    for _ in range(count):
        n = int(rng.integers(1, 30))
        x, y = rng.uniform(-1, 1, (n, 3)), rng.uniform(-2, 2, n)
        x[:, -1] = rng.choice([0.0, 0.3, 1.0, 5.0], n)
        x[0, :-1] *= rng.choice([1.0, 100.0])
        other, target = x.copy(), y.copy()
        exchanged = adjacency == "replace"
        other[0], target[0] = (rng.uniform(-3, 3, 3), -y[0]) if exchanged else (math.nan, math.nan)
        yield (x, y), (other, target)


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("solver", ["refined", "suffstats", "mixing"])
def test_replay(solver, adjacency):
    options = {"solver": solver, "adjacency": adjacency, "weight_bound": 1.0, "sketch_rows": 12, "random_state": 0}
    found = audit.replay(
        Weighted(**{**CLAIM, "delta": 1e-3}, **options, unsafe=True), pairs(60, adjacency), adjacency=adjacency
    )
    assert found.passed, found.explain()
    assert found.largest > 0.5


def test_a_bound_from_the_data_is_caught():
    found = audit.replay(Unbounded(**CLAIM, random_state=0), pairs(20, "zero-out"), adjacency="zero-out")
    assert not found.passed


@pytest.mark.parametrize(
    ("options", "weights", "error", "words"),
    [
        ({"weight_bound": None}, np.ones(50), ValueError, "needs weight_bound"),
        ({"weight_bound": 0.0}, np.ones(50), ValueError, "weight_bound"),
        ({"weight_bound": math.nan}, np.ones(50), ValueError, "weight_bound"),
        ({}, np.ones(49), ValueError, "as many rows"),
        ({}, np.ones((50, 2)), ValueError, "one number per record"),
    ],
)
def test_refusals(options, weights, error, words):
    x, y, _ = made(50)
    with pytest.raises(error, match=words):
        fitted(x, y, weights, **options)


def test_sparse_rows_and_files_take_no_weights():
    x, y, w = made(50)
    for given in (sparse.csr_matrix(x), "records.csv"):
        with pytest.raises(TypeError, match="needs records in memory"):
            fitted(given, y, w)


def test_no_interval_with_weights():
    x, y, w = made()
    with pytest.raises(ValueError, match="no confidence interval with sample_weight"):
        fitted(x, y, w).confidence_interval()


MODELS = [name for name in learn.__all__ if hasattr(getattr(learn, name), "fit") and "Pipeline" not in name]


@pytest.mark.parametrize("name", MODELS)
def test_partial_fit_is_refused_with_the_remedy(name):
    kind = getattr(learn, name)
    made_one = object.__new__(kind)
    assert not hasattr(made_one, "partial_fit")
    if issubclass(kind, learn.base.PrivateEstimator):
        with pytest.raises(AttributeError, match=f"{name} has no partial_fit: each call would spend"):
            made_one.partial_fit  # noqa: B018


def test_weights_are_routed_as_metadata():
    x, y, w = made(600)
    with sklearn.config_context(enable_metadata_routing=True):
        model = LinearRegression(**CLAIM, weight_bound=1.0, random_state=0).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=False)
        with pytest.warns(learn.RepeatedFitsWarning):
            kept = cross_validate(model, x, y, cv=2, params={"sample_weight": w}, return_estimator=True)["estimator"]
    plain = LinearRegression(**CLAIM, weight_bound=1.0, random_state=0).fit(x[300:], y[300:], w[300:])
    assert kept[0].coef_ == pytest.approx(plain.coef_)


def test_names_of_columns_and_pandas_output():
    x, y, w = made(200)
    frame = pd.DataFrame(x, columns=["a", "b"])
    model = fitted(frame, pd.Series(y), pd.Series(w))
    assert model.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"b": "c"}))
    scaled = PublicScaler(-1, 1).set_output(transform="pandas").fit(frame).transform(frame)
    assert list(scaled.columns) == ["a", "b"]
    pipe = sklearn.pipeline.make_pipeline(FunctionTransformer(), PublicScaler(-1, 1)).set_output(transform="pandas")
    assert list(pipe.fit_transform(frame).columns) == ["a", "b"]
