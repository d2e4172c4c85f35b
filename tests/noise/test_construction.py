"""How laws are built, refused and written."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from shapedp.noise import DiscreteLaplace, Gaussian, Laplace, law_from_json
from shapedp.sampling import SimulatedSource

LONG = np.exp(np.random.default_rng(1).normal(size=700))


@pytest.mark.parametrize("law", [Gaussian, Laplace])
def test_block_scales_are_those_of_each_coordinate(law):
    block, each = law([2.0, 3.0], sizes=[1, 2]), law([2.0, 3.0, 3.0])
    assert block.dim == each.dim == 3
    assert np.array_equal(block.scales, each.scales)
    x = np.array([0.3, -1.0, 2.0])
    assert block.log_density(x) == each.log_density(x)
    draws = [one.add_to(x, SimulatedSource(np.random.default_rng(2))) for one in (block, each)]
    assert np.array_equal(*draws)
    one, alike = law(2.0, 3), law([2.0, 2.0, 2.0])
    assert one.second_moment == alike.second_moment
    assert one.log_density(x) == pytest.approx(alike.log_density(x), rel=1e-15)


@pytest.mark.parametrize(
    "law",
    [
        Gaussian(0.1, 10**9),
        Gaussian(LONG),
        Gaussian([0.1, 0.0], sizes=[10**6, 2]),
        Laplace(1e-300, 3),
        Laplace([1 / 3]),
        Laplace(LONG, sizes=np.arange(1, 701)),
        DiscreteLaplace(2**50, 2.0**-900, 4),
        DiscreteLaplace(np.arange(700), np.full(700, 0.5), 700),
    ],
    ids=lambda law: type(law).__name__,
)
def test_json_restores_every_bit(law):
    text = json.dumps(law.to_json())
    again = law_from_json(json.loads(text))
    assert json.dumps(again.to_json()) == text
    assert (type(again), again.dim) == (type(law), law.dim)
    assert again.second_moment == law.second_moment
    if law.dim < 10**6:
        assert np.array_equal(np.broadcast_to(again.scales, law.dim), np.broadcast_to(law.scales, law.dim))


@pytest.mark.parametrize("law", [Gaussian, Laplace])
@pytest.mark.parametrize(
    ("scale", "options"),
    [
        (1.0, {}),
        (-1.0, {"dim": 2}),
        (math.nan, {"dim": 2}),
        (math.inf, {"dim": 2}),
        (1.0, {"dim": 0}),
        (1.0, {"dim": 2, "sizes": [2]}),
        ([1.0, 2.0], {"dim": 3}),
        ([1.0, 2.0], {"sizes": [1]}),
        ([1.0, 2.0], {"sizes": [1, 0]}),
        ([1.0, math.nan], {}),
        ([1.0, -1.0], {}),
        ([], {}),
        ([[1.0]], {}),
    ],
)
def test_bad_scales(law, scale, options):
    with pytest.raises(ValueError, match=r"scale|dim|sizes"):
        law(scale, **options)


@pytest.mark.parametrize(
    ("steps", "grid", "dim"),
    [
        (1.5, 1.0, 1),
        (-1, 1.0, 1),
        (2.0**51, 1.0, 1),
        (3, 0.3, 1),
        (3, 0.0, 1),
        ([3, 4], [1.0], 2),
        ([3, 4], [1.0, 2.0], 3),
    ],
)
def test_bad_discrete(steps, grid, dim):
    with pytest.raises(ValueError, match=r"steps|grid"):
        DiscreteLaplace(steps, grid, dim)


@pytest.mark.parametrize(
    "data", [{}, [], {"law": "cauchy"}, {"law": "gaussian", "scale": 1.0}, {"law": "discrete-laplace", "steps": [1]}]
)
def test_bad_json(data):
    with pytest.raises(ValueError, match="law"):
        law_from_json(data)


def test_a_coordinate_without_noise_is_released_as_it_is():
    x = np.array([0.1, 1 / 3, 12345.678])
    for law in (Gaussian([1.0, 0.0, 0.0]), Laplace([1.0, 0.0, 0.0]), DiscreteLaplace([4, 0, 0], [0.5, 1.0, 1.0], 3)):
        y = law.add_to(x, SimulatedSource(np.random.default_rng(5)))
        assert np.array_equal(y[1:], x[1:])
        assert y[0] != x[0]
        assert np.broadcast_to(law.variances(), 3)[1:].tolist() == [0.0, 0.0]
        assert np.broadcast_to(law.half_widths(0.9), 3)[1:].tolist() == [0.0, 0.0]


def test_discrete_variance_at_both_ends():
    """One step: 2q/(1-q)^2; many steps: that of the continuous law."""
    q = math.exp(-1)
    assert DiscreteLaplace(1, 1.0, 1).variances()[0] == pytest.approx(2 * q / (1 - q) ** 2, rel=1e-12)
    assert DiscreteLaplace(2**40, 2.0**-40, 1).variances()[0] == pytest.approx(2, rel=1e-12)
