"""The command line end to end: files in, files out, exit codes, nothing half-written."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import shapedp as sdp
from shapedp.boundary.files import atomic
from shapedp.cli import main
from shapedp.tables.vectors import Vector, read_vector, write_vector

CLAIM = ["--epsilon", "1", "--delta", "1e-6"]


@pytest.fixture
def mechanism(tmp_path: Path) -> Path:
    path = tmp_path / "mechanism.json"
    assert main(["calibrate", "gaussian", "--box", "1,0.1,0.01", *CLAIM, "-o", str(path)]) == 0
    return path


def test_every_command_has_help_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("advise", "calibrate", "certify", "verify", "release"):
        with pytest.raises(SystemExit) as stop:
            main([command, "--help"])
        assert stop.value.code == 0
        assert re.search("examples?: shapedp", capsys.readouterr().out)


def test_advise_ranks_and_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "--l2", "1", "--dim", "14", *CLAIM, "--json"]) == 0
    ranked = json.loads(capsys.readouterr().out)
    errors = [entry["expected_error"] for entry in ranked if entry["expected_error"] is not None]
    assert errors == sorted(errors)
    assert {"gaussian", "laplace"} <= {entry["family"] for entry in ranked}
    assert main(["advise", "--l2", "1", "--dim", "14", *CLAIM]) == 0
    assert "least expected error" in capsys.readouterr().out


def test_advise_explains_the_winner_and_draws_the_scales(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = tmp_path / "profile.csv"
    profile.write_text("bound\n1.0\n" + "0.01\n" * 60)
    picture = tmp_path / "scales.png"
    assert main(["advise", "--box", str(profile), *CLAIM, "--plot", str(picture)]) == 0
    assert "\nmixed noise has the least expected error: 1 coordinate decides" in capsys.readouterr().out
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main(["advise", "--box", "1,0.5", "--epsilon", "3", "--delta", "0", "--error", "absolute", "--json"]) == 0
    ranked = json.loads(capsys.readouterr().out)
    assert ranked[0]["family"] == "staircase"
    assert ranked[0]["why"].endswith("times as much.")
    assert main(["advise", "--box", "1,0.5", *CLAIM, "--error", "cubed"]) == 2
    assert "error must be" in capsys.readouterr().err


def test_advise_says_why_a_family_does_not_apply(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["advise", "--l1", "1", "--dim", "2", "--epsilon", "1", "--delta", "0"]) == 0
    assert "cannot meet delta = 0" in capsys.readouterr().out


def test_calibrate_writes_the_mechanism_the_library_would_make(mechanism: Path) -> None:
    made = sdp.Additive.from_json(json.loads(mechanism.read_text()))
    same = sdp.calibrate("gaussian", sdp.Box([1, 0.1, 0.01]), epsilon=1.0, delta=1e-6)
    np.testing.assert_array_equal(made.law.scales, same.law.scales)
    assert made.certificate.verdict == "certified"


@pytest.mark.parametrize("ending", [".csv", ".npy", ".parquet"])
def test_release_round_trip(ending: str, mechanism: Path, tmp_path: Path) -> None:
    source, target = tmp_path / f"in{ending}", tmp_path / f"out{ending}"
    write_vector(source, Vector(np.array([10.0, 20.0, 30.0]), "total"))
    assert main(["release", str(mechanism), str(source), "-o", str(target)]) == 0
    noisy = read_vector(target).values
    assert noisy.shape == (3,)
    assert (noisy != [10.0, 20.0, 30.0]).all()
    sigma = np.array([4.451, 1.4076, 0.4451])
    assert (np.abs(noisy - [10.0, 20.0, 30.0]) < 10 * sigma).all()  # false-alarm rate below 1e-6
    certificate = tmp_path / "out.certificate.json"
    assert json.loads(certificate.read_text())["secure"] is True
    assert main(["verify", str(certificate)]) == 0


def test_a_tampered_certificate_is_found_out(
    mechanism: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text("1\n2\n3\n")
    assert main(["release", str(mechanism), str(source), "-o", str(target)]) == 0
    certificate = tmp_path / "out.certificate.json"
    data = json.loads(certificate.read_text())
    data["bracket"] = {"lower": 1e-9, "upper": 2e-9}
    certificate.write_text(json.dumps(data))
    capsys.readouterr()
    assert main(["verify", str(certificate)]) == 2
    assert "contradicts the recomputed" in capsys.readouterr().err


def test_the_search_for_the_best_radial_law_shows_its_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ball = ["calibrate", "radial", "--l2", "1", "--dim", "50", *CLAIM]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert main(ball) == 0
    assert "shapes tried, best" in capsys.readouterr().err
    assert main([*ball, "--shape", "48,1.5", "--json"]) == 0
    law = json.loads(capsys.readouterr().out)["law"]
    assert (law["a"], law["b"]) == (48.0, 1.5)
    assert main([*ball, "--shape", "48"]) == 2
    assert main(["calibrate", "gaussian", "--l2", "1", "--dim", "5", "--shape", "4,2", *CLAIM]) == 2


def test_certify_the_classic_gaussian(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["certify", "classic-gaussian", "--dim", "3", "--epsilon", "0.5", "--delta", "1e-5"]) == 0
    assert "certified" in capsys.readouterr().out
    assert main(["certify", "classic-gaussian", "--dim", "3", "--epsilon", "10", "--delta", "1e-5"]) == 3
    assert "2.26537e-05" in capsys.readouterr().out


def test_an_uncertified_mechanism_releases_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weak = sdp.recipes.classic_gaussian(dim=3, sensitivity=1.0, epsilon=10.0, delta=1e-5)
    path, source, target = tmp_path / "weak.json", tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text(json.dumps(weak.to_json()))
    source.write_text("1\n2\n3\n")
    before = sorted(tmp_path.iterdir())
    assert main(["release", str(path), str(source), "-o", str(target)]) == 3
    assert sorted(tmp_path.iterdir()) == before
    assert "refuted" in capsys.readouterr().err
    assert main(["release", str(path), str(source), "-o", str(target), "--unsafe", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["unsafe"] is True


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["advise", "--l2", "1", *CLAIM], "--dim"),
        (["advise", "--blocks", "1,2", *CLAIM], "--sizes"),
        (["advise", "--blocks", "1,2", "--sizes", "3,x", *CLAIM], "--sizes"),
        (["advise", "--box", "1,x", *CLAIM], "--box"),
        (["advise", "--box", "missing.csv", *CLAIM], "missing.csv"),
        (["advise", "--box", "1,-1", *CLAIM], "profile"),
        (["advise", "--box", "1,nan", *CLAIM], "profile"),
        (["advise", "--l2", "inf", "--dim", "3", *CLAIM], "radius"),
        (["advise", "--l2", "1", "--dim", "0", *CLAIM], "dim"),
        (["advise", "--l2", "1", "--dim", "3", "--epsilon", "0", "--delta", "1e-6"], "epsilon"),
        (["advise", "--l2", "1", "--dim", "3", "--epsilon", "1", "--delta", "1"], "delta"),
        (["advise", "--l2", "1", "--dim", "3", *CLAIM, "--weights", "1,2"], "weights"),
        (["certify", "no-such-recipe", "--dim", "3", *CLAIM], "no-such-recipe"),
        (["certify", "classic-gaussian", *CLAIM], "--dim"),
        (["verify", "missing.json"], "missing.json"),
    ],
)
def test_wrong_input_exits_with_2_and_names_it(
    arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    message = capsys.readouterr().err
    assert message.startswith("shapedp: error: ")
    assert word in message


@pytest.mark.parametrize("missing", ["--epsilon", "--delta"])
def test_the_claim_has_no_default(missing: str) -> None:
    arguments = ["advise", "--l2", "1", "--dim", "3", *CLAIM]
    at = arguments.index(missing)
    with pytest.raises(SystemExit) as stop:
        main(arguments[:at] + arguments[at + 2 :])
    assert stop.value.code == 2


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "empty"),
        ("a,b\n1,2\n", "--column"),
        ("a\n1\nx\n", "not a number"),
        ("1\n2\n", "shape"),
        ("1\nnan\n3\n", "finite"),
    ],
)
def test_bad_vectors_touch_nothing(
    text: str, word: str, mechanism: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "in.csv"
    source.write_text(text)
    before = sorted(tmp_path.iterdir())
    assert main(["release", str(mechanism), str(source), "-o", str(tmp_path / "out.csv")]) == 2
    assert word in capsys.readouterr().err
    assert sorted(tmp_path.iterdir()) == before


def test_a_column_is_chosen_by_name(mechanism: Path, tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("name,total\nx,1\ny,2\nz,3\n")
    assert main(["release", str(mechanism), str(source), "--column", "total", "-o", str(tmp_path / "out.csv")]) == 0
    assert (tmp_path / "out.csv").read_text().startswith("total\n")


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def interrupted() -> None:
        with atomic(path) as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_npy_files_cannot_carry_code(tmp_path: Path, mechanism: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "in.npy"
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    assert main(["release", str(mechanism), str(path), "-o", str(tmp_path / "out.npy")]) == 2
    assert "plain numbers" in capsys.readouterr().err


def test_the_module_runs_as_a_program() -> None:
    done = subprocess.run([sys.executable, "-m", "shapedp", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"shapedp {sdp.__version__}"


@pytest.mark.parametrize(
    ("text", "word"), [("amount\n100.5\n\n7\n3.25\n", "line 3 is blank"), ("a,a\n1,2\n3,4\n5,6\n", "several columns")]
)
def test_ambiguous_files_are_refused(
    text: str, word: str, mechanism: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "in.csv"
    source.write_text(text)
    arguments = ["release", str(mechanism), str(source), "-o", str(tmp_path / "out.csv")]
    assert main([*arguments, *(["--column", "a"] if "several" in word else [])]) == 2
    assert word in capsys.readouterr().err


def test_a_release_never_overwrites_its_inputs(
    mechanism: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "in.csv"
    source.write_text("1\n2\n3\n")
    assert main(["release", str(mechanism), str(source), "-o", str(source)]) == 2
    assert "is an input" in capsys.readouterr().err
    assert source.read_text() == "1\n2\n3\n"


@pytest.mark.parametrize(
    ("text", "word"), [("[]", "JSON object"), ("{}", "not a plan"), ('{"schema": 1, "steps": [{}]}', "lacks the field")]
)
def test_broken_plans_are_refused(text: str, word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    assert main(["account", "--plan", str(path), "--delta", "1e-5"]) == 2
    assert word in capsys.readouterr().err
    assert main(["account", "--plan", str(path), "--steps", "3", "--delta", "1e-5"]) == 2
    assert "--steps" in capsys.readouterr().err
