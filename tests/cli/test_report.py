"""shapedp report: files in, one page out, exit codes, inputs never overwritten."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.report.subjects import estimator, model_file

import shapedp as sdp
from shapedp.cli import main

CLAIM = ["--epsilon", "1", "--delta", "1e-6"]


@pytest.fixture
def mechanism(tmp_path: Path) -> Path:
    path = tmp_path / "mechanism.json"
    assert main(["calibrate", "gaussian", "--box", "1,0.1,0.01", *CLAIM, "-o", str(path)]) == 0
    return path


def test_a_page_is_written_beside_the_mechanism(mechanism: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(mechanism)]) == 0
    page = mechanism.with_suffix(".html")
    assert f"written    {page}" in capsys.readouterr().out
    text = page.read_text(encoding="utf-8")
    assert "shapedp verify mechanism.json" in text
    assert str(mechanism.parent) not in text
    assert main(["report", str(mechanism), "-o", str(page), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["page"] == str(page)
    assert said["verdict"] == "certified"
    assert said["bytes"] == len(text.encode()) < 2_000_000
    assert page.read_text(encoding="utf-8") == text


def test_what_is_not_certified_exits_with_3_and_still_has_a_page(tmp_path: Path) -> None:
    path = tmp_path / "claimed.json"
    made = sdp.recipes.classic_gaussian(dim=3, sensitivity=1.0, epsilon=10.0, delta=1e-5)
    path.write_text(json.dumps(made.to_json()))
    assert main(["report", str(path)]) == 3
    assert "The claimed privacy is not given" in path.with_suffix(".html").read_text(encoding="utf-8")


def test_audits_are_added(mechanism: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["audit", str(mechanism), "--samples", "2e4", "--seed", "1", "--json"]) == 0
    audit = tmp_path / "audit.json"
    audit.write_text(capsys.readouterr().out)
    page = tmp_path / "page.html"
    assert main(["report", str(mechanism), "--audit", str(audit), "-o", str(page)]) == 0
    assert "no violation found" in page.read_text(encoding="utf-8")
    data = json.loads(audit.read_text())
    data["witness"] |= {"delta_lower": 0.5, "claimed": 0.1}
    audit.write_text(json.dumps(data))
    assert main(["report", str(mechanism), "--audit", str(audit), "-o", str(page)]) == 3
    assert "An audit contradicts" in page.read_text(encoding="utf-8")


def test_a_plan_needs_its_claim(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, page = tmp_path / "plan.json", tmp_path / "plan.html"
    plan = sdp.Plan((sdp.accounting.Step(sdp.GaussianLoss(0.3), 1.0, 4),))
    path.write_text(json.dumps(plan.to_json()))
    assert main(["report", str(path)]) == 2
    assert "states no claim" in capsys.readouterr().err
    assert not page.exists()
    assert main(["report", str(path), "--delta", "1e-5"]) == 0
    assert "4 runs in 1 step" in page.read_text(encoding="utf-8")
    assert main(["report", str(path), "--epsilon", "0.1", "--delta", "1e-5"]) == 3


def test_a_ledger_is_recognised(mechanism: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(mechanism.read_text())
    data["sensitivity"]["adjacency"] = "replace"
    mechanism.write_text(json.dumps(data))
    where = tmp_path / "budget.db"
    init = [
        "ledger",
        "init",
        str(where),
        "--dataset",
        "d",
        "--epsilon",
        "3",
        "--delta",
        "1e-5",
        "--adjacency",
        "replace",
    ]
    assert main(init) == 0
    assert main(["ledger", "spend", str(where), str(mechanism), "--dataset", "d"]) == 0
    assert main(["report", str(where), "--dataset", "d"]) == 0
    assert "What each entry took" in (tmp_path / "budget.html").read_text(encoding="utf-8")
    assert main(["report", str(where), "--dataset", "other"]) == 2
    assert "no dataset" in capsys.readouterr().err
    assert main(["report", str(where), "--delta", "1e-5"]) == 2


def test_a_fitted_model_with_the_certificate_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = estimator(["age", "rooms", "year"])
    path, beside = tmp_path / "model.json", tmp_path / "model.certificate.json"
    path.write_text(json.dumps(model_file(model)))
    assert main(["report", str(path)]) == 2
    assert "name the model's certificate" in capsys.readouterr().err
    beside.write_text(json.dumps({**model.privacy_.to_json(), "unsafe": False}))
    assert main(["report", str(path)]) == 0
    assert "shapedp verify model.certificate.json" in (tmp_path / "model.html").read_text(encoding="utf-8")
    other = tmp_path / "other.html"
    other.write_text(beside.read_text())
    assert main(["report", str(path), "--certificate", str(other), "-o", str(other)]) == 2
    assert other.read_text() == beside.read_text()


def test_the_register(tmp_path: Path) -> None:
    page = tmp_path / "claims.html"
    assert main(["report", "--claims", "-o", str(page)]) == 0
    assert "shapedp claims --verify product-noise/theorem-1-14-0.1" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("way", ["itself", "symlink", "hardlink"])
def test_an_input_is_never_overwritten(
    way: str, mechanism: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    named = tmp_path / "named.html"
    text = mechanism.read_text()
    if way == "itself":
        mechanism.rename(named)
        mechanism = named
    else:
        (os.symlink if way == "symlink" else os.link)(mechanism, named)
    assert main(["report", str(mechanism), "-o", str(named)]) == 2
    assert "is an input" in capsys.readouterr().err
    assert mechanism.read_text() == named.read_text() == text


def test_an_audit_is_never_overwritten(mechanism: Path, tmp_path: Path) -> None:
    audit = tmp_path / "audit.html"
    audit.write_text("{}")
    assert main(["report", str(mechanism), "--audit", str(audit), "-o", str(audit)]) == 2
    assert audit.read_text() == "{}"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name a FILE"),
        (["{m}", "--claims"], "name a FILE"),
        (["{m}", "--verify"], "--verify goes with"),
        (["{m}", "-o", "{d}/page.pdf"], "name it .html"),
        (["{m}", "-o", "{d}/no/page.html"], "no such folder"),
        (["{m}", "--delta", "1e-5"], "states its own"),
        (["{m}", "--dataset", "d"], "belongs to a ledger"),
        (["{d}/missing.json"], "no such file"),
        (["{d}/broken.json"], "not JSON"),
        (["{d}/other.json"], "not a mechanism"),
        (["--claims", "--delta", "0.1"], "--claims takes no"),
        (["postgresql://nobody@127.0.0.1:9/none"], "name the page with -o"),
    ],
)
def test_wrong_input_is_one_line_and_no_page(
    arguments: list[str], message: str, mechanism: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "other.json").write_text('{"kind": "<b>"}')
    before = sorted(path.name for path in tmp_path.iterdir())
    capsys.readouterr()
    assert main(["report", *(text.format(m=mechanism, d=tmp_path) for text in arguments)]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["report", "--help"])
    assert stop.value.code == 0
    assert "example: shapedp report mechanism.json" in capsys.readouterr().out
