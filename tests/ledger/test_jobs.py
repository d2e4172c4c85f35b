"""Plans and certificates are spent as wholes; one step of a training is not taken for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import shapedp as sdp
from shapedp.accounting import Plan, Step
from shapedp.learn import LogisticRegression
from shapedp.ledger import BudgetExceededError, Ledger, SpendRefusedError

STEP = sdp.Additive(sdp.Gaussian(4.0, 1), sdp.L2(1.0, 1, adjacency="add-remove"), 2.0, 1e-6)
SAMPLED = Plan((Step(STEP, 0.1, 50),))


def ledger(where: Path, adjacency: str = "add-remove", epsilon: float = 8.0, **options: object) -> Ledger:
    cap = {"epsilon": epsilon, "delta": 1e-5, "adjacency": adjacency, "rule": "gaussian", **options}
    return Ledger.create(where / "b.db", dataset="d", **cap)  # type: ignore[arg-type]


def test_an_unsampled_plan_costs_its_steps(tmp_path: Path) -> None:
    kept = ledger(tmp_path)
    with kept.spend("d", STEP, count=9):
        one_by_one = kept.status("d").totals
    with kept.spend("d", Plan((Step(STEP, 1.0, 9),))) as spend:
        assert spend.charge.amounts[0] == pytest.approx(one_by_one.amounts[0], rel=1e-9)
        with pytest.raises(SpendRefusedError, match="inside the block"):
            spend.release([0.0])
    *_, entry = kept.history("d")
    assert entry.mechanism["type"].endswith("Plan")
    assert sdp.verify(sdp.Certificate.from_json(entry.certificate)).verdict == "certified"


def test_a_sampled_plan_needs_a_rule_that_prices_it(tmp_path: Path) -> None:
    kept = ledger(tmp_path)
    with pytest.raises(SpendRefusedError, match="rule='renyi'"):
        kept.spend("d", SAMPLED)
    kept.add("r", epsilon=8.0, delta=1e-5, adjacency="add-remove", rule="renyi")
    with kept.spend("r", SAMPLED) as spend:
        curve = [SAMPLED.loss.renyi(order).upper for order in spend.terms.filter.orders]
        assert spend.terms.filter.describe(kept.status("r").totals)["renyi"] == pytest.approx(curve)
    kept.add("b", epsilon=8.0, delta=1e-5, adjacency="add-remove", rule="basic")
    with pytest.raises(SpendRefusedError, match="certify"):
        kept.spend("b", SAMPLED)
    claim = sdp.certify(SAMPLED, epsilon=1.0, delta=1e-6)
    with kept.spend("b", claim):
        pass
    found = kept.status("b").totals
    assert (found.amounts[0] / 2**192, found.failure / 2**192) == pytest.approx((1.0, 1e-6))


def test_a_bare_claim_uses_the_failure_share(tmp_path: Path) -> None:
    claim = sdp.certify(SAMPLED, epsilon=1.0, delta=1e-6)
    kept = ledger(tmp_path)
    with pytest.raises(SpendRefusedError, match="failure_share"):
        kept.spend("d", claim)
    kept.add("f", epsilon=8.0, delta=1e-5, adjacency="add-remove", failure_share=0.15, rule="gaussian")
    with kept.spend("f", claim) as spend:
        assert spend.charge.failure / 2**192 == pytest.approx(1e-6)
    with pytest.raises(BudgetExceededError), kept.spend("f", claim):
        raise AssertionError("never reached")
    with pytest.raises(SpendRefusedError, match="certified"):
        kept.spend("f", sdp.certify(SAMPLED, epsilon=0.01, delta=1e-6))


def test_a_fit_is_spent_by_its_certificate(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    given = {"epsilon": 1.0, "delta": 1e-6, "feature_bound": 3.0, "classes": [0, 1]}
    model = LogisticRegression(**given, solver="output", noise="gaussian").fit(x, (x[:, 0] > 0).astype(int))
    kept = ledger(tmp_path, "zero-out", epsilon=1.5)
    with pytest.raises(TypeError, match="privacy_"):
        kept.spend("d", model)
    with kept.spend("d", model.privacy_) as spend:
        mu = sdp.GaussianLoss.calibrate(1.0, 1e-6).mu
        assert spend.charge.amounts[0] / 2**192 == pytest.approx(mu**2, rel=0.01)
    seeded = LogisticRegression(**given, random_state=0).fit(x, (x[:, 0] > 0).astype(int))
    with pytest.raises(SpendRefusedError, match="random_state"):
        kept.spend("d", seeded.privacy_)


def test_a_training_is_spent_by_its_plan(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tests.torch.helpers import private

    *_, training = private(epsilon=2.0, delta=1e-5, steps=20, rng=None)
    kept = ledger(tmp_path, rule="renyi")
    with pytest.raises(TypeError, match=r"\.plan"):
        kept.spend("d", training)
    with pytest.raises(SpendRefusedError, match="one step of a training"):
        kept.spend("d", training.mechanism)
    with kept.spend("d", training.plan):
        assert kept.history("d").__next__().certificate["subject"]["steps"][0]["count"] == 20
    *_, open_ended = private(rng=None)
    with pytest.raises(ValueError, match="no number of steps"):
        kept.spend("d", open_ended.plan)
