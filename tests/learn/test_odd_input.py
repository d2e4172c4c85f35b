"""What one record holds changes no other record, raises no error, and is quoted by none.

A record that is no record of numbers (or whose label is none of the classes) counts as zeros: every test compares the
first query of a fit with that of the same data where the record is NaN in a plain array, the definition of zeros.
"""

from __future__ import annotations

import re
import traceback
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from shapedp import scale
from shapedp.boundary.arrays import distinct, equal, numbers
from shapedp.learn import PCA, Lasso, LinearRegression, LogisticRegression, PublicLabelsWarning, Ridge
from shapedp.learn.moments import Bounds
from shapedp.learn.solvers.erm.problem import read_records
from shapedp.mechanisms.watch import watching
from shapedp.tables import Columns
from shapedp.tables.blocks import NO_TARGET, entries, labels_of

N, AT = 60, 7
CLAIM = {"epsilon": 1.0, "delta": 1e-6, "random_state": 0}
ONE = {"feature_bound": 1.0, "classes": [0, 1], "noise": "gaussian", "passes": 2}
X = np.random.default_rng(0).normal(size=(N, 2)) * 0.3
Y = (X[:, 0] > 0).astype(int)
REGRESSORS = {
    "linear": LinearRegression(**CLAIM, feature_bound=1.0, target_bound=1.0),
    "lasso": Lasso(**CLAIM, feature_bounds=1.0, target_bound=1.0, passes=2),
    "ridge": Ridge(**CLAIM, feature_bounds=1.0, target_bound=1.0, passes=2),
}
CLASSIFIERS = {solver: LogisticRegression(**CLAIM, **ONE, solver=solver) for solver in LogisticRegression.solvers}
ALL = {**REGRESSORS, **CLASSIFIERS, "pca": PCA(**CLAIM, feature_bound=1.0)}
SECRET = "HIV+"
ODD_LABELS = {
    "text": SECRET,
    "none": None,
    "nan": float("nan"),
    "missing": pd.NA,
    "no time": pd.NaT,
    "large": 10**400,
    "complex": 1j,
    "array": np.array([1, 2]),
    "list": [1, 2],
    "dict": {"a": 1},
}

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def query(estimator, x, y, fit=None):
    """The first query of a fit."""
    seen = []

    def note(mechanism, asked, draw):
        seen.append(np.array(asked, dtype=float))
        return draw()

    with watching(note):
        estimator.fit(x, y) if fit is None else fit(estimator, x, y)
    return seen[0]


def without_label():
    """Labels as numbers, one of them missing."""
    found = Y.astype(float)
    found[AT] = np.nan
    return found


def with_label(one):
    """Labels as a list, one of them odd."""
    return [one if i == AT else label for i, label in enumerate(Y.tolist())]


def as_objects(values):
    found = np.empty(len(values), dtype=object)
    for i, one in enumerate(values):
        found[i] = one
    return found


ODD_CELLS = {
    "text": SECRET,
    "digits": "1",
    "none": None,
    "missing": pd.NA,
    "large": 10**400,
    "complex": 1j,
    "list": [1],
    "dict": {"a": 1},
    "signalling": Decimal("sNaN"),
}


def without_cell():
    found = X.copy()
    found[AT, 1] = np.nan
    return found


def with_cell(one):
    found = X.astype(object)
    found[AT, 1] = one
    return found


@pytest.mark.parametrize("odd", ODD_CELLS)
@pytest.mark.parametrize("name", ALL)
def test_one_odd_cell_makes_a_record_of_zeros(name, odd):
    """In an array of objects, a list of rows, and a column of objects of a frame."""
    expected = query(ALL[name], without_cell(), Y)
    given = with_cell(ODD_CELLS[odd])
    frame = pd.DataFrame(X, columns=["a", "b"]).astype({"b": object})
    frame.iat[AT, 1] = ODD_CELLS[odd]
    for rows in (given, given.tolist(), [tuple(row) for row in given], frame):
        np.testing.assert_array_equal(query(ALL[name], rows, Y), expected)


def test_cells_that_are_numbers_are_read_as_such():
    """Whatever type they have; and a frame of plain types as one of objects."""
    cells = [1, True, np.float32(0.5), np.bool_(True), Decimal("0.25"), np.int8(-3), 2**70]
    given = np.empty((1, len(cells)), dtype=object)
    given[0] = cells
    expected = [[1.0, 1.0, 0.5, 1.0, 0.25, -3.0, 2.0**70]]
    np.testing.assert_array_equal(numbers(given), expected)
    np.testing.assert_array_equal(numbers([cells]), expected)
    np.testing.assert_array_equal(numbers([np.array([1.0, 2.0]), (3, 4)]), [[1, 2], [3, 4]])
    plain = pd.DataFrame({"a": [0.5, 1], "b": [True, False], "c": pd.array([1, None], dtype="Int8")})
    coded = plain.assign(c=pd.Categorical([1, None], categories=[1, 2]))
    for frame in (plain, plain.astype(object), coded):
        np.testing.assert_array_equal(numbers(frame), [[0.5, 1, 1], [1, 0, np.nan]])
    assert numbers(plain[["a"]].astype(np.float32)).dtype == np.float32
    for unchanged in (X, X.astype(np.float32), np.asfortranarray(X)):
        assert numbers(unchanged) is unchanged


