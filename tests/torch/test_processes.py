"""Two processes over gloo train as one does: the same distribution, noise drawn once a step."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

ROOT = Path(__file__).parents[2]
STEPS = 1000
ALARM = 1e-6


def trained(folder: Path, processes: int, steps: int = STEPS) -> list[dict[str, Any]]:
    script = str(Path(__file__).with_name("two.py"))
    running = [
        subprocess.Popen(
            [sys.executable, script, str(folder), str(rank), str(processes), str(steps), "7"],
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(processes)
    ]  # fmt: skip
    answers = []
    for rank, process in enumerate(running):
        out, errors = process.communicate(timeout=200)
        assert process.returncode == 0, errors
        files = np.load(folder / f"{processes}-{rank}.npz")
        answers.append(json.loads(out.splitlines()[-1]) | {name: files[name] for name in files.files})
    return answers


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("processes")
    return trained(folder, 1), trained(folder, 2)


def test_noise_is_drawn_once_a_step_and_shared(runs: Any) -> None:
    (alone,), (first, second) = runs
    assert alone["draws"] == STEPS
    assert first["draws"] == STEPS
    assert second["draws"] == 0
    assert np.array_equal(first["gradients"], second["gradients"])
    assert np.array_equal(first["start"], second["start"])
    assert first["epsilon"] == second["epsilon"] == alone["epsilon"]


def alike(one: np.ndarray, two: np.ndarray) -> bool:
    """Means (z test) and variances (F test) of every coordinate, Bonferroni over both."""
    tests = 2 * one.shape[1]
    z = (one.mean(0) - two.mean(0)) / np.sqrt(one.var(0) / len(one) + two.var(0) / len(two))
    f = one.var(0, ddof=1) / two.var(0, ddof=1)
    free = len(one) - 1, len(two) - 1
    low = min(2 * stats.norm.sf(np.abs(z)).min(), 2 * np.minimum(stats.f.sf(f, *free), stats.f.cdf(f, *free)).min())
    return bool(low > ALARM / tests)


def test_two_processes_have_the_distribution_of_one(runs: Any) -> None:
    """Different models (each run starts anew) would differ: both start from the first process' model."""
    (alone,), (first, _) = runs
    assert np.array_equal(alone["start"], first["start"])
    one, two = alone["gradients"].astype(np.float64), first["gradients"].astype(np.float64)
    assert alike(one, two)
    noise = np.random.default_rng(0).standard_normal(two.shape) * 0.5 / 24
    assert not alike(one, two + noise)  # noise drawn in both processes
    assert not alike(one, two * 1.15)  # a sum over half of the records, or another divisor
    assert not alike(one, two + 0.5 * two.std())
