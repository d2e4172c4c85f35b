"""Issue 16, item 8: masked arrays lost their mask, and a hidden 1e6 was released. A masked entry is missing."""

from __future__ import annotations

import numpy as np
import pytest

import shapedp as sdp
from shapedp.learn import PCA, Lasso, LinearRegression, LogisticRegression
from shapedp.mechanisms.watch import watching

CLAIM = {"epsilon": 1.0, "delta": 1e-6, "random_state": 0}
X = np.random.default_rng(0).normal(size=(60, 2)) / 4
Y = (X[:, 0] > 0).astype(float)
MODELS = {
    "linear": LinearRegression(**CLAIM, feature_bound=1.0, target_bound=1.0),
    "lasso": Lasso(**CLAIM, feature_bounds=1.0, target_bound=1.0, passes=1),
    "pca": PCA(**CLAIM, feature_bound=1.0),
    **{
        solver: LogisticRegression(**CLAIM, feature_bound=1.0, classes=[0, 1], solver=solver, noise="gaussian")
        for solver in LogisticRegression.solvers
    },
}


def query(estimator, x, y):
    """The first query of a fit."""
    seen = []

    def note(mechanism, asked, draw):
        seen.append(np.array(asked, dtype=float))
        return draw()

    with watching(note):
        estimator.fit(x, y)
    return seen[0]


def hidden(values, at, value=1e6):
    found = np.ma.array(values.copy(), mask=np.zeros(values.shape, bool))
    found[at] = value
    found.mask[at] = True
    return found


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_masked_entry_is_missing(name):
    missing = X.copy()
    missing[3, 1] = np.nan
    np.testing.assert_array_equal(query(MODELS[name], hidden(X, (3, 1)), Y), query(MODELS[name], missing, Y))
    if name != "pca":
        without = Y.copy()
        without[3] = np.nan
        for label in (1e6, 1.0):
            given = hidden(Y, 3, label)
            np.testing.assert_array_equal(query(MODELS[name], X, given), query(MODELS[name], X, without))


def test_a_masked_entry_is_not_released():
    answer = np.ma.array([1.0, 1e6], mask=[False, True])
    mechanism = sdp.calibrate("gaussian", sdp.L2(1.0, 2), epsilon=1.0, delta=1e-6)
    with pytest.raises(ValueError, match="masked"):
        mechanism.release(answer)
    with pytest.raises(ValueError, match="masked"):
        mechanism.release([answer[:1], answer[1:]])
    mechanism.release(np.ma.array([1.0, 2.0], mask=[False, False]))
    with pytest.raises(ValueError, match="rows must be finite") as caught:
        sdp.L2(1.0, 2).clip(answer[None, :], adjacency="replace")
    assert "1e" not in str(caught.value)


def test_masked_chunks_on_workers():
    da = pytest.importorskip("dask.array")
    from shapedp import scale

    missing = X.copy()
    missing[3, 1] = np.nan
    found = []
    for rows in (
        da.ma.masked_greater(da.from_array(np.where(np.isnan(missing), 1e6, X), chunks=(60, 2)), 1e5),
        missing,
    ):
        model = LinearRegression(**CLAIM, feature_bound=1.0, target_bound=1.0)
        found.append(
            scale.fit(model, rows if hasattr(rows, "chunks") else da.from_array(rows, chunks=(60, 2)), Y).coef_
        )
    np.testing.assert_array_equal(*found)
