"""Every rule of a ledger took a certificate that describes nothing (`subject: null`), and `basic` one whose bracket was
edited, at face value."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.ledger.helpers import CAP, gaussian

import shapedp as sdp
from shapedp.accounting import BareLoss, Plan, Step
from shapedp.ledger import Ledger, SpendRefusedError
from shapedp.privacy import Bracket

RULES = ("gaussian", "renyi", "basic")
HONEST = sdp.certify(gaussian(40), epsilon=0.5, delta=5e-7)


def ledger(where: Path, rule: str, **options: object) -> Ledger:
    cap = {**CAP, "rule": rule, "failure_share": 0.5, **options}
    return Ledger.create(where / "l.db", dataset="d", **cap)  # type: ignore[arg-type]


def spend(kept: Ledger, subject: object, **options: object) -> None:
    with kept.spend("d", subject, **options):  # type: ignore[arg-type]
        pass


@pytest.mark.parametrize("rule", RULES)
def test_a_certificate_that_describes_nothing(tmp_path: Path, rule: str) -> None:
    nothing = replace(HONEST, epsilon=0.01, delta=1e-9, bracket=Bracket(0.0, 0.0), subject=None)
    kept = ledger(tmp_path, rule)
    for options in ({}, {"vouched_by": "Ada"}):
        with pytest.raises(SpendRefusedError, match="vouching=True"):
            spend(kept, nothing, **options)
    with pytest.raises(SpendRefusedError, match="vouching=True"):
        kept.affords("d", nothing)
    assert kept.check("d").entries == 0


@pytest.mark.parametrize("rule", RULES)
def test_a_named_person_vouches_where_the_dataset_allows_it(tmp_path: Path, rule: str) -> None:
    nothing = replace(HONEST, epsilon=0.01, delta=1e-9, bracket=Bracket(0.0, 0.0), subject=None)
    kept = ledger(tmp_path, rule, vouching=True)
    for name in (None, "", "  ", "x" * 201, 7):
        with pytest.raises(SpendRefusedError, match="name the person"):
            spend(kept, nothing, vouched_by=name)
    spend(kept, nothing, vouched_by="Ada Lovelace")
    spend(kept, HONEST, vouched_by="Ada Lovelace")
    first, second = kept.history("d")
    assert first.mechanism["vouched_by"] == "Ada Lovelace"
    assert "vouched_by" not in second.mechanism
    assert kept.check("d").to_json()["vouching"] is True


@pytest.mark.parametrize("rule", RULES)
def test_an_edited_claim_or_bracket_is_computed_again(tmp_path: Path, rule: str) -> None:
    kept = ledger(tmp_path, rule, vouching=True)
    loud = sdp.certify(replace(gaussian(4), law=sdp.Gaussian(0.1, 1)), epsilon=1.0, delta=1e-6)
    loose = gaussian(4).loss.delta(1.0)
    between = sdp.certify(gaussian(4), epsilon=1.0, delta=(loose.lower + loose.upper) / 2)
    assert between.verdict == "undecided"
    for edited in (
        replace(between, bracket=Bracket(loose.lower, loose.lower)),
        replace(loud, bracket=Bracket(0.0, 0.0)),
        replace(loud, bracket=Bracket(0.0, 1e-7)),
        replace(HONEST, epsilon=0.01, delta=1e-9, bracket=Bracket(0.0, 0.0)),
        replace(HONEST, adjacency="add-remove"),
        replace(HONEST, subject={"kind": "additive"}),
    ):
        with pytest.raises(SpendRefusedError):
            spend(kept, edited, vouched_by="Ada")
    assert kept.check("d").entries == 0
    spend(kept, HONEST)
    (entry,) = kept.history("d")
    assert entry.certificate["bracket"] == HONEST.to_json()["bracket"]


def test_a_plan_of_stated_losses_is_stated(tmp_path: Path) -> None:
    plan = Plan((Step(gaussian(40)), Step(BareLoss(0.01, 1e-9))))
    kept = ledger(tmp_path, "renyi")
    with pytest.raises(SpendRefusedError, match="vouching=True"):
        spend(kept, plan)
    with pytest.raises(SpendRefusedError, match="vouching=True"):
        spend(kept, sdp.certify(plan, epsilon=1.0, delta=1e-6))


@dataclass(frozen=True)
class Own:
    """A mechanism of the user's own, whose certificate says what it likes."""

    loss: sdp.Loss
    certificate: sdp.Certificate

    def release(self, x: object) -> object:
        raise AssertionError("never reached")


@pytest.mark.parametrize("rule", RULES)
def test_the_certificate_of_a_foreign_mechanism_is_computed_from_its_loss(tmp_path: Path, rule: str) -> None:
    kept = ledger(tmp_path, rule)
    with pytest.raises(SpendRefusedError, match="refuted"):
        spend(kept, Own(sdp.GaussianLoss(10.0), HONEST))
    with pytest.raises(SpendRefusedError, match="vouching=True"):
        spend(kept, Own(BareLoss(0.1), HONEST))
    spend(kept, Own(sdp.GaussianLoss(0.01), HONEST))
    assert kept.check("d").entries == 1


@pytest.mark.parametrize("flag", ["false", 1, 0, None])
def test_vouching_is_true_or_false(tmp_path: Path, flag: object) -> None:
    with pytest.raises(TypeError, match="vouching"):
        ledger(tmp_path, "basic", vouching=flag)
    assert not list(tmp_path.iterdir())
