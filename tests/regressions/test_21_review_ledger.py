"""A pure cap charged quantiles at their claim: ten of epsilon 0.1 did not fit into 1, as ten counts did."""

from __future__ import annotations

import pandas as pd
import pytest

pytest.importorskip("ibis")
pytest.importorskip("duckdb")

import shapedp as sdp
from shapedp.ledger import Ledger

FRAME = pd.DataFrame({"sex": ["F", "M"], "hours": [30.0, 40.0]})
VERBS = {
    "count": lambda t: t.count(),
    "sum": lambda t: t.sum("hours"),
    "median": lambda t: t.median("hours"),
    "top_k": lambda t: t.top_k("sex", 1),
}


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(("cap", "each", "times"), [(1.0, 0.1, 10), (0.3, 0.1, 3), (2.1, 0.7, 3)])
def test_so_many_fit_as_plain_addition_says(verb, cap, each, times, delta, tmp_path):
    t = sdp.table(FRAME, person=None, bounds={"hours": (0, 80)}, domains={"sex": ["F", "M"]})
    budget = Ledger.create(tmp_path / "b.db", dataset="d", epsilon=cap, delta=delta, adjacency="add-remove")
    plan = t.plan(VERBS[verb](t), epsilon=each, delta=0.0)
    spent = getattr(plan, "mechanism", None) or plan.certificate
    assert budget.affords("d", spent) == times
    for _ in range(times):
        with budget.spend("d", spent, person=None):
            pass
    assert budget.affords("d", spent) == 0
    assert 1 - 1e-8 < budget.status("d").spent <= 1


@pytest.mark.parametrize("rule", ["basic", "either"])
def test_a_claim_that_is_not_pure_costs_its_delta(rule, tmp_path):
    t = sdp.table(FRAME, person=None, bounds={"hours": (0, 80)}, domains={"sex": ["F", "M"]})
    given = {"epsilon": 10.0, "delta": 4e-6, "adjacency": "add-remove", "rule": rule}
    budget = Ledger.create(tmp_path / "b.db", dataset="d", **given)
    beside = t.plan(t.median("hours"), t.sum("hours"), epsilon=0.5, delta=1e-6, noise="gaussian").certificate
    alone = t.plan(t.sum("hours"), epsilon=0.5, delta=1e-6, noise="gaussian").mechanism
    for one in (beside, alone):
        with budget.spend("d", one, person=None):
            pass
    spent = budget.status("d").to_json()["currency"]
    assert spent["delta"] == pytest.approx(2e-6)
    assert spent["epsilon"] == pytest.approx(1.0)
