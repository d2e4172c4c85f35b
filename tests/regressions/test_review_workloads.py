"""Hulls and workloads: squares beyond floats, plans that were edited, intervals of means, units, full tables."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import shapedp as sdp
from shapedp.workloads import WorkloadMechanism
from shapedp.workloads.counting import counted
from shapedp.workloads.spent import grid_of, mu_bounds

CLAIM = {"epsilon": 1.0, "delta": 1e-6}


@pytest.mark.parametrize("differences", [False, True])
@pytest.mark.parametrize("scale", [1e-300, 1e-170, 1e-155, 1.0, 1e155, 1e170, 1e300])
def test_reach_of_a_hull_in_any_unit(scale, differences):
    """Squares of v/s overflowed, a NaN was passed over, and noise of 1e-170 had a mu of 5e-324."""
    hull = sdp.Hull([[3.0, 0.0], [0.0, 4.0]], differences=differences, adjacency="replace" if differences else None)
    low, high = hull.l2_reach(np.full(2, scale))
    truth = (5.0 if differences else 4.0) / scale
    assert low <= truth <= high
    assert high <= truth * (1 + 1e-9)
    assert sdp.Gaussian([scale, scale]).loss(hull).mu >= truth * (1 - 1e-12)


@pytest.mark.parametrize("differences", [False, True])
@pytest.mark.parametrize(("size", "scale"), [(1e139, 2.0**-399), (1e-139, 2.0**398)])
def test_reach_of_a_turned_hull_in_any_unit(size, scale, differences):
    hull = sdp.Hull([[size, 0.0], [0.0, size]], differences=differences)
    law = sdp.TensorGaussian([np.array([[0.6, -0.8], [0.8, 0.6]]) @ np.diag([1.0, 2.0])], scale=scale)
    white = np.linalg.inv(np.array([[0.6, -0.8], [0.8, 0.6]]) @ np.diag([1.0, 2.0]))
    seen = white[:, 0] - white[:, 1] if differences else white[:, 0]
    lengths = [np.linalg.norm(one) for one in ([seen] if differences else white.T)]
    assert law.loss(hull).mu >= max(lengths) * size / scale * (1 - 1e-6)


@pytest.mark.parametrize(("sigma", "scale"), [(1.35e154, 1e-154), (1.36e154, 1e-153), (1e160, 1e-150)])
def test_an_edited_plan_whose_squares_overflow_is_refused(sigma, scale):
    """1/sigma^2 was 0: noise of 1.35 on a count was certified for epsilon 1e-4."""
    data = sdp.Workload({"g": 2}).total().calibrate(**CLAIM).to_json()
    data["epsilon"] = 1e-4
    data["families"][0]["sigma"] = [sigma]
    data["families"][0]["parts"][0]["modes"][0]["scales"] = [scale]
    with pytest.raises(ValueError, match="scales must lie between"):
        WorkloadMechanism.from_json(data)


def test_a_full_table_of_many_measures_is_released():
    """A record that is at every bound is longer than any one of them: turned, it left the range and was refused."""
    for number in range(1, 7):
        names = [f"v{k}" for k in range(number)]
        asked = sdp.Workload({"g": 1}, measures=dict.fromkeys(names, (0, 1))).total()
        for name in names:
            asked = asked.sums(name)
        made = asked.calibrate(**CLAIM, records=8)
        found = made.release(pd.DataFrame({"g": [0] * 8, **{name: [1.0] * 8 for name in names}}))
        assert abs(found["total"] - 8) < 10 * made.standard_error("total")


@pytest.mark.parametrize("bound", [1e-100, 1e-6, 1e6, 1e12, 1e100])
def test_the_unit_of_a_measure_does_not_matter(bound):
    """A measure of up to a million cost a third more noise than needed, one of up to 1e9 thirty thousand times."""
    made = sdp.Workload({"g": 4}, measures={"v": (0, bound)}).means("v", "g").calibrate(**CLAIM)
    alike = sdp.Workload({"g": 4}, measures={"v": (0, 1)}).means("v", "g").calibrate(**CLAIM)
    assert made.optimality.upper < 1.0002
    assert made.standard_error("g") == pytest.approx(alike.standard_error("g"), rel=0.2)
    assert made.standard_error("v by g") == pytest.approx(alike.standard_error("v by g") * bound, rel=0.2)


def test_means_have_intervals_of_their_own_cell():
    """Those of the first cell were given to all, where cells along ordered attributes have errors of their own."""
    asked = sdp.Workload({"g": 8}, measures={"v": (0, 1)}).means("v", "g")
    made = asked.rows(np.triu(np.ones((8, 8))), "g", weight=5.0, name="suffixes").calibrate(**CLAIM)
    errors = made.standard_error("v by g")
    assert errors[0] < errors[-1] * 0.8
    frame = pd.DataFrame({"g": np.repeat(np.arange(8), 400), "v": np.tile(np.linspace(0, 1, 400), 8)})
    tables, inside, draws = counted(made, frame), np.zeros(8), 400
    for _ in range(draws):
        _, low, high = made.release(tables).means("v", "g", confidence=0.9)
        inside += (low <= 0.5) & (high >= 0.5)
    assert (np.abs(inside / draws - 0.9) < 5 * math.sqrt(0.09 / draws)).all(), inside / draws


def test_tables_of_another_schema_are_refused():
    wide = sdp.Workload({"g": 2}, measures={"v": (-100, 100)}).means("v", "g").calibrate(**CLAIM)
    narrow = sdp.Workload({"g": 2}, measures={"v": (0, 100)}).means("v", "g").calibrate(**CLAIM)
    tables = counted(wide, pd.DataFrame({"g": [0, 1], "v": [-100.0, 3.0]}))
    with pytest.raises(ValueError, match="another schema"):
        narrow.release(tables)


def test_exact_answers_do_not_wrap():
    """Ten records of weight 1e18 were -8.4e18."""
    asked = sdp.Workload({"g": 2}).rows([[1e18, 0.0]])
    found = [float(asked.exact(pd.DataFrame({"g": [0] * number}))[0]) for number in (9, 10)]
    assert found == [9e18, 1e19]


def test_more_records_than_sums_can_hold_are_refused():
    asked = sdp.Workload({"g": 2}, measures={"v": (0, 1)}).means("v", "g")
    with pytest.raises(ValueError, match="2\\^32"):
        asked.calibrate(**CLAIM, records=1 << 40)


def test_means_ask_for_counts_whatever_a_group_is_called():
    """A group of other queries under the usual name passed for the counts, and `means` failed after the release."""
    asked = sdp.Workload({"g": 4}, measures={"v": (0, 1)})
    with pytest.raises(ValueError, match="a name of its own"):
        asked.prefixes("g", name="g").means("v", "g")
    named = asked.marginal("g", name="people").means("v", "g")
    assert [term.name for term in named.terms] == ["people", "v by g"]
    found = named.calibrate(**CLAIM).release(pd.DataFrame({"g": [0.0], "v": [1.0]}))
    assert found.means("v", "g")[0].shape == (4,)


def test_rounding_counts_every_coordinate_of_a_mode_without_rotation():
    """Those of such modes, which only an edited plan has, were left out of the slack."""
    asked = sdp.Workload({"g": 9}, measures={"v": (0, 1)}).means("v", "g").prefixes("g")
    data = asked.calibrate(**CLAIM).to_json()
    mode = data["families"][0]["parts"][0]["modes"][0]
    mode["rotation"], mode["scales"] = None, [1.0] * 18
    data["families"][0]["sigma"] = [1.0]
    made = WorkloadMechanism.from_json(data)
    assert made.loss.mu - made._unrounded[1] >= grid_of(made.families[0], 0, asked.schema, made.records) * 3


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
@pytest.mark.parametrize("cells", [3, 600])
def test_what_leaves_the_range_of_floats_has_no_mu(adjacency, cells):
    made = sdp.Workload({"a": cells, "b": 2}).marginals(1).calibrate(epsilon=1.0, delta=1e-6, adjacency=adjacency)
    tiny = tuple(replace(family, sigma=family.sigma * 1e-200) for family in made.families)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="finite"):
        mu_bounds(tiny, made.workload.schema, adjacency == "replace")
