"""A vector's angles depended, in the last digit, on the other vectors converted with it.

A record on an axis, or of tiny or huge size, chose the route of all records in its panel. Their angles moved by a unit
in the last place, and those beside a grid point of the clip by a step each: the sum moved by up to 6e-5 of its bound
more than the box said.
"""

from __future__ import annotations

import numpy as np
import pytest

from shapedp.mechanisms.angles import AngleWindows
from shapedp.numerics.hyperspherical import to_angles
from shapedp.sensitivity import Box

ODD = {
    "on an axis": lambda d: np.eye(1, d)[0],
    "zeros": lambda d: np.zeros(d),
    "tiny": lambda d: np.full(d, 1e-170),
    "huge": lambda d: np.full(d, 1e150),
    "tiny behind": lambda d: np.where(np.arange(d) < d // 2, 1.0, 1e-180),
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("d", [2, 3, 10, 100, 1000, 1500, 5000])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_vector_has_the_angles_that_it_has_alone(kind, d, dtype):
    rows = np.random.default_rng(d).normal(size=(60, d)).astype(dtype)
    with np.errstate(over="ignore"):
        odd = np.nan_to_num(ODD[kind](d).astype(dtype), posinf=1e30)
    for place in (0, 30, 60):
        norm, angles = to_angles(np.insert(rows, place, odd, axis=0))
        others = np.arange(61) != place
        for i, (length, row) in enumerate(zip(norm[others], angles[others], strict=True)):
            alone = to_angles(rows[i])
            assert length == alone[0]
            assert row.tobytes() == alone[1].tobytes()
        assert angles[place].tobytes() == to_angles(odd)[1].tobytes()


def test_one_record_moves_the_sums_by_no_more_than_the_box():
    """Thirty thousand equal records whose angle lies beside a grid point, and one on an axis."""
    mechanism = AngleWindows.calibrate(
        dim=3, clip=1.0, batch=600, epsilon=1.0, delta=1e-5, half_widths=[0.5, 3.0], adjacency="add-remove"
    )
    clip, rng = Box(np.array([1.0, 0.5, 3.0])), np.random.default_rng(0)
    plain = rng.normal(size=(100_000, 2))
    angles = rng.integers(1, 2**29, size=len(plain)) * 2.0**-30
    rows = np.column_stack([np.tan(angles) * np.hypot(*plain.T), plain])
    clipped = [clip.clip(np.column_stack(found), adjacency="add-remove")[0] for found in _ways(rows)]
    beside = np.flatnonzero((clipped[0] != clipped[1])[:, 1])[:3]  # where one unit decides about a step
    assert beside.size
    for record in rows[beside]:
        others = np.tile(record, (30_000, 1))
        before = mechanism.query(others)
        for odd in (np.eye(1, 3), -np.eye(1, 3), np.full((1, 3), -1e-170)):
            moved = np.abs(mechanism.query(np.concatenate([odd, others])) - before)
            assert (moved <= mechanism.sensitivity.profile).all()


def _ways(rows):
    """Norms and angles with every first angle one unit in the last place lower, and higher."""
    norm, angles = to_angles(rows)
    for side in (-1.0, 1.0):
        moved = angles.copy()
        moved[:, 0] = np.nextafter(angles[:, 0], side)
        yield norm, moved
