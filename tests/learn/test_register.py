"""The register of fits: what it counts as the same data, what it forgets, and that it keeps nothing of them."""

import gc
import os
import sys
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline
from tests.regressions.test_15_11_bytes_of_fits import ROWS, TARGET, found_in, held, library, reached

import shapedp as sdp
from shapedp.learn import (
    LinearRegression,
    PrivateScaler,
    PublicScaler,
    RepeatedFitsWarning,
    fits,
    make_pipeline,
    register,
)

CLAIM = {"epsilon": 1.0, "delta": 1e-6}
MODEL = LinearRegression(**CLAIM, feature_bound=1.0, target_bound=1.0, random_state=0)
SCALER = PrivateScaler(**CLAIM, low=0, high=1, random_state=0)


@pytest.fixture(autouse=True)
def _fresh():
    register._REGISTER.clear()
    yield
    register._REGISTER.clear()


def data(n=60):
    x = np.random.default_rng(n).uniform(0, 1, (n, 3))
    return x, x[:, 0].copy()


def counts():
    return [one.count for one in fits()]


def fitted(x, y):
    return clone(MODEL).fit(x, y)


def test_views_and_slices_of_one_array_are_the_same_data():
    x, y = data()
    for part in (x, x[:30], x[::2], x.T.T, x[:, :2], x.reshape(3, -1).reshape(-1, 3)):
        fitted(part, y[: len(part)])
    assert counts() == [6]
    fitted(x.copy(), y)  # a copy is gone at once, and was other data
    assert counts() == [6]
    assert fits()[0].data == "ndarray (60, 3)"
    assert set(fits()[0].estimators) == {"LinearRegression"}


def test_frames_and_their_columns():
    x, y = data()
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2]})
    fitted(frame, y)
    fitted(frame.iloc[:30], y[:30])
    fitted(frame.loc[:, "a"].to_frame(), y)
    assert counts() == [3]
    matrix = sparse.csr_array(x)
    fitted(matrix, y)
    fitted(matrix, y)
    assert sorted(counts()) == [2, 3]


@pytest.mark.parametrize("run", [cross_val_score, cross_val_predict])
def test_cross_validation_counts_on_what_it_was_given(run):
    """Folds are copies; the data that scikit-learn was given are what they come from."""
    x, y = data(90)
    with pytest.warns(RepeatedFitsWarning, match="2 fits together cost"):
        run(MODEL, x, y, cv=3)
    (found,) = fits()
    assert (found.data, found.count) == ("ndarray (90, 3)", 3)
    assert found.certificate.delta == pytest.approx(3e-6)
    assert 1.5 < found.certificate.epsilon < 3.0
    assert found.certificate.verdict == "certified"


def test_a_grid_search_counts_every_fit_and_the_last():
    x, y = data(90)
    GridSearchCV(MODEL, {"fit_intercept": [True, False]}, cv=2).fit(x, y)
    assert counts() == [5]


def test_a_warning_once_for_each_data_object():
    x, y = data()
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        for _ in range(4):
            fitted(x, y)
        assert [one.category for one in raised] == [RepeatedFitsWarning]
        assert raised[0].filename == __file__
        other, target = data(50)
        fitted(other, target)
        fitted(other, target)
    assert len(raised) == 2
    assert str(raised[1].message).startswith(
        "these data were fitted before: 2 fits together cost (epsilon 2, delta 2e-06)"
    )


def test_one_fit_of_a_pipeline_is_one_fit():
    x, y = data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_pipeline(clone(SCALER), clone(MODEL)).fit(x, y)
    (found,) = fits()
    assert found.estimators == ("PrivatePipeline",)
    assert found.certificate.epsilon == pytest.approx(1.357, rel=0.05)


def test_a_pipeline_of_scikit_learn_is_counted_step_by_step():
    x, y = data()
    Pipeline([("a", PublicScaler(0, 1)), ("b", clone(SCALER)), ("c", clone(MODEL))]).fit(x, y)
    (found,) = fits()
    assert found.estimators == ("PrivateScaler", "LinearRegression")


def test_a_pipeline_that_stops_is_counted_as_far_as_it_went():
    x, y = data()
    broken = make_pipeline(clone(SCALER), clone(MODEL).set_params(solver="none"))
    with pytest.raises(ValueError, match="solver must be one of"):
        broken.fit(x, y)
    assert fits()[0].estimators == ("PrivateScaler",)


def test_relations_are_not_mixed():
    x, y = data()
    fitted(x, y)
    clone(MODEL).set_params(adjacency="replace").fit(x, y)
    assert counts() == [1, 1]
    assert {one.certificate.adjacency for one in fits()} == {"zero-out", "replace"}


def test_data_that_are_gone_are_forgotten():
    for n in range(30, 60):  # addresses are used again
        x, y = data(n)
        fitted(x, y)
        del x
    gc.collect()
    assert counts() == []
    assert not register._REGISTER.alive


def test_many_fits_take_little_room(monkeypatch):
    monkeypatch.setattr(register, "KEPT", 3)
    x, y = data()
    for _ in range(8):
        fitted(x, y)
    (found,) = fits()
    assert found.count == 8
    assert len({id(one) for one in found.certificates}) == 4
    assert found.certificates[-1].subject is None
    whole = found.certificate
    assert whole.verdict == "certified"
    exact = sdp.compose([(sdp.GaussianLoss.calibrate(1.0, 1e-6), 8)]).epsilon(whole.delta)
    assert whole.epsilon >= exact.lower  # what was cut down to its claim costs no less


def test_threads():
    x, y = data()

    def many():
        for _ in range(10):
            fitted(x[:40], y[:40])

    threads = [threading.Thread(target=many) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert counts() == [40]


@pytest.mark.skipif(not hasattr(os, "fork") or sys.version_info >= (3, 14), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_counts_on():
    x, y = data()
    fitted(x, y)
    with register._REGISTER.lock:  # held at the fork
        child = os.fork()
        if not child:
            fitted(x, y)
            os._exit(0 if counts() == [2] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert counts() == [1]


def test_the_register_holds_nothing_of_the_data():
    x, y = ROWS.copy(), TARGET.copy()
    for _ in range(3):
        make_pipeline(clone(SCALER), clone(MODEL)).fit(x, y)
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    fitted(frame, y)
    assert sorted(counts()) in ([1, 3], [4])
    assert not found_in(repr(fits()).encode())
    assert not any(found_in(held(one)) for one in reached(*library()))  # while the data are still there
