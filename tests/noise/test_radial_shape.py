"""The search for the best radial law: its guide against the exact profile, and its table, right or wrong."""

from __future__ import annotations

import math
import tomllib
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files

import numpy as np
import pytest

import shapedp as sdp
from shapedp.noise import radial_shape
from shapedp.noise.radial import Radial
from shapedp.noise.radial_shape import TABLE, Optima, best_shape, optima, searched
from shapedp.numerics import SearchError
from shapedp.numerics.excess import ShiftExcess
from shapedp.numerics.excess_guide import ShiftGuide
from shapedp.numerics.simplex import least
from shapedp.privacy.losses import GaussianLoss, RadialLoss

CLAIM = {"epsilon": 1.0, "delta": 1e-5}


def calibrated(dim: int, epsilon: float, delta: float) -> sdp.Additive:
    return sdp.calibrate("radial", sdp.L2(1.0, dim=dim), epsilon=epsilon, delta=delta)


def exact_error(dim: int, a: float, b: float, epsilon: float, delta: float) -> float:
    """E R^2 with the ratio solved on the enclosed profile."""
    return Radial(dim, a, b, 1.0).mean_squared_radius / RadialLoss.calibrate(dim, a, b, epsilon, delta).ratio ** 2


@pytest.mark.parametrize("dim", [2, 3, 5, 14, 100, 10**5])
def test_the_guide_finds_the_ratio_that_the_exact_profile_finds(dim):
    rng = np.random.default_rng(dim)
    for _ in range(6):
        a, b = dim * (1 - rng.uniform(0, 0.3) ** 2), math.exp(rng.uniform(0.0, 0.7))
        epsilon, delta = 10 ** rng.uniform(-1.5, 1), 10 ** rng.uniform(-12, -1)
        log_ratio, slope = RadialLoss.estimated(dim, a, b, epsilon, delta)
        lower, upper = ShiftExcess(dim, a, b, math.exp(log_ratio)).bounds(np.array([epsilon]), 1e-7)
        assert upper[0] == pytest.approx(delta, rel=1e-3), (a, b, epsilon, delta)
        more = ShiftExcess(dim, a, b, math.exp(log_ratio) * (1 + 1e-4)).bounds(np.array([epsilon]), 1e-8)[0]
        assert math.log(more[0] / lower[0]) / 1e-4 == pytest.approx(slope, rel=0.15)


def test_the_guide_finds_a_ratio_from_any_start_or_says_that_it_finds_none():
    guide = ShiftGuide(3, 2.9, 1.1, 1.0, 1e-6)
    roots = [guide.root(1e-6, start, slope)[0] for start in (-20.0, -1.0, 0.0, 3.0) for slope in (0.01, 4.0, 1e5)]
    assert np.ptp(roots) < 1e-5
    with pytest.raises(SearchError):
        guide.root(2.0, 0.0)


@pytest.mark.parametrize(("dim", "epsilon", "delta"), [(5, 0.5, 1e-6), (14, 2.0, 1e-4), (40, 0.1, 1e-8)])
def test_no_shape_nearby_has_a_smaller_error_on_the_exact_profile(dim, epsilon, delta):
    a, b = best_shape(dim, epsilon, delta)
    best = exact_error(dim, a, b, epsilon, delta)
    u, v = math.sqrt(1 - a / dim), math.log(b)
    for du, dv in ((0.03, 0.0), (-0.03, 0.0), (0.0, 0.03), (0.0, -0.03), (0.02, 0.02), (-0.02, -0.02)):
        other = exact_error(dim, dim * (1 - (u + du) ** 2), math.exp(v + dv), epsilon, delta)
        assert best <= other * (1 + 3e-5)


def test_the_table_is_read_and_its_search_reaches_what_a_search_without_it_reaches():
    table = optima()
    assert table is not None
    rng = np.random.default_rng(7)
    for _ in range(5):
        dim, epsilon, delta = int(3 * 10 ** rng.uniform(0, 2)), 10 ** rng.uniform(-1, 0.6), 10 ** rng.uniform(-9, -2)
        found = [
            exact_error(dim, *shape, epsilon, delta)
            for shape in (best_shape(dim, epsilon, delta), searched(dim, epsilon, delta, None, close=1e-7, most=200))
        ]
        assert found[0] <= found[1] * (1 + 5e-5), (dim, epsilon, delta)


