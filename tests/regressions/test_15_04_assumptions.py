"""A certificate named no unproved premise: a training that rests on one looked like a release that is computed."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import shapedp as sdp
import shapedp_check
from shapedp.accounting import BareLoss, Plan, Step, allocate
from shapedp.cli import main
from shapedp.privacy import Certificate
from shapedp.privacy.assumptions import SENTENCES, UNSTATED
from shapedp.report import of
from shapedp.torch import Flat, Layout, TrainingPlan
from shapedp.workloads import StepSums, Toeplitz

COMPUTED = sdp.calibrate("gaussian", sdp.L2(1.0, dim=2, adjacency="replace"), epsilon=1.0, delta=1e-6)
VOUCHED = sdp.calibrate("gaussian", sdp.L2(1.0, dim=2), epsilon=1.0, delta=1e-6)


def training(**options: Any) -> Any:
    rows = 10 if "correlated" in options else 40
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DataLoader(TensorDataset(torch.zeros(40, 3), torch.zeros(40, dtype=torch.long)), batch_size=rows)
    rest: dict[str, Any] = {"clip": 1.0, "delta": 1e-5, "noise_multiplier": 3.0} | options
    sdp.torch.make_private(model, optimizer, loader, **rest)
    found = optimizer.privacy_  # type: ignore[attr-defined]
    found.account.charge()
    return found


def test_a_training_names_its_premises() -> None:
    made = training().certificate
    assert made.verdict == "certified"
    assert made.assumptions == tuple(SENTENCES[name] for name in ("gradients", "records", "draws", "number", "rare"))
    assert SENTENCES["unchecked"] in training(check_records=False).certificate.assumptions
    assert "2^-22" in made.explain()


def test_what_is_computed_assumes_nothing_and_what_is_stated_says_so() -> None:
    assert COMPUTED.certificate.assumptions == ()
    assert VOUCHED.certificate.assumptions == (SENTENCES["sensitivity"],)
    for loss in (BareLoss(1.0, 0.0), COMPUTED.loss, sdp.compose([COMPUTED, COMPUTED])):
        assert sdp.certify(loss, epsilon=3.0, delta=1e-5).assumptions == (SENTENCES["loss"],)

    class Own:
        loss = COMPUTED.loss

    assert sdp.certify(Own(), epsilon=1.0, delta=1e-5).assumptions == (SENTENCES["own"],)


def test_a_plan_rests_on_what_each_part_rests_on() -> None:
    steps = (Step(COMPUTED), Step(VOUCHED, count=2), Step(BareLoss(0.1, 0.0)), *training().plan.steps)
    mixed = Plan(steps[1:3])
    assert sdp.certify(mixed, epsilon=9.0, delta=1e-4).assumptions == (SENTENCES["sensitivity"], SENTENCES["loss"])
    plan = Plan((steps[2], steps[3]))
    names = ("loss", "gradients", "records", "draws", "number", "rare")
    assert sdp.certify(plan, epsilon=9.0, delta=1e-4).assumptions == tuple(SENTENCES[name] for name in names)


def test_sampling_under_zero_out_takes_a_row_of_zeros_for_an_absent_one() -> None:
    blanked = sdp.calibrate("gaussian", sdp.L2(1.0, dim=2, adjacency="zero-out"), epsilon=1.0, delta=1e-6)
    joined = sdp.calibrate("gaussian", sdp.L2(1.0, dim=2, adjacency="add-remove"), epsilon=1.0, delta=1e-6)
    said = (SENTENCES["blanks"],)
    for step in (Step(blanked, 0.1), Step(blanked, scheme="allocation", batches=10)):
        made = sdp.certify(Plan((step, Step(blanked))), epsilon=9.0, delta=1e-4)
        assert made.assumptions == said
        written = made.to_json()
        assert sdp.verify(Certificate.from_json(written)).assumptions == said
        with pytest.raises(ValueError, match="assumptions"):
            sdp.verify(Certificate.from_json(written | {"assumptions": []}))
        assert any("row of zeros" in note for note in shapedp_check.check(written).notes)
    for step in (Step(blanked), Step(blanked, scheme="shuffle", batches=10), Step(joined, 0.1)):
        made = sdp.certify(Plan((step,)), epsilon=9.0, delta=1e-4)
        assert made.assumptions == ()
        assert not any("row of zeros" in note for note in shapedp_check.check(made.to_json()).notes)
    sampled = sdp.subsample(blanked, 0.1)
    for loss in (sampled, sdp.compose([(sampled, 3), blanked]).with_failure(1e-9), allocate(blanked, 10)):
        assert sdp.certify(loss, epsilon=9.0, delta=1e-4).assumptions == (SENTENCES["loss"], *said)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({}, True),
        ({"sampling": "allocation"}, True),
        ({"sampling": "fixed"}, False),
        ({"sampling": "shuffle"}, False),
        ({"correlated": Toeplitz.best(StepSums(8), 2), "steps": 8}, True),
    ],
)
def test_chances_that_are_left_out_are_named(options: dict[str, Any], named: bool) -> None:
    assert (SENTENCES["rare"] in training(**options).certificate.assumptions) is named


@pytest.mark.parametrize("sampling", ["poisson", "allocation", "fixed", "shuffle"])
def test_the_number_of_records_is_a_premise_where_neighbours_differ_in_it(sampling: str) -> None:
    """The plan tells it, and draws by a rate from it: one record less makes another plan for all the others."""
    made, other = (
        TrainingPlan(Layout.single(3), records, 10, Flat(1.0), delta=1e-5, scale=3.0, sampling=sampling)
        for records in (40, 39)
    )
    assert (made.rate, made.to_json()) != (other.rate, other.to_json())
    certificate = sdp.certify(Plan((Step(made.mechanism),)), epsilon=9.0, delta=1e-4)
    assert (SENTENCES["number"] in certificate.assumptions) is (certificate.adjacency == "add-remove")


def test_a_file_cannot_drop_what_its_subject_implies() -> None:
    made = training().certificate
    written = json.loads(json.dumps(made.to_json()))
    assert sdp.verify(Certificate.from_json(written)).assumptions == made.assumptions
    for forged in ([], written["assumptions"][1:], [*written["assumptions"], "and more"]):
        with pytest.raises(ValueError, match="assumptions"):
            sdp.verify(Certificate.from_json(written | {"assumptions": forged}))
    old = {key: value for key, value in written.items() if key != "assumptions"}
    read = Certificate.from_json(old)
    assert read.assumptions == UNSTATED
    assert sdp.verify(read).assumptions == made.assumptions
    with pytest.raises(ValueError, match="list of sentences"):
        Certificate.from_json(written | {"assumptions": "none"})
    with pytest.raises(ValueError, match="premises must be among"):
        sdp.verify(Certificate.from_json(_with_premises(written, ["nothing"])))


def _with_premises(written: dict[str, Any], names: list[str]) -> dict[str, Any]:
    changed = json.loads(json.dumps(written))
    changed["subject"]["steps"][0]["subject"]["mechanism"]["premises"] = names
    return changed


def test_shown_by_the_command_line_and_the_report(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "certificate.json"
    made = training().certificate
    file.write_text(json.dumps(made.to_json()))
    assert main(["verify", str(file)]) == 0
    shown = capsys.readouterr().out
    assert all(sentence in shown for sentence in made.assumptions)
    bound = tmp_path / "mechanism.json"
    assert main(["calibrate", "gaussian", "--l2", "1", "--dim", "2", "--epsilon", "1", "--delta", "1e-6", "-o",
                 str(bound)]) == 0  # fmt: skip
    assert SENTENCES["sensitivity"] in capsys.readouterr().out
    assert main(["certify", str(bound)]) == 0
    assert SENTENCES["sensitivity"] in capsys.readouterr().out
    page = html.unescape(of(made).html)
    assert all(sentence in page for sentence in made.assumptions)
