"""Figures 2 and 4 of the mixing paper as the authors ran them."""

from __future__ import annotations

import importlib
import json
import sys

import numpy as np
import pytest

from shapedp.papers.register.harness import experiments_folder


@pytest.fixture
def as_run(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(experiments_folder() / "gaussian_mixing"), *sys.path])
    return importlib.import_module("as_run")


def test_the_stored_table_has_the_sixteen_points_and_both_crossings():
    data = json.loads((experiments_folder() / "results" / "gaussian-mixing-authors-settings.json").read_text())
    middle = [row for row in data["rows"] if 0.2 < row[1] < 10]
    assert data["full"]
    assert len(middle) == 16
    assert all(row[2] < min(row[3:5]) for row in middle)
    assert "boston from epsilon 0.76, wine from epsilon 0.76" in data["note"]


def test_a_crossing_is_where_the_other_stays_ahead(as_run):
    found = [(e, {"a": a, "b": 1.0}) for e, a in ((0.1, 0.9), (0.2, 1.1), (0.4, 0.8), (0.8, 0.7))]
    assert as_run.crossing(found, "a", "b") == 0.4
    assert as_run.crossing(found[:2], "a", "b") is None


def test_without_noise_every_method_finds_the_weights(as_run):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (4000, 3)) / np.sqrt(3)
    gram = (lambda rows: rows.T @ rows)(np.column_stack([x, x @ [0.5, -0.2, 0.1]]))
    assert as_run.sketched(gram, 50, 1e-12, rng) == pytest.approx([0.5, -0.2, 0.1], abs=1e-5)
    assert as_run.adassp(gram, 1e9, 1e-6, 0.05, rng) == pytest.approx([0.5, -0.2, 0.1], abs=1e-5)
    assert as_run.mixing(1e9, 50.0, 1.0, 1e-6, rng) == 0.0
    assert as_run.mixing(0.0, 50.0, 1.0, 1e-6, rng) == 100.0
