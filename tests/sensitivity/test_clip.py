"""Clips: every row in the set, exactly; the declared sensitivity of the sum holds by brute force."""

from __future__ import annotations

import math
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.sensitivity.helpers import ADJACENCIES, DIM, FORMS, SETS, bounds, dense, exact, holds, minus, total

from shapedp.sensitivity import L1, L2, Blocks, Box

EVERY_SET = pytest.mark.parametrize("name", SETS)
EVERY_FORM = pytest.mark.parametrize("form", FORMS)
EVERY_ADJACENCY = pytest.mark.parametrize("adjacency", ADJACENCIES)


def table(seed: int, n: int = 12, dim: int = DIM) -> np.ndarray:
    """Rows inside, outside, at zero, and of magnitudes from 1e-300 to 1e300, some of both in one row."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, dim)) * 10.0 ** rng.integers(-4, 4, size=(n, 1))
    rows[rng.random((n, dim)) < 0.25] = 0.0
    rows[0] = 0.0
    rows[1] *= 1e300 / np.abs(rows[1]).max()
    rows[2] *= 1e-300
    rows[3, 0], rows[3, 3] = 1e300, 5.0
    rows[4, 1], rows[4, 4] = -1e300, 1e-300
    return rows


@EVERY_SET
@EVERY_FORM
@EVERY_ADJACENCY
def test_rows_lie_in_the_set_and_the_sum_moves_by_no_more_than_declared(name, form, adjacency):
    """Neighbours are clipped from scratch, so that a clip in which rows depend on each other would fail."""
    base = SETS[name]
    rows, other = table(1), table(2)
    clipped, declared = base.clip(FORMS[form](rows), adjacency=adjacency)
    assert declared.adjacency == adjacency
    assert all(holds(base, row) for row in exact(clipped))
    whole = total(exact(clipped), DIM)
    reached = False
    for i in range(len(rows)):
        neighbour = rows.copy()
        if adjacency == "add-remove":
            neighbour = np.delete(rows, i, axis=0)
        elif adjacency == "zero-out":
            neighbour[i] = 0
        else:
            neighbour[i] = -rows[i] if i % 2 else other[i]
        again, _ = base.clip(FORMS[form](neighbour), adjacency=adjacency)
        difference = minus(whole, total(exact(again), DIM))
        assert holds(declared, difference)
        reached |= not holds(declared.scaled(0.999, adjacency), difference)
    assert reached, "the declared set is larger than what one person can do"


@EVERY_SET
def test_forms_agree(name):
    rows = table(3)
    results = [dense(SETS[name].clip(make(rows), adjacency="add-remove")[0]) for make in FORMS.values()]
    for result in results[1:]:
        np.testing.assert_allclose(result, results[0], rtol=1e-14, atol=2.0**-29 * bounds(SETS[name]).max())


@EVERY_SET
@EVERY_FORM
def test_rows_inside_keep_their_value_up_to_the_grid(name, form):
    base = SETS[name]
    inside, _ = base.clip(table(4), adjacency="replace")
    inside *= 0.99
    again = dense(base.clip(FORMS[form](inside), adjacency="replace")[0])
    gap = np.abs(inside) - np.abs(again)
    assert (gap >= 0).all()
    assert (gap <= 2.0**-29 * bounds(base)).all()
    assert np.array_equal(np.sign(again) * np.sign(inside) >= 0, np.ones_like(again, dtype=bool))


@EVERY_SET
def test_rows_outside_reach_the_boundary(name):
    base = SETS[name]
    moving = ~base.fixed()
    rows = table(5) * 1e3
    clipped, _ = base.clip(rows, adjacency="add-remove")
    smaller = base.scaled(1 - 1e-6, None)
    out = [i for i, row in enumerate(exact(rows * moving)) if not holds(base, row)]
    assert len(out) >= 6
    for i in out:
        assert not holds(smaller, exact(clipped[i : i + 1])[0])
        if not isinstance(base, Box | Blocks):  # a ball keeps the direction
            entries = np.flatnonzero(np.abs(clipped[i]) > 1e-4 * bounds(base))
            ratios = clipped[i][entries] / rows[i][entries]
            np.testing.assert_allclose(ratios, ratios[0], rtol=1e-3)


@EVERY_SET
def test_sums_are_exact_in_any_order(name):
    rng = np.random.default_rng(6)
    clipped, _ = SETS[name].clip(rng.normal(size=(2000, DIM)) * 2, adjacency="add-remove")
    true = [float(x) for x in total(exact(clipped), DIM)]
    assert [Fraction(x) for x in true] == total(exact(clipped), DIM)
    for _ in range(5):
        shuffled = clipped[rng.permutation(len(clipped))]
        assert shuffled.sum(axis=0).tolist() == true
        assert np.add.reduce(shuffled[::-1], axis=0).tolist() == true
        assert (np.ones(len(shuffled)) @ shuffled).tolist() == true
    grid = np.ldexp(1.0, np.frexp(np.where(bounds(SETS[name]) > 1e-300, bounds(SETS[name]), 1.0))[1] - 31)
    assert (clipped / grid == np.rint(clipped / grid)).all()


@EVERY_SET
@pytest.mark.parametrize("form", ["dense", "csr", "coo"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_not_finite_is_refused_first(name, form, bad):
    """Before the shape is looked at: the table also has the wrong number of columns."""
    rows = np.ones((3, DIM + 1))
    rows[1, 2] = bad
    with pytest.raises(ValueError, match="rows must be finite"):
        SETS[name].clip(FORMS[form](rows), adjacency="replace")
    both = np.ones((3, DIM))
    both[0, 0], both[2, 1] = np.inf, -np.inf
    with pytest.raises(ValueError, match="rows must be finite"):
        SETS[name].clip(FORMS[form](both), adjacency="replace")


EXTREMES = [1e-320, 1e-300, 1e-200, 1e-100, 1.0, 1e100, 1e200, 8e307]


@pytest.mark.parametrize("radius", EXTREMES)
@pytest.mark.parametrize("make", [L1, L2, lambda r, d: Box(np.full(d, r)), lambda r, d: Blocks([r, r], [1, d - 1])])
def test_extreme_values_and_radii(make, radius):
    base = make(radius, 3)
    rows = np.array([[s, s * t, -s] for s in [*EXTREMES, 0.0] for t in (1.0, 1e-200)])
    for form in ("dense", "csr"):
        clipped = dense(base.clip(FORMS[form](rows), adjacency="zero-out")[0])
        assert all(holds(base, row) for row in exact(clipped))
        for before, after in zip(rows, clipped, strict=True):
            if not before.any():
                assert not after.any()
            elif radius >= 1e-300 and before[0] >= radius:  # outside: near the boundary, not lost
                assert not holds(make(radius * 0.999, 3), exact(after[None])[0])
            elif radius >= 1e-300 and before[0] <= radius / 4:  # inside: kept up to the grid
                assert (np.abs(before - after) <= max(2.0**-29 * radius, 2.0**-1021)).all()


def test_extreme_scales_of_an_ellipsoid():
    scales = np.array([1e-290, 1e-100, 1.0, 1e100, 1e290])
    base = L2(2.0, 5, scales=scales)
    rows = np.concatenate(
        [np.diag(scales) * t for t in (0.5, 1.0, 3.0, 1e15)] + [np.outer([1e-280, 1.0, 1e300], np.ones(5))]
    )
    clipped, _ = base.clip(rows, adjacency="add-remove")
    assert all(holds(base, row) for row in exact(clipped))
    np.testing.assert_allclose(clipped[:5], np.diag(scales) / 2, rtol=1e-8)
    np.testing.assert_allclose(clipped[15:20], np.diag(scales) * 2, rtol=1e-8)
    with pytest.raises(ValueError, match="radius times scales"):
        L2(1e300, 1, scales=[1e300])
    with pytest.raises(ValueError, match="radius times scales"):
        L2(1e-300, 2, scales=[1e-300, 1.0])


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("radius", [2**29 + 1, 2**29 + 12345, 2**30 - 1])
def test_rows_outside_by_less_than_rounding_are_pulled_in(radius, form):
    """R^2 + 1 > R^2, entries on the grid, and the float64 norm is R: only an allowance for rounding sees it."""
    rows = np.array([[radius, 1.0], [1.0, -radius]])
    for base in (L2(radius, 2), Blocks([radius], [2]), L2(radius / 2, 2, scales=[2.0, 2.0])):
        clipped, _ = base.clip(FORMS[form](rows), adjacency="add-remove")
        assert not any(holds(base, row) for row in exact(rows))
        assert all(holds(base, row) for row in exact(clipped))
        np.testing.assert_allclose(dense(clipped), rows, atol=2)


@EVERY_SET
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_no_row_depends_on_another(name, form):
    """Bit for bit, with and without rows that are huge, tiny, or hold more entries."""
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(40, DIM)) * 3 * (rng.random((40, DIM)) < 0.4)
    base = SETS[name]
    alone = dense(base.clip(FORMS[form](rows), adjacency="add-remove")[0])
    for extra in (np.full(DIM, 1e300), np.full(DIM, 1e-300), np.ones(DIM), 1e300 * np.eye(DIM)[2]):
        joined = dense(base.clip(FORMS[form](np.vstack([extra, rows])), adjacency="add-remove")[0])
        assert np.array_equal(joined[1:], alone)
    for i in range(5):
        single = dense(base.clip(FORMS[form](rows[i : i + 1]), adjacency="add-remove")[0])
        assert np.array_equal(single[0], alone[i])


@EVERY_SET
@EVERY_FORM
def test_empty_table(name, form):
    clipped, declared = SETS[name].clip(FORMS[form](np.zeros((0, DIM))), adjacency="add-remove")
    assert clipped.shape == (0, DIM)
    assert declared.dim == DIM
    nothing = dense(SETS[name].clip(FORMS[form](np.zeros((3, DIM))), adjacency="add-remove")[0])
    assert not nothing.any()


@EVERY_SET
def test_kinds_of_input(name):
    base = SETS[name]
    whole = np.arange(-10, 10).reshape(4, DIM)
    want, _ = base.clip(whole.astype(float), adjacency="add-remove")
    read_only = whole.astype(float)
    read_only.setflags(write=False)
    wide = np.zeros((8, 2 * DIM))
    wide[::2, ::2] = whole
    given = [whole, whole.astype(np.int8), whole.astype(np.float32), read_only, wide[::2, ::2], whole.tolist()]
    given += [sparse.csr_array(whole), sparse.coo_array(whole.astype(np.int8)), sparse.lil_array(whole)]
    for rows in given:
        before = dense(rows).copy()
        got = base.clip(rows, adjacency="add-remove")[0]
        assert dense(got).dtype == np.float64
        np.testing.assert_allclose(dense(got), want, rtol=1e-12, atol=2.0**-28)
        assert np.array_equal(dense(rows), before)
    for rows in (np.ones((2, DIM), dtype=bool), np.ones((2, DIM), dtype=complex), np.full((2, DIM), "1")):
        with pytest.raises(TypeError, match="rows must"):
            base.clip(rows, adjacency="add-remove")
    for rows in (np.ones(DIM), np.ones((2, DIM - 1)), sparse.csr_array(np.ones((2, DIM + 1)))):
        with pytest.raises(ValueError, match="rows must"):
            base.clip(rows, adjacency="add-remove")
    with pytest.raises(ValueError, match="adjacency must"):
        base.clip(whole, adjacency="substitute")
    with pytest.raises(TypeError):
        base.clip(whole)


@EVERY_SET
def test_duplicate_entries_are_added_before_clipping(name):
    """Two entries of 0.6 of a bound are one entry beyond it; the user's matrix is left alone."""
    row, column, entry = [0, 0, 1, 1, 1], [0, 0, 3, 0, 3], [0.6, 0.6, 2.0, 5.0, 2.0]
    coo = sparse.coo_array((entry, (row, column)), shape=(2, DIM))
    csr = sparse.csr_array((np.array(entry), np.array(column), np.array([0, 2, 5])), shape=(2, DIM))
    for rows in (coo, csr):
        clipped = SETS[name].clip(rows, adjacency="add-remove")[0]
        assert all(holds(SETS[name], row) for row in exact(clipped))
        want, _ = SETS[name].clip(coo.toarray(), adjacency="add-remove")
        np.testing.assert_allclose(clipped.toarray(), want, rtol=1e-12, atol=2.0**-28)
        assert rows.nnz == 5
    too_much = sparse.coo_array(([1.7e308, 1.7e308], ([0, 0], [1, 1])), shape=(1, DIM))
    with pytest.raises(ValueError, match="rows must be finite"):
        SETS[name].clip(too_much, adjacency="add-remove")


numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-4, 4),
    st.sampled_from([0.0, -0.0, 5e-324, 1e-300, 1.0, 1e300, -1.7976931348623157e308]),
)
lengths = st.one_of(st.floats(1e-3, 1e3), st.floats(1e-305, 1e300))


@st.composite
def cases(draw):
    dim = draw(st.integers(1, 6))
    kind = draw(st.sampled_from(["l2", "ellipsoid", "l1", "box", "blocks"]))
    if kind == "l1":
        base = L1(draw(lengths), dim)
    elif kind == "l2":
        base = L2(draw(lengths), dim)
    elif kind == "ellipsoid":
        base = L2(draw(st.floats(1e-3, 1e3)), dim, scales=draw(st.lists(lengths, min_size=dim, max_size=dim)))
    elif kind == "box":
        base = Box(
            [draw(lengths), *draw(st.lists(st.one_of(lengths, st.just(0.0)), min_size=dim - 1, max_size=dim - 1))]
        )
    else:
        cut = draw(st.integers(1, dim))
        radii, sizes = (
            ([draw(lengths)], [dim])
            if cut == dim
            else ([draw(lengths), draw(st.one_of(lengths, st.just(0.0)))], [cut, dim - cut])
        )
        base = Blocks(radii, sizes)
    rows = draw(st.lists(st.lists(numbers, min_size=dim, max_size=dim), min_size=1, max_size=4))
    return base, np.array(rows), draw(st.sampled_from(["dense", "csr"]))


