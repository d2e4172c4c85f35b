"""Fits on Spark data frames: the bits of the local fit, also where a worker is killed; what is refused, and how."""

from __future__ import annotations

import decimal
import os
import signal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator
from tests.sparks import quiet, session

from shapedp.learn import PCA, ElasticNet, LinearRegression, LogisticRegression
from shapedp.learn.base import read_table
from shapedp.learn.moments import Bounds, Reading, moments
from shapedp.learn.partitions import Partitioned, fit
from shapedp.tables import InMemory
from shapedp.tables.sources import CHUNK

pytestmark = quiet

N, D = 5 * CHUNK + 100, 4
BOUNDS = Bounds(1.5, 1.0, 0.5)
CLAIM = {"epsilon": 1.0, "delta": 1e-6, "feature_bound": 2.0, "random_state": 3}
SCHEMA = "a double, b double, c double, d double, y double"


@pytest.fixture(scope="module")
def data():
    x = np.random.default_rng(0).normal(size=(N, D))
    return x, x[:, 0] / 2 - x[:, 1] / 4


@pytest.fixture(scope="module")
def local(data):
    return moments(InMemory(*data), BOUNDS)


def spread(columns, sizes, schema=SCHEMA, step=999, before=lambda number: None):
    """A Spark frame of these columns, in partitions of these sizes; `before` runs where a partition is made."""
    ends = np.cumsum([0, *sizes])

    def make(batches):
        for batch in batches:
            for number in batch.column("id").to_pylist():
                before(number)
                for start in range(ends[number], ends[number + 1], step):
                    rows = slice(start, min(start + step, ends[number + 1]))
                    yield pa.record_batch({name: pa.array(column[rows]) for name, column in columns.items()})

    return session().range(0, len(sizes), 1, len(sizes)).mapInArrow(make, schema)


def columns_of(data):
    return dict(zip("abcd", data[0].T, strict=True)) | {"y": data[1]}


def _moments(frame, y="y"):
    return moments(read_table(BaseEstimator(), Partitioned(frame), y), BOUNDS)


@pytest.mark.parametrize("rows", [CHUNK, 2 * CHUNK])
def test_partitions_that_are_multiples_of_4096_rows_give_the_local_bits(rows, data, local):
    sizes = [min(rows, N - start) for start in range(0, N, rows)]
    found = _moments(spread(columns_of(data), sizes))
    np.testing.assert_array_equal(found.gram, local.gram)
    assert found.records == N


def test_other_partitions_differ_within_the_certified_rounding(data, local):
    found = _moments(spread(columns_of(data), [1000, 0, 7000, N - 8000]))
    assert 0 < np.linalg.norm(found.gram - local.gram) <= found.error + local.error


def test_more_partitions_than_tasks_that_merge(data, local):
    found = _moments(spread(columns_of(data), [640] * 32 + [N - 640 * 32]))
    assert found.records == N
    assert np.linalg.norm(found.gram - local.gram) <= found.error + local.error


def test_the_same_models_come_out(data):
    frame = spread(columns_of(data), [2 * CHUNK, 3 * CHUNK + 100])
    pandas = pd.DataFrame(columns_of(data))
    for model in (LinearRegression(**CLAIM, target_bound=2.0), ElasticNet(0.01, **CLAIM, target_bound=2.0)):
        there = fit(model, frame, "y")
        assert there is model
        coefficients, names = there.coef_, there.feature_names_in_.tolist()
        np.testing.assert_array_equal(coefficients, model.fit(pandas, "y").coef_)
        assert names == list("abcd")
        assert there.privacy_.verdict == "certified"
    found, here = fit(PCA(2, **CLAIM), frame.drop("y")), PCA(2, **CLAIM).fit(data[0])
    np.testing.assert_array_equal(found.components_, here.components_)
    np.testing.assert_array_equal(found.covariance_, here.covariance_)
    np.testing.assert_array_equal(found.mean_, here.mean_)


def test_logistic_regression_on_labels_of_text(data):
    words = np.where(data[1] > 0, "yes", "no").astype(object)
    words[::7] = "maybe"  # unknown: counts as none
    frame = spread(columns_of(data) | {"y": words}, [2 * CHUNK, N - 2 * CHUNK], SCHEMA.replace("y double", "y string"))
    claim = {**CLAIM, "solver": "descent", "classes": ["no", "yes"]}
    expected = LogisticRegression(**claim).fit(data[0], words)
    np.testing.assert_array_equal(fit(LogisticRegression(**claim), frame, "y").coef_, expected.coef_)


