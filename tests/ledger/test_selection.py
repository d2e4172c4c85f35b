"""Selections, keys and quantiles are paid for like any other release."""

import numpy as np
import pytest

import shapedp as sdp
from shapedp.ledger import Ledger, SpendRefusedError
from shapedp.mechanisms import Quantiles

CLAIM = {"epsilon": 0.2, "adjacency": "add-remove"}


def spent(ledger, mechanism, counts):
    with ledger.spend("d", mechanism) as spend:
        return spend.release(np.array(counts))


@pytest.mark.parametrize("rule", ["either", "renyi", "basic"])
def test_selections_are_paid_for(rule, tmp_path):
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", epsilon=3.0, delta=1e-6, adjacency="add-remove", rule=rule)
    chosen = sdp.Selection.calibrate(3, delta=0.0, sensitivity=1, monotone=True, **CLAIM)
    before = ledger.affords("d", chosen)
    assert spent(ledger, chosen, [0, 900, 1]).index == 1
    assert ledger.affords("d", chosen) == before - 1
    middle = Quantiles.calibrate(3, [0.5], delta=0.0, **CLAIM)
    assert spent(ledger, middle, [10, 900, 10]).value.tolist() == [1]
    if rule == "renyi":  # bounded range: many more than pure accounting allows
        assert before > 2 * 3.0 / 0.2


def test_keys_need_a_share_of_delta(tmp_path):
    keys = sdp.KeySelection.calibrate(keys=1, delta=1e-8, **CLAIM)
    ledger = Ledger.create(
        tmp_path / "l.db", dataset="d", epsilon=3.0, delta=1e-6, adjacency="add-remove", rule="basic"
    )
    assert spent(ledger, keys, [10_000, 0]).value.tolist() == [0]
    other = Ledger.create(tmp_path / "m.db", dataset="d", epsilon=3.0, delta=1e-6, adjacency="add-remove", rule="renyi")
    with pytest.raises(SpendRefusedError, match="failure"):
        spent(other, keys, [10_000, 0])
