"""Slices of a mode, tensor shapes of the other sets, and symmetric matrices."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from shapedp.mechanisms import calibrate
from shapedp.sensitivity import (
    L1,
    L2,
    Blocks,
    Box,
    Slices,
    sensitivity_from_json,
    symmetric,
    symmetric_matrix,
    upper_triangle,
)

RNG = np.random.default_rng(8)
SHAPE = (3, 4, 2)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_slices_are_blocks_in_another_order(mode):
    radii = RNG.uniform(size=SHAPE[mode])
    slices, scales = Slices(radii, SHAPE, mode), RNG.uniform(0.1, 2, size=24)
    order = np.moveaxis(np.arange(24).reshape(SHAPE), mode, 0).reshape(-1)
    blocks = Blocks(radii, np.full(radii.size, 24 // radii.size))
    assert slices.l2_reach(scales) == blocks.l2_reach(scales[order])
    assert slices.l1_reach(scales) == blocks.l1_reach(scales[order])
    assert slices.l2_reach(np.ones(1)) == blocks.l2_reach(np.ones(1))
    assert np.array_equal(slices.extreme()[order], blocks.extreme())
    assert np.array_equal(slices.by_slice(scales), scales[order])
    assert np.array_equal(slices.in_place(scales[order]), scales)
    none = Slices(np.where(np.arange(radii.size) == 0, 0.0, radii), SHAPE, mode)
    assert np.array_equal(none.fixed()[order], np.arange(24) < 24 // radii.size)


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("form", [np.array, sparse.csr_array])
def test_clipped_slices_lie_in_the_set_exactly(mode, form):
    radii = RNG.uniform(0.1, 1, size=SHAPE[mode])
    rows = RNG.normal(size=(20, 24)) * 10.0 ** RNG.integers(-3, 3, size=(20, 1))
    clipped, sensitivity = Slices(radii, SHAPE, mode).clip(form(rows), adjacency="replace")
    dense = clipped.toarray() if sparse.issparse(clipped) else clipped
    assert np.array_equal(sensitivity.radii, 2 * radii)
    assert sensitivity.shape == SHAPE
    for row, before in zip(dense, rows, strict=True):
        parts, given = (np.moveaxis(v.reshape(SHAPE), mode, 0).reshape(radii.size, -1) for v in (row, before))
        for part, whole, radius in zip(parts, given, radii, strict=True):
            assert sum(Fraction(float(x)) ** 2 for x in part) <= Fraction(float(radius)) ** 2
            if np.linalg.norm(whole) < radius * 0.99:
                np.testing.assert_allclose(part, whole, atol=2e-9 * radius)


def test_rows_may_have_the_shape_of_the_query():
    rows = RNG.normal(size=(6, *SHAPE))
    for base in (Slices([1.0, 0.5], SHAPE, 2), L2(1.0, shape=SHAPE), L1(1.0, shape=SHAPE), Box(np.full(SHAPE, 0.3))):
        clipped, sensitivity = base.clip(rows, adjacency="add-remove")
        flat, _ = base.clip(rows.reshape(6, 24), adjacency="add-remove")
        assert clipped.shape == rows.shape
        assert np.array_equal(clipped.reshape(6, 24), flat)
        assert sensitivity.shape == SHAPE


@pytest.mark.parametrize(
    "base",
    [
        Slices([1.0, 0.0, 2.5], (3, 5), 0, adjacency="replace"),
        L2(1.0, shape=SHAPE),
        L2(1.0, shape=(2, 2), scales=[[1.0, 2.0], [3.0, 4.0]]),
        L1(0.5, shape=SHAPE),
        Box(np.full((2, 3), 0.1)),
    ],
    ids=lambda base: base.kind,
)
def test_json_restores_shapes(base):
    again = sensitivity_from_json(json.loads(json.dumps(base.to_json())))
    assert type(again) is type(base)
    assert again.to_json() == base.to_json()
    assert (again.shape, again.dim) == (base.shape, base.dim)
    assert again.l2_reach(np.ones(1)) == base.l2_reach(np.ones(1))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Slices([1.0, 2.0], (3, 4), 0),
        lambda: Slices([1.0, 2.0], (2, 4), 2),
        lambda: Slices([1.0, 2.0], (2, 4), -1),
        lambda: Slices([0.0, 0.0], (2, 4), 0),
        lambda: Slices([1.0, math.nan], (2, 4), 0),
        lambda: Slices([1.0, -1.0], (2, 4), 0),
        lambda: Slices([1.0], (), 0),
        lambda: Slices([1.0], (1, 0), 0),
        lambda: Slices([1.0], "1x2", 0),
        lambda: L2(1.0),
        lambda: L2(1.0, 4, shape=(2, 2)),
        lambda: L1(1.0, shape=4),
        lambda: L2(1.0, shape=(2, 2), scales=np.ones((4, 1))),
    ],
)
def test_bad_shapes(make):
    with pytest.raises((ValueError, TypeError), match=r"radii|mode|shape|dim|scales"):
        make()


def test_symmetric_matrices_are_released_isometrically():
    """|V|_F is the ellipsoid's norm of the triangle; the noise of the matrix is that of a ball in n (n + 1)/2."""
    matrix = RNG.normal(size=(4, 4))
    matrix += matrix.T
    triangle = upper_triangle(matrix)
    assert np.array_equal(symmetric_matrix(triangle), matrix)
    base = symmetric(1.5, 4)
    assert np.linalg.norm(triangle / base.scales) == pytest.approx(np.linalg.norm(matrix), rel=1e-12)
    assert np.linalg.norm(triangle / base.scales) <= np.linalg.norm(matrix) * (1 + 1e-15)
    m = calibrate("gaussian", base, epsilon=1.0, delta=1e-5)
    ball = calibrate("gaussian", L2(1.5, 10), epsilon=1.0, delta=1e-5)
    twice = np.where(base.scales == 1, 1.0, 2.0)
    assert m.law.weighted_second_moment(twice) == pytest.approx(ball.expected_squared_error, rel=1e-9)
    noisy = symmetric_matrix(m.release(triangle).value)
    assert np.array_equal(noisy, noisy.T)


@pytest.mark.parametrize("bad", [np.ones((2, 3)), [[1.0, 2.0], [3.0, 4.0]], [[1.0, math.nan], [math.nan, 1.0]], 3.0])
def test_bad_symmetric_matrices(bad):
    with pytest.raises(ValueError, match="matrix"):
        upper_triangle(bad)


def test_bad_triangles():
    for bad in (np.ones(4), np.ones((3, 1)), []):
        with pytest.raises((ValueError, TypeError), match="values"):
            symmetric_matrix(bad)
