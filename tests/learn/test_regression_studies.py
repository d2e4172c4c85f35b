"""The stored studies of linear regression: coverage of intervals, the choice of `auto`, the frozen rule."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from shapedp.learn.solvers.linear import suffstats

FOLDER = Path(__file__).resolve().parents[2] / "experiments" / "regression"


def stored(name):
    return json.loads((FOLDER / "results" / f"{name}.json").read_text(encoding="utf-8"))


def test_intervals_cover_what_they_say():
    """95 percent intervals of coefficients, over 2,000 fits of each of eight sets: between 93.5 and 96.5 percent."""
    *eight, hidden = stored("coverage")
    assert len({(row["design"], row["n"], row["d"], row["residual"]) for row in eight}) == 8
    for row in eight:
        assert row["fits"] == 2000
        assert 0.935 <= row["coverage"] <= 0.965, row
        assert row["intervals given"] > 0.75, row
    assert hidden["intervals given"] < 0.25  # noise hides the size of the residuals: refused, not guessed


def test_auto_is_near_the_best_of_ours():
    """Within 2 percent of the best median of ours on 90 percent of all cells."""
    lines = [line for name in ("generated", "real", "authors") for line in stored(name)["lines"]]
    assert len(lines) == 114
    near = 0
    for line in lines:
        by = {name: found[0] for name, found in line["solvers"].items() if not isinstance(found, str)}
        ours = [by[name] for name in ("refined", "suffstats", "mixing", "hessian-mixing", "adassp-joint") if name in by]
        near += by["refined"] <= 1.02 * min(ours)
    assert near == sum(stored(name)["verdicts"]["auto near the best"] for name in ("generated", "real", "authors"))
    assert near >= 0.9 * len(lines)


def test_the_rule_is_the_one_that_was_frozen():
    """Of the candidates that do not raise the error of sets with a signal on average, the best on hopeless ones."""
    summary = stored("doubt")["summary"]
    allowed = [line for line in summary if line["signal"]["mean"] <= 1.0]
    best = min(allowed, key=lambda line: line["hopeless"]["mean"])
    assert (best["p"], best["t"]) == suffstats.WARY
    assert best["hopeless"]["mean"] < 0.9


def test_a_release_without_signal_is_trusted_less():
    """Pure noise: the wary weights are shorter, in the mean over 200 draws less than half as long (1e-6 is far off)."""
    rng = np.random.default_rng(0)
    longer, shorter = [], []
    for _ in range(200):
        half = np.triu(rng.standard_normal((6, 6)), 1)
        design = 20 * np.eye(6) + (half + half.T) / np.sqrt(2) + np.diag(rng.standard_normal(6))
        noisy = suffstats.NoisyMoments(design, 5 * rng.standard_normal(6), 1.0, 5.0)
        longer.append(np.linalg.norm(suffstats.shrunk(noisy).weights))
        shorter.append(np.linalg.norm(suffstats.shrunk(noisy, wary=True).weights))
    assert np.mean(shorter) < np.mean(longer) / 2


def test_a_clear_signal_is_kept():
    """At a signal of 200 standard deviations both estimates agree within half a percent."""
    noisy = suffstats.NoisyMoments(1e4 * np.eye(4), np.full(4, 1e3), 1.0, 5.0)
    calm, wary = suffstats.shrunk(noisy).weights, suffstats.shrunk(noisy, wary=True).weights
    assert wary == pytest.approx(calm, rel=5e-3)


def test_the_study_of_the_rule_runs(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)
    try:
        import doubt

        ratios = doubt.medians(doubt.hopeless("isotropic", 100, 3, 2.0, 1), 1.0, 3)
        assert len(ratios) == 1 + len(doubt.CANDIDATES)
        assert len(set(ratios)) > 1
    finally:
        for name in set(sys.modules) - before:
            if str(FOLDER.parent) in (getattr(sys.modules[name], "__file__", None) or ""):
                del sys.modules[name]


def test_clusters_give_the_bits_of_one_machine_in_bounded_memory():
    """Stored runs: one weight vector for each number of rows, and workers that hold far less than the 2 GB read."""
    runs = stored("cluster")
    by_rows = {}
    for run in runs.values():
        by_rows.setdefault(run["rows"], set()).add(run["weights_sha256"])
        for peak in run.get("peak_mib", [run.get("largest_peak_mib_of_python")]):
            assert peak < 500
    assert all(len(found) == 1 for found in by_rows.values())
    assert {name for name in runs if "10000000" in name} >= {f"dask, 10000000 rows, {count}" for count in (1, 2)}
    sys.path.insert(0, str(FOLDER))
    import cluster

    page = FOLDER.parents[1] / "docs" / "larger-than-memory.md"
    if page.exists():
        assert cluster.table(runs) in page.read_text(encoding="utf-8")
