"""The checker on selections, keys and quantiles: agreement with the library, its own numbers, edited files."""

from __future__ import annotations

import copy
import json
import sys
from fractions import Fraction
from pathlib import Path

import pytest

sdp = pytest.importorskip("shapedp")
from shapedp.accounting import Plan, Step  # noqa: E402
from shapedp.mechanisms import Quantiles  # noqa: E402
from shapedp_check import check  # noqa: E402
from shapedp_check.balls import ball  # noqa: E402
from shapedp_check.selection import _wins  # noqa: E402

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments" / "trust"))
from certificates import NEWEST, Skipped, certificate, kind_of  # noqa: E402


@pytest.mark.parametrize("kind", ["selection", "keys", "quantiles"])
def test_random_certificates_agree(kind):
    most = 8 if kind == "quantiles" else 20
    cases = [number for number in range(NEWEST, NEWEST + 1200) if kind_of(number) == kind][:most]
    verdicts = set()
    for number in cases:
        try:
            made = certificate(number)
        except Skipped:
            continue
        answer = check(made)
        assert made["bracket"]["upper"] >= answer.lower, number
        assert made["bracket"]["lower"] <= answer.upper, number
        verdicts.add(answer.verdict)
    assert "certified" in verdicts
    assert verdicts - {"certified"}


def written(mechanism):
    return json.loads(json.dumps(mechanism.certificate.to_json()))


def test_two_candidates_win_as_they_do():
    for margin in (-3, 0, 2):
        total = _wins("noisy-max", ball(Fraction(1, 2)), margin) + _wins("noisy-max", ball(Fraction(1, 2)), -margin)
        assert total.contains(1)
    made = sdp.Selection(2, (1, 2), 5.0, 0.0, 1, True, "noisy-max")
    shown = made.probabilities([0, 3])[1]
    assert float(_wins("noisy-max", ball(Fraction(1, 2)), 3).mid()) == pytest.approx(shown, abs=1e-12)


@pytest.mark.parametrize(
    "change",
    [
        {"rate": [2, 1]},
        {"monotone": False},
        {"sensitivity": 2},
        {"times": 3},
        {"method": "noisy"},
        {"rate": [1, 0]},
        {"candidates": 1},
        {"another": 1},
        {"adjacency": "replace"},
    ],
)
@pytest.mark.parametrize("method", ["exponential", "permute-and-flip", "noisy-max"])
def test_edited_selections_are_not_certified(method, change):
    good = written(sdp.Selection.calibrate(9, epsilon=1.0, delta=0.0, sensitivity=1, monotone=True, method=method))
    assert check(good).verdict == "certified"
    bad = copy.deepcopy(good)
    bad["subject"].update(change)
    assert check(bad).verdict != "certified"


@pytest.mark.parametrize(
    "change", [{"key_epsilon": 1.5}, {"key_delta": 1e-4}, {"keys": 3}, {"adjacency": None}, {"keys": 0}]
)
def test_edited_keys_are_not_certified(change):
    made = sdp.KeySelection.calibrate(keys=2, epsilon=1.0, delta=1e-6, adjacency="add-remove")
    good = written(made)
    assert check(good).verdict == "certified"
    bad = copy.deepcopy(good)
    bad["subject"].update(change)
    assert check(bad).verdict != "certified"


@pytest.mark.parametrize(
    "change",
    [
        {"reach": [1, 1]},
        {"records": 2},
        {"targets": [[1, 8], [1, 4], [1, 2], [3, 4]]},
        {"targets": []},
        {"targets": [[1, 2], [1, 4]]},
    ],
)
def test_edited_quantiles_are_not_certified(change):
    made = Quantiles.calibrate(99, [0.25, 0.5, 0.75], epsilon=1.0, delta=0.0, adjacency="zero-out")
    good = written(made)
    assert check(good).verdict == "certified"
    bad = copy.deepcopy(good)
    bad["subject"].update(change)
    assert check(bad).verdict != "certified"


def test_plans_of_selections_are_checked():
    chosen = sdp.Selection.calibrate(
        9, epsilon=0.2, delta=0.0, sensitivity=1, monotone=True, adjacency="add-remove", times=2
    )
    keys = sdp.KeySelection.calibrate(keys=2, epsilon=0.2, delta=1e-8, adjacency="add-remove")
    plan = Plan((Step(chosen, count=3), Step(keys)))
    made = sdp.certify(plan, epsilon=0.7, delta=1e-3)
    answer = check(json.loads(json.dumps(made.to_json())))
    assert made.verdict == answer.verdict == "certified"
    assert sdp.verify(sdp.Certificate.from_json(made.to_json())).verdict == "certified"
