"""Noise over time: errors against dense matrices and the hull's engine, reaches against brute force."""

import itertools

import numpy as np
import pytest

from shapedp.numerics.ellipsoid import Points, best_ellipsoid
from shapedp.workloads import Banded, Buffered, StepSums, Toeplitz
from shapedp.workloads.time_bands import ONE


def dense_error(found, workload):
    return float(np.square(workload.matrix() @ np.linalg.inv(found.matrix())).sum())


@pytest.mark.parametrize("steps", [8, 64])
def test_all_bands_are_the_hull_of_the_prefix_sums(steps):
    workload = StepSums(steps)
    found = Banded.best(workload, bands=steps)
    golden = {8: 17.866177, 64: 282.20142}[steps]
    assert found.error(workload) == pytest.approx(golden, rel=1e-4)
    engine = best_ellipsoid(Points(workload.matrix().T), np.ones(steps), gap=1e-7, rounds=4000)
    assert engine.least <= found.error(workload) <= engine.least * 1.01
    assert found.least(workload) == pytest.approx(golden, rel=1e-6)


@pytest.mark.parametrize("bands", [1, 2, 8, 40])
@pytest.mark.parametrize("map_", [{}, {"momentum": 0.9}, {"momentum": 0.5, "rates": np.linspace(1.0, 0.1, 40)}])
def test_bands_are_near_their_proved_least(bands, map_):
    workload = StepSums(40, **map_)
    found = Banded.best(workload, bands)
    low = found.least(workload)
    assert low <= found.error(workload) <= low * 1.001
    assert found.error(workload) == pytest.approx(dense_error(found, workload), rel=1e-9)
    whole = np.array(found.columns, dtype=object)
    assert all(int((column * column).sum()) <= ONE * ONE for column in whole)
    rows, columns = np.nonzero(found.matrix())
    assert (rows - columns).min() == 0
    assert (rows - columns).max() < bands


def test_no_matrix_beats_the_lower_bound():
    rng, workload = np.random.default_rng(5), StepSums(12)
    low = Banded.best(workload, 4).least(workload)
    apart = np.subtract.outer(np.arange(12), np.arange(12))
    for _ in range(300):
        lower = np.where((apart >= 0) & (apart < 4), rng.normal(size=(12, 12)), 0.0)
        lower += np.eye(12) * rng.uniform(1, 4)
        lower /= np.linalg.norm(lower, axis=0)
        assert np.square(workload.matrix() @ np.linalg.inv(lower)).sum() > low
    near = Banded.best(workload, 4).matrix()
    for _ in range(300):
        lower = np.where((apart >= 0) & (apart < 4), near + 1e-3 * rng.normal(size=(12, 12)), 0.0)
        lower /= np.linalg.norm(lower, axis=0)
        assert np.square(workload.matrix() @ np.linalg.inv(lower)).sum() > low


@pytest.mark.parametrize("map_", [{}, {"momentum": 0.9}, {"momentum": 0.3, "rates": np.geomspace(2, 0.1, 60)}])
def test_toeplitz_errors_are_those_of_the_matrix(map_):
    workload = StepSums(60, **map_)
    for bands in (1, 5, 60):
        found = Toeplitz.best(workload, bands)
        assert found.error(workload) == pytest.approx(dense_error(found, workload), rel=1e-9)
    buffered = Buffered.best(workload, separation=20, buffers=2)
    assert buffered.error(workload) == pytest.approx(dense_error(buffered, workload), rel=1e-9)


def test_toeplitz_costs_little_where_there_are_many_more_steps_than_bands():
    workload = StepSums(256)
    assert Toeplitz.best(workload, 8).error(workload) <= 1.02 * Banded.best(workload, 8).error(workload)


def test_no_pattern_of_uses_moves_bands_further_than_they_say():
    """All patterns with at least `bands` steps between two uses, all signs: at most 1 per cycle, in squares."""
    rng = np.random.default_rng(3)
    for bands in (1, 2, 3):
        signed = rng.normal(size=(7, bands)) * [[1.0], [1], [1], [1], [1], [1], [1]]
        signed[:, 0] = np.abs(signed[:, 0]) + 1.5
        signed /= np.linalg.norm(signed, axis=1)[:, None]
        table = np.trunc(signed * ONE).astype(int)
        for at in range(7):
            table[at, 7 - at :] = 0
        found = Banded(tuple(tuple(int(one) for one in row) for row in table))
        lower = found.matrix()
        for uses in itertools.product((0, 1), repeat=7):
            steps = np.flatnonzero(uses)
            if len(steps) > 1 and np.diff(steps).min() < bands:
                continue
            for signs in itertools.product((-1, 1), repeat=len(steps)):
                moved = lower[:, steps] @ np.array(signs) if len(steps) else np.zeros(7)
                assert moved @ moved <= len(steps) * found.reach**2 * (1 + 1e-15)


