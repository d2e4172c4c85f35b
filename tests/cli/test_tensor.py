"""Tensor queries on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import shapedp as sdp
from shapedp.cli import main

CLAIM = ["--epsilon", "1", "--delta", "1e-6"]


def test_advise_with_slice_bounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bounds = tmp_path / "bounds.csv"
    bounds.write_text("\n".join(str(k**-1.5) for k in range(1, 65)))
    arguments = ["advise", "--tensor", "28x28x64", *CLAIM, "--json"]
    assert main([*arguments, "--slice-bounds", str(bounds)]) == 0
    shaped = {entry["family"]: entry for entry in json.loads(capsys.readouterr().out)}
    radius = float(np.linalg.norm(np.arange(1.0, 65) ** -1.5))
    assert main([*arguments, "--l2", str(radius)]) == 0
    even = {entry["family"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert even["tensor"]["expected_error"] > 13 * shaped["tensor"]["expected_error"]
    assert shaped["tensor"]["mechanism"]["sensitivity"]["shape"] == [28, 28, 64]


def test_many_bounds_need_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    text = ",".join(str(1 / k) for k in range(1, 200))
    assert main(["advise", "--tensor", "199x2", "--slice-bounds", text, *CLAIM]) == 0
    assert "tensor" in capsys.readouterr().out


def test_calibrate_release_and_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mechanism, source, target = (tmp_path / name for name in ("m.json", "in.npy", "out.npy"))
    made = ["calibrate", "tensor", "--tensor", "4x3", "--slice-bounds", "1,0.5,0.1", *CLAIM, "-o", str(mechanism)]
    assert main(made) == 0
    np.save(source, np.zeros((4, 3)))
    assert main(["release", str(mechanism), str(source), "-o", str(target)]) == 0
    assert np.load(target).shape == (4, 3)
    assert main(["verify", str(tmp_path / "out.certificate.json")]) == 0
    before = sorted(tmp_path.iterdir())
    assert main(["release", str(mechanism), str(source), "-o", str(tmp_path / "out.csv")]) == 2
    assert "npy" in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


def test_one_bound_for_every_entry(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calibrate", "tensor", "--tensor", "4x3", "--box", "0.5", *CLAIM, "--json"]) == 0
    made = sdp.Additive.from_json(json.loads(capsys.readouterr().out))
    assert made.shape == (4, 3)
    assert made.sensitivity.l2_reach(np.ones(1))[1] == pytest.approx(0.5 * 12**0.5)


def test_certify_recipes(capsys: pytest.CaptureFixture[str]) -> None:
    for recipe in ("tvg", "udn", "idn", "mvg"):
        assert main(["certify", recipe, "--tensor", "6x4", "--epsilon", "1", "--delta", "1e-5"]) == 0
        assert "certified" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["advise", "--slice-bounds", "1,2", *CLAIM], "--tensor"),
        (["advise", "--tensor", "2by2", "--l2", "1", *CLAIM], "--tensor"),
        (["advise", "--tensor", "2x0", "--l2", "1", *CLAIM], "shape"),
        (["advise", "--tensor", "2x2", "--slice-bounds", "1,2", *CLAIM], "--mode"),
        (["advise", "--tensor", "2x3", "--slice-bounds", "1,2", "--mode", "1", *CLAIM], "mode"),
        (["advise", "--tensor", "2x3", "--box", "1,2", *CLAIM], "--box"),
        (["advise", "--tensor", "2x3", "--dim", "6", "--l2", "1", *CLAIM], "--dim"),
        (["certify", "classic-gaussian", "--tensor", "2x3", *CLAIM], "--dim"),
        (["certify", "mvg", "--dim", "6", *CLAIM], "matrices"),
    ],
)
def test_wrong_input(arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    assert word in capsys.readouterr().err
