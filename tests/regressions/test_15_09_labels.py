"""Labels that were taken as stated: a neighbour relation that a composition dropped, fields that nothing read.

`compose([m_replace])` lost its relation and then passed Poisson sampling; a certificate whose relation was edited in
two of three places verified; `replace(certificate, bracket=Bracket(0, 0))` was spent by a basic ledger at its claim.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shapedp as sdp
from shapedp.accounting import BareLoss, Plan, Step, compose, from_event, subsample, to_event
from shapedp.accounting.repeat import Repetition
from shapedp.cli.main import main
from shapedp.learn import LogisticRegression
from shapedp.ledger import Ledger, SpendRefusedError
from shapedp.mechanisms import AdaptiveMixing, Mixing
from shapedp.mechanisms.angles import MeanAngles
from shapedp.papers.gaussian_mixing.recipes import ModifiedGaussMix
from shapedp.privacy import Bracket, GaussianLoss, LaplaceLoss
from shapedp.privacy.losses import MixedLoss, MixingLoss, RadialLoss

CLAIM = {"epsilon": 1.0, "delta": 1e-6}
NEAR = ("add-remove", "replace", "zero-out")


def ball(near: str | None = "add-remove") -> sdp.Additive:
    return sdp.calibrate("gaussian", sdp.L2(1.0, dim=2, adjacency=near), **CLAIM)  # type: ignore[arg-type]


LOSSES = {
    "gaussian": GaussianLoss(0.5, adjacency="replace"),
    "laplace": LaplaceLoss(0.5, adjacency="replace"),
    "mixed": MixedLoss(np.array([0.2]), 0.3, adjacency="replace"),
    "radial": RadialLoss(4, 4.0, 1.0, 0.3, adjacency="replace"),
    "mixing": MixingLoss(20, 0.05, "replace"),
    "bare": BareLoss(0.5, 1e-9, adjacency="replace"),
    "mechanism": ball("replace").loss,
}


@pytest.mark.parametrize("name", LOSSES)
def test_whatever_is_made_of_a_loss_keeps_its_relation(name: str) -> None:
    loss = LOSSES[name]
    made = [
        compose([loss]),
        compose([(loss, 3)]),
        compose([loss], closed_forms=False),
        compose([loss, GaussianLoss(0.1)]),
        loss.shift(0.1),
        loss.with_failure(1e-9, total_variation=1e-12),
        compose([(loss.with_failure(1e-9), 2)]),
        subsample(loss, 0.1, "without-replacement"),
        Plan((Step(loss, 1.0, 2),)).loss,
        loss.tabulated(1e-2),
    ]
    assert [one.adjacency for one in made] == ["replace"] * len(made)
    assert all(part.adjacency == "replace" for part, _ in loss.pieces().parts)
    for one in made:
        with pytest.raises(ValueError, match="not replace"):
            subsample(one, 0.1)
        with pytest.raises(ValueError, match="cannot mix"):
            compose([one, GaussianLoss(0.1, adjacency="add-remove")])
    assert sdp.certify(loss, **CLAIM).adjacency == "replace"


def test_a_discretised_loss_keeps_its_relation() -> None:
    assert GaussianLoss(0.5, adjacency="zero-out").discretize().adjacency == "zero-out"
    with pytest.raises(ValueError, match="adjacency must be one of"):
        GaussianLoss(0.5, adjacency="neighbouring")
    with pytest.raises(ValueError, match="cannot mix"):
        MixingLoss(20, 0.05, "replace", adjacency="zero-out")


def test_plans_and_events_keep_the_relation() -> None:
    for loss in (GaussianLoss(0.5, adjacency="zero-out"), BareLoss(0.5, 1e-9, attained=False, adjacency="zero-out")):
        plan = Plan((Step(loss, 1.0, 2),))
        again = Plan.from_json(json.loads(json.dumps(plan.to_json())))
        assert again == plan
        assert again.loss.adjacency == again.adjacency == "zero-out"
    pytest.importorskip("dp_accounting")
    event = to_event(ball("zero-out"), adjacency="zero-out")
    assert from_event(event, adjacency="zero-out").adjacency == "zero-out"
    assert from_event(event).adjacency == "add-remove"
    for near in ("replace", "zero-out"):
        with pytest.raises(ValueError, match=f"cannot describe '{near}'"):
            to_event(ball(near))


def certificates() -> dict[str, sdp.Certificate]:
    x = np.random.default_rng(0).normal(size=(60, 2))
    given: dict[str, Any] = {**CLAIM, "feature_bound": 3.0, "classes": [0, 1], "solver": "objective"}
    fit = LogisticRegression(**given).fit(x, (x[:, 0] > 0).astype(int))
    sizes: dict[str, Any] = {"rows": 50, "row_bound": 1.0, "records": 1000, "dim": 3}
    subjects = {
        "ball": ball(),
        "box": sdp.calibrate("gaussian", sdp.Box([1.0, 2.0], adjacency="replace"), **CLAIM),
        "mixing": Mixing.calibrate(**sizes, **CLAIM),
        "adaptive": AdaptiveMixing.calibrate(**sizes, adjacency="replace", **CLAIM),
        "modified": ModifiedGaussMix(50, 1.0, 60.0, 8.0, 5.5, 1.0, 1e-3, records=1000, dim=3),
        "angles": MeanAngles.calibrate(dim=3, clip=1.0, batch=10, **CLAIM),
        "plan": Plan((Step(ball(), 1.0, 2),)),
        "repetition": Repetition(ball(), 0.1, "add-remove"),
    }
    return {name: sdp.certify(one, **CLAIM) for name, one in subjects.items()} | {"objective": fit.privacy_}


CERTIFICATES = certificates()
READ = ("adjacency", "records", "dim", "reach", "log_ratio", "output_reach", "gamma", "problems")


def leaves(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inner:
        yield from leaves(value, (*path, key))
    if not isinstance(data, dict | list):
        yield path, data


def edited(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    copy = json.loads(json.dumps(data))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return copy


@pytest.mark.parametrize("name", CERTIFICATES)
def test_no_edited_field_verifies(name: str) -> None:
    data = json.loads(json.dumps(CERTIFICATES[name].to_json()))
    assert sdp.verify(sdp.Certificate.from_json(data)).bracket == CERTIFICATES[name].bracket
    tried = 0
    for path, value in leaves(data):
        if path[-1] not in READ:
            continue
        if path[-1] == "adjacency":
            known = (*NEAR, None) if len(path) == 1 else NEAR  # inside, the user may leave it to the outermost
            others: list[Any] = [near for near in known if near != value]
        else:
            others = [value + 1, value * 2] if isinstance(value, int) else [value * 1.01, value / 2]
        for other in others:
            tried += 1
            with pytest.raises((ValueError, TypeError)):
                sdp.verify(sdp.Certificate.from_json(edited(data, path, other)))
    assert tried >= 3
    with pytest.raises(ValueError, match=r"describes nothing|field too many|not known"):
        sdp.verify(sdp.Certificate.from_json(edited(data, ("subject", "note"), "trust me")))


def test_two_of_three_labels_are_not_enough(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The run says add-remove, certificate and subject say replace."""
    data = json.loads(json.dumps(CERTIFICATES["repetition"].to_json()))
    data["adjacency"] = data["subject"]["adjacency"] = "replace"
    with pytest.raises(ValueError, match="cannot mix"):
        sdp.verify(sdp.Certificate.from_json(data))
    file = tmp_path / "edited.json"
    file.write_text(json.dumps(data))
    assert main(["verify", str(file)]) == 2
    assert "add-remove, replace" in capsys.readouterr().err


