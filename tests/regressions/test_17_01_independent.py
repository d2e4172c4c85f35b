"""`verify` asked the code that made a certificate. With --independent a program that shares no code with it answers."""

import json
from pathlib import Path

import pytest

import shapedp
from shapedp.cli import main
from shapedp.sensitivity import L2

pytest.importorskip("flint")

VECTORS = Path(__file__).parents[1] / "check" / "vectors"


def test_a_false_composition_that_was_certified_is_refuted(capsys):
    """Three pure releases of epsilon 1 were certified at (1.5, 1e-8); the file is as it was written then."""
    assert main(["verify", "--independent", str(VECTORS / "kept-false-composition.json")]) == 3
    assert "refuted" in capsys.readouterr().out


def test_a_true_certificate_passes_and_both_programs_agree_on_its_digest(tmp_path, capsys):
    made = shapedp.calibrate("gaussian", L2(1.0, dim=3, adjacency="add-remove"), epsilon=1, delta=1e-6).certificate
    path = tmp_path / "made.json"
    path.write_text(json.dumps(made.to_json()))
    assert main(["verify", "--independent", "--json", str(path)]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["verdict"] == "certified"
    assert answer["digest"] == made.digest
    assert made.bracket.lower <= answer["upper"]
    assert answer["lower"] <= made.bracket.upper