def test_uses_closer_than_the_bands_move_more_than_they_say():
    found = Toeplitz.best(StepSums(8), 4).matrix()
    together = found[:, 0] + found[:, 1]
    assert together @ together > 3


@pytest.mark.parametrize("separation", [1, 2, 3, 5, 11])
def test_the_reach_of_buffers_is_the_worst_group_with_any_directions(separation):
    rng = np.random.default_rng(separation)
    found = Buffered.best(StepSums(11), separation=separation, buffers=2)
    lower, worst = found.matrix(), 0.0
    for group in range(separation):
        columns = lower[:, group::separation]
        for signs in itertools.product((-1, 1), repeat=columns.shape[1]):
            worst = max(worst, float(np.linalg.norm(columns @ np.array(signs))))
        for _ in range(50):
            moves = rng.normal(size=(columns.shape[1], 3))
            moves /= np.linalg.norm(moves, axis=1)[:, None]
            assert np.linalg.norm(columns @ moves) <= found.reach
    assert worst <= found.reach <= worst * (1 + 1e-12)


def test_buffers_come_near_the_best_of_one_use():
    workload = StepSums(64)
    found = Buffered.best(workload, separation=64, buffers=3)
    best = Toeplitz.best(workload, 64)
    assert found.reach**2 * found.error(workload) <= best.error(workload) * 1.01
    assert (found.unit, found.units, found.sampled) == (64, 1, False)


def test_columns_that_say_too_little_are_refused():
    with pytest.raises(ValueError, match="norm at most 1"):
        Toeplitz(5, (ONE, 1))
    with pytest.raises(ValueError, match="first entry"):
        Toeplitz(5, (0, 100))
    with pytest.raises(ValueError, match="below the last step"):
        Banded(((ONE // 2, 5), (ONE // 2, 5)))
    with pytest.raises(ValueError, match="stretches"):
        Toeplitz(50, (ONE // 100, ONE // 2))
    with pytest.raises(TypeError, match="whole numbers"):
        Toeplitz(5, (0.5,))
    with pytest.raises(ValueError, match="multiples of"):
        Buffered(5, 2, (0.3,), (0.5,))
    with pytest.raises(ValueError, match="1 - 2\\^-14"):
        Buffered(5, 2, (1.0,), (0.5,))
    with pytest.raises(ValueError, match=">= 0"):
        Buffered(5, 2, (0.5,), (-0.5,))
    with pytest.raises(ValueError, match="momentum"):
        StepSums(5, momentum=1.0)
    with pytest.raises(ValueError, match="one learning rate for each"):
        StepSums(5, rates=[1.0])
    with pytest.raises(ValueError, match="at most the 5 steps"):
        Banded.best(StepSums(5), 6)


JAX_PRIVACY = [  # version 2.0.0: experiments/workloads/noise_over_time.py
    ("bands", 64, 8, 439.4949879740184),
    ("bands", 256, 64, 1879.476932584132),
    ("Toeplitz", 1024, 8, 73017.56574814217),
    ("Toeplitz", 1024, 64, 16928.411748210016),
    ("buffers", 64, 16, 1547.219128879264),
    ("buffers", 256, 64, 8580.01333161274),
]


@pytest.mark.parametrize(("kind", "steps", "bands", "theirs"), JAX_PRIVACY)
def test_errors_are_those_of_jax_privacy(kind, steps, bands, theirs):
    workload = StepSums(steps)
    if kind == "buffers":
        found = Buffered.best(workload, bands)
        assert found.reach**2 * found.error(workload) <= 1.001 * theirs
        return
    found = (Banded if kind == "bands" else Toeplitz).best(workload, bands)
    assert found.error(workload) == pytest.approx(theirs, rel=1e-3)
