"""Where a user asks numpy to raise (`numpy.seterr(all="raise")`), one record decided whether a fit or a clip did.

What reads records sets numpy's error state aside: an error, a warning or a call of the user's would tell of a record.
"""

from __future__ import annotations

import numpy as np
import pytest

import shapedp as sdp
from shapedp import learn
from shapedp.mechanisms import Mixing
from shapedp.mechanisms.angles import AngleWindows, MeanAngles

CLAIM = {"epsilon": 2.0, "delta": 1e-3}
BOUND = {**CLAIM, "feature_bound": 1.0, "random_state": 0}
LABELS = {**BOUND, "classes": [0, 1], "noise": "gaussian"}
MODELS = {
    "linear": learn.LinearRegression(**BOUND, target_bound=1.0),
    "elastic": learn.ElasticNet(0.1, **BOUND, target_bound=1.0),
    "lasso": learn.Lasso(0.1, **CLAIM, feature_bounds=1.0, target_bound=1.0, passes=2, random_state=0),
    "poisson": learn.PoissonRegressor(**BOUND, target_bound=3.0),
    "gamma": learn.GammaRegressor(**BOUND, target_bound=3.0),
    "bayes": learn.GaussianNB(**CLAIM, low=-1, high=1, classes=[0, 1], random_state=0),
    "means": learn.KMeans(2, **CLAIM, low=-1, high=1, random_state=0),
    "components": learn.PCA(1, **BOUND),
    "quantiles": learn.PrivateScaler(**CLAIM, low=-1, high=1, by="quantiles", random_state=0),
    "svm": learn.HuberSVC(**LABELS),
    **{
        f"logistic {solver}": learn.LogisticRegression(**LABELS, solver=solver)
        for solver in ("output", "objective", "bolt-on", "cd", "descent")
    },
}
ODD = [0.0, 5e-324, 1e-200, -1e308, np.nan]

pytestmark = [
    pytest.mark.filterwarnings("ignore::shapedp.learn.RepeatedFitsWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def rows(odd, n=12):
    x = np.random.default_rng(0).normal(size=(n, 3)) / 4
    x[3] = [odd, 0.25, -odd]
    return x


@pytest.mark.filterwarnings("error")
@pytest.mark.filterwarnings("ignore::shapedp.learn.RepeatedFitsWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MODELS)
def test_no_fit_raises(name):
    """The weights are those of a fit in numpy's usual state."""
    for odd in ODD:
        y = np.arange(12) % 2 if "bayes" in name or "logistic" in name or name == "svm" else np.arange(12) / 4 + 0.1
        if y.dtype.kind == "f":
            y[3] = odd
        with np.errstate(all="raise"):
            found = MODELS[name].fit(rows(odd), y)
        kept = {key: one for key, one in vars(found).items() if isinstance(one, np.ndarray)}
        with np.errstate(all="ignore"):
            usual = vars(MODELS[name].fit(rows(odd), y))
        assert kept
        for key, one in kept.items():
            np.testing.assert_array_equal(one, usual[key])


@pytest.mark.parametrize(
    "ball", [sdp.L2(1.0, dim=3), sdp.L1(1.0, dim=3), sdp.Box([1.0, 2.0, 3.0]), sdp.Blocks([1.0, 2.0], [1, 2])]
)
def test_no_clip_raises(ball):
    for odd in ODD[:-1]:
        with np.errstate(all="raise"):
            found = ball.clip(rows(odd), adjacency="zero-out")[0]
        np.testing.assert_array_equal(found, ball.clip(rows(odd), adjacency="zero-out")[0])


def test_no_release_raises():
    claim = {"epsilon": 1.0, "delta": 1e-5}
    mechanisms = [
        sdp.calibrate("gaussian", sdp.L2(1.0, dim=3), **claim),
        sdp.calibrate("radial", sdp.L2(1.0, dim=3), **claim),
        sdp.calibrate("laplace", sdp.L1(1.0, dim=3), epsilon=1.0, delta=0.0),
    ]
    on_rows = [
        Mixing.calibrate(rows=20, row_bound=1.0, **claim),
        MeanAngles.calibrate(dim=3, clip=1.0, batch=8, **claim),
        AngleWindows.calibrate(dim=3, clip=1.0, batch=8, **claim),
    ]
    for one in (*mechanisms, *on_rows):
        assert one.certificate.verdict == "certified"
    on_rows[0].release(rows(0.0))  # its certificate with sizes
    with np.errstate(all="raise"):
        for odd in ODD[:3]:
            for one in mechanisms:
                assert np.isfinite(one.release([odd, 1.0, -odd]).value).all()
            for one in on_rows:
                assert np.isfinite(one.release(rows(odd)).value).all()
