"""Issue 15, item 13 (reading): errors and warnings that quoted or depended on one record.

A later parquet file with a column of text failed on one cell and quoted it; a long double beyond float64 raised a
warning. Now files are compared by the types they declare, and no conversion warns.
"""

from __future__ import annotations

import traceback
import warnings

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, dataset, parquet
from scipy import sparse
from tests.regressions.containers import SECRET

from shapedp.learn import PCA, Lasso, LinearRegression, LogisticRegression

CLAIM = {"epsilon": 1.0, "delta": 1e-6, "random_state": 0}
LINEAR = LinearRegression(**CLAIM, feature_bound=1.0, target_bound=1.0)


def parts(folder, second):
    """Two files, the second with other cells in the column b."""
    for name, cells in (("1", pa.array([0.5, 0.25])), ("2", second)):
        parquet.write_table(pa.table({"a": [0.1, 0.2], "b": cells, "y": [0.5, 0.5]}), folder / f"{name}.parquet")
    return folder


@pytest.mark.parametrize("cell", [SECRET, "0.5"])
def test_a_later_file_of_text_is_refused_by_its_type(tmp_path, cell):
    folder = parts(tmp_path, pa.array(["0.25", cell]))
    for given in (folder, sorted(folder.iterdir()), dataset.dataset(folder)):
        with pytest.raises(ValueError, match=r"disagree on the type of column 'b' \(double and string\)") as caught:
            LINEAR.fit(given, "y")
        assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("last", [1, 2**53 + 1])
def test_a_later_file_of_integers_is_refused_whatever_they_are(tmp_path, last):
    """Arrow's own cast refuses the second one alone, and quotes it."""
    with pytest.raises(ValueError, match=r"disagree on the type of column 'b' \(double and int64\)"):
        LINEAR.fit(dataset.dataset(parts(tmp_path, pa.array([1, last]))), "y")
    LINEAR.fit(parts(tmp_path, pa.array([1, None], pa.int32())), "y")
    LINEAR.fit(parts(tmp_path, pa.nulls(2)), "y")


def test_types_guessed_from_cells_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("a,y\n1,1\n2,1\n")
    with pytest.raises(ValueError, match="guesses the types of csv and json files"):
        LINEAR.fit(dataset.dataset(tmp_path / "a.csv", format="csv"), "y")


def test_an_arrow_error_while_reading_quotes_nothing(tmp_path):
    """A reader that guessed its types from the first rows fails on a later one: not our reader, but our error."""
    path = tmp_path / "a.csv"
    path.write_text("a,y\n" + "1,1\n" * 2000 + f"{SECRET},1\n")
    reader = csv.open_csv(path, read_options=csv.ReadOptions(block_size=1000))
    with pytest.raises(ValueError, match="cannot be read with the types they declare") as caught:
        LINEAR.fit(reader, "y")
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None


@pytest.mark.parametrize("large", ["1", "1e4000"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_long_double_raises_no_warning(large):
    rows = np.full((40, 2), 0.25, dtype=np.longdouble)
    rows[3, 1] = np.longdouble(large)
    target = rows[:, 1].copy()
    models = [
        LINEAR,
        PCA(**CLAIM, feature_bound=1.0),
        Lasso(**CLAIM, feature_bounds=1.0, target_bound=1.0, passes=1),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for model in models:
            model.fit(rows, target)
            model.fit(sparse.coo_array(rows), target)
        LogisticRegression(**CLAIM, feature_bound=1.0, classes=[0, 1]).fit(rows, [0, 1] * 20)


def test_a_row_longer_than_a_block_is_read(tmp_path):
    """A cell of three megabytes was an error; it is missing, and the rows behind it are read as before."""
    path = tmp_path / "a.csv"
    found = []
    for cell in ("0.5", "x" * 3_000_000):
        path.write_text("a,y\n" + "0.5,1\n" * 9000 + f"{cell},1\n" + "0.25,1\n" * 9000)
        model = LinearRegression(**CLAIM, feature_bound=1.0, target_bound=1.0).fit(path, "y")
        found.append(model.coef_[0])
    assert abs(found[0] - found[1]) < 0.05
