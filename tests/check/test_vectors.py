"""The test vectors: certificates, true and false, with the verdicts that any checker should reach."""

import json
from pathlib import Path

import pytest

from shapedp_check import check, digest

VECTORS = Path(__file__).parent / "vectors"
LINES = (VECTORS / "certificates.jsonl").read_text().splitlines()
CASES = [json.loads(line) for line in LINES]


def test_there_are_two_hundred_with_every_verdict():
    assert len(CASES) >= 200
    assert {case["verdict"] for case in CASES} == {"certified", "refuted", "undecided", "not described"}


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_vector(case):
    answer = check(case["certificate"])
    assert answer.verdict == case["verdict"]
    assert answer.digest == digest(case["certificate"])
    if case["interval"][0] is not None:
        assert answer.lower <= case["interval"][1] * (1 + 1e-9)
        assert answer.upper >= case["interval"][0] * (1 - 1e-9)


def test_the_false_composition_is_refuted():
    """Three pure releases of epsilon 1, certified at (1.5, 1e-8) by a version of the library; the truth is 0.23."""
    made = json.loads((VECTORS / "kept-false-composition.json").read_text())
    assert made["verdict"] == "certified"
    answer = check(made)
    assert answer.verdict == "refuted"
    assert 0.22 < answer.lower < answer.upper < 0.24


@pytest.mark.skipif(not (VECTORS / "disagreements.jsonl").exists(), reason="the campaign found none")
def test_disagreements_that_the_campaign_found_stay_found():
    for line in (VECTORS / "disagreements.jsonl").read_text().splitlines():
        case = json.loads(line)
        assert check(case["certificate"]).verdict == "refuted", case["name"]