def test_secure_is_a_truth_value() -> None:
    with pytest.raises(TypeError, match="secure"):
        sdp.Certificate.from_json(edited(CERTIFICATES["ball"].to_json(), ("secure",), "yes"))


@pytest.mark.parametrize("rule", ["basic", "gaussian", "renyi"])
def test_a_ledger_computes_a_certificate_again(tmp_path: Path, rule: str) -> None:
    """Refuted claims with brackets that say otherwise, and claims about nothing that can be computed."""
    ledger = Ledger.create(
        tmp_path / "b.db",
        dataset="d",
        epsilon=8.0,
        delta=1e-5,
        adjacency="add-remove",
        rule=rule,
        failure_share=0.0 if rule == "basic" else 0.5,
    )
    false = sdp.certify(ball(), epsilon=0.1, delta=1e-9)
    assert false.verdict == "refuted"
    for forged in (Bracket(0.0, 0.0), Bracket(0.0, 1e-9), Bracket(0.0, 1.0)):
        with pytest.raises(SpendRefusedError):
            ledger.spend("d", replace(false, bracket=forged))
    with pytest.raises(SpendRefusedError, match="computed again"):
        ledger.spend("d", replace(ball().certificate, subject=None))
    with pytest.raises(SpendRefusedError):
        ledger.spend("d", replace(ball("replace").certificate, adjacency="add-remove"))
    assert ledger.status("d").entries == 0
    with ledger.spend("d", ball().certificate):
        pass
    assert ledger.status("d").entries == 1
