"""Names of columns, `set_output` and metadata routing: every estimator of `sdp.learn` has them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.metadata_routing import get_routing_for_object

from shapedp import learn

CLAIM = {"epsilon": 5.0, "delta": 1e-6, "random_state": 0}
BOX = {**CLAIM, "low": -1, "high": 1}
MODELS = {
    "LinearRegression": learn.LinearRegression(**CLAIM, feature_bound=2.0, target_bound=1.0),
    "ElasticNet": learn.ElasticNet(**CLAIM, feature_bound=2.0, target_bound=1.0),
    "Lasso": learn.Lasso(**CLAIM, alpha=0.1, feature_bounds=1.0, target_bound=1.0),
    "Ridge": learn.Ridge(**CLAIM, alpha=0.1, feature_bounds=1.0, target_bound=1.0),
    "PoissonRegressor": learn.PoissonRegressor(**CLAIM, feature_bound=2.0, target_bound=2.0),
    "GammaRegressor": learn.GammaRegressor(**CLAIM, feature_bound=2.0, target_bound=2.0),
    "LogisticRegression": learn.LogisticRegression(**CLAIM, feature_bound=2.0, classes=[0, 1]),
    "HuberSVC": learn.HuberSVC(**CLAIM, feature_bound=2.0, classes=[0, 1]),
    "GaussianNB": learn.GaussianNB(**BOX, classes=[0, 1]),
    "KMeans": learn.KMeans(2, **BOX),
    "PCA": learn.PCA(2, **CLAIM, feature_bound=2.0),
    "PublicScaler": learn.PublicScaler(-1, 1),
    "PublicOneHot": learn.PublicOneHot({"a": [0.0], "b": [0.0], "c": [0.0]}),
    "PrivateScaler": learn.PrivateScaler(**BOX),
    "PrivateImputer": learn.PrivateImputer(**BOX),
    "PrivateSearch": learn.PrivateSearch(
        learn.LogisticRegression(**CLAIM, feature_bound=2.0, classes=[0, 1]),
        {"regularization": [0.01, 0.1]},
        epsilon=5.0,
        delta=1e-6,
        repeats=2.0,
        random_state=0,
    ),
    "PrivatePipeline": learn.make_pipeline(learn.PublicScaler(-1, 1), learn.PCA(2, **CLAIM, feature_bound=2.0)),
}
TRANSFORMERS = [name for name, model in MODELS.items() if hasattr(model, "transform") or hasattr(model, "set_output")]

pytestmark = pytest.mark.filterwarnings("ignore::shapedp.learn.RepeatedFitsWarning")


@pytest.fixture(scope="module")
def frame():
    return pd.DataFrame(np.random.default_rng(0).uniform(-1, 1, (600, 3)), columns=["a", "b", "c"])


def fitted(name, frame, output="default"):
    model = clone(MODELS[name])
    model = model if output == "default" else model.set_output(transform=output)
    return model.fit(frame, (frame["a"].to_numpy() > 0).astype(int))


def test_every_estimator_is_here():
    exported = {name for name in learn.__all__ if isinstance(getattr(learn, name), type)}
    estimators = {name for name in exported if issubclass(getattr(learn, name), BaseEstimator)}
    assert estimators == set(MODELS)
    assert set(TRANSFORMERS) >= {name for name in estimators if issubclass(getattr(learn, name), TransformerMixin)}


@pytest.mark.parametrize("name", MODELS)
def test_names_of_columns_are_kept_and_other_names_refused(name, frame):
    model = fitted(name, frame)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert model.n_features_in_ == 3
    used = model.transform if hasattr(model, "transform") else model.predict
    used(frame)
    with pytest.raises(ValueError, match="feature names"):
        used(frame.rename(columns={"b": "z"}))
    nameless = clone(MODELS[name])
    if name != "PublicOneHot":  # its categories are by name
        nameless.fit(frame.to_numpy(), (frame["a"].to_numpy() > 0).astype(int))
        assert not hasattr(nameless, "feature_names_in_")


@pytest.mark.parametrize("name", TRANSFORMERS)
@pytest.mark.parametrize(("output", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_frames_come_out_where_asked_for(name, output, kind, frame):
    model = fitted(name, frame, output)
    found, plain = model.transform(frame), np.asarray(fitted(name, frame).transform(frame))
    assert isinstance(found, kind)
    assert list(found.columns) == list(model.get_feature_names_out())
    np.testing.assert_array_equal(found.to_numpy(), plain)


@pytest.mark.parametrize("name", MODELS)
def test_routing_of_metadata(name):
    model = MODELS[name]
    assert get_routing_for_object(model) is not None
    with sklearn.config_context(enable_metadata_routing=True):
        if name == "LinearRegression":
            asked = clone(model).set_fit_request(sample_weight=True).get_metadata_routing()
            assert asked.fit.requests["sample_weight"] is True
        elif hasattr(model, "set_fit_request"):  # no other takes weights: a router is told so
            with pytest.raises(TypeError, match="sample_weight"):
                clone(model).set_fit_request(sample_weight=True)
