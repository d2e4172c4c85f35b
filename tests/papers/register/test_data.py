"""The data of the register: what is not well formed is refused, and a condition can only compare."""

import pytest

from shapedp.papers.register.condition import holds
from shapedp.papers.register.format import Claim, _problem, read_claims
from shapedp.papers.register.register import CLAIMS, ROOMS
from shapedp.papers.register.seal import seals

ENTRY = {
    "id": "paper/claim",
    "statement": "s",
    "source": "Theorem 1",
    "verdict": "holds",
    "witness": "w",
    "compute": "theorem_1",
    "holds_if": "exact <= claimed",
    "parameters": {"dim": 3},
    "found": {"exact": 0.1, "claimed": 0.2},
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"colour": "red"}, "unknown fields colour"),
        ({"statement": ""}, "must be texts"),
        ({"compute": 3}, "must be texts"),
        ({"verdict": "maybe"}, "verdict must be one of"),
        ({"about": "all"}, "verdict must be one of"),
        ({"readings": {"guessed": "x"}}, "readings must be among printed, intended, code"),
        ({"found": {"exact": "0.1"}}, "tables of numbers"),
        ({"parameters": {"dim": True}}, "tables of numbers"),
        ({"printed": {"exact": [0.1]}}, "pairs of numbers"),
        ({"printed": {"exact": [0.1, "2"]}}, "pairs of numbers"),
    ],
)
def test_an_entry_that_is_not_well_formed_is_told(change, words):
    assert _problem(ENTRY) == ""
    assert words in _problem({**ENTRY, **change})
    assert "tables of numbers" in _problem({name: value for name, value in ENTRY.items() if name != "found"})


def test_every_claim_has_a_seal_and_every_seal_a_claim():
    claims = [claim.id for room in ROOMS for claim in read_claims(room)]
    assert len(set(claims)) == len(claims)
    assert list(seals()) == list(CLAIMS)
    assert sorted(claims) == sorted(CLAIMS)


def test_a_bad_entry_names_its_room_and_claim(monkeypatch):
    monkeypatch.setattr("shapedp.papers.register.format.read_toml", lambda *_: {"claim": [{"id": "paper/odd"}]})
    with pytest.raises(ValueError, match=r"classics/claims.toml: claim 'paper/odd': the fields"):
        list(read_claims("classics"))


@pytest.mark.parametrize(
    ("condition", "truth"),
    [
        ("a < b", True),
        ("a < b < a", False),
        ("a * 2 == b and abs(a - b) <= 1", True),
        ("min(a, b) > 1", False),
        ("max(values) <= 2", True),
        ("a / b >= 0.5 + 1e-3", False),
    ],
)
def test_conditions(condition, truth):
    assert holds(condition, {"a": 1.0, "b": 2.0}) is truth


@pytest.mark.parametrize(
    "condition", ["a", "a + b", "__import__('os') == 1", "a.real < b", "a if a < b else b", "a ** b < 1"]
)
def test_a_condition_can_only_compare(condition):
    with pytest.raises(ValueError, match="condition"):
        holds(condition, {"a": 1.0, "b": 2.0})


def test_the_names_of_a_condition_are_computed():
    assert all(isinstance(claim, Claim) and isinstance(claim.judge(claim.found), bool) for claim in CLAIMS.values())
