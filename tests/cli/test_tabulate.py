"""shapedp tabulate: a table from a file, its certificate, the ledger, and mistakes that cost nothing."""

from __future__ import annotations

import csv
import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("ibis")
pytest.importorskip("duckdb")

from shapedp.cli import main
from shapedp_check import check

CLAIM = ["--epsilon", "1", "--delta", "1e-6"]
MEANS = ["--query", "mean(hours) as hours, count by education, sex", "--bounds", "hours=0:100", "--domain", "sex=F,M"]
USUAL = [*MEANS, "--domain", "education=school,college,*", "--person", "id", "--rows", "2", *CLAIM]


@pytest.fixture
def people(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "id": rng.integers(0, 300, 1000),
            "sex": rng.choice(["F", "M"], 1000),
            "education": rng.choice(["school", "college", "none"], 1000),
            "hours": rng.normal(40, 10, 1000),
        }
    )
    frame.to_parquet(tmp_path / "people.parquet")
    frame.to_csv(tmp_path / "people.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_table_and_its_certificate(people, kind, capsys):
    output = people / "table.csv"
    assert main(["tabulate", str(people / f"people.{kind}"), *USUAL, "-o", str(output)]) == 0
    shown = capsys.readouterr().out
    assert "mean(hours), count() by education, sex" in shown
    assert "at most 2 row(s) of each are counted" in shown
    rows = list(csv.DictReader(output.read_text().splitlines()))
    assert len(rows) == 6
    assert list(rows[0])[:6] == ["education", "sex", "hours", "hours_error", "hours_low", "hours_high"]
    assert {row["education"] for row in rows} == {"school", "college", "(other)"}
    stated = json.loads((people / "table.certificate.json").read_text())
    assert "'id'" in stated["scope"]
    assert stated["subject"]["workload"]["max_rows"] == 2
    stated.pop("unsafe")
    assert check(stated).verdict == "certified"
    assert main(["verify", str(people / "table.certificate.json")]) == 0


def test_several_queries_share_one_certificate(people, capsys):
    words = ["--query", "count by sex where hours >= 40", "--query", "sum(hours)", "--domain", "sex=F,M"]
    words += ["--bounds", "hours=0:100", "--each-row-a-person", *CLAIM, "-o", str(people / "all.parquet")]
    assert main(["tabulate", str(people / "people.parquet"), *words]) == 0
    assert "Each row is another person" in capsys.readouterr().out
    found = pd.read_parquet(people / "all.parquet")
    assert found["query"].tolist() == ["count() by sex where (hours >= 40)"] * 2 + ["sum(hours)"]
    assert found["group"].tolist() == ["F", "M", ""]


def test_json_and_a_plan_that_reads_nothing(people, capsys):
    assert main(["tabulate", str(people / "people.csv"), *USUAL, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert len(data["answers"][0]["hours"]) == 6
    assert data["certificate"]["verdict"] == "certified"
    path = people / "people.csv"
    path.write_text(path.read_text().splitlines()[0] + "\n")  # a header alone
    assert main(["tabulate", str(path), *USUAL, "--plan"]) == 0
    shown = capsys.readouterr().out
    assert "standard error" in shown
    assert "count(*) where ~(hours is None)" in shown


def test_the_ledger_is_spent_or_refuses(people, capsys):
    book = str(people / "book.db")
    cap = ["--epsilon", "1", "--delta", "2e-6", "--adjacency", "add-remove"]
    assert main(["ledger", "init", book, "--dataset", "people", *cap]) == 0
    words = ["tabulate", str(people / "people.parquet"), *USUAL, "--ledger", book, "--dataset", "people"]
    assert main([*words, "-o", str(people / "one.csv")]) == 0
    assert "spent      from 'people'" in capsys.readouterr().out
    assert main([*words, "-o", str(people / "two.csv")]) == 3
    assert "refused" in capsys.readouterr().err
    assert not (people / "two.csv").exists()
    assert main(["ledger", "status", book, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["entries"] == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (["--query", "mean(wages)"], "no column 'wages'"),
        (["--query", "mean(sex)"], "column of text"),
        (["--bounds", "hours=9:1"], "first below the second"),
        (["--bounds", "hours=9"], "LOW:HIGH"),
        (["--query", "count by"], "computes count"),
        (["--query", "count by hours"], "must be public"),
        (["--query", 'count by sex"; DROP TABLE people; --'], "no column"),
        (["--where", "1 = 1; DROP TABLE people"], "where must compare"),
        (["--domain", "sex="], "COLUMN="),
        (["--type", "sex=number"], "holds as text"),
        (["--dataset", "people"], "go together"),
        (["-o", "table.npy"], "csv or parquet"),
        (["--confidence", "2"], "confidence"),
    ],
)
def test_mistakes_cost_nothing(people, change, said, capsys, monkeypatch):
    from shapedp.private.sources import Rows

    monkeypatch.chdir(people)
    monkeypatch.setattr(Rows, "computed", lambda *_: pytest.fail("a row was read"))
    assert main(["tabulate", "people.parquet", *USUAL, *change]) == 2
    assert said in capsys.readouterr().err
    assert sorted(path.name for path in people.iterdir()) == ["people.csv", "people.parquet"]


def test_somebody_is_a_person(people, capsys):
    with pytest.raises(SystemExit):
        main(["tabulate", str(people / "people.csv"), "--query", "count", *CLAIM])
    assert "--person --each-row-a-person" in capsys.readouterr().err


def test_the_help_teaches(capsys):
    with pytest.raises(SystemExit):
        main(["tabulate", "--help"])
    shown = capsys.readouterr().out
    for word in ("examples:", "--each-row-a-person", "queries:", "domains:", "clipped", "never from the data"):
        assert word in shown
