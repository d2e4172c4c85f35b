"""Commands given the wrong file, or run in another project, say where to turn."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shapedp.cli import main
from shapedp.papers.register import CLAIMS
from shapedp.papers.register.harness import experiments_folder
from shapedp.papers.register.pages import documentation

ROOT = Path(__file__).parents[2]


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Another project, with folders of the same names, and code that must not run."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "hooks.py").write_text("")
    (tmp_path / "docs" / "claims.md").write_text("claims of another kind")
    (tmp_path / "experiments" / "theirs").mkdir(parents=True)
    (tmp_path / "experiments" / "theirs" / "items.py").write_text("raise SystemExit('foreign code ran')")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("kind", ["linear-regression", "logistic-regression"])
def test_verify_of_a_model_names_its_certificate(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    model = tmp_path / "model.json"
    model.write_text(json.dumps({"schema": 1, "kind": kind}))
    assert main(["verify", str(model)]) == 2
    assert f"this is a model; verify {tmp_path / 'model.certificate.json'}\n" in capsys.readouterr().err


def test_a_foreign_experiments_folder_is_passed_over(
    foreign: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert experiments_folder(foreign) == ROOT / "experiments"
    assert main(["reproduce", "--experiments", "experiments"]) == 2
    assert "experiments: holds no published.toml; give the folder" in capsys.readouterr().err
    installed = str(foreign / "site" / "harness.py")
    monkeypatch.setattr("shapedp.papers.register.harness.__file__", installed)
    for options in ([], ["--list"], ["theirs/figure-1"]):
        assert main(["reproduce", *options]) == 2
        assert "inside a checkout of the shapedp repository; run there" in capsys.readouterr().err


def test_foreign_pages_are_not_compared(foreign: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert documentation() is None
    assert documentation(ROOT / "src") == ROOT / "docs"
    assert main(["claims", "--verify", next(iter(CLAIMS))]) == 0
    said = capsys.readouterr().err
    assert "misprint" not in said
    assert "docs/claims.md is in a checkout of the shapedp repository" in said


def test_a_missing_ledger_says_how_to_make_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "none.db"
    for where in (str(path), f"sqlite:///{path}"):
        for action in (["status"], ["history", "--dataset", "d"], ["export"]):
            assert main(["ledger", action[0], where, *action[1:]]) == 2
            said = capsys.readouterr().err
            assert said == f"shapedp: error: {path}: no such ledger: make it with shapedp ledger init\n"
    assert not path.exists()
    assert main(["ledger", "status", str(tmp_path)]) == 2
    assert "no such ledger" not in capsys.readouterr().err
