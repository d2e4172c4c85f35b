"""Lasso and Ridge as estimators: conventions, certificates, odd data."""

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.learn.conventions import checked

import shapedp as sdp
from shapedp.learn import Lasso, Ridge

CLAIM = {"epsilon": 1.0, "delta": 1e-5, "feature_bounds": 1.0, "target_bound": 2.0}
LOOSE = {"epsilon": 1e6, "delta": 1e-5, "feature_bounds": 5.0, "target_bound": 30.0}  # hardly any noise
EXPECTED_FAILED = {
    "check_supervised_y_no_nan": "a record that is not finite counts as zeros: an error would tell of one person",
}


def made(n=5000, d=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, d))
    return x, np.clip(x @ np.linspace(1, -1, d) + 0.3 + 0.1 * rng.standard_normal(n), -2, 2)


def fitted(x, y, kind=Lasso, **options):
    return kind(**{"alpha": 1e-3, **CLAIM, "random_state": 0, **options}).fit(x, y)


@parametrize_with_checks(
    [kind(alpha=1e-3, **LOOSE, random_state=0) for kind in (Lasso, Ridge)],
)
@pytest.mark.filterwarnings("ignore")
def test_conventions_of_scikit_learn(estimator, check):
    checked(estimator, check, EXPECTED_FAILED)


@pytest.mark.parametrize("kind", [Lasso, Ridge])
@pytest.mark.parametrize("noise", ["objective", "parameter", "equal"])
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
def test_fits_and_its_certificate_is_recomputed(kind, noise, adjacency):
    x, y = made()
    found = fitted(x, y, kind, noise=noise, adjacency=adjacency)
    assert found.score(x, y) > 0.9
    assert found.privacy_.verdict == "certified"
    assert found.privacy_.adjacency == adjacency
    assert found.privacy_.secure is False
    assert found.privacy_.bracket.lower > 0.999e-5  # nothing of the claim is left
    stored = sdp.Certificate.from_json(found.privacy_.to_json())
    assert sdp.verify(stored).verdict == "certified"
    assert found.coef_path_.shape == (found.n_iter_, 3)
    np.testing.assert_array_equal(found.coef_path_[-1], found.coef_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_secure_without_random_state():
    assert Lasso(**CLAIM).fit(*made(200)).privacy_.secure is True


def test_sparse_rows_give_the_same_weights():
    x, y = made(500)
    x[np.abs(x) < 0.5] = 0
    np.testing.assert_array_equal(fitted(x, y).coef_, fitted(sparse.csr_array(x), y).coef_)


def test_sample_weight_is_refused_with_the_reason():
    x, y = made(50)
    with pytest.raises(TypeError, match="sensitivity"):
        fitted(x, y, passes=1).fit(x, y, sample_weight=np.ones(50))


def test_in_pipelines_and_cross_validation():
    x, y = made()
    line = make_pipeline(FunctionTransformer(lambda rows: np.tanh(rows)), Ridge(**CLAIM, random_state=1))
    assert cross_val_score(line, x, y, cv=3).min() > 0.8
    assert clone(line).get_params()["ridge__epsilon"] == 1.0


def test_a_pass_too_few_is_said():
    x, y = made(20000)
    with pytest.warns(ConvergenceWarning, match="passes"):
        fitted(x, y, passes=1, step=0.01, mean_squares=[0.33] * 3)


def test_public_mean_squares_spend_nothing():
    x, y = made()
    known, estimated = fitted(x, y, mean_squares=[1 / 3] * 3), fitted(x, y)
    assert len(dict(known.privacy_.subject)["steps"]) == 4
    assert len(dict(estimated.privacy_.subject)["steps"]) == 5
    np.testing.assert_array_equal(known.mean_squares_, [1 / 3] * 3)
    np.testing.assert_allclose(estimated.mean_squares_, 1 / 3, rtol=0.1)


@pytest.mark.parametrize("kind", [Lasso, Ridge])
@pytest.mark.parametrize(
    "name", ["rank one", "constant", "one row", "wide", "zeros", "nan", "out of bounds", "huge", "infinite target"]
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_odd_data_fit_and_stay_finite(kind, name):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1, 1, (30, 3)), rng.uniform(-2, 2, 30)
    cases = {
        "rank one": (np.outer(x[:, 0], [1.0, 2.0, 3.0]), y),
        "constant": (np.ones((30, 3)), np.ones(30)),
        "one row": (x[:1], y[:1]),
        "wide": (rng.uniform(-1, 1, (3, 40)), y[:3]),
        "zeros": (np.zeros((30, 3)), np.zeros(30)),
        "nan": (np.where(x > 0.9, math.nan, x), y),
        "out of bounds": (1e3 * x, 1e3 * y),
        "huge": (1e300 * x, 1e300 * y),
        "infinite target": (x, np.where(y > 1, math.inf, y)),
    }
    found = fitted(*cases[name], kind)
    assert np.isfinite(found.coef_).all()
    assert math.isfinite(found.intercept_)
    assert found.privacy_.verdict == "certified"


def test_errors_come_before_anything_is_spent():
    x, y = made(20)
    for options, match in [
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"target_bound": math.inf}, "target_bound"),
        ({"feature_bounds": [1.0, 1.0]}, "one per feature"),
        ({"feature_bounds": 0.0}, "feature_bounds"),
        ({"mean_squares": [1.0]}, "one entry per feature"),
        ({"alpha": -1.0}, "alpha"),
        ({"adjacency": "add-remove"}, "adjacency"),
    ]:
        with pytest.raises(ValueError, match=match):
            fitted(x, y, **options)
