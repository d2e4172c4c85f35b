"""Names that a private table took for others: a column without one, columns and groups of one name."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("ibis")
pytest.importorskip("duckdb")

import shapedp as sdp
from shapedp.cli.main import main
from shapedp.workloads import Attribute

CLAIM = {"epsilon": 1.0, "delta": 1e-6}
EDGES = [1.0, 1.0 + 1e-9, 1.0 + 2e-9, 2.0]


def exact(question):
    (found,) = question.table.plan(question, **CLAIM).exact_tables().tables.values()
    return found[..., 0].reshape(-1).tolist()


@pytest.mark.parametrize("cells", [[0.0, 1.0, 2.0], ["0", "a", "b"], [True, False, True]])
def test_a_column_without_a_name_is_no_group(cells):
    """`count()` looked for the groups in it, and counted 1 of 3 rows."""
    frame = pd.DataFrame({"": cells, "x": [1.0, 2.0, 3.0]})
    t = sdp.table(frame, person=None, bounds={"x": (0, 4)}, types={"": "text"} if "a" in cells else {})
    assert exact(t.count()) == [3]
    assert exact(t.mean("x")) == [3]
    answers = t.ask(t.median("x"), t.count(), epsilon=50.0, delta=0.0)
    assert answers.tables[0]["median"][0] == 2
    assert answers.tables[1]["count"][0] == pytest.approx(3, abs=1)


def test_only_a_column_without_a_name():
    assert exact(sdp.table(pd.DataFrame({"": [0.0, 1.0, 2.0]}), person=None).count()) == [3]
    assert exact(sdp.table(pd.DataFrame({"": [7, 7, 8]}), person="").count()) == [2]


def test_a_csv_with_its_index(tmp_path, capsys):
    path = tmp_path / "people.csv"
    pd.DataFrame({"sex": ["F", "M", "F"]}).to_csv(path)
    assert path.read_text().startswith(",")
    claim = ["--epsilon", "50", "--delta", "0", "--each-row-a-person"]
    assert main(["tabulate", str(path), "--query", "count", *claim]) == 0
    assert "3" in capsys.readouterr().out


@pytest.mark.parametrize(
    "asked",
    [lambda t: t.mean(""), lambda t: t.median("", grid=[1, 2]), lambda t: t.top_k("", 1), lambda t: sdp.sum("")],
)
def test_what_is_asked_has_a_name(asked):
    t = sdp.table(pd.DataFrame({"": [0.0, 1.0]}), person=None, bounds="private")
    with pytest.raises(TypeError, match="takes the name of a column"):
        asked(t)


@pytest.fixture
def t():
    names = ["rank", "shortfall", "s", "x_low"]
    frame = pd.DataFrame({name: ["a", "b", "b"] for name in names} | {"x": [1.0, 2.0, 3.0]})
    return sdp.table(frame, person=None, bounds={"x": (0, 4)}, domains={name: ["a", "b"] for name in names})


@pytest.mark.parametrize(
    "asked",
    [
        lambda t: t.group_by("rank").top_k("s", 1),
        lambda t: t.group_by("shortfall").top_k("s", 1),
        lambda t: t.top_k("rank", 1),
        lambda t: t.top_k("shortfall", 1),
        lambda t: t.group_by("x_low").agg(x=sdp.mean("x")),
        lambda t: t.agg(x=sdp.mean("x"), x_error=sdp.count()),
        lambda t: t.group_by("x_low").agg(x=sdp.median("x")),
    ],
)
def test_no_column_of_an_answer_hides_another(t, asked):
    with pytest.raises(ValueError, match="columns of the answer must differ"):
        asked(t)


def test_questions_made_by_hand_are_looked_at_too(t):
    from dataclasses import replace

    made = replace(t.top_k("s", 1), by=(t.attributes["rank"],))
    with pytest.raises(ValueError, match="columns of the answer must differ"):
        t.plan(made, **CLAIM)


def test_what_was_asked_is_answered(t):
    found = t.group_by("x_low").top_k("s", 1).release(epsilon=50.0, delta=0.0)
    assert list(found.columns) == ["x_low", "rank", "s", "shortfall"]
    assert found.columns["x_low"] == found.columns["s"] == ["a", "b"]


def test_edges_have_names_of_their_own():
    """Two groups were called "[1, 1)"."""
    frame = pd.DataFrame({"x": [1.0, 1.0 + 1e-9, 1.5, 1.5]})
    t = sdp.table(frame, person=None)
    question = t.histogram("x", EDGES)
    assert exact(question) == [1, 1, 2]
    names = question.release(**CLAIM).columns["x"]
    assert len(set(names)) == 3
    assert names[0] == "[1.0, 1.000000001)"
    assert Attribute.of("x", {"edges": [0, 20, 40.5]}).cells() == ["[0, 20)", "[20, 40.5)"]


def test_the_group_of_all_others_has_a_name_of_its_own():
    """A label may be called like it."""
    made = Attribute.of("s", {"labels": ["a", "(other)"], "other": True})
    assert made.cells() == ["a", "(other)", "((other))"]
    t = sdp.table(pd.DataFrame({"s": ["a", "(other)", "b", "c"]}), person=None, domains={"s": made.to_json()})
    assert exact(t.group_by("s").count()) == [1, 1, 2]
    assert len(np.unique(t.group_by("s").count().release(**CLAIM).columns["s"])) == 3
