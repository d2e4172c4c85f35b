"""Fits on Dask collections: the bits of the local fit, in threads and on workers, also where one is killed."""

from __future__ import annotations

import os
import signal
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator

from shapedp.learn import PCA, LinearRegression, LogisticRegression
from shapedp.learn.base import read_table
from shapedp.learn.moments import Bounds, Reading, moments
from shapedp.learn.partitions import Partitioned, fit
from shapedp.tables import InMemory
from shapedp.tables.sources import CHUNK

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

N, D = 5 * CHUNK + 100, 4
BOUNDS = Bounds(1.5, 1.0, 0.5)
CLAIM = {"epsilon": 1.0, "delta": 1e-6, "feature_bound": 2.0, "random_state": 3}


@pytest.fixture(scope="module")
def data():
    x = np.random.default_rng(0).normal(size=(N, D))
    return x, x[:, 0] / 2 - x[:, 1] / 4


@pytest.fixture(scope="module")
def frame(data):
    return pd.DataFrame(data[0], columns=list("abcd")).assign(y=data[1])


@pytest.fixture(scope="module")
def local(data):
    return moments(InMemory(*data), BOUNDS)


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            dask.config.set({"distributed.scheduler.work-stealing": False}),
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
            ) as made,
            distributed.Client(made) as client,
        ):
            yield client


def _moments(x, y):
    return moments(read_table(BaseEstimator(), Partitioned(x), y), BOUNDS)


@pytest.mark.parametrize("rows", [CHUNK, 2 * CHUNK, N])
def test_chunks_that_are_multiples_of_4096_rows_give_the_local_bits(rows, data, local):
    found = _moments(da.from_array(data[0], chunks=(rows, D)), da.from_array(data[1], chunks=rows))
    np.testing.assert_array_equal(found.gram, local.gram)
    assert found.records == N


@pytest.mark.parametrize("rows", [1000, CHUNK + 1])
def test_other_chunks_differ_within_the_certified_rounding(rows, data, local):
    x, y = da.from_array(data[0], chunks=(rows, 3)), da.from_array(data[1], chunks=777)
    found = _moments(x, y)
    assert 0 < np.linalg.norm(found.gram - local.gram) <= found.error + local.error


def test_kinds_of_collections(data, frame, local):
    x, y = data
    rows = (2 * CHUNK, CHUNK, 2 * CHUNK + 100)
    array = da.from_array(x, chunks=(rows, D))
    parts = dd.from_pandas(frame, sort=False, npartitions=3)
    exact = [
        (array, y),
        (array.map_blocks(sparse.csr_matrix), da.from_array(y, chunks=(rows,))),
        (array.map_blocks(lambda block: block, chunks=((np.nan,) * 3, (D,))), da.from_array(y, chunks=(rows,))),
    ]
    for given, target in exact:
        np.testing.assert_array_equal(_moments(given, target).gram, local.gram)
    for given, target in ((parts, "y"), (parts[list("abcd")], parts["y"])):
        estimator = BaseEstimator()
        reading = Reading(read_table(estimator, Partitioned(given), target), BOUNDS)
        assert reading.records == N
        assert np.linalg.norm(reading.moments.gram - local.gram) <= 2 * local.error
        assert estimator.feature_names_in_.tolist() == list("abcd")


def test_the_same_models_come_out(data, frame):
    x, y = da.from_array(data[0], chunks=(CHUNK, D)), da.from_array(data[1], chunks=CHUNK)
    model = LinearRegression(**CLAIM, target_bound=2.0)
    here = LinearRegression(**CLAIM, target_bound=2.0).fit(*data)
    there = fit(model, x, y)
    assert there is model
    np.testing.assert_array_equal(there.coef_, here.coef_)
    assert there.privacy_.verdict == "certified"
    labels = (data[1] > 0).astype(int)
    mixing = LogisticRegression(**CLAIM, solver="mixing", classes=[0, 1])
    expected = LogisticRegression(**CLAIM, solver="mixing", classes=[0, 1]).fit(data[0], labels)
    np.testing.assert_array_equal(fit(mixing, x, (y > 0).astype(int)).coef_, expected.coef_)
    descent = LogisticRegression(**CLAIM, solver="descent", classes=[0, 1])
    expected = LogisticRegression(**CLAIM, solver="descent", classes=[0, 1]).fit(data[0], labels)
    np.testing.assert_array_equal(fit(descent, x, (y > 0).astype(int)).coef_, expected.coef_)
    components = PCA(2, **CLAIM).fit(data[0]).components_
    np.testing.assert_array_equal(fit(PCA(2, **CLAIM), x).components_, components)


