"""shapedp ledger: what it prints, writes and exits with."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.ledger.helpers import gaussian

from shapedp.cli import main

CAP = ["--dataset", "d", "--epsilon", "1", "--delta", "1e-6", "--adjacency", "replace"]


def run(*arguments: object) -> int:
    return main(["ledger", *map(str, arguments)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A ledger, a mechanism of which three releases fit, and an answer."""
    assert run("init", tmp_path / "l.db", *CAP) == 0
    (tmp_path / "m.json").write_text(json.dumps(gaussian(3).to_json()))
    np.save(tmp_path / "x.npy", np.array([0.25]))
    return tmp_path


def test_a_session(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = folder / "l.db"
    capsys.readouterr()
    assert run("spend", where, folder / "m.json", folder / "x.npy", "-o", folder / "y.npy", "--dataset", "d") == 0
    assert np.load(folder / "y.npy").shape == (1,)
    assert json.loads((folder / "y.certificate.json").read_text())["secure"] is True
    assert run("spend", where, folder / "m.json", "--dataset", "d", "--count", "2", "--json") == 0
    assert '"count": 2' in capsys.readouterr().out
    assert run("spend", where, folder / "m.json", folder / "x.npy", "-o", folder / "z.npy", "--dataset", "d") == 3
    assert "refused: the spend would exceed the cap" in capsys.readouterr().err
    assert not (folder / "z.npy").exists()
    assert run("status", where, "--json", "--check") == 0
    (status,) = json.loads(capsys.readouterr().out)
    assert (status["entries"], status["states"]["released"], status["rule"]) == (2, 2, "either")
    assert run("status", where) == 0
    assert "either" in capsys.readouterr().out
    assert run("history", where, "--dataset", "d", "--json") == 0
    assert [e["count"] for e in json.loads(capsys.readouterr().out)] == [1, 2]
    assert run("history", where, "--dataset", "d", "--last", "1") == 0
    assert "GaussianLoss" in capsys.readouterr().out
    assert run("export", where, "-o", folder / "all.json") == 0
    exported = json.loads((folder / "all.json").read_text())
    assert len(exported["datasets"][0]["history"]) == 2
    capsys.readouterr()
    assert run("export", where, "--dataset", "d") == 0
    assert json.loads(capsys.readouterr().out) == exported


def test_refused_mechanism(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = gaussian(3).to_json()
    other["sensitivity"]["adjacency"] = "add-remove"
    (folder / "other.json").write_text(json.dumps(other))
    assert run("spend", folder / "l.db", folder / "other.json", "--dataset", "d") == 3
    assert "add-remove" in capsys.readouterr().err


def test_ledger_errors_are_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("status", folder / "none.db") == 2
    assert "no such ledger: make it with shapedp ledger init" in capsys.readouterr().err
    assert run("init", folder / "l.db", *CAP) == 2
    assert "already" in capsys.readouterr().err
    assert run("history", folder / "l.db", "--dataset", "e") == 2
    assert "no dataset" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["x.npy"],
        ["-o", "y.npy"],
        ["x.npy", "-o", "y.txt"],
        ["x.npy", "-o", "none/y.npy"],
        ["x.npy", "-o", "y.npy", "--count", "2"],
        ["wide.npy", "-o", "y.npy"],
        ["nan.npy", "-o", "y.npy"],
        ["none.npy", "-o", "y.npy"],
        ["--count", "0"],
    ],
)
def test_wrong_input_spends_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    monkeypatch.chdir(folder)
    np.save("wide.npy", np.zeros(2))
    np.save("nan.npy", np.array([np.nan]))
    assert run("spend", "l.db", "m.json", *arguments, "--dataset", "d") == 2
    capsys.readouterr()
    assert run("status", "l.db", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["entries"] == 0


def test_orders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("init", tmp_path / "l.db", *CAP, "--rule", "renyi", "--orders", "20,40") == 0
    assert run("init", tmp_path / "m.db", *CAP, "--rule", "renyi", "--orders", "a") == 2
    assert "--orders must be numbers" in capsys.readouterr().err
    assert not (tmp_path / "m.db").exists()
