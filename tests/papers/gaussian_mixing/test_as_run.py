"""Figures 2 and 4 of the mixing paper as the authors ran them."""

from __future__ import annotations

import importlib
import json
import math
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from shapedp.papers.register.harness import experiments_folder


@pytest.fixture
def as_run(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(experiments_folder() / "gaussian_mixing"), *sys.path])
    return importlib.import_module("as_run")


def test_the_stored_table_has_the_sixteen_points_and_both_crossings():
    data = json.loads((experiments_folder() / "results" / "gaussian-mixing-authors-settings.json").read_text())
    at = data["headers"].index
    middle = [row for row in data["rows"] if 0.2 < row[1] < 10]
    own, others = at("mixing, as run"), [at("Sheffet, as run"), at("AdaSSP, 1e-10")]
    behind = [(row[0], round(row[1], 2)) for row in middle if row[own] > min(row[other] for other in others)]
    assert data["full"]
    assert len(middle) == 16
    assert behind == []
    assert "boston from epsilon 0.76, wine from epsilon 0.76" in data["note"]


def test_the_stored_crossings_are_beyond_the_noise_of_the_runs():
    data = json.loads((experiments_folder() / "results" / "gaussian-mixing-authors-settings.json").read_text())
    at = data["headers"].index
    gaps = {
        (row[0], round(row[1], 2)): (row[at("AdaSSP, 0.05 less mixing")], row[at("standard error")], row[-1])
        for row in data["rows"]
    }
    for name in ("boston", "wine"):
        gap, error, _ = gaps[name, 0.76]
        assert gap < -2 * error
        assert gaps[name, 2.63][2] == 20
    assert 10 <= gaps["boston", 0.76][2] < 20  # one split does not tell at 0.76


def test_a_crossing_is_where_the_other_stays_ahead_beyond_the_noise(as_run):
    def seen(gap, error=0.01):
        return as_run.Point(0.0, {}, {as_run.FAIR: (gap, error)}, 0)

    assert [seen(gap).standing((as_run.FAIR,)) for gap in (0.03, 0.01, -0.01, -0.03)] == [
        "ahead",
        "level",
        "level",
        "behind",
    ]
    found = [
        replace(seen(gap), epsilon=epsilon)
        for epsilon, gap in ((0.1, -0.1), (0.2, 0.1), (0.3, -0.01), (0.4, -0.2), (0.8, -0.3))
    ]
    assert as_run.crossing(found) == 0.4
    assert as_run.crossing(found[:3]) is None


def test_the_error_of_a_gap_is_that_of_its_mean(as_run):
    parts = [{as_run.OWN: 1.0, as_run.FAIR: 1.0 + gap} for gap in (-0.1, 0.1, -0.3, -0.1)]
    found = as_run.compared(0.5, parts)
    assert found.gaps[as_run.FAIR] == pytest.approx((-0.1, math.sqrt(0.08 / 3) / 2))
    assert found.ahead == 3


def test_crime_is_standardised_before_rows_are_left_out(as_run, monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 1, (400, 3))
    data = SimpleNamespace(x=x, y=x[:, 0], feature_names=["a", "racepctblack", "b"])
    monkeypatch.setitem(as_run.LOADERS, "communities-crime", lambda: data)
    train, test = as_run.rows("communities-crime", np.random.default_rng(1))
    kept = x[:, 1] >= 0.1
    z = ((x - x.mean(axis=0)) / x.std(axis=0, ddof=1))[kept][:, [0, 2]]
    found = np.vstack([train, test])[:, :2]
    assert np.sort(found[:, 0] / found[:, 0].std()) == pytest.approx(np.sort(z[:, 0] / z[:, 0].std()))


def test_without_noise_every_method_finds_the_weights(as_run):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (4000, 3)) / np.sqrt(3)
    gram = (lambda rows: rows.T @ rows)(np.column_stack([x, x @ [0.5, -0.2, 0.1]]))
    assert as_run.sketched(gram, 50, 1e-12, rng) == pytest.approx([0.5, -0.2, 0.1], abs=1e-5)
    assert as_run.adassp(gram, 1e9, 1e-6, 0.05, rng) == pytest.approx([0.5, -0.2, 0.1], abs=1e-5)
    assert as_run.mixing(1e9, 50.0, 1.0, 1e-6, rng) == 0.0
    assert as_run.mixing(0.0, 50.0, 1.0, 1e-6, rng) == 100.0
    assert as_run.mixing(1e9, 4.0, 1.0, 1e-6, rng) == 8.0  # below tau: nothing is taken off
    assert as_run.mixing(1e9, 4.0, 1.0, 1e-6, rng, 2.0) == 0.0  # the code compares gamma C^2 with tau