def test_wrong_input_is_refused_before_anything_is_computed(data, frame):
    x, y = da.from_array(data[0], chunks=(CHUNK, D)), da.from_array(data[1], chunks=CHUNK)
    parts = dd.from_pandas(frame, npartitions=3)
    model = LinearRegression(**CLAIM, target_bound=2.0)
    cases = [
        (data[0], y, TypeError, "two-dimensional Dask"),
        (y, y, TypeError, "two-dimensional Dask"),
        (x, None, ValueError, "y is None"),
        (x, y[:-1], ValueError, "as many rows"),
        (x, x, TypeError, "several targets in one fit need dense records in memory"),
        (x, "y", TypeError, "no named columns"),
        (x[:0], y[:0], ValueError, "at least one record"),
        (x.astype(complex), y, TypeError, "numbers"),
        (parts, "z", ValueError, "no column 'z'"),
        (parts.assign(word="w"), "y", ValueError, "these do not: word"),
        (parts[list("abcd")], data[1], ValueError, "not known"),
        (parts[list("abcd")], dd.from_pandas(frame, npartitions=2)["y"], ValueError, "repartition"),
        (parts[["y"]], "y", ValueError, "one feature"),
    ]
    for given, target, kind, message in cases:
        with pytest.raises(kind, match=message):
            fit(model, given, target)
    with pytest.raises(ValueError, match="classes must be given"):
        fit(LogisticRegression(**CLAIM, solver="mixing"), x, y)
    with pytest.raises(TypeError, match="records themselves"):
        fit(LogisticRegression(**CLAIM, solver="output", classes=[0, 1]), x, y)


def test_partitions_too_small_for_their_rounding_are_refused(data):
    with pytest.raises(ValueError, match="pieces"):
        _moments(da.from_array(data[0][:200], chunks=(2, D)), da.from_array(data[1][:200], chunks=2))


def test_progress(data, capsys):
    fit(LinearRegression(**CLAIM, target_bound=2.0, progress=True), da.from_array(data[0], chunks=(CHUNK, D)), data[1])
    assert "Completed" in capsys.readouterr().out


def test_two_worker_processes_give_the_local_bits(cluster, data, local):
    assert len(set(cluster.run(os.getpid).values()) - {os.getpid()}) == 2
    found = _moments(da.from_array(data[0], chunks=(CHUNK, D)), da.from_array(data[1], chunks=CHUNK))
    np.testing.assert_array_equal(found.gram, local.gram)


def test_only_small_matrices_leave_the_workers(cluster, frame, local):
    """Nothing that a worker sent to another is as large as one column of a partition."""
    parts = dd.from_pandas(frame, npartitions=6).persist()
    cluster.run(_forget_transfers)
    assert np.linalg.norm(_moments(parts, "y").gram - local.gram) <= 2 * local.error
    sent = max(cluster.run(_largest_transfer).values())
    assert 0 < sent < N / 6 * 8 / 4


def _forget_transfers(dask_worker):
    dask_worker.transfer_outgoing_log.clear()


def _largest_transfer(dask_worker):
    return max((entry["total"] for entry in dask_worker.transfer_outgoing_log), default=0)


def test_a_killed_worker_is_recomputed_and_noise_drawn_once(cluster, data, tmp_path):
    marker = str(tmp_path / "killed")

    def deadly(block):
        if not os.path.exists(marker):
            with open(marker, "w") as file:
                file.write(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    before = set(cluster.run(os.getpid).values())
    x = da.from_array(data[0], chunks=(CHUNK, D)).map_blocks(deadly, meta=np.empty((0, 0)))
    draws = []
    model = LinearRegression(**CLAIM, target_bound=2.0, solver="mixing")
    model.random_state = _Counting(draws)
    found = fit(model, x, da.from_array(data[1], chunks=CHUNK))
    with open(marker) as file:
        assert int(file.read()) in before
    expected = LinearRegression(**CLAIM, target_bound=2.0, solver="mixing")
    expected.random_state = _Counting(again := [])
    np.testing.assert_array_equal(found.coef_, expected.fit(*data).coef_)
    assert draws == again != []


class _Counting(np.random.Generator):
    """A seeded generator that notes what is drawn from it."""

    def __init__(self, log):
        super().__init__(np.random.PCG64(11))
        self._log = log

    def bytes(self, length):
        self._log.append(length)
        return super().bytes(length)

    def integers(self, *args, **options):
        self._log.append((args, str(options)))
        return super().integers(*args, **options)