WRONG = {
    "zeros": lambda points: np.zeros_like(points),
    "the far end": lambda points: np.full_like(points, 1e6),
    "the other end": lambda points: np.full_like(points, -1e6),
    "noise": lambda points: np.random.default_rng(0).normal(size=points.shape),
    "shuffled": lambda points: np.random.default_rng(1).permutation(points.reshape(-1, 2)).reshape(points.shape),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("dim", [3, 14])
def test_a_wrong_table_costs_error_or_time_and_never_privacy(monkeypatch, name, dim):
    good = calibrated(dim, **CLAIM)
    table = optima()
    data = {
        axis: np.exp(values).tolist() for axis, values in zip(("dims", "epsilons", "deltas"), table.axes, strict=True)
    }
    wrong = Optima.of(data | {"points": WRONG[name](table.points).reshape(-1, 2).tolist()})
    monkeypatch.setattr(radial_shape, "optima", lambda: wrong)
    mechanism = calibrated(dim, **CLAIM)
    assert mechanism.certificate.verdict == "certified"
    enclosed = RadialLoss(dim, mechanism.law.a, mechanism.law.b, 1 / mechanism.law.scale).delta(1.0)
    assert enclosed.upper <= 1e-5
    gaussian = dim / GaussianLoss.calibrate(1.0, 1e-5).mu ** 2
    assert good.expected_squared_error * (1 - 1e-4) <= mechanism.expected_squared_error <= 1.001 * gaussian


@pytest.mark.parametrize(
    "text", [None, "", "points = 3", "dims = [2, 3]\nepsilons = [1, 2]\ndeltas = [1, 0.5]\npoints = []"]
)
def test_a_table_that_cannot_be_read_is_done_without(monkeypatch, tmp_path, text):
    if text is not None:
        (tmp_path / TABLE).write_text(text)
    monkeypatch.setattr(radial_shape, "files", lambda package: tmp_path)
    optima.cache_clear()
    try:
        assert optima() is None
        assert calibrated(14, **CLAIM).certificate.verdict == "certified"
    finally:
        monkeypatch.undo()
        optima.cache_clear()
    assert optima() is not None


def test_the_table_refuses_what_is_no_number_and_takes_any_claim():
    data = tomllib.loads((files("shapedp.noise") / TABLE).read_text("utf-8"))
    with pytest.raises(ValueError, match="one point"):
        Optima.of(data | {"points": [[math.nan, 0.0], *data["points"][1:]]})
    with pytest.raises(ValueError, match="ascend"):
        Optima.of(data | {"dims": data["dims"][::-1]})
    table = Optima.of(data)
    corner = table.at(2, data["epsilons"][0], data["deltas"][0])
    assert table.at(2, 1e-300, 1e-300) == pytest.approx(corner)
    assert table.at(data["dims"][3], data["epsilons"][2], data["deltas"][1]) == pytest.approx(
        data["points"][(3 * len(data["epsilons"]) + 2) * len(data["deltas"]) + 1]
    )
    assert np.isfinite(table.at(10**12, 1e9, 0.999)).all()


def test_threads_find_what_one_finds():
    claims = [(dim, epsilon, 1e-6) for dim in (3, 14) for epsilon in (0.5, 1.0, 2.0)]
    alone = [best_shape(*claim) for claim in claims]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda claim: best_shape(*claim), claims)) == alone


def test_the_simplex_finds_the_least_value_and_keeps_to_its_calls():
    calls = []

    def valley(x):
        calls.append(1)
        return float(100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2)

    corners = np.array([[-1.0, 1.0], [-0.8, 1.0], [-1.0, 1.2]])
    assert least(valley, corners, near=1e-6, close=1e-12, most=500) == pytest.approx([1.0, 1.0], abs=1e-4)
    assert len(calls) <= 502
    calls.clear()
    least(valley, corners, near=0.0, close=0.0, most=30)
    assert len(calls) <= 33
