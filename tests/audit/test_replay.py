"""The replay audit: passes the library's own releases, catches what reaches a release unbounded."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
from tests.audit.helpers import sets

import shapedp as sdp
from shapedp import audit
from shapedp.audit.gauge import gauge
from shapedp.mechanisms import AdaptiveMixing
from shapedp.sensitivity import ADJACENCIES

ROWS = np.random.default_rng(0).exponential(size=(40, 4))
CLAIM = {"epsilon": 1.0, "delta": 1e-6}
BALL = sdp.L2(1.0, 4)


def calibrated(sensitivity):
    return sdp.calibrate("gaussian", sensitivity, **CLAIM)


def clipped_sum(rows, ball=BALL, adjacency="add-remove"):
    clipped, sensitivity = ball.clip(rows, adjacency=adjacency)
    return calibrated(sensitivity).release(clipped.sum(axis=0))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("kind", sets(4))
def test_the_librarys_own_releases_pass(kind, adjacency):
    result = audit.replay(
        lambda rows: clipped_sum(rows, sets(4)[kind], adjacency),
        audit.neighbours(ROWS, adjacency=adjacency, pairs=9),
        adjacency=adjacency,
    )
    assert result.passed, result.explain()
    assert result.largest > 0.99  # the pairs do stress the bound
    assert result.largest <= 1


def test_an_adaptive_run_passes_because_its_releases_are_replayed():
    """Each query depends on the noisy answer before: only a replay of that answer makes them comparable."""

    def descent(rows):
        point = np.zeros(4)
        for _ in range(5):
            clipped, sensitivity = BALL.clip(rows - point, adjacency="add-remove")
            point = point + 0.01 * calibrated(sensitivity).release(clipped.sum(axis=0)).value
        return point

    result = audit.replay(descent, audit.neighbours(ROWS, adjacency="add-remove"), adjacency="add-remove")
    assert result.passed, result.explain()
    assert result.releases == 5 * 8


def test_a_batch_is_checked_query_by_query():
    def run(rows, factor=1.0):
        clipped, sensitivity = BALL.clip(rows, adjacency="add-remove")
        total = clipped.sum(axis=0)
        return calibrated(sensitivity).release(np.stack([total, factor * total]), batch=2)

    pairs = audit.neighbours(ROWS, adjacency="add-remove")
    assert audit.replay(run, pairs).passed
    assert not audit.replay(lambda rows: run(rows, 1.5), pairs).passed


def measured_bound(rows):
    return calibrated(sdp.Box(np.abs(rows).max(axis=0))).release(rows.sum(axis=0))


def measured_clip(rows):
    radius = float(np.median(np.linalg.norm(rows, axis=1)))
    clipped, _ = sdp.L2(radius, 4).clip(rows, adjacency="add-remove")
    return calibrated(sdp.L2(1.0, 4, adjacency="add-remove")).release(clipped.sum(axis=0))


def clip_after_the_sum(rows):
    clipped, _ = sdp.L2(20.0, 4).clip(rows.sum(axis=0)[None], adjacency="add-remove")
    return calibrated(sdp.L2(1.0, 4, adjacency="add-remove")).release(clipped[0])


def no_clip(rows):
    return calibrated(sdp.L2(1.0, 4, adjacency="add-remove")).release(rows.sum(axis=0))


def mean_with_the_noise_of_a_count(rows):
    clipped, _ = BALL.clip(rows, adjacency="add-remove")
    return calibrated(sdp.L2(1.0 / 50, 4, adjacency="add-remove")).release(clipped.sum(axis=0) / len(rows))


def iterations_from_the_data(rows):
    return [clipped_sum(rows) for _ in range(1 + int(np.abs(rows).max() > 100))]


def order_from_the_data(rows):
    first, second = sdp.L2(1.0, 4), sdp.L2(2.0, 4)
    balls = (first, second) if rows.max() > 100 else (second, first)
    return [clipped_sum(rows, ball) for ball in balls]


def count_by_another_door(rows):
    return clipped_sum(rows).value / len(rows)


def failure_from_the_data(rows):
    if rows.max() > 100:
        raise ValueError("too large")
    return clipped_sum(rows)


LEAKS = {
    measured_bound: "claim",
    measured_clip: "sensitivity",
    clip_after_the_sum: "sensitivity",
    no_clip: "sensitivity",
    mean_with_the_noise_of_a_count: "sensitivity",
    iterations_from_the_data: "control flow",
    order_from_the_data: "claim",
    count_by_another_door: "another door",
    failure_from_the_data: "control flow",
}


@pytest.mark.parametrize("run", LEAKS, ids=lambda f: f.__name__)
def test_leaks_are_caught(run):
    result = audit.replay(run, audit.neighbours(ROWS, adjacency="add-remove"), adjacency="add-remove")
    assert LEAKS[run] in {finding.what for finding in result.findings}
    assert result.explain().startswith("leak: ")
    json.dumps(result.to_json())


def test_another_neighbour_relation_is_reported():
    result = audit.replay(clipped_sum, audit.neighbours(ROWS, adjacency="replace"), adjacency="replace")
    assert {"adjacency", "sensitivity"} <= {finding.what for finding in result.findings}


def test_a_run_that_is_random_by_itself_is_reported_as_such():
    def run(rows):
        return clipped_sum(rows[np.random.default_rng().random(len(rows)) < 0.5])

    result = audit.replay(run, audit.neighbours(ROWS, adjacency="add-remove", pairs=2))
    assert not result.passed
    assert all("random by itself" in finding.what for finding in result.findings)


def test_a_shared_generator_stays_in_step():
    def run(rows):
        rng = np.random.default_rng(5)
        clipped, sensitivity = BALL.clip(rows, adjacency="zero-out")
        m = calibrated(sensitivity)
        first = m.release(clipped.sum(axis=0), rng=rng)
        chosen = rng.random(len(rows)) < 0.5
        return first, m.release(clipped[chosen].sum(axis=0), rng=rng)

    assert audit.replay(run, audit.neighbours(ROWS, adjacency="zero-out"), adjacency="zero-out").passed


class Estimator:
    """A minimal estimator: what it learns ends in an underscore."""

    def __init__(self, *, leak: bool) -> None:
        self.leak = leak

    def fit(self, data):
        x, y = data
        clipped, sensitivity = sdp.L2(1.0, 4).clip(x * y[:, None], adjacency="add-remove")
        self.coef_ = calibrated(sensitivity).release(clipped.sum(axis=0)).value
        if self.leak:
            self.n_seen_ = len(y)
        return self


def test_an_estimator_through_its_fit():
    labels = (ROWS[:, 0] > 1).astype(np.int64)
    pairs = audit.neighbours((ROWS, labels), adjacency="add-remove")
    assert audit.replay(Estimator(leak=False).fit, pairs, adjacency="add-remove").passed is True
    leaking = audit.replay(Estimator(leak=True).fit, pairs, adjacency="add-remove")
    assert {finding.what for finding in leaking.findings} == {"another door"}
    assert audit.replay(lambda d: Estimator(leak=True).fit(d), pairs, public=lambda e: e.coef_).passed


@cache
def mixing(kind, adjacency):
    claim = {"rows": 5, "row_bound": 2.0, "epsilon": 1.0, "delta": 1e-3}
    return kind.calibrate(**claim, records=len(ROWS), dim=4, adjacency=adjacency)


class Sketcher:
    """Several releases of different kinds, by a fit of two arguments that returns nothing; it counts its fits."""

    def __init__(self, fault: str = "", adjacency: str = "zero-out") -> None:
        self.fault, self.adjacency, self.fits = fault, adjacency, 0

    def fit(self, x, y):
        self.fits += 1
        plain, adaptive = (mixing(kind, self.adjacency) for kind in (sdp.Mixing, AdaptiveMixing))
        clipped, sensitivity = sdp.L2(1.0, 4).clip(x * y[:, None], adjacency=self.adjacency)
        self.moment_ = calibrated(sensitivity).release(clipped.sum(axis=0)).value
        if self.fault == "no clip":
            sketch = plain.release_gram(x.T @ x, len(x), 4)
        else:
            sketch = plain.release(pairwise(x) if self.fault == "two rows" else x)
        self.sketch_, self.adaptive_ = sketch.value, adaptive.release(x)
        self.variance_, self.privacy_ = self.adaptive_.noise_variance, self.adaptive_.certificate
        if self.fault == "eigenvalue":
            self.least_ = float(np.linalg.eigvalsh(x.T @ x)[0])
        if self.fault == "state":
            self.fits_ = self.fits


def pairwise(x):
    """Each record moves two rows."""
    return np.clip(x + np.roll(x, 1, axis=0), -0.5, 0.5)


SIGNS = np.where(np.arange(40) % 2 == 0, 1.0, -1.0)


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
def test_sketches_through_the_fit_of_an_estimator(adjacency):
    pairs = audit.neighbours((ROWS, SIGNS), adjacency=adjacency, pairs=4)
    result = audit.replay(Sketcher(adjacency=adjacency), pairs, adjacency=adjacency)
    assert result.passed, result.explain()
    assert result.releases == 12
    assert 0.95 < result.largest <= 1


@pytest.mark.parametrize(
    ("fault", "what"),
    [("no clip", "sensitivity"), ("two rows", "sensitivity"), ("eigenvalue", "another door")],
)
def test_faults_of_sketches_are_caught(fault, what):
    pairs = audit.neighbours((ROWS, SIGNS), adjacency="zero-out", pairs=2)
    result = audit.replay(Sketcher(fault), pairs, adjacency="zero-out")
    assert {finding.what for finding in result.findings} == {what}


def test_a_sketch_declared_for_zeroed_rows_is_not_one_for_replaced_rows():
    pairs = audit.neighbours((ROWS, SIGNS), adjacency="replace", pairs=2)
    result = audit.replay(Sketcher(), pairs, adjacency="replace")
    assert {"adjacency", "sensitivity"} == {finding.what for finding in result.findings}
    assert result.largest == np.inf


def test_each_run_fits_a_copy():
    pairs = audit.neighbours((ROWS, SIGNS), adjacency="zero-out", pairs=1)
    estimator = Sketcher("state")
    assert audit.replay(estimator, pairs).passed
    assert estimator.fits == 0


def test_differences_of_gram_matrices_are_measured():
    """+-x x^T for zeroed rows, x x^T - y y^T for replaced ones; anything of higher rank is not declared at all."""
    x, y, z = np.array([3.0, 0, 0]), np.array([0, 2.0, 0]), np.array([0, 0, 1.0])
    base = np.diag([7.0, 5.0, 4.0])
    one, two = (np.outer(v, v) for v in (x, y))
    zero = sdp.Mixing(rows=2, row_bound=3.0, gamma=9.0, epsilon=1.0, delta=1e-3)
    swap = sdp.Mixing(rows=2, row_bound=3.0, gamma=9.0, epsilon=1.0, delta=1e-3, adjacency="replace")
    assert audit.moved(zero, base + one, base) == pytest.approx(1.0)
    assert audit.moved(zero, base, base + one) == pytest.approx(1.0)
    assert audit.moved(zero, base, base) == 0
    assert audit.moved(zero, base + one, base + two) == np.inf
    assert audit.moved(swap, base + one, base + two) == pytest.approx(1.0)
    assert audit.moved(swap, base + 2 * one, base) == pytest.approx(2.0)
    assert audit.moved(swap, base + one + np.outer(z, z), base) == np.inf
    tilted = np.array([0.6, 0.8, 0]) * 3
    assert audit.moved(swap, base + one, base + np.outer(tilted, tilted)) < 1
    with pytest.raises(TypeError, match="register what it allows"):
        audit.moved(object(), base, base)


def test_the_row_that_differs_may_be_chosen():
    for first, second in audit.neighbours(ROWS, adjacency="add-remove", at=-1):
        assert np.array_equal(first[:-1], second)
    labels = np.arange(40)
    for first, second in audit.neighbours((ROWS, labels), adjacency="zero-out", at=3, blank=np.nan):
        assert np.isnan(second[0][3]).all()
        assert np.array_equal(np.delete(first[0], 3, 0), np.delete(second[0], 3, 0))
        assert second[1][3] == 0


def test_equal_datasets_are_refused():
    with pytest.raises(ValueError, match="pair 0 are equal"):
        audit.replay(clipped_sum, [(ROWS, ROWS.copy())])


def test_neighbours_differ_in_one_row():
    labels = np.arange(40) % 3
    for first, second in audit.neighbours((ROWS, labels), adjacency="replace", pairs=6):
        changed = (first[0] != second[0]).any(axis=1) | (first[1] != second[1])
        assert changed.sum() == 1
        assert set(second[1]) <= {0, 1, 2}
    for first, second in audit.neighbours(ROWS, adjacency="add-remove", pairs=6):
        assert len(first) == len(second) + 1
        assert sum(map(tuple(row for row in first.tolist()).count, second.tolist())) >= len(second)
    for first, second in audit.neighbours(ROWS, adjacency="zero-out", pairs=6):
        changed = (first != second).any(axis=1)
        assert changed.sum() == 1
        assert not second[changed].any()


@pytest.mark.parametrize("kind", sets(6))
def test_the_gauge_is_one_on_the_boundary(kind):
    sensitivity = sets(6)[kind]
    edge = np.asarray(sensitivity.extreme())
    assert gauge(sensitivity, edge) == pytest.approx(1.0)
    assert gauge(sensitivity, -0.5 * edge) == pytest.approx(0.5)
    assert gauge(sensitivity, 0 * edge) == 0


def test_the_gauge_of_slices_and_of_coordinates_nobody_can_change():
    slices = sdp.Slices([1.0, 0.5], (2, 3), 0)
    assert gauge(slices, np.asarray(slices.extreme())) == pytest.approx(1.0)
    assert gauge(slices, np.array([0, 0, 0, 0.5, 0, 0.5])) == pytest.approx(np.sqrt(2))
    assert gauge(sdp.Box([1.0, 0.0]), np.array([0.0, 1e-9])) == np.inf
    assert gauge(sdp.Box([1.0, 0.0]), np.array([0.5, 0.0])) == 0.5


def test_watching_ends_with_the_context():
    audit.replay(clipped_sum, audit.neighbours(ROWS, adjacency="add-remove", pairs=1))
    first, second = clipped_sum(ROWS), clipped_sum(ROWS)
    assert not np.array_equal(first.value, second.value)


def test_bad_calls():
    with pytest.raises(ValueError, match="at least one pair"):
        audit.replay(clipped_sum, [])
    with pytest.raises(ValueError, match="adjacency"):
        audit.replay(clipped_sum, [(ROWS, ROWS)], adjacency="other")
    with pytest.raises(ValueError, match="at least two rows"):
        audit.neighbours(ROWS[:1], adjacency="replace")
    with pytest.raises(TypeError, match="no gauge"):
        gauge(object(), ROWS)
