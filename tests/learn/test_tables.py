"""Whatever holds the records, estimators read the same blocks."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import dataset, feather, parquet
from scipy import sparse
from sklearn.base import BaseEstimator

from shapedp.learn import PCA, LinearRegression, LogisticRegression
from shapedp.learn.base import read_table
from shapedp.learn.moments import Bounds, Reading, moments
from shapedp.tables import Columns
from shapedp.tables.blocks import labels_of
from shapedp.tables.sources import CHUNK

N, NAMES = 10_000, ("a", "b", "c", "d")
BOUNDS = Bounds(1.5, 2.0, 0.5)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, len(NAMES)))
    return x, x @ [1.0, 0.0, -0.5, 0.25]


@pytest.fixture(scope="module")
def frame(data):
    return pd.DataFrame(data[0], columns=NAMES).assign(y=data[1])


@pytest.fixture(scope="module")
def table(frame):
    return pa.Table.from_pandas(frame)


@pytest.fixture(scope="module")
def expected(data):
    return moments(read_table(BaseEstimator(), *data), BOUNDS).gram


class Stream:
    """Exports an Arrow stream and nothing else, as polars and duckdb do."""

    def __init__(self, table):
        self.table, self.shape = table, table.shape

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


def _paths(kind, frame, table, folder):
    path = folder / f"one.{kind}"
    if kind == "parquet":
        parquet.write_table(table, path, row_group_size=1234)
    elif kind == "csv":
        frame.to_csv(path, index=False)
    else:
        feather.write_feather(table, str(path))
    return path


ARRAYS = {
    "fortran": np.asfortranarray,
    "list": lambda x: x.tolist(),
    "csr": sparse.csr_array,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_array,
    "lil": sparse.lil_matrix,
    "dok": lambda x: sparse.dok_array(x),
    "bsr": sparse.bsr_matrix,
    "dia": lambda x: sparse.dia_matrix(x),
}


@pytest.mark.parametrize("kind", ["fortran", "list", "csr", "csc", "coo", "bsr"])
def test_arrays_and_sparse_formats_give_the_same_bits(kind, data, expected):
    x, y = data
    estimator = BaseEstimator()
    found = moments(read_table(estimator, ARRAYS[kind](x), y), BOUNDS)
    np.testing.assert_array_equal(found.gram, expected)
    assert estimator.n_features_in_ == 4
    assert not hasattr(estimator, "feature_names_in_")


@pytest.mark.parametrize("kind", ["lil", "dok", "dia"])
def test_slow_sparse_formats_too(kind, data):
    x, y = data[0][:50], data[1][:50]
    plain = moments(read_table(BaseEstimator(), x, y), BOUNDS).gram
    np.testing.assert_array_equal(moments(read_table(BaseEstimator(), ARRAYS[kind](x), y), BOUNDS).gram, plain)


@pytest.mark.parametrize(
    "made",
    [
        lambda frame, table: (frame, "y"),
        lambda frame, table: (frame.drop(columns="y"), frame["y"]),
        lambda frame, table: (frame.astype({"a": "Float64"}), "y"),
        lambda frame, table: (table, "y"),
        lambda frame, table: (table.drop(["y"]), frame["y"].to_numpy()),
        lambda frame, table: (table.to_reader(777), "y"),
        lambda frame, table: (table.drop(["y"]).to_reader(100_000), frame["y"].to_numpy()),
        lambda frame, table: (dataset.dataset(table), "y"),
        lambda frame, table: (Stream(table), "y"),
        lambda frame, table: (pa.RecordBatch.from_pandas(frame), "y"),
    ],
    ids=["pandas", "pandas-y", "nullable", "table", "table-y", "reader", "reader-y", "dataset", "stream", "batch"],
)
def test_frames_and_arrow_data_give_the_same_bits(made, frame, table, expected):
    estimator = BaseEstimator()
    found = read_table(estimator, *made(frame, table))
    read = Reading(found, BOUNDS)
    assert read.records == N
    np.testing.assert_array_equal(read.moments.gram, expected)
    assert estimator.n_features_in_ == 4
    assert estimator.feature_names_in_.tolist() == list(NAMES)
    assert estimator.feature_names_in_.dtype == object


@pytest.mark.parametrize("kind", ["parquet", "csv", "feather"])
def test_files_give_the_same_bits(kind, frame, table, expected, tmp_path):
    path = _paths(kind, frame, table, tmp_path)
    for given in (path, str(path), [path]):
        estimator = BaseEstimator()
        found = read_table(estimator, given, "y")
        assert found.records == N
        np.testing.assert_array_equal(moments(found, BOUNDS).gram, expected)
        assert estimator.feature_names_in_.tolist() == list(NAMES)


def test_folders_and_lists_of_files_are_read_in_order(table, expected, tmp_path):
    for number, start in enumerate(range(0, N, 3000)):
        parquet.write_table(table.slice(start, 3000), tmp_path / f"part-{number}.parquet")
    for given in (tmp_path, sorted(tmp_path.iterdir())):
        np.testing.assert_array_equal(moments(read_table(BaseEstimator(), given, "y"), BOUNDS).gram, expected)


def test_polars(frame, table, expected):
    import polars

    estimator = BaseEstimator()
    found = moments(read_table(estimator, polars.from_arrow(table), "y"), BOUNDS)
    np.testing.assert_array_equal(found.gram, expected)
    assert estimator.feature_names_in_.tolist() == list(NAMES)


def test_blocks_do_not_depend_on_the_batches_of_the_source(table):
    for size in (1, 1000, CHUNK, CHUNK + 1, N):
        lengths = [len(y) for _, y in read_table(BaseEstimator(), table.slice(0, 9000).to_reader(size), "y").blocks()]
        assert lengths == [CHUNK, CHUNK, 9000 - 2 * CHUNK]


def test_float32_is_read_as_it_is(data):
    x, y = (part.astype(np.float32) for part in data)
    exact = moments(read_table(BaseEstimator(), x.astype(np.float64), y), BOUNDS).gram
    found = [read_table(BaseEstimator(), x, y)]
    single = pa.table([*x.T, y], names=[*NAMES, "y"])
    found += [read_table(BaseEstimator(), single, "y"), read_table(BaseEstimator(), sparse.csr_array(x), y)]
    for one in found:
        np.testing.assert_array_equal(moments(one, BOUNDS).gram, exact)


def test_missing_values_make_records_of_zeros(data):
    x, y = (part[:100].copy() for part in data)
    x[3, 1], y[7], x[11, 0] = np.nan, np.nan, np.inf
    kept = np.setdiff1d(np.arange(100), [3, 7, 11])
    plain = read_table(BaseEstimator(), x, y)
    expected = moments(read_table(BaseEstimator(), x[kept], y[kept]), BOUNDS)
    found = moments(plain, BOUNDS)
    np.testing.assert_allclose(found.gram, expected.gram, rtol=1e-13, atol=1e-13)
    assert found.records == 100
    x[3, 1], y[7] = 0, 0
    missing = pa.table(
        {
            "a": pa.array(x[:, 0]),
            "b": pa.array([None if i == 3 else value for i, value in enumerate(x[:, 1])]),
            "c": x[:, 2],
            "d": x[:, 3],
            "y": pa.array([None if i == 7 else value for i, value in enumerate(y)]),
        }
    )
    for given in (missing, missing.to_pandas()):
        np.testing.assert_array_equal(moments(read_table(BaseEstimator(), given, "y"), BOUNDS).gram, found.gram)


def test_a_cell_of_a_csv_file_that_is_no_number_is_missing(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text("a,y\n0.5,1\nn/k,1\n 0.25 ,1\n,1\n0.5,oops\n1e400,1\n")
    found = moments(read_table(BaseEstimator(), path, "y"), BOUNDS)
    np.testing.assert_allclose(np.diag(found.gram), [0.5**2 + 0.25**2, 2 * 0.25, 2])
    assert found.records == 6
    path.write_text("a,city,y\n1,Rome,2\n")
    assert not moments(read_table(BaseEstimator(), path, "y"), BOUNDS).gram.any()
    assert moments(read_table(BaseEstimator(), Columns(path, ["a"]), "y"), BOUNDS).gram.all()


def test_types_that_are_numbers_and_types_that_are_not(table):
    columns = {
        "flag": pa.array([True, False, None]),
        "small": pa.array([1, 2, None], pa.int8()),
        "large": pa.array([2**63 - 1, 5, 0], pa.int64()),
        "money": pa.array([1, 2, 3]).cast(pa.decimal128(22, 2)),
        "half": pa.array([0.5, 1.5, 2.5], pa.float16()),
        "coded": pa.array([1.0, 2.0, 1.0]).dictionary_encode(),
        "y": pa.array([1.0, 2.0, 3.0]),
    }
    x, y = next(read_table(BaseEstimator(), pa.table(columns), "y").blocks())
    np.testing.assert_array_equal(x[0], [1, 1, 2.0**63, 1, 0.5, 1])
    np.testing.assert_array_equal(np.isnan(x), [[False] * 6, [False] * 6, [True, True, *[False] * 4]])
    np.testing.assert_array_equal(y, [1, 2, 3])
    for odd in (pa.array(["p", "q", "r"]), pa.array([0, 1, 2], pa.timestamp("s")), pa.array([[1], [2], [3]])):
        with pytest.raises(ValueError, match="columns must hold numbers; these do not: odd"):
            read_table(BaseEstimator(), pa.table({**columns, "odd": odd}), "y")
    with pytest.raises(ValueError, match="these do not: odd"):
        read_table(BaseEstimator(), pd.DataFrame({"odd": ["p", "q"], "y": [1, 2]}).astype({"odd": "string"}), "y")
    with pytest.raises(ValueError, match="these do not: y"):
        read_table(BaseEstimator(), pd.DataFrame({"a": [1, 2], "y": ["p", "q"]}).astype({"y": "string"}), "y")


def test_wrong_input_is_refused_by_sizes_names_and_types(frame, table, tmp_path):
    x, y = frame[list(NAMES)], frame["y"]
    cases = [
        (x, y[:-1], "as many rows"),
        (x, None, "y is None"),
        (x.to_numpy(), None, "y is None"),
        (frame, "z", "no column 'z'"),
        (table, "z", "no column 'z'"),
        (x[:0], y[:0], "at least one record"),
        (x.to_numpy()[:0], y[:0], "minimum of 1"),
        (frame[["y"]], "y", "one feature"),
        (pd.concat([x, x], axis=1), y, "several columns"),
        (x.to_numpy()[0], y[:1], "2D array"),
        (tmp_path / "absent.parquet", "y", "no such file"),
        (str(tmp_path / "absent.txt"), "y", "no such file"),
    ]
    for given, target, message in cases:
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            read_table(BaseEstimator(), given, target)
    (tmp_path / "a.txt").write_text("1")
    with pytest.raises(ValueError, match="one format"):
        read_table(BaseEstimator(), tmp_path / "a.txt", "y")
    for empty in ("", "a,y\n"):
        (tmp_path / "a.csv").write_text(empty)
        with pytest.raises(ValueError, match=r"empty|at least one record"):
            read_table(BaseEstimator(), tmp_path / "a.csv", "y")


def test_a_stream_of_another_length_than_y_is_refused_while_reading(table, data):
    features = table.drop(["y"])
    for target in (data[1][:-1], np.append(data[1], 0.0)):
        with pytest.raises(ValueError, match="as many rows"):
            moments(read_table(BaseEstimator(), features.to_reader(500), target), BOUNDS)
    with pytest.raises(ValueError, match="at least one record"):
        moments(read_table(BaseEstimator(), table.slice(0, 0).to_reader(), "y"), BOUNDS)


def test_a_reader_can_be_read_once(table):
    found = read_table(BaseEstimator(), table.to_reader(), "y")
    assert found.records is None
    moments(found, BOUNDS)
    with pytest.raises(ValueError, match="read already"):
        moments(found, BOUNDS)


def test_labels_become_signs(frame, table):
    words = np.where(frame["y"] > 0, "yes", "no").astype(object)
    words[5], words[6] = None, "perhaps"
    signs = np.where(frame["y"] > 0, 1.0, -1.0)
    signs[5:7] = np.nan
    features = frame[list(NAMES)]
    named = features.assign(label=words)
    arrow = table.drop(["y"]).append_column("label", pa.array(words, pa.string()))
    coded = table.drop(["y"]).append_column("label", pa.array(words, pa.string()).dictionary_encode())
    for given, target in ((features, words), (named, "label"), (arrow, "label"), (coded, "label")):
        found = read_table(BaseEstimator(), given, target, classes=("no", "yes"))
        np.testing.assert_array_equal(np.concatenate([y for _, y in found.blocks()]), signs)
    for given in (named, arrow, coded):
        assert labels_of(given, "label").tolist() == ["no", "perhaps", "yes"]
    with pytest.raises(ValueError, match="two labels"):
        read_table(BaseEstimator(), features, words, classes=("no",))
    with pytest.raises(ValueError, match="name the classes"):
        labels_of(arrow.to_reader(), "label")


def test_without_a_target_all_targets_are_zero(frame, table):
    for given in (frame, table, table.to_reader(), frame.to_numpy()):
        found = moments(read_table(BaseEstimator(), given), Bounds(3.0, 0.0))
        assert not found.gram[-1].any()
        assert found.design.shape == (5, 5)


def test_some_of_the_columns(frame, table, tmp_path):
    path = _paths("parquet", frame, table, tmp_path)
    expected = moments(read_table(BaseEstimator(), frame[["c", "a"]], frame["y"]), BOUNDS).gram
    for given in (path, frame, table, table.to_reader(999)):
        estimator = BaseEstimator()
        found = read_table(estimator, Columns(given, ["c", "a"]), "y")
        np.testing.assert_array_equal(moments(found, BOUNDS).gram, expected)
        assert estimator.feature_names_in_.tolist() == ["c", "a"]
    for features in (["a", "a"], ["a", "y"], ["a", "z"], []):
        with pytest.raises(ValueError, match=r"once|no column|one feature"):
            read_table(BaseEstimator(), Columns(path, features), "y")
    with pytest.raises(TypeError, match="a path"):
        Columns(frame.to_numpy(), ["a"])
    values, labels = Columns(path, ["c", "a"]).loaded("y")
    pd.testing.assert_frame_equal(values, frame[["c", "a"]])
    np.testing.assert_array_equal(labels.astype(float), frame["y"])


def test_estimators_fit_files_as_they_fit_arrays(data, frame, table, tmp_path):
    path = _paths("parquet", frame, table, tmp_path)
    x, y = data
    claim = {"epsilon": 1.0, "delta": 1e-6, "feature_bound": 2.0, "random_state": 5}
    for solver in ("mixing", "suffstats"):
        model = LinearRegression(**claim, target_bound=2.0, solver=solver)
        np.testing.assert_array_equal(model.fit(path, "y").coef_, model.fit(x, y).coef_)
    components = PCA(2, **claim).fit(Columns(path, NAMES)).components_
    np.testing.assert_array_equal(components, PCA(2, **claim).fit(x).components_)
    named = tmp_path / "named.parquet"
    frame[list(NAMES)].assign(label=np.where(y > 0, "yes", "no")).to_parquet(named)
    mixing = LogisticRegression(**claim, solver="mixing", classes=["no", "yes"])
    weights = mixing.fit(named, "label").coef_
    assert mixing.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(weights, mixing.fit(x, np.where(y > 0, "yes", "no")).coef_)
