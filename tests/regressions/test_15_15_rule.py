"""The default rule refuses what plain addition allows: one pure release of epsilon 0.5 under (2, 1e-6) "would be 193%",
without a word about the rule or what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

import shapedp as sdp
from shapedp.ledger import BudgetExceededError, Ledger

PURE = sdp.calibrate("laplace", sdp.L1(1.0, 1, adjacency="replace"), epsilon=0.5, delta=0.0)


@pytest.mark.parametrize("rule", ["gaussian", "renyi"])
def test_the_refusal_names_the_rule_and_the_remedy(tmp_path: Path, rule: str) -> None:
    cap = {"epsilon": 2.0, "delta": 1e-6, "adjacency": "replace"}
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", rule=rule, **cap)
    with pytest.raises(BudgetExceededError) as caught, ledger.spend("d", PURE, count=5 if rule == "renyi" else 1):
        raise AssertionError("never reached")
    text = str(caught.value)
    assert f"rule='{rule}'" in text
    if rule == "gaussian":
        assert "Plain addition charges 25.0000% of the cap for it, this rule 193" in text
        assert "create the dataset with rule='basic'" in text
        ledger.add("b", rule="basic", **cap)
        with ledger.spend("b", PURE):
            pass


def test_no_remedy_where_plain_addition_is_dearer(tmp_path: Path) -> None:
    ledger = Ledger.create(
        tmp_path / "l.db", dataset="d", epsilon=1.0, delta=1e-6, adjacency="replace", rule="gaussian"
    )
    gaussian = sdp.calibrate("gaussian", sdp.L2(1.0, 1, adjacency="replace"), epsilon=0.9, delta=9e-7)
    with pytest.raises(BudgetExceededError) as caught, ledger.spend("d", gaussian, count=2):
        raise AssertionError("never reached")
    assert "rule='gaussian'" in str(caught.value)
    assert "basic" not in str(caught.value)
