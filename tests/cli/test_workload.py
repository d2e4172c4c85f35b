"""shapedp workload: plans before any record is read, releases, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import shapedp as sdp
from shapedp.cli import main
from shapedp_check import check

CLAIM = ["--epsilon", "1", "--delta", "1e-6"]
TEXT = """
[attributes]
age = { edges = [0, 18, 65, 120] }
sex = { labels = ["F", "M"], other = true }
region = 3
[measures]
hours = [0, 80]
[[queries]]
marginals = [0, 1]
[[queries]]
marginal = ["age", "sex"]
weight = 2.0
[[queries]]
prefixes = "age"
by = ["sex"]
name = "so far"
[[queries]]
rows = [[1, -1, 0]]
along = "region"
[[queries]]
means = "hours"
by = ["sex"]
"""


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "schema.toml"
    path.write_text(TEXT)
    return path


def test_plan_release_verify(schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan, people, answers = (tmp_path / name for name in ("plan.json", "people.csv", "answers.csv"))
    plot = tmp_path / "errors.png"
    assert main(["workload", "plan", str(schema), *CLAIM, "-o", str(plan), "--plot", str(plot)]) == 0
    shown = capsys.readouterr().out
    assert "so far" in shown
    assert "certified" in shown
    assert plot.stat().st_size > 1000
    frame = pd.DataFrame({"age": [5, 70, 30, 200], "sex": ["F", "M", "x", "F"], "region": [0, 1, 2, 0], "hours": 10.0})
    frame.to_csv(people, index=False)
    assert main(["workload", "release", str(plan), str(people), "-o", str(answers)]) == 0
    table = pd.read_csv(answers, keep_default_na=False)
    made = sdp.mechanisms.mechanism_from_json(json.loads(plan.read_text()))
    assert len(table) == len(made.workload)
    cells = table[table.group == "age x sex"].cell.tolist()
    assert cells[0] == "[0, 18), F"
    assert cells[-1] == "[65, 120), (other)"
    assert table[table.group == "so far"].cell.tolist()[3] == "[0, 18) to [18, 65), F"
    certificate = json.loads((tmp_path / "answers.certificate.json").read_text())
    assert certificate["secure"] is True
    assert check({k: v for k, v in certificate.items() if k != "unsafe"}).verdict == "certified"
    assert main(["verify", str(tmp_path / "answers.certificate.json")]) == 0
    assert main(["report", str(tmp_path / "answers.certificate.json"), "-o", str(tmp_path / "page.html")]) == 0
    assert "Error of every query" in (tmp_path / "page.html").read_text()


def test_pure_privacy_and_integers(schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = TEXT.partition("[[queries]]\nmeans")[0]
    schema.write_text(counts)
    plan, people, answers = (tmp_path / name for name in ("plan.json", "people.csv", "answers.csv"))
    frame = pd.DataFrame({"age": [5, 70, 30, 200], "sex": ["F", "M", "x", "F"], "region": [0, 1, 2, 0], "hours": 10.0})
    frame.to_csv(people, index=False)
    for options in (["--noise", "discrete"], ["--noise", "cells"], []):
        claim = ["--epsilon", "1", "--delta", "0", *options]
        assert main(["workload", "plan", str(schema), *claim, "-o", str(plan)]) == 0
        assert "certified" in capsys.readouterr().out
        assert main(["workload", "release", str(plan), str(people), "-o", str(answers)]) == 0
        table = pd.read_csv(answers, keep_default_na=False)
        assert (table.value % 1 == 0).all()
        assert main(["verify", "--independent", str(tmp_path / "answers.certificate.json")]) == 0
        assert main(["report", str(tmp_path / "answers.certificate.json"), "-o", str(tmp_path / "page.html")]) == 0
        assert "on the integers" in (tmp_path / "page.html").read_text()
        for path in (plan, answers, tmp_path / "answers.certificate.json", tmp_path / "page.html"):
            path.unlink()
    schema.write_text(TEXT)
    assert main(["workload", "plan", str(schema), "--epsilon", "1", "--delta", "0", "--noise", "discrete"]) == 2
    assert "whole numbers are for counts" in capsys.readouterr().err


def test_json_says_every_error(schema: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workload", "plan", str(schema), *CLAIM, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["optimality"]["upper"] < 1.001
    assert {group["group"] for group in record["groups"]} >= {"total", "age", "so far", "hours by sex"}
    assert all(0 < group["rms"] <= group["worst"] for group in record["groups"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("marginals = [0, 1]", "marginals = [9]"), "at most 3"),
        (("marginals = [0, 1]", "marginals = 1"), "must be a list"),
        (("marginals = [0, 1]", "tables = [1]"), "names one kind"),
        (('name = "so far"', "colour = 1"), "no field colour"),
        (("region = 3", "region = 0"), "size"),
        (("[measures]", "[bounds]"), "not bounds"),
        (('prefixes = "age"', 'prefixes = "income"'), "no attribute 'income'"),
        (('by = ["sex"]\nname', 'by = "sex"\nname'), "must be a list"),
        (("hours = [0, 80]", "hours = [0, 80"), "not TOML"),
    ],
)
def test_bad_descriptions(schema: Path, change, message, capsys: pytest.CaptureFixture[str]) -> None:
    assert change[0] in TEXT
    schema.write_text(TEXT.replace(*change))
    assert main(["workload", "plan", str(schema), *CLAIM]) == 2
    assert message in capsys.readouterr().err


def test_nothing_is_overwritten_or_half_written(
    schema: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["workload", "plan", str(schema), *CLAIM, "-o", str(schema)]) == 2
    plan, people = tmp_path / "plan.json", tmp_path / "people.csv"
    assert main(["workload", "plan", str(schema), *CLAIM, "-o", str(plan)]) == 0
    people.write_text("age,sex,region\n1,F,0\n")
    assert main(["workload", "release", str(plan), str(people), "-o", str(tmp_path / "a.csv")]) == 2
    assert "no column 'hours'" in capsys.readouterr().err
    assert not (tmp_path / "a.csv").exists()
    assert not (tmp_path / "a.certificate.json").exists()
    assert main(["workload", "release", str(plan), str(people), "-o", str(tmp_path / "a.npy")]) == 2