@settings(max_examples=300, deadline=None)
@given(cases())
def test_any_row_lands_in_any_set(case):
    base, rows, form = case
    clipped = dense(base.clip(FORMS[form](rows), adjacency="add-remove")[0])
    assert all(holds(base, row) for row in exact(clipped))
    again = dense(base.clip(FORMS[form](clipped), adjacency="add-remove")[0])
    limit = np.maximum(2.0**-29 * bounds(base), 2.0**-1021)
    assert (np.abs(clipped - again) <= limit).all()
    assert (clipped * np.sign(rows) >= 0).all()
    assert (np.abs(clipped) <= np.abs(rows)).all()
    whole, _ = base.clip(rows, adjacency="replace")
    assert np.isfinite(whole).all()


@pytest.mark.parametrize("name", ["l2", "ellipsoid", "l1", "box", "blocks"])
def test_a_million_rows_take_about_a_second(name):
    """Vectorised: a loop over rows takes at least ten times the bound."""
    dim = 20
    base = {
        "l2": L2(1.0, dim),
        "ellipsoid": L2(1.0, dim, scales=np.arange(1.0, dim + 1)),
        "l1": L1(1.0, dim),
        "box": Box(np.linspace(0.1, 1, dim)),
        "blocks": Blocks(np.ones(4), [5, 5, 5, 5]),
    }[name]
    rows = np.random.default_rng(8).normal(size=(200_000, dim))
    start = time.process_time()
    clipped, _ = base.clip(rows, adjacency="add-remove")
    assert time.process_time() - start < 1.0  # a fifth of a million rows
    assert clipped.shape == rows.shape
    assert math.isfinite(float(clipped.sum()))
