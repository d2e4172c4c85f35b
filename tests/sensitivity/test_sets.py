"""Sets: how far they reach in a scaled norm, against numerical suprema; JSON; fixed coordinates."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize
from tests.sensitivity.helpers import SETS, exact, holds

from shapedp.sensitivity import L1, L2, Blocks, Box, sensitivity_from_json


def random_set(kind: str, dim: int, rng: np.random.Generator):
    spread = lambda n: np.exp(rng.normal(size=n) * 1.5)  # noqa: E731
    if kind == "l2":
        return L2(float(spread(1)[0]), dim)
    if kind == "ellipsoid":
        return L2(float(spread(1)[0]), dim, scales=spread(dim))
    if kind == "l1":
        return L1(float(spread(1)[0]), dim)
    if kind == "box":
        return Box(spread(dim) * np.where(np.arange(dim) == 1, 0.0, 1.0) if dim > 1 else spread(1))
    cut = int(rng.integers(1, dim)) if dim > 1 else 1
    return Blocks(spread(2), [cut, dim - cut]) if dim > 1 else Blocks(spread(1), [1])


def boundary(base, directions: np.ndarray) -> np.ndarray:
    """Points of the set as far out as they go in the given directions, per block where it has blocks."""
    if isinstance(base, Box):
        return np.sign(directions) * base.profile
    if isinstance(base, Blocks):
        ends = np.cumsum(base.sizes)
        parts = [directions[:, e - k : e] for e, k in zip(ends, base.sizes, strict=True)]
        return np.hstack(
            [r * p / np.linalg.norm(p, axis=1, keepdims=True) for r, p in zip(base.radii, parts, strict=True)]
        )
    if isinstance(base, L1):
        return base.radius * directions / np.abs(directions).sum(axis=1, keepdims=True)
    axes = np.ones(base.dim) if base.scales is None else base.scales
    return base.radius * axes * directions / np.linalg.norm(directions, axis=1, keepdims=True)


@pytest.mark.parametrize("kind", ["l2", "ellipsoid", "l1", "box", "blocks"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("dim", [1, 2, 6])
def test_reach_is_the_supremum(kind, order, dim):
    """Never below what a search finds, and met by that search: random points, vertices, then ascent from the best."""
    rng = np.random.default_rng(dim)
    for _ in range(4):
        base = random_set(kind, dim, rng)
        scales = np.exp(rng.normal(size=dim))
        lower, upper = (base.l1_reach if order == 1 else base.l2_reach)(scales)

        def value(directions, base=base, scales=scales):
            return np.linalg.norm(boundary(base, directions) / scales, ord=order, axis=1)

        starts = np.vstack([rng.normal(size=(3000, dim)), np.eye(dim) + 1e-12])
        values = value(starts)
        assert values.max() <= upper * (1 + 1e-12)
        tried = [float(values.max())]
        for start in starts[np.argsort(values)[-3:]]:
            found = optimize.minimize(
                lambda z: -value(z[None])[0],
                start / np.linalg.norm(start),
                method="Nelder-Mead",
                options={"maxiter": 4000, "maxfev": 4000, "fatol": 1e-13, "xatol": 1e-10},
            )
            tried.append(-found.fun)
        assert max(tried) <= upper * (1 + 1e-12)
        assert max(tried) >= lower * (1 - 1e-5)
        assert 0 <= lower <= upper <= lower * (1 + 1e-12)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("order", [1, 2])
def test_one_scale_is_that_scale_everywhere(name, order):
    base = SETS[name]
    reach = base.l1_reach if order == 1 else base.l2_reach
    one, all_alike = reach(np.array([0.37])), reach(np.full(base.dim, 0.37))
    assert one == pytest.approx(all_alike, rel=1e-13)


def test_reach_brackets_the_truth_exactly():
    """Against fractions: the squared reach of a box, the reach of a cross and the linear reach of a box."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        profile, scales = np.exp(rng.normal(size=(2, 7)) * 3)
        ratios = [Fraction(a) / Fraction(b) for a, b in zip(profile.tolist(), scales.tolist(), strict=True)]
        lower, upper = Box(profile).l2_reach(scales)
        assert Fraction(lower) ** 2 <= sum(r * r for r in ratios) <= Fraction(upper) ** 2
        lower, upper = Box(profile).l1_reach(scales)
        assert Fraction(lower) <= sum(ratios) <= Fraction(upper)
        top = max(Fraction(profile[0]) / Fraction(s) for s in scales.tolist())
        for reach in (L1(profile[0], 7).l1_reach, L1(profile[0], 7).l2_reach, L2(profile[0], 7).l2_reach):
            assert Fraction(reach(scales)[0]) <= top <= Fraction(reach(scales)[1])
        lower, upper = L2(profile[0], 7).l1_reach(scales)
        square = sum((Fraction(profile[0]) / Fraction(s)) ** 2 for s in scales.tolist())
        assert Fraction(lower) ** 2 <= square <= Fraction(upper) ** 2


@pytest.mark.parametrize("unit", [1e-250, 1e-160, 1e160, 1e250])
@pytest.mark.parametrize("name", SETS)
def test_reach_does_not_depend_on_the_unit(name, unit):
    """Sets and scales in the same unit: neither overflow nor underflow on the way."""
    base, scales = SETS[name], np.array([0.5, 2.0, 3.0, 0.25, 1.5])
    far = base.scaled(unit, None)
    assert far.l2_reach(scales * unit) == pytest.approx(base.l2_reach(scales), rel=1e-12)
    assert far.l1_reach(scales * unit) == pytest.approx(base.l1_reach(scales), rel=1e-12)


