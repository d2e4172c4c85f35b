"""Issue 15, item 12: one cell changed how other people's records were read.

Csv cells with \\x1c..\\x1f were trimmed on one path and not on the one that a bad cell switched on; a null of an Arrow
dictionary column took another person's value; labels in a deque or UserList became text for one text among them;
masked arrays lost their mask. Now each cell is read by itself, by the type that its container declares.
"""

from __future__ import annotations

import warnings
from collections import UserList, deque
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from tests.regressions.containers import ROWS, SECRET, VECTORS, coded

from shapedp.boundary.arrays import equal, floats, ids, numbers, values
from shapedp.boundary.columns import objects
from shapedp.learn import Lasso, LogisticRegression
from shapedp.learn.base import checked_rows, read_table
from shapedp.mechanisms.watch import watching
from shapedp.sensitivity import Box
from shapedp.tables.blocks import UndeclaredTypesWarning, target_of
from shapedp.tables.sources import source_of

N = 6
OTHERS = [0.25, 0.5, 0.75, 1.0, 0.0, 0.125]


def dense(rows):
    return rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)


def same(one, other):
    """Equal to the bit; NaN equals NaN."""
    return np.array_equal(np.asarray(one, np.float64), np.asarray(other, np.float64), equal_nan=True)


def read_rows(x, folder):
    """What an estimator sees of x, by both ways there are."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UndeclaredTypesWarning)  # of every csv path, whatever its cells
        blocks = [dense(block) for block, _ in read_table(BaseEstimator(), x).blocks()]
        again = (
            blocks if source_of(x) is not None and hasattr(x, "exists") else [dense(checked_rows(BaseEstimator(), x))]
        )
    assert same(np.concatenate(blocks), np.concatenate(again))
    return blocks[0]


def read_vector(y):
    """What an estimator sees of y: as a target and as labels of the classes 0, 1 and 2^53 + 1."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels = values(y)
        assert labels.shape == (N,)
        return np.column_stack([floats(y), *(equal(labels, one) for one in (0, 1, 2**53 + 1))])


@settings(max_examples=600, deadline=None, derandomize=True)
@given(st.sampled_from(sorted(ROWS)), st.integers(0, N - 1), st.data())
def test_a_cell_of_a_feature_changes_its_own_row_only(tmp_path_factory, name, at, data):
    """Any two cells in one record, any cells in the others; and no error, warning or type depends on them."""
    rows, folder = ROWS[name], tmp_path_factory.getbasetemp()
    pick = st.integers(0, len(rows.cells) - 1)
    cells = [rows.cells[data.draw(pick)] for _ in range(N)]
    changed = [rows.cells[data.draw(pick)] if i == at else cell for i, cell in enumerate(cells)]
    extra = (folder,) if rows.file else ()
    before = read_rows(rows.make(cells, OTHERS, *extra), folder)
    after = read_rows(rows.make(changed, OTHERS, *extra), folder)
    assert before.dtype == after.dtype
    assert before.shape == after.shape == (N, 2)
    assert same(np.delete(before, at, axis=0), np.delete(after, at, axis=0))
    assert before[at, 0] == after[at, 0]


@settings(max_examples=600, deadline=None, derandomize=True)
@given(st.sampled_from(sorted(VECTORS)), st.integers(0, N - 1), st.data())
def test_a_cell_of_a_target_changes_its_own_entry_only(name, at, data):
    make, kinds = VECTORS[name]
    pick = st.integers(0, len(kinds) - 1)
    cells = [kinds[data.draw(pick)] for _ in range(N)]
    changed = [kinds[data.draw(pick)] if i == at else cell for i, cell in enumerate(cells)]
    before, after = read_vector(make(cells)), read_vector(make(changed))
    assert values(make(cells)).dtype == values(make(changed)).dtype
    assert same(np.delete(before, at, axis=0), np.delete(after, at, axis=0))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.sampled_from([k for k in sorted(VECTORS) if k not in ("float64", "masked")]), st.integers(0, N - 1), st.data()
)
def test_a_cell_of_an_owner_changes_who_owns_its_own_row_only(name, at, data):
    make, kinds = VECTORS[name]
    pick = st.integers(0, len(kinds) - 1)
    cells = [kinds[data.draw(pick)] for _ in range(N)]
    changed = [kinds[data.draw(pick)] if i == at else cell for i, cell in enumerate(cells)]

    def pairs(owner):
        found = np.delete(ids(owner), at)
        return (found[:, None] == found[None, :]) & (found >= 0)

    if values(make(cells)).dtype.kind in "iufO" and values(make(cells)).dtype.itemsize <= 8:
        assert np.array_equal(pairs(make(cells)), pairs(make(changed)))


def test_every_cell_is_read_as_it_would_be_alone():
    """For each container and cell: what stands in a row does not depend on the rows around it."""
    for make, kinds in VECTORS.values():
        for cell in kinds:
            alone, among = floats(make([cell] * N)), floats(make([*kinds[:3], cell, *kinds[1:3]]))
            assert same(alone[3], among[3])


