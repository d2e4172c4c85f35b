"""The demonstration ends in a table and a picture, with a published claim refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from shapedp.cli import main


def test_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture = tmp_path / "demo.png"
    assert main(["demo", "-o", str(picture)]) == 0
    text = capsys.readouterr().out
    assert "Gaussian, shaped" in text
    assert "refused" in text
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 20_000


def test_demo_json_says_what_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "-o", str(tmp_path / "demo.png"), "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    verdicts = [entry["verdict"] for entry in entries]
    assert verdicts.count("certified") >= 4
    assert "refuted" in verdicts
    errors = {entry["mechanism"]: entry["expected_rms_error"] for entry in entries}
    assert errors["Gaussian, shaped"] < errors["Gaussian, one scale"]
    assert errors["Laplace, shaped, pure DP"] < errors["Laplace, one scale, pure DP"]
    for entry in entries:
        if entry["measured_rms_error"] is not None:
            assert 0 < entry["measured_rms_error"] < 10 * entry["expected_rms_error"]