@pytest.mark.parametrize("name", ALL)
def test_wrong_shapes_and_types_are_refused_without_the_values(name):
    secret = 0.123456789
    rows = X.copy()
    rows[AT, 0] = secret
    ragged = rows.tolist()
    ragged[AT] = [secret]
    cases = [
        (rows[:, 0], Y, "Expected 2D array, got 1D"),
        (rows[:, 0].tolist(), Y, "Expected 2D array, got 1D"),
        (rows[:, :, None], Y, "Expected 2D array, got 3D"),
        (ragged, Y, "as long as each other"),
        ([secret, *rows.tolist()[1:]], Y, "as long as each other"),
        (rows + 0j, Y, "Complex data not supported"),
        (sparse.csr_array(rows + 0j), Y, "Complex data not supported"),
        (rows.astype(str), Y, "numbers, got an array of str_"),
        (pd.DataFrame(rows.astype(str), dtype="string"), Y, r"these do not: 0 \(string\), 1 \(string\)"),
        (rows.astype("M8[s]"), Y, "numbers, got an array of datetime64"),
    ]
    if name != "pca":
        cases.append((rows, np.full(N, secret + 0j), "Complex data not supported"))
    if name not in ("pca", "linear"):  # linear regression takes several targets
        cases.append((rows, np.full((N, 2), secret), "1d array"))
    for x, y, message in cases:
        with pytest.raises(ValueError, match=message) as caught:
            ALL[name].fit(x, y)
        assert "0.123" not in str(caught.value)


@pytest.mark.parametrize("name", ALL)
def test_cells_of_a_sparse_matrix_that_add_up_to_infinity(name):
    """Two entries for one cell, each finite, whose sum is not: a record of zeros."""
    plain = sparse.csr_array(X)
    end = plain.indptr[AT + 1]
    data = np.insert(plain.data, end, [1e308, 1e308])
    indices = np.insert(plain.indices, end, [1, 1])
    indptr = plain.indptr + np.where(np.arange(N + 1) > AT, 2, 0)
    given = sparse.csr_array((data, indices, indptr), shape=X.shape)
    expected = query(ALL[name], sparse.csr_array(without_cell()), Y)
    np.testing.assert_array_equal(query(ALL[name], given, Y), expected)
    assert given.nnz == plain.nnz + 2  # the caller's matrix is left alone


@pytest.mark.parametrize("odd", ODD_LABELS)
@pytest.mark.parametrize("name", [*CLASSIFIERS, *REGRESSORS])
def test_one_odd_label_changes_no_other(name, odd):
    """In a list and in an array of objects: the record is zeros, the others stay what they were."""
    labels = with_label(ODD_LABELS[odd])
    expected = query(ALL[name], X, without_label())
    np.testing.assert_array_equal(query(ALL[name], X, labels), expected)
    np.testing.assert_array_equal(query(ALL[name], X, tuple(labels)), expected)
    np.testing.assert_array_equal(query(ALL[name], X, as_objects(labels)), expected)


@pytest.mark.parametrize("name", [*CLASSIFIERS, *REGRESSORS])
def test_lists_and_columns_of_labels_are_read_as_arrays_are(name):
    expected = query(ALL[name], X, Y)
    for given in (Y.tolist(), [[label] for label in Y.tolist()], Y.astype(object), pd.Series(Y, dtype="Int64")):
        np.testing.assert_array_equal(query(ALL[name], X, given), expected)


@pytest.mark.parametrize("kind", ["mixing", "linear"])
def test_one_odd_label_on_workers(kind):
    da = pytest.importorskip("dask.array")
    chunked = da.from_array(X, chunks=(20, 2))
    # chunks of 20 rows: the rounding of the sums is not that of one block
    expected = query(ALL[kind], chunked, without_label(), fit=scale.fit)
    np.testing.assert_array_equal(query(ALL[kind], chunked, with_label(SECRET), fit=scale.fit), expected)