@pytest.mark.parametrize("bad", ["0.5", SECRET, "\x1c"])
def test_csv_cells_with_separators(tmp_path, bad):
    """\\x1c0.5 is no number, whatever stands in the next line; spaces around a number do not count."""
    path = tmp_path / "a.csv"
    path.write_text(f"a,b\n1,\x1c0.5\n1,0.5\x1f\n1, 0.5 \n1,{bad}\n")
    found = read_rows(path, tmp_path)
    np.testing.assert_array_equal(found[:3], [[1, np.nan], [1, np.nan], [1, 0.5]])
    assert same(found[3, 1], 0.5 if bad == "0.5" else np.nan)


def test_a_null_of_a_dictionary_column_takes_nobodys_value():
    column = pa.chunked_array([coded([5.0, None, 6.0])])
    expected = [5.0, np.nan, 6.0]
    np.testing.assert_array_equal(target_of(column, 3), expected)
    np.testing.assert_array_equal(floats(column.to_pandas()), expected)
    assert values(column).tolist() == [5.0, None, 6.0]
    table = pa.table({"a": column, "b": [1.0, 1.0, 1.0]})
    np.testing.assert_array_equal(numbers(table)[:, 0], expected)
    np.testing.assert_array_equal(checked_rows(BaseEstimator(), table)[:, 0], expected)


def test_a_frame_of_one_column_is_read_as_the_column():
    """As a table it was an array of another type, or a column of structures."""
    for name in ("Int64", "category of integers", "pandas Arrow codes"):
        column = VECTORS[name][0]([0, 1, None])
        assert same(floats(column.to_frame()), floats(column)[:, None])
        assert values(column.to_frame()).tolist() == [[0], [1], [None]]
    table = pa.table({"y": coded([0.0, 1.0, None])})
    for frame in (table, pl.DataFrame(table)):
        assert same(floats(frame), [[0.0], [1.0], [np.nan]])
        assert values(frame).tolist() == [[0.0], [1.0], [None]]
    for frame in (pa.table({"a": [1], "b": [1]}), pl.DataFrame({"a": [1], "b": [1]})):
        with pytest.raises(ValueError, match="y should be a 1d array"):
            values(frame)


def query(estimator, x, y):
    """The first query of a fit."""
    seen = []

    def note(mechanism, asked, draw):
        seen.append(np.array(asked, dtype=float))
        return draw()

    with watching(note):
        estimator.fit(x, y)
    return seen[0]


@pytest.mark.parametrize("kind", [deque, UserList, tuple])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_labels_in_other_lists(kind):
    """One text among numbers moved the gradient of every other record."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 2)) / 4, [0, 1] * 20
    claim = {"epsilon": 1.0, "delta": 1e-6, "random_state": 0}
    models = [
        LogisticRegression(**claim, feature_bound=1.0, classes=[0, 1], solver="mixing"),
        Lasso(**claim, feature_bounds=1.0, target_bound=1.0, passes=1),
    ]
    for model in models:
        expected = query(model, x, [None, *y[1:]])
        np.testing.assert_array_equal(query(model, x, kind([SECRET, *y[1:]])), expected)


def test_a_row_without_an_owner_takes_nobodys_place():
    rows = np.ones((4, 1))
    for owner in (["a", None, "a", "b"], np.ma.array([1, 1, 1, 2], mask=[0, 1, 0, 0]), deque([1, SECRET, 1, 2])):
        kept, _ = Box([1.0]).clip(rows, adjacency="add-remove", owner=owner, max_rows=1)
        assert kept[:, 0].tolist() in ([1, 0, 0, 1], [1, 1, 0, 1])
    kept, _ = Box([1.0]).clip(rows, adjacency="add-remove", owner=[None] * 4, max_rows=4)
    assert not kept.any()


@pytest.mark.parametrize("x", [iter([[1.0]]), {1.0}, {"a": [1.0]}, "ab", b"ab", 3])
def test_what_has_no_order_or_length_is_refused_by_its_type(x):
    with pytest.raises(ValueError, match="must be an array, a frame or a list, got"):
        numbers(x)
    with pytest.raises(ValueError, match="must be an array, a frame or a list, got"):
        values(x)


class Raises:
    def __eq__(self, other):
        raise ValueError("a cell that cannot be compared")


def test_labels_compared_at_once_are_those_compared_one_by_one():
    """A cell that raises sends all of them the slow way, so both ways must say the same of each."""
    cells = [0, 1, 1.0, True, "1", "a", "a\0", None, float("nan"), Decimal(1), [1], np.int64(1), np.float32(0.1), 0.1]
    cells += [2**53, 2**53 + 1, float(2**53), np.array([1]), np.array([1, 2]), b"a", {}, 2**70, pd.NA, pd.NaT]
    for label in (0, 1, 1.0, True, "1", "a", "a\0", cells[8], 0.1, 2**53 + 1, np.int64(1), np.float32(0.1), 2**70):
        alone = [bool(equal(objects([one]), label)[0]) for one in cells]
        assert equal(objects(cells), label).tolist() == alone
        assert equal(objects([*cells, Raises()]), label).tolist() == [*alone, False]
        plain = objects([one for one in cells if isinstance(one, int | float | str)])
        assert equal(plain, label).tolist() == [one == label for one in plain]