def test_coordinates_without_noise():
    """No scale where nothing can change is fine; no scale where something can is without bound."""
    box, blocks = Box([1.0, 0.0, 2.0]), Blocks([3.0, 0.0], [2, 1])
    assert box.l2_reach(np.array([1.0, 0.0, 1.0]))[1] == pytest.approx(math.sqrt(5))
    assert box.l1_reach(np.array([1.0, 0.0, 1.0]))[1] == pytest.approx(3)
    assert blocks.l2_reach(np.array([1.0, 2.0, 0.0]))[1] == pytest.approx(3)
    assert blocks.l1_reach(np.array([1.0, 2.0, 0.0]))[1] == pytest.approx(3 * math.sqrt(1.25))
    for base in (box, blocks, L2(1.0, 3), L1(1.0, 3)):
        assert base.l2_reach(np.array([0.0, 1.0, 1.0]))[1] == math.inf
        assert base.l1_reach(np.array([0.0, 1.0, 1.0]))[1] == math.inf
    assert box.fixed().tolist() == [False, True, False]
    assert blocks.fixed().tolist() == [False, False, True]
    assert not L2(1.0, 3).fixed().any()
    assert not L1(1.0, 3).fixed().any()


@pytest.mark.parametrize("name", SETS)
def test_extreme_lies_on_the_boundary(name):
    base = SETS[name]
    point = base.extreme()
    assert point.shape == (base.dim,)
    assert holds(base.scaled(1 + 1e-12, None), exact(point[None])[0])
    assert not holds(base.scaled(1 - 1e-9, None), exact(point[None])[0])


LONG = np.exp(np.random.default_rng(5).normal(size=1000))


@pytest.mark.parametrize(
    "base",
    [
        L2(0.1, 3),
        L2(1 / 3, 2, scales=[0.1, 5e-324 * 2**60], adjacency="replace"),
        L1(1e300, 7, adjacency="zero-out"),
        Box([0.1, 0.0, 1e-300], adjacency="add-remove"),
        Blocks([0.1, 0.0], [3, 2], adjacency="replace"),
        Box(LONG),
        L2(2.0, 1000, scales=LONG),
        Blocks(LONG, np.arange(1, 1001), adjacency="add-remove"),
    ],
)
def test_json_restores_every_bit(base):
    again = sensitivity_from_json(json.loads(json.dumps(base.to_json())))
    assert type(again) is type(base)
    assert (again.dim, again.adjacency) == (base.dim, base.adjacency)
    for field in ("radius", "scales", "profile", "radii", "sizes"):
        ours, theirs = getattr(base, field, None), getattr(again, field, None)
        assert (ours is None) == (theirs is None)
        assert ours is None or np.array_equal(ours, theirs)
    assert np.array_equal(base.fixed(), again.fixed())
    assert again.to_json() == base.to_json()


@pytest.mark.parametrize(
    ("data", "word"),
    [
        ({}, "set"),
        ({"set": "l3"}, "l3"),
        ([], "set"),
        ({"set": "l2", "radius": 1.0}, "dim"),
        ({"set": "l1", "radius": float("nan"), "dim": 2}, "radius"),
        ({"set": "box", "profile": [1, -1]}, "profile"),
        ({"set": "box", "profile": {"float64": "AAAA", "size": 9}}, "profile"),
        ({"set": "blocks", "radii": [1.0], "sizes": [1, 2]}, "sizes"),
        ({"set": "box", "profile": [1.0], "adjacency": "any"}, "adjacency"),
    ],
)
def test_bad_json(data, word):
    with pytest.raises(ValueError, match=word):
        sensitivity_from_json(data)


@pytest.mark.parametrize(
    "make",
    [
        lambda: L2(0.0, 3),
        lambda: L2(-1.0, 3),
        lambda: L2(math.nan, 3),
        lambda: L2(math.inf, 3),
        lambda: L2(1.0, 0),
        lambda: L2(1.0, 2, scales=[1.0]),
        lambda: L2(1.0, 2, scales=[1.0, 0.0]),
        lambda: L1(0.0, 3),
        lambda: L1(1.0, -1),
        lambda: Box([]),
        lambda: Box([0.0, 0.0]),
        lambda: Box(1.0),
        lambda: Box([1.0, -1e-9]),
        lambda: Box([1.0, math.nan]),
        lambda: Blocks([1.0], [0]),
        lambda: Blocks([1.0, 2.0], [3]),
        lambda: Blocks([0.0], [3]),
        lambda: Blocks([1.0], [1.5]),
        lambda: L2(1.0, 2, adjacency="swap"),
    ],
)
def test_bad_sets(make):
    with pytest.raises(ValueError, match=r"radius|dim|scales|profile|radii|sizes|adjacency"):
        make()


def test_sets_are_frozen():
    profile = np.array([1.0, 2.0])
    box = Box(profile)
    profile[0] = 9
    assert box.profile.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        box.profile[0] = 9
    with pytest.raises(AttributeError):
        box.profile = profile


def test_the_reach_of_a_long_profile_counts_every_block() -> None:
    draw = np.random.default_rng(5)
    profile = draw.uniform(0.1, 1.0, 100_001) * np.repeat([1e-3, 1.0, 1e2], [40_000, 30_001, 30_000])
    scales = draw.uniform(0.5, 2.0, profile.size)
    exact = math.sqrt(math.fsum(np.square(profile / scales)))
    lower, upper = Box(profile).l2_reach(scales)
    assert lower <= exact <= upper
    assert upper - lower <= 1e-12 * exact
    assert Box(profile[::-1]).l2_reach(scales[::-1]) == pytest.approx((lower, upper), rel=1e-12)