def test_labels_read_from_the_data_leave_out_what_is_missing():
    """One missing label neither raises nor becomes a class; labels of several types are sorted, numbers first."""
    for labels in (without_label(), as_objects(with_label(None)), with_label(pd.NA), with_label([1, 2])):
        model = LogisticRegression(**CLAIM, **(ONE | {"classes": None}), solver="output")
        with pytest.warns(PublicLabelsWarning):
            model.fit(X, labels)
        assert model.classes_.tolist() == [0, 1]
    assert distinct(entries(["b", 2, None, "a", 1.5, float("nan"), (1, 2), [3, 4]])).tolist() == [
        1.5,
        2,
        (1, 2),
        "a",
        "b",
    ]
    with pytest.raises(ValueError, match="Unknown label type: continuous") as caught, warnings.catch_warnings():
        LogisticRegression(**CLAIM, **(ONE | {"classes": None})).fit(X, np.where(np.arange(N) == AT, 0.125, Y))
    assert "0.125" not in str(caught.value)


def test_classes_of_two_types():
    """Numbers and text together: each label is compared with each class."""
    labels = ["yes" if one else 0 for one in Y]
    model = LogisticRegression(**CLAIM, **(ONE | {"classes": [0, "yes"]}), solver="mixing")
    np.testing.assert_array_equal(query(model, X, labels), query(ALL["mixing"], X, Y))
    assert model.classes_.tolist() == [0, "yes"]
    for classes in ([0, float("nan")], [1, 1]):
        with pytest.raises(ValueError, match="distinct"):
            model.set_params(classes=classes).fit(X, labels)


def test_what_cannot_be_compared_is_not_equal():
    values = as_objects([1, pd.NA, np.array([1, 2]), [1], None, "1", 1.0, True])
    assert equal(values, 1).tolist() == [True, False, False, False, False, False, True, True]
    assert equal(values[:1], 1).tolist() == [True]
    assert equal(np.array(["1", "2"]), 1).tolist() == [False, False]
    assert equal(as_objects([(1, 2), 3]), (1, 2)).tolist() == [True, False]


def csv(folder, rows, labels, header="a,b,label"):
    """A file of the rows and labels, as text."""
    path = folder / "records.csv"
    lines = [",".join([*map(str, row), str(label)]) for row, label in zip(rows, labels, strict=True)]
    path.write_bytes("\n".join([header, *lines, ""]).encode(errors="surrogateescape"))
    return path


WORDS = np.where(Y == 1, "yes", "no").astype(object)
ODD_TEXT = {
    "number": "7",
    "empty": "",
    "text": SECRET,
    "bytes": "\udcff",
    "infinite": "inf",
    "ten": "1_0",
}


def replaced(values, one):
    found = np.array(values, dtype=object)
    found[AT] = one
    return found


@pytest.mark.parametrize("odd", ODD_TEXT)
@pytest.mark.parametrize("labels", ["words", "numbers"])
def test_one_label_of_a_csv_file_changes_no_other(labels, odd, tmp_path):
    given, classes = (WORDS, ["no", "yes"]) if labels == "words" else (Y, [0, 1])
    model = LogisticRegression(**CLAIM, **(ONE | {"classes": classes}), solver="mixing")
    expected = query(model, X, without_label() if labels == "numbers" else as_objects(replaced(WORDS, None)))
    path = csv(tmp_path, X, replaced(given, ODD_TEXT[odd]))
    np.testing.assert_array_equal(query(model, path, "label"), expected)
    _, loaded = Columns(path, ["a", "b"]).loaded("label")
    assert (np.delete(loaded, AT) == np.delete(given, AT)).all()
    assert loaded[AT] not in classes


@pytest.mark.parametrize("classes", [[0, 1], ["0", "1"], ["00", "1.0"]])
def test_labels_of_a_csv_file_are_numbers_where_they_can_be(classes, tmp_path):
    model = LogisticRegression(**CLAIM, **(ONE | {"classes": classes}), solver="mixing")
    np.testing.assert_array_equal(query(model, csv(tmp_path, X, Y), "label"), query(ALL["mixing"], X, Y))


def test_labels_that_occur_in_a_csv_file(tmp_path):
    """Of both kinds; what is empty is none."""
    labels = replaced(WORDS, "7")
    labels[0] = ""
    assert labels_of(csv(tmp_path, X, labels), "label").tolist() == [7.0, "no", "yes"]
    assert labels_of(csv(tmp_path, X, replaced(Y, "")), "label").tolist() == [0.0, 1.0]


@pytest.mark.parametrize("odd", [*ODD_TEXT, "quoted"])
@pytest.mark.parametrize("name", ["linear", "pca"])
def test_one_cell_of_a_csv_file_changes_no_other(name, odd, tmp_path):
    """A number among missing cells, or none among numbers; text, bytes that are no text, lines within a cell."""
    cell = {**ODD_TEXT, "quoted": '"a ""b""\n,c"'}[odd]
    rows = X.astype(object)
    rows[AT, 1] = cell
    plain = X.copy()
    plain[AT, 1] = {"number": 7.0, "ten": 10.0}.get(odd, np.nan)
    target = X[:, 0]
    path = csv(tmp_path, rows, target)
    x, y = (Columns(path, ["a", "b"]), NO_TARGET) if name == "pca" else (path, "label")
    np.testing.assert_array_equal(query(ALL[name], x, y), query(ALL[name], plain, target))


