"""The studies of linear regression: simulated sketches have the mechanisms' distribution, items run, results hold."""

import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from shapedp.mechanisms import AdaptiveMixing, Mixing
from shapedp.papers.gaussian_mixing.recipes import modified_gauss_mix
from shapedp.papers.gaussian_mixing.sheffet import sheffet

FOLDER = Path(__file__).resolve().parents[2] / "experiments" / "gaussian_mixing"
FALSE_ALARM = 1e-6


@pytest.fixture(autouse=True)
def on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        found = getattr(sys.modules[name], "__file__", None) or ""
        if found.startswith(str(FOLDER)):
            del sys.modules[name]


def mechanisms():
    claim = {"rows": 8, "row_bound": 1.0, "epsilon": 1.0, "delta": 1e-3}
    made = [
        Mixing.calibrate(**claim),
        AdaptiveMixing.calibrate(**claim),
        modified_gauss_mix(**claim),
        sheffet(**claim, analysis="renyi"),
    ]
    return [replace(one, records=60, dim=3) for one in made]


@pytest.mark.parametrize("mechanism", mechanisms(), ids=lambda one: one.kind)
def test_simulated_sketches_have_the_distribution_of_the_release(mechanism):
    """Two-sample tests on three statistics of the sketch's Gram matrix; covariance 30 % off is rejected."""
    from mixing_simulated import simulated

    square = {"threshold-mixing": 40.0, "adaptive-mixing": 12.0}.get(mechanism.kind, 5.0)
    gram = np.diag([square + 15.0, square + 2.0, square])
    rng = np.random.default_rng(1)

    def statistics(n):
        rows = []
        for _ in range(n):
            sketch = mechanism.release_gram(gram, 60, 3, rng=rng, unsafe=True)
            total = sketch.value.T @ sketch.value
            rows.append((np.trace(total), np.linalg.slogdet(total)[1], total[0, 1], sketch.noise_variance))
        return np.array(rows).T

    real = statistics(600)
    with simulated(rng):
        drawn = statistics(1500)
    for one, two in zip(real, drawn, strict=True):
        assert stats.ks_2samp(one, two).pvalue > FALSE_ALARM / 4
    assert stats.ks_2samp(real[1], drawn[1] + 3 * math.log(1.3)).pvalue < FALSE_ALARM


def test_intervals_of_medians_cover():
    """2000 samples of 50: the interval misses the median in at most 5 % of them, and in at least 1 %."""
    from mixing_regression import median_interval

    rng = np.random.default_rng(2)
    missed = 0
    for _ in range(2000):
        _, low, high = median_interval(rng.exponential(size=50))
        missed += not low <= math.log(2) <= high
    assert stats.binom.sf(missed - 1, 2000, 0.05) > FALSE_ALARM
    assert missed > 20


@pytest.mark.parametrize("name", ["figure-1", "figure-2-gaussian", "figure-4-uniform", "sketch-rows"])
def test_items_run_quickly(name):
    from shapedp.papers.register.harness import find_item

    found = find_item(f"gaussian-mixing/{name}", FOLDER.parent).run(False, lambda *_: None)
    assert found.rows
    assert all(len(row) == len(found.headers) for row in found.rows)


def test_a_missing_set_is_said_to_be_missing(monkeypatch, tmp_path):
    from shapedp.papers.register.harness import ABSENT, find_item

    monkeypatch.setenv("SHAPEDP_DATA", str(tmp_path))
    assert find_item("gaussian-mixing/figure-2-tecator", FOLDER.parent).run(False, lambda *_: None).state == ABSENT


def stored():
    return json.loads((FOLDER / "results" / "regression.json").read_text(encoding="utf-8"))


def test_the_stored_results_show_what_is_claimed():
    """Every set and epsilon is there with 50 runs or more; `suffstats` and joint accounting are nowhere worse."""
    from mixing_regression import study, verdicts

    lines = stored()["lines"]
    assert {(one["set"], one["scaling"], one["epsilon"]) for one in lines} == set(study())
    assert all(found["runs"] >= 50 for one in lines for found in one["solvers"].values())
    assert [one["set"] for one in lines if verdicts(one)["suffstats worse than"]] == []
    assert [one["set"] for one in lines if verdicts(one)["joint worse"]] == []
    assert sum(verdicts(one)["joint better"] for one in lines) > 0.8 * len(lines)


def test_the_rule_for_one_pass_is_what_the_stored_synthetic_study_says():
    from shapedp.learn.solvers.linear import AUTO_ONCE

    found = json.loads((FOLDER / "results" / "auto_rule.json").read_text(encoding="utf-8"))
    for row in found["rows"]:
        assert row[AUTO_ONCE] <= 1.05 * min(row[name] for name in ("suffstats", "mixing", "adassp-joint", "adassp"))


@pytest.mark.data
@pytest.mark.slow
def test_a_stored_line_is_reproduced():
    from mixing_regression import line

    known = next(one for one in stored()["lines"] if one["set"] == "boston" and one["epsilon"] == 1.0)
    again = line("boston", known["scaling"], 1.0, runs=100, pilot=20)
    for name, found in again["solvers"].items():
        assert found["median"] == pytest.approx(known["solvers"][name]["median"], rel=1e-6)
