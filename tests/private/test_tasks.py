"""The tasks of a statistician on Adult and on visits: each in at most five lines of Python, and in one command."""

from __future__ import annotations

import gzip
import os
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("ibis")
pytest.importorskip("duckdb")

import shapedp as sdp
from shapedp.cli.main import main

ADULT = Path(os.environ.get("SHAPEDP_DATA", "shared/data")) / "adult" / "adult.data.gz"
DEGREES = ["HS-grad", "Some-college", "Bachelors", "Masters", "Assoc-voc", "11th", "Assoc-acdm", "10th", "7th-8th"]
GROUPS = f"--domain education={','.join(DEGREES)} --domain sex=Male,Female"
CLAIM = "--epsilon 1 --delta 1e-6"

TASKS = {
    "a histogram over education and sex": (
        """
t = sdp.table("adult.parquet", person=None, domains={"education": DEGREES, "sex": ["Male", "Female"]})
answer = t.group_by("education", "sex").count().release(epsilon=1.0, delta=1e-6)
""",
        f"tabulate adult.parquet --each-row-a-person --query 'count by education, sex' {GROUPS} {CLAIM}",
    ),
    "mean hours by group, with intervals": (
        """
t = sdp.table("adult.parquet", person=None, bounds={"hours": (0, 100)}, domains={"sex": ["Male", "Female"]})
answer = t.group_by("sex").mean("hours").release(epsilon=1.0, delta=1e-6)
""",
        "tabulate adult.parquet --each-row-a-person --query 'mean(hours) by sex' --bounds hours=0:100 "
        f"--domain sex=Male,Female {CLAIM}",
    ),
    "median and p90": (
        """
t = sdp.table("adult.parquet", person=None, bounds={"hours": (0, 100)})
answer = t.agg(sdp.median("hours"), p90=sdp.quantile("hours", 0.9)).release(epsilon=1.0, delta=0.0)
""",
        "tabulate adult.parquet --each-row-a-person --query 'median(hours), quantile(hours, 0.9) as p90' "
        "--bounds hours=0:100 --epsilon 1 --delta 0",
    ),
    "a total, with its error": (
        """
t = sdp.table("adult.parquet", person=None, bounds={"hours": (0, 100)})
answer = t.sum("hours").release(epsilon=1.0, delta=1e-6)
""",
        f"tabulate adult.parquet --each-row-a-person --query 'sum(hours)' --bounds hours=0:100 {CLAIM}",
    ),
    "visits with several rows per person": (
        """
t = sdp.table("visits.parquet", person="id", rows=3, bounds={"cost": (0, 500)}, domains={"town": ["A", "B", "C"]})
answer = t.group_by("town").agg(visits=sdp.count(), cost=sdp.mean("cost")).release(epsilon=1.0, delta=1e-6)
""",
        "tabulate visits.parquet --person id --rows 3 --query 'count as visits, mean(cost) as cost by town' "
        f"--bounds cost=0:500 --domain town=A,B,C {CLAIM}",
    ),
    "a budget over three weeks": (
        """
from shapedp.ledger import Ledger
budget = Ledger.create("weeks.db", dataset="visits", epsilon=3.0, delta=1e-5, adjacency="add-remove")
t = sdp.table("visits.parquet", person="id", domains={"town": ["A", "B", "C"]})
for week in ("1", "2", "3"):
    answer = t.group_by("town").count().release(epsilon=0.5, delta=1e-6, ledger=budget, dataset="visits")
""",
        "tabulate visits.parquet --person id --query 'count by town' --domain town=A,B,C --epsilon 0.5 --delta 1e-6 "
        "--ledger weeks.db --dataset visits --label 'week 4'",
    ),
    "a report for the officer": (
        """
t = sdp.table("visits.parquet", person="id", domains={"town": ["A", "B", "C"]})
answer = t.group_by("town").count().release(epsilon=1.0, delta=1e-6)
answer.report(title="Visits by town", author="A. Statistician").save("visits.html")
""",
        "tabulate visits.parquet --person id --query 'count by town' --domain town=A,B,C --report again.html "
        f"--label 'Visits by town' {CLAIM}",
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Adult where it is there, otherwise rows like it; and visits, several per person."""
    made, rng = tmp_path_factory.mktemp("tasks"), np.random.default_rng(0)
    if ADULT.exists():
        with gzip.open(ADULT, "rt") as lines:
            adult = pd.read_csv(lines, header=None, skipinitialspace=True).iloc[:, [3, 9, 12]]
        adult.columns = ["education", "sex", "hours"]
    else:
        sexes, hours = rng.choice(["Male", "Female"], 32561), rng.normal(40, 12, 32561).round()
        adult = pd.DataFrame({"education": rng.choice(DEGREES, 32561), "sex": sexes, "hours": hours})
    adult.to_parquet(made / "adult.parquet")
    count = 2_000_000 if os.environ.get("SHAPEDP_TASKS") == "full" else 20_000
    ids, towns = rng.integers(0, count // 4, count), rng.choice(["A", "B", "C"], count, p=[0.6, 0.3, 0.1])
    pd.DataFrame({"id": ids, "town": towns, "cost": rng.gamma(2.0, 60.0, count)}).to_parquet(made / "visits.parquet")
    return made


@pytest.mark.parametrize("task", TASKS)
def test_a_task_takes_five_lines_or_one_command(task, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    lines, command = TASKS[task]
    assert len(lines.strip().splitlines()) <= 5
    known = {"sdp": sdp, "DEGREES": DEGREES}
    exec(lines, known)
    assert known["answer"].certificate.verdict == "certified"
    assert main(shlex.split(command)) == 0
    assert "certified" in capsys.readouterr().out


def test_the_median_of_adult_is_right(folder, monkeypatch):
    monkeypatch.chdir(folder)
    known = {"sdp": sdp, "DEGREES": DEGREES}
    exec(TASKS["median and p90"][0], known)
    hours = pd.read_parquet("adult.parquet").hours
    found = known["answer"].columns
    assert abs(found["median_hours"][0] - hours.quantile(0.5, interpolation="lower")) <= 1
    assert found["p90_low"][0] <= hours.quantile(0.9, interpolation="lower") <= found["p90_high"][0]