def test_a_column_with_one_number_is_one_of_numbers_like_a_column_with_none(tmp_path):
    """Whether a fit works does not depend on the only number of a column."""
    for cells in (["5", "", ""], ["", "", ""], ["x", "y", "z"]):
        path = csv(tmp_path, [[1, cell] for cell in cells], [1, 2, 1])
        expected = np.array([[1, 5.0 if cell == "5" else np.nan] for cell in cells])
        np.testing.assert_array_equal(query(ALL["linear"], path, "label"), query(ALL["linear"], expected, [1, 2, 1]))


def test_an_empty_cell_of_a_single_column_is_a_record(tmp_path):
    path = tmp_path / "one.csv"
    for text in ("a\n1\n0.5\n2\n", "a\n1\n\n2\n", "a\n1\n \n2\n", "a\n\n\n\n"):
        path.write_text(text)
        assert PCA(**CLAIM, feature_bound=1.0).fit(path).n_samples_ == 3


@pytest.mark.parametrize("row", [f"0.5,3,2,{SECRET}", f"{SECRET}", f'0.5,"{SECRET},2'])
def test_a_row_of_another_length_is_not_quoted(row, tmp_path):
    path = tmp_path / "ragged.csv"
    path.write_text(f"a,b,label\n1,1,1\n{row}\n2,2,1\n")
    with pytest.raises(ValueError, match="more or fewer cells than the header") as caught:
        ALL["linear"].fit(path, "label")
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_headers_of_several_files_are_compared_by_their_names(tmp_path):
    first, second = csv(tmp_path, X, Y), tmp_path / "second.csv"
    second.write_text(f"a,b,other\n1,{SECRET}\n")
    with pytest.raises(ValueError, match="other columns") as caught:
        ALL["linear"].fit([first, second], "label")
    assert SECRET not in str(caught.value)
    second.write_text("a,b,label\n\n")
    assert Columns([first, second], ["a"]).source.records == N + 1


@pytest.mark.parametrize("name", [*CLASSIFIERS, "linear", "lasso", "pca"])
def test_a_progress_bar_tells_nothing_of_the_records(name, capfd):
    """Zeros are solved in one iteration, a record beside them takes more: what is printed is the same but for times."""
    x = np.zeros((N, 2))
    printed = []
    for _ in range(2):
        model = clone(ALL[name]).set_params(progress=True)
        model.fit(x, Y)
        printed.append(re.sub(r"\[.*\]", "", capfd.readouterr().err.rpartition("\r")[2]))
        x[0] = [1.0, 0.0]
    assert printed[0] == printed[1]


@pytest.mark.parametrize("name", ALL)
def test_a_fit_that_fails_leaves_weights_and_certificate_as_they_were(name):
    """The last release of a second fit, under another claim, fails."""
    model = clone(ALL[name])
    releases = []

    def count(mechanism, asked, draw):
        releases.append(mechanism)
        return draw()

    def fail(mechanism, asked, draw):
        releases.pop()
        if not releases:
            raise OSError("no more random bits")
        return draw()

    with watching(count):
        model.fit(X, Y)
    before = {key: value for key, value in vars(model).items() if key.endswith("_")}
    with watching(fail), pytest.raises(OSError, match="bits"):
        model.set_params(epsilon=2.0).fit(X, Y)
    after = {key: value for key, value in vars(model).items() if key.endswith("_")}
    assert after.keys() == before.keys()
    assert all(after[key] is before[key] for key in before if key != "n_features_in_")
    assert model.privacy_.epsilon == 1.0


@pytest.mark.parametrize("bound", [1.01e-40, 2e-40, 1e-30, 1.1e-30, 1.0, 0.9e30, 3e38, 9e39])
@pytest.mark.parametrize("columns", [1, 124, 4000])
def test_rows_in_single_precision_stay_within_the_bound(bound, columns):
    """Exactly: squares in rational numbers."""
    with np.errstate(over="ignore"):
        x = np.full((2, columns), 3 * bound, dtype=np.float64).astype(np.float32)
    x[1] = np.finfo(np.float32).max
    records = read_records(x, np.ones((2, 1)), Bounds(bound, 1.0, 0.0))
    assert np.isfinite(records.x).all()
    for row in records.x:
        assert sum(Fraction(float(value)) ** 2 for value in row) <= Fraction(bound) ** 2
    assert records.x.dtype == (np.float32 if 1e-30 < bound < 1e30 else np.float64)