def test_types_come_from_the_schema_and_odd_cells_count_as_none(data):
    given = columns_of(data)
    given["a"] = [None if i % 5 == 0 else decimal.Decimal(i % 7) / 4 for i in range(N)]
    given["b"] = [None if i % 11 == 0 else bool(i % 3) for i in range(N)]
    given["c"] = np.where(np.arange(N) % 13 == 0, np.nan, data[0][:, 2])
    given["d"] = np.where(np.arange(N) % 17 == 0, np.inf, data[0][:, 3])
    table = pa.table({name: pa.array(column) for name, column in given.items()})
    table = table.set_column(0, "a", table["a"].cast(pa.decimal128(6, 2)))
    columns = {name: table[name].combine_chunks() for name in given}
    frame = spread(columns, [CHUNK] * 5 + [100], "a decimal(6,2), b boolean, c double, d double, y double")
    read = moments(read_table(BaseEstimator(), table, "y"), BOUNDS)
    np.testing.assert_array_equal(_moments(frame).gram, read.gram)
    estimator = BaseEstimator()
    assert Reading(read_table(estimator, Partitioned(frame), "y"), BOUNDS).records == N
    assert estimator.n_features_in_ == D


def test_wrong_input_is_refused_before_anything_is_computed():
    def never(number):
        raise AssertionError("a partition was made")

    one = {name: np.zeros(1) for name in "abcdy"}
    frame = spread(one, [1], before=never)
    model = LinearRegression(**CLAIM, target_bound=2.0)
    texts = session().createDataFrame([(1.0, "w", [1.0], 1.0)], "a double, word string, list array<double>, y double")
    cases = [
        (frame, None, ValueError, "y is None"),
        (frame, np.zeros(1), TypeError, "no order"),
        (frame, frame["y"], TypeError, "no order"),
        (frame, "z", ValueError, "no column 'z'"),
        (frame.select("y"), "y", ValueError, "one feature"),
        (frame.select("a", "a", "y"), "y", ValueError, "several columns"),
        (texts, "y", ValueError, r"these do not: word \(string\), list \(array<double>\)"),
        (texts.select("a", "word"), "word", ValueError, "word"),
        (session().readStream.format("rate").load(), "value", TypeError, "stream"),
        (session(), "y", TypeError, "Spark data frame"),
    ]
    for given, target, kind, message in cases:
        with pytest.raises(kind, match=message):
            fit(model, given, target)
    with pytest.raises(ValueError, match="classes must be given"):
        fit(LogisticRegression(**CLAIM, solver="descent"), frame, "y")
    with pytest.raises(TypeError, match="records themselves"):
        fit(LogisticRegression(**CLAIM, solver="output", classes=[0, 1]), frame, "y")
    with pytest.raises(ValueError, match="at least one record"):
        fit(model, spread(one, [0, 0]), "y")


def test_a_partition_that_fails_quotes_no_cell():
    session().sparkContext.setLogLevel("OFF")
    texts = session().createDataFrame([("1.5", 1.0), ("a secret", 1.0)], "word string, y double")
    frame = texts.selectExpr("cast(word as double) as x", "y")  # raises where Spark follows ANSI
    session().conf.set("spark.sql.ansi.enabled", "true")
    with pytest.raises(ValueError, match="a partition could not be computed") as caught:
        fit(LinearRegression(**CLAIM, target_bound=2.0), frame, "y")
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_killed_worker_is_run_again_and_noise_drawn_once(data, tmp_path):
    marker = str(tmp_path / "killed")

    def deadly(number):
        if number == 2 and not os.path.exists(marker):
            with open(marker, "w") as file:
                file.write(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)

    session().sparkContext.setLogLevel("OFF")
    frame = spread(columns_of(data), [CHUNK] * 5 + [100], before=deadly)
    found, draws = _drawn(lambda model: fit(model, frame, "y"))
    expected, again = _drawn(lambda model: model.fit(*data))
    assert os.path.exists(marker)
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    assert draws == again != []


def _drawn(fitted):
    """A fitted model, and what its fit drew."""
    model, draws = LinearRegression(**CLAIM, target_bound=2.0, solver="mixing"), []
    model.random_state = _Counting(draws)
    return fitted(model), draws


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
