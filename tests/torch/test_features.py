"""Features of a DP-trained network for the mixing study, on a small set made here."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from shapedp.papers.datasets import Dataset

FOLDER = Path(__file__).resolve().parents[2] / "experiments" / "erm"


@pytest.fixture(scope="module")
def mixing():
    sys.path.insert(0, str(FOLDER))
    import erm_mixing

    yield erm_mixing
    sys.path.remove(str(FOLDER))


@pytest.fixture
def small(mixing, monkeypatch, tmp_path):
    """60 + 20 grey images of 8 x 8 of classes 3, 5 and 8, brighter above or below."""
    rng = np.random.default_rng(0)
    y = np.tile([3, 8, 5, 8, 3], 16)
    x = rng.integers(0, 100, size=(80, 8, 8))
    x[y == 3, :4] += 150
    x[y == 8, 4:] += 150
    data = Dataset("small", x.astype("u1"), y, splits={"train": slice(0, 60), "test": slice(60, 80)})
    monkeypatch.setitem(mixing.features.SETS, "small", lambda: data)
    monkeypatch.setitem(mixing.FIGURES, "small", 3)
    monkeypatch.setattr(mixing.features, "CACHE", tmp_path)
    return "small"


def test_features_are_trained_once_and_certified(mixing, small, capsys):
    train, test, plan = mixing.features.kept_features(small)
    assert "certified: claimed delta 1e-05 at epsilon 1" in capsys.readouterr().out
    assert train.x.shape == (48, 128)
    assert test.x.shape == (16, 128)
    np.testing.assert_allclose(np.linalg.norm(train.x, axis=1), 1, rtol=1e-12)
    assert set(train.y) == {0, 1}
    again = mixing.features.kept_features(small)
    assert capsys.readouterr().out == ""
    np.testing.assert_array_equal(again[0].x, train.x)
    assert again[2].to_json() == plan.to_json()
    assert 0.99 < plan.epsilon(1e-5).upper <= 1


def test_the_cost_of_the_features_is_composed(mixing, small):
    plan = mixing.features.kept_features(small)[2]
    spent = [mixing.together(plan, epsilon) for epsilon in (0.1, 1.0)]
    assert 1 < spent[0] <= 1.1
    assert 1.5 < spent[1] <= 2


def test_rows_of_the_study(mixing, small):
    for kind in mixing.KINDS:
        rows = mixing.study(small, kind, epsilons=(1.0,), repeats=2, trained=mixing.features.kept_features)
        assert [row[4] for row in rows] == ["scikit-learn", *mixing.SOLVERS]
        assert all(len(row) == len(mixing.HEADERS) and 0 <= row[5] <= 1 for row in rows)
        assert all((row[8] == 1) == (kind == "random") for row in rows[1:])
        assert "(small" in mixing.ratios(rows, "kifer")
