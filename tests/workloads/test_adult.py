"""The real file: two-way tables of Adult against the closed form, and intervals that hold."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from shapedp.papers.datasets import MissingDataError

SCRIPT = Path(__file__).parents[2] / "experiments" / "workloads" / "adult.py"


@pytest.fixture(scope="module")
def adult():
    spec = importlib.util.spec_from_file_location("adult_study", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        module.frame()
    except MissingDataError as missing:
        pytest.skip(str(missing))
    return module


def test_two_way_tables(adult):
    """91 tables in seconds; 10 releases are within 5 standard errors of what was predicted."""
    found = adult.tables(10)
    assert found["rms"] == pytest.approx(found["rms of the closed form"], rel=1e-3)
    squares = found["rms measured"] ** 2 / found["rms"] ** 2
    assert squares == pytest.approx(1.0, abs=5 * found["standard error of the measured mean square"] + 1e-3)
    assert found["optimality"] < 1.0001


def test_intervals_hold(adult):
    """300 releases of 160 cells; means are conservative where a noisy count is near zero."""
    found = adult.coverage(300)
    assert found["counts"] == pytest.approx(0.95, abs=0.011)
    assert found["sums"] == pytest.approx(0.95, abs=0.011)
    assert found["means"] >= 0.939
    assert found["joint counts"] >= 0.88
