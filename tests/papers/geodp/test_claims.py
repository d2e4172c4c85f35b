"""The register's entries on GeoDP, recomputed; the formulas behind them simulated; the studies' quick mode."""

from __future__ import annotations

import numpy as np
import pytest

from shapedp.numerics.hyperspherical import from_angles, to_angles
from shapedp.papers.geodp.claims import after_step, flat_step
from shapedp.papers.register import find_item, reproduce
from shapedp.papers.register.format import read_claims
from shapedp.papers.register.harness import experiments_folder
from shapedp.papers.register.register import check

CLAIMS = tuple(read_claims("geodp"))


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_the_register_says_what_is_computed(claim):
    finding = check(claim)
    assert finding.verified, finding.disagreements


def test_what_holds_and_what_does_not():
    holds = {claim.id.split("/")[1] for claim in CLAIMS if claim.verdict == "holds"}
    assert holds == {"theorem-1", "corollary-1", "example-1", "example-3", "lemma-1"}
    assert len(CLAIMS) == 23


def test_the_expected_distance_after_a_step_is_that_of_a_simulation():
    """4e4 steps in 12 dimensions; each mean is within five of its standard errors (false-alarm rate 1e-6)."""
    rng, d, norm, rate, way = np.random.default_rng(0), 12, 0.7, 0.4, 1.3
    gradient = np.full(d, norm / np.sqrt(d))
    scales = np.concatenate([[0.2], rng.uniform(0.05, 0.6, size=d - 1)])
    r, angles = to_angles(gradient)
    noise = rng.normal(size=(40_000, d)) * scales
    turned = from_angles(r + noise[:, 0], angles + noise[:, 1:])
    flat = gradient + 0.3 * rng.normal(size=(40_000, d))
    for vectors, value in (
        (turned, after_step(scales, norm, rate, way)),
        (flat, flat_step(d, 0.3, norm, rate, way)),
    ):
        distance = np.square(way * gradient - rate * vectors).sum(axis=1)
        assert abs(distance.mean() - value) < 5 * distance.std() / 200
        assert abs(distance.mean() - 1.02 * value) > 5 * distance.std() / 200


@pytest.mark.parametrize("name", ["geodp/table-2", "geodp/direction"])
def test_studies_run(name, tmp_path):
    item = find_item(name, experiments_folder())
    table, written = reproduce(name, item, tmp_path, full=False, progress=lambda *_: None)
    assert written[0].exists()
    assert len(table.rows) > 2


@pytest.mark.slow
@pytest.mark.data
def test_figure_1_runs_and_dp_is_not_behind(tmp_path):
    item = find_item("geodp/figure-1", experiments_folder())
    table, _ = reproduce("geodp/figure-1", item, tmp_path, full=False, progress=lambda *_: None)
    loss = {(row[1], row[3]): row[5] for row in table.rows}
    verdict = {row[1]: row[6] for row in table.rows}
    for sigma in (0.1, 0.01):
        assert loss["DP", sigma] < loss["GeoDP", sigma]
    assert verdict["DP"] == verdict["mean-angles"] == verdict["angle-windows"] == "certified"
    assert verdict["GeoDP"] == "refuted"
