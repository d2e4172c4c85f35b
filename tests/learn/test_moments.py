"""Second moments: within their bound of exact arithmetic, the same in any order, no record touching another."""

from __future__ import annotations

import math
import pickle
import threading
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator

from shapedp.learn.base import read_table
from shapedp.learn.moments import Bounds, Partial, Reading, clipped, moments, one_blas_thread, totals
from shapedp.numerics.gram import BLOCK, GramSum, block_error, gram, gram_error, gram_sum
from shapedp.tables import InMemory
from shapedp.tables.sources import CHUNK

BOUNDS = Bounds(1.5, 0.75, 0.5)


def _data(n, d, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    return x, rng.normal(size=n)


def _rows(x, y, bounds=BOUNDS):
    """Clipped rows of one block."""
    with np.errstate(all="ignore"):
        return clipped(x, y, bounds, np.full((len(y), x.shape[1] + (bounds.constant > 0) + 1), np.nan)).copy()


def _exact(rows):
    """The Gram matrix in rational arithmetic."""
    columns = [[Fraction(value) for value in column] for column in rows.T]
    return [[sum(a * b for a, b in zip(p, q, strict=True)) for q in columns] for p in columns]


def _off(found, exact):
    """The Frobenius distance."""
    d = len(exact)
    return math.sqrt(sum(float(Fraction(found[i, j]) - exact[i][j]) ** 2 for i in range(d) for j in range(d)))


@pytest.mark.parametrize(("n", "d", "spread"), [(1, 3, 1.0), (1025, 2, 1.0), (4100, 2, 1e-9), (30, 4, 1e-20)])
def test_the_rounding_is_within_its_bound(n, d, spread):
    x, y = _data(n, d)
    x[:, 0] *= spread
    found = moments(InMemory(x, y), BOUNDS)
    rows = _rows(x, y)
    assert _off(found.gram, _exact(rows)) <= found.error
    assert found.error == pytest.approx(gram_error(n, d + 2) * BOUNDS.row**2)
    assert found.error < 1e-8
    np.testing.assert_array_equal(found.gram, found.gram.T)


def test_a_wide_gap_between_the_bounds_costs_nothing():
    """The grid follows each pair of columns, so a target in small units is as exact as one in large ones."""
    x, y = _data(2000, 3)
    one = moments(InMemory(x, y), Bounds(1.0, 1.0))
    tiny = moments(InMemory(x, y * 2.0**-60), Bounds(1.0, 2.0**-60))
    factors = np.array([1.0, 1.0, 1.0, 2.0**60])
    np.testing.assert_array_equal(tiny.gram * factors * factors[:, None], one.gram)


def test_neighbours_differ_by_their_record_within_the_block_error():
    x, y = _data(9000, 2, seed=4)
    found = moments(InMemory(x, y), BOUNDS)
    for at in (0, 4095, 4096, 8999):
        without_x, without_y = x.copy(), y.copy()
        without_x[at], without_y[at] = np.nan, 0.0
        neighbour = moments(InMemory(without_x, without_y), BOUNDS)
        row = _rows(x[at : at + 1], y[at : at + 1])[0]
        gap = np.linalg.norm(found.gram - neighbour.gram - np.outer(row, row))
        assert gap <= block_error(9000, 4) * BOUNDS.row**2 + 1e-15


def test_any_order_of_groups_and_any_split_gives_the_same_bits():
    x, y = _data(10 * CHUNK + 77, 5)
    table = InMemory(x, y)
    expected = moments(table, BOUNDS, threads=1)
    for threads in (2, 3, 5):
        np.testing.assert_array_equal(moments(table, BOUNDS, threads=threads).gram, expected.gram)
    parts = []
    for start in range(0, len(y), 2 * CHUNK):
        part = Partial(5, BOUNDS)
        with one_blas_thread():
            part.add(x[start : start + 2 * CHUNK], y[start : start + 2 * CHUNK])
        parts.append(pickle.loads(pickle.dumps(part)))
    for order in (parts, parts[::-1]):
        total = Partial(5, BOUNDS)
        for part in order:
            total.merge(part)
        np.testing.assert_array_equal(total.moments().gram, expected.gram)
        assert total.records == expected.records == len(y)
    with pytest.raises(ValueError, match="same bounds"):
        Partial(5, BOUNDS).merge(Partial(5, Bounds(3.0, 0.75, 0.5)))


@pytest.mark.parametrize("bounds", [BOUNDS, Bounds(1.5, 0.75)])
def test_the_last_rows_alone_have_the_bits_of_the_whole(bounds):
    """As passes over residuals take them: in threads, merged and sent to another process."""
    x, y = _data(3 * CHUNK + 77, 6)
    table, last = InMemory(x, y), len(bounds.beside)
    expected = np.tril(moments(table, bounds).gram)[-last:]
    found = totals(table, bounds, threads=3, cross=True)
    again = pickle.loads(pickle.dumps(found)).merge(Partial(6, bounds, cross=True))
    for one in (found, again):
        assert one.value().shape == (last, 6 + last)
        np.testing.assert_array_equal(np.tril(one.value(), 6), expected)
    with pytest.raises(ValueError, match="same bounds"):
        found.merge(Partial(6, bounds))


def test_the_same_bits_however_the_records_lie_in_memory():
    """Records that need no clipping are multiplied where they lie, others from a copy: nobody sees a difference."""
    x, y = _data(3 * BLOCK + 5, 7)
    x[:BLOCK] /= 1e3  # blocks where nothing is clipped, and blocks where much is
    kept = x.copy()
    one = moments(InMemory(x, y), BOUNDS).gram
    elsewhere = np.empty(x.size + 1)[1:].reshape(x.shape)  # 8 bytes further, beside the boundaries of vector units
    elsewhere[...] = x
    for other in (np.asfortranarray(x), np.repeat(x, 2, axis=0)[::2], sparse.csr_array(x), elsewhere):
        np.testing.assert_array_equal(moments(InMemory(other, y), BOUNDS).gram, one)
    found = []
    for cuts in ((slice(0, BLOCK), slice(BLOCK, None)), (slice(BLOCK, None), slice(0, BLOCK))):
        part = Partial(7, BOUNDS)  # a block that stays as it is, before those that do not and after them
        with one_blas_thread():
            for cut in cuts:
                part.add(x[cut], y[cut])
        found.append(part.moments().gram)
    np.testing.assert_array_equal(*found)
    np.testing.assert_array_equal(x, kept)
    y[::BLOCK] = np.nan
    moments(InMemory(x, y), BOUNDS)
    np.testing.assert_array_equal(x, kept)


def test_a_sum_carries_without_loss():
    """Many groups of full rows: the integers pass 2^63 of the grid many times over."""
    rows = np.full((BLOCK, 1), 1.0)
    total = GramSum(np.ones(1))
    for _ in range(3000):
        total.add([rows] * 4)
    assert total.value()[0, 0] == 3000 * 4 * BLOCK
    again = pickle.loads(pickle.dumps(total))
    again.add([rows])
    assert again.value()[0, 0] == 3000 * 4 * BLOCK + BLOCK


def test_dense_and_sparse_gram_agree():
    x = np.random.default_rng(1).normal(size=(5000, 3)) * (np.random.default_rng(2).random((5000, 3)) < 0.3)
    np.testing.assert_array_equal(gram(sparse.csr_array(x)), gram(x))
    np.testing.assert_array_equal(gram_sum([x[:4096], x[4096:]], np.abs(x).max(axis=0)), gram(x))
    np.testing.assert_allclose(gram(x), x.T @ x, rtol=1e-12)
    np.testing.assert_array_equal(gram(np.zeros((3, 2))), np.zeros((2, 2)))


ODD = {
    "rank-deficient": lambda x: x[:, [0, 0, 1]],
    "constant": lambda x: np.full_like(x, 0.3),
    "duplicated": lambda x: np.repeat(x[:1], len(x), axis=0),
    "all-zero": np.zeros_like,
    "far out": lambda x: x * 1e6,
    "huge": lambda x: x * 1e300,
    "infinite products": lambda x: np.where(x > 0, 1.7e308, -1.7e308),
    "tiny": lambda x: x * 1e-300,
    "subnormal": lambda x: x * 5e-324,
    "on the bound": lambda x: 1.5 * x / np.linalg.norm(x, axis=1, keepdims=True),
    "mixed": lambda x: x * 10.0 ** np.linspace(-320, 300, len(x))[:, None],
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("n", [1, 2, 40])
def test_odd_data_stay_within_the_bounds_and_apart(kind, n):
    x, y = _data(n, 3, seed=7)
    x = ODD[kind](x)
    rows = _rows(x, y)
    assert np.isfinite(rows).all()
    for row in rows:
        assert sum(Fraction(value) ** 2 for value in row[:3]) <= Fraction(BOUNDS.feature) ** 2
        assert row[3] == BOUNDS.constant
        assert abs(row[4]) <= BOUNDS.target
        assert sum(Fraction(value) ** 2 for value in row) <= Fraction(BOUNDS.row) ** 2
    inside = np.array([sum(Fraction(v) ** 2 for v in row) < Fraction(BOUNDS.feature) ** 2 * 0.999 for row in x])
    np.testing.assert_array_equal(rows[inside, :3], x[inside])
    scaled = ~inside & (np.abs(x).max(axis=1) < 1e100)
    length = np.linalg.norm(rows[:, :3], axis=1)
    np.testing.assert_allclose(length[scaled], np.minimum(np.linalg.norm(x[scaled], axis=1), 1.5), rtol=1e-12)
    for given in (x, np.asfortranarray(x), sparse.csr_array(x)):
        assert np.isfinite(moments(read_table(BaseEstimator(), given, y), BOUNDS).gram).all()


def test_no_record_depends_on_the_others_of_its_block():
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(300, 4)), rng.normal(size=300)
    x[::7] *= 1e3
    x[::11] *= 1e250
    x[3], x[5, 2], x[8, 0], y[13], y[21] = 1e-310, np.nan, -np.inf, np.nan, np.inf
    rows = _rows(x, y)
    for given in (x, np.asfortranarray(x), sparse.csr_array(x)):
        for i in range(300):
            np.testing.assert_array_equal(_rows(given[i : i + 1], y[i : i + 1])[0], rows[i])
    assert not rows[[5, 8, 13, 21]].any()
    assert rows[3, 4] != 0


def test_a_record_that_is_not_finite_is_a_row_of_zeros():
    x, y = _data(6000, 3)
    kept = np.ones(6000, dtype=bool)
    for at, column, value in ((0, 0, np.nan), (4096, 1, np.inf), (5999, 2, -np.inf)):
        x[at, column], kept[at] = value, False
    y[17], kept[17] = np.nan, False
    found = moments(InMemory(x, y), BOUNDS)
    cleared = np.where(kept[:, None], x, 0.0)
    rows = np.vstack([_rows(cleared[i : i + 1000], y[i : i + 1000]) for i in range(0, 6000, 1000)])
    rows[~kept] = 0.0
    np.testing.assert_allclose(found.gram, rows.T @ rows, rtol=1e-12)
    assert found.records == 6000


def test_explicit_zeros_and_duplicates_of_sparse_matrices():
    entries = ([0.5, 0.25, 0.0, 1e300, 1.0, np.inf, -np.inf], ([0, 0, 1, 2, 2, 3, 3], [1, 1, 0, 0, 2, 1, 1]))
    x = sparse.coo_matrix(entries, shape=(5, 3))
    found = moments(read_table(BaseEstimator(), x, np.ones(5)), Bounds(2.0, 1.0))
    dense = np.zeros((5, 4))
    dense[:, 3] = 1.0
    dense[0, 1], dense[2, 0] = 0.75, 2.0
    dense[3] = 0.0
    np.testing.assert_allclose(found.gram, dense.T @ dense, rtol=1e-8)


def test_fewer_records_than_columns_and_one_record():
    for n, d in ((1, 1), (1, 20), (5, 60)):
        x, y = _data(n, d)
        found = moments(InMemory(x / 10, y / 10), BOUNDS)
        rows = np.column_stack([x / 10, np.full(n, 0.5), y / 10])
        np.testing.assert_allclose(found.gram, rows.T @ rows, rtol=0, atol=found.error)


def test_many_tiny_pieces_are_refused_where_their_rounding_is_not_covered():
    part = Partial(1, BOUNDS)
    for _ in range(65):
        part.add(np.ones((1, 1)), np.ones(1))
    part.moments()
    part.add(np.ones((1, 1)), np.ones(1))
    with pytest.raises(ValueError, match="66 pieces"):
        part.moments()
    with pytest.raises(ValueError, match="at least one record"):
        Partial(1, BOUNDS).moments()


def test_reading_passes_once_and_knows_the_records_before_where_it_can():
    passes = []

    class Counted(InMemory):
        def blocks(self):
            passes.append(1)
            return super().blocks()

    x, y = _data(10, 2)
    reading = Reading(Counted(x, y), BOUNDS)
    assert reading.records == 10
    assert not passes
    assert reading.moments is reading.moments
    assert passes == [1]


def test_an_error_while_reading_stops_every_thread():
    class Broken(InMemory):
        def blocks(self):
            yield from list(super().blocks())[:3]
            raise OSError("the disk is gone")

    x, y = _data(20 * CHUNK, 1)
    before = threading.active_count()
    with pytest.raises(OSError, match="disk is gone"):
        moments(Broken(x, y), BOUNDS, threads=3)
    assert threading.active_count() == before


def test_matrix_products_get_their_threads_back():
    from threadpoolctl import threadpool_info

    def blas():
        return sorted(info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas")

    before = blas()
    with one_blas_thread(), one_blas_thread():
        assert set(blas()) == {1}
    assert blas() == before


def test_progress_is_shown_when_asked_for(capsys):
    pytest.importorskip("tqdm")
    x, y = _data(5000, 2)
    moments(InMemory(x, y), BOUNDS)
    assert capsys.readouterr().err == ""
    moments(InMemory(x, y), BOUNDS, progress=True)
    assert "5000/5000" in capsys.readouterr().err
