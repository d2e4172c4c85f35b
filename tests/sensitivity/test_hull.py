"""Hulls: how far they reach, what a person can change under each relation, JSON, and what is refused."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from scipy import optimize, sparse

import shapedp as sdp
from shapedp.sensitivity import Hull, sensitivity_from_json


def vertices(hull: Hull) -> np.ndarray:
    rows = hull.dense()
    return np.array([a - b for a, b in itertools.permutations(rows, 2)]) if hull.differences else rows


@pytest.mark.parametrize("differences", [False, True])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_reach_is_that_of_the_worst_vertex(differences, layout):
    rng = np.random.default_rng(0)
    for _ in range(50):
        rows = rng.normal(size=(int(rng.integers(2, 9)), int(rng.integers(1, 6)))) * 10 ** rng.uniform(-3, 3)
        hull, scales = Hull(layout(rows), differences=differences), 10 ** rng.uniform(-2, 2, rows.shape[1])
        listed = vertices(hull) / scales
        for order, reach in ((1, hull.l1_reach), (2, hull.l2_reach)):
            truth, (low, high) = np.linalg.norm(listed, ord=order, axis=1).max(), reach(scales)
            assert low <= truth * (1 + 1e-14)
            assert truth * (1 - 1e-14) <= high
            assert high - low <= 1e-11 * truth
        assert np.linalg.norm(hull.extreme()) <= np.linalg.norm(vertices(hull), axis=1).max() * (1 + 1e-12)


def test_points_far_from_the_origin_lose_nothing():
    """The differences of points near each other, all of them far out."""
    rows = 1e6 + np.array([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]])
    low, high = Hull(rows, differences=True).l2_reach(np.ones(1))
    assert low <= 5.0 <= high
    assert high - low < 1e-6


def test_what_a_person_changes():
    cells = np.eye(3)
    assert Hull.of_people(cells, adjacency="add-remove").count == 3
    assert not Hull.of_people(cells, adjacency="zero-out").differences
    assert Hull.of_people(cells, adjacency="replace").l2_reach(np.ones(1))[1] == pytest.approx(2**0.5)
    twice = Hull.of_people(cells, adjacency="add-remove", max_rows=2)
    assert twice.l2_reach(np.ones(1))[1] == pytest.approx(2.0)
    distinct = Hull.of_people(cells, adjacency="add-remove", max_rows=2, distinct=True)
    assert distinct.l2_reach(np.ones(1))[1] == pytest.approx(2**0.5)
    assert distinct.l1_reach(np.ones(1))[1] == pytest.approx(2.0)
    gone = Hull.of_people([[1.0, 0.0]], adjacency="replace", max_rows=2)
    assert gone.l2_reach(np.ones(1))[1] == pytest.approx(2.0), "a person may have had no row at all"


@pytest.mark.parametrize(
    "hull",
    [
        Hull([[1.0, 2.0], [0.1, -3.0]], adjacency="replace", differences=True),
        Hull(sparse.csr_array(np.eye(5)), adjacency="add-remove"),
        Hull(np.random.default_rng(0).normal(size=(70, 6)), shape=(2, 3)),
    ],
)
def test_json(hull):
    again = sensitivity_from_json(json.loads(json.dumps(hull.to_json())))
    assert again.to_json() == hull.to_json()
    assert again.shape == hull.shape
    assert (again.dense() == hull.dense()).all()


@pytest.mark.parametrize(
    "change",
    [
        {"count": 3},
        {"vertices": {"data": [1.0], "indices": [7.0], "indptr": [0.0, 1.0, 1.0]}},
        {"vertices": {"data": [1.0], "indices": [0.0], "indptr": [0.0, 2.0, 1.0]}},
        {"vertices": {"data": [1.0], "indices": [0.5], "indptr": [0.0, 1.0, 1.0]}},
        {"vertices": [1.0, "x", 0.0, 1.0]},
        {"differences": 1},
        {"dim": 4},
    ],
)
def test_json_that_does_not_fit(change):
    with pytest.raises((ValueError, TypeError)):
        sensitivity_from_json({**Hull(np.eye(2)).to_json(), **change})


@pytest.mark.parametrize(
    "make",
    [
        lambda: Hull([]),
        lambda: Hull([1.0, 2.0]),
        lambda: Hull([[0.0, 0.0]]),
        lambda: Hull([[1.0, np.nan]]),
        lambda: Hull(sparse.csr_array(([np.inf], ([0], [0])), shape=(1, 2))),
        lambda: Hull([[1e200]]),
        lambda: Hull([[1.0], [1.0]], differences=True),
        lambda: Hull([[1.0, 2.0]], shape=(3,)),
        lambda: Hull([[1.0]], adjacency="swap"),
        lambda: Hull([[1.0]], differences=1),
        lambda: Hull.of_people(np.eye(2), adjacency=None),
        lambda: Hull.of_people(np.eye(2), adjacency="replace", max_rows=0),
        lambda: Hull.of_people([[0.1, 1e9]], adjacency="replace", max_rows=2, distinct=True),
        lambda: Hull.of_people(np.eye(300), adjacency="replace", max_rows=20, distinct=True),
    ],
)
def test_refused(make):
    with pytest.raises((ValueError, TypeError)):
        make()


def test_clip_along_the_axes_and_no_other():
    rows, summed = Hull([[2.0, 0.0], [0.0, 1.0]]).clip([[2.0, 1.0], [0.5, 0.25]], adjacency="replace")
    assert np.abs(rows[0] / [2.0, 1.0]).sum() <= 1
    assert rows[0] == pytest.approx([1.0, 0.5], rel=1e-8)
    assert rows[1].tolist() == [0.5, 0.25]
    assert summed.dense().tolist() == [[4.0, 0.0], [0.0, 2.0]]
    assert summed.adjacency == "replace"
    with pytest.raises(ValueError, match="no clip is known"):
        Hull([[1.0, 1.0]]).clip([[1.0, 1.0]], adjacency="replace")


def test_gauge():
    hull = Hull([[1.0, 0.0], [1.0, 1.0]])
    assert sdp.audit.gauge(hull, np.array([0.0, 1.0])) == pytest.approx(2.0, rel=1e-6)
    assert sdp.audit.gauge(hull, np.array([1.0, 0.5])) <= 1
    assert sdp.audit.gauge(Hull(np.eye(2), differences=True), np.array([1.0, -1.0])) == pytest.approx(1.0, rel=1e-6)
    assert sdp.audit.gauge(Hull(np.eye(2), differences=True), np.array([1.0, 0.0])) == np.inf


def test_a_number_that_all_rows_share_is_not_a_difference():
    """Differences of rows that agree in a coordinate: it is fixed, and its scale may be 0."""
    hull, scales = Hull([[5.0, 1.0], [5.0, 3.0]], differences=True), np.array([0.0, 2.0])
    assert hull.fixed().tolist() == [True, False]
    assert hull.l2_reach(scales)[1] == pytest.approx(1.0)
    assert hull.l1_reach(scales)[1] == pytest.approx(1.0)
    assert hull.l2_reach(np.array([2.0, 0.0]))[1] == np.inf
    claim = {"epsilon": 1.0, "exact_zeros": True}
    for family, delta in (("gaussian", 1e-6), ("laplace", 1e-6), ("laplace", 0.0)):
        made = sdp.calibrate(family, hull, delta=delta, **claim)
        assert made.law.variances()[0] == 0
        assert made.certificate.verdict == "certified"


@pytest.mark.parametrize("error", ["squared", "absolute", "max"])
def test_pure_noise(error):
    """Laplace scales against a numerical minimiser; for cells of a histogram those of the L1 ball."""
    rng = np.random.default_rng(1)
    rows, weights = rng.normal(size=(5, 3)), np.array([1.0, 2.0, 0.5])
    made = sdp.calibrate("laplace", Hull(rows), epsilon=1.0, delta=1e-300, error=error, weights=weights)

    def cost(logs):
        scales = np.exp(logs) * (np.abs(rows) / np.exp(logs)).sum(axis=1).max()
        return sdp.Laplace(scales).expected_error(error, weights)

    best = min(optimize.minimize(cost, rng.normal(size=3), method="Nelder-Mead", tol=1e-12).fun for _ in range(5))
    assert made.expected_error(error, weights) == pytest.approx(best, rel=1e-4)
    cells = sdp.calibrate("laplace", Hull(np.eye(4)).of_integers(), epsilon=0.5, delta=0.0)
    ball = sdp.calibrate("laplace", sdp.L1(1.0, dim=4).of_integers(), epsilon=0.5, delta=0.0)
    assert cells.expected_squared_error == pytest.approx(ball.expected_squared_error, rel=1e-3)
    assert cells.certificate.verdict == "certified"
    with pytest.raises(TypeError, match="integers"):
        cells.release([0.5, 1.0, 2.0, 3.0])
