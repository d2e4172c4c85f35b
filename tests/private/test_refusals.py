"""What is refused, before a row is read: the source of these tables cannot be read at all."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

pytest.importorskip("ibis")
pytest.importorskip("duckdb")

import shapedp as sdp
from shapedp.private import engine
from shapedp.private.sources import rows_of
from shapedp.private.text import bounds_of, domain_of, named, question_of

FRAME = pd.DataFrame({"id": [1, 2], "sex": ["F", "M"], "hours": [1.0, 2.0], "on": [True, False], "when": pd.NaT})
BOUNDS, DOMAINS = {"hours": (0, 80)}, {"sex": ["F", "M"], "on": [True, False]}
INJECTED = 'hours"; DROP TABLE people; --'


def unread(wanted):
    raise AssertionError("a row was read")


@pytest.fixture
def t():
    made = sdp.table(FRAME, person="id", bounds=BOUNDS, domains=DOMAINS)
    return replace(made, source=replace(made.source, batches=unread))


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda t: t.mean("wages"), "no column 'wages'"),
        (lambda t: t.mean(INJECTED), "no column"),
        (lambda t: t.group_by(INJECTED), "no column"),
        (lambda t: t.where(sdp.col(INJECTED) > 1), "no column"),
        (lambda t: t.where("hours > 1; DROP TABLE people"), "where must compare"),
        (lambda t: t.where("__import__('os').system('true')"), "where must compare"),
        (lambda t: t.where("hours + 1 > 2"), "where must compare"),
        (lambda t: t.where("1 < hours < 2"), "where must compare"),
        (lambda t: t.where("hours > nothing"), "no column 'nothing'"),
        (lambda t: t.mean("sex"), "column of text"),
        (lambda t: t.mean("when"), "type datetime64"),
        (lambda t: t.histogram("sex", [0, 1]), "column of text"),
        (lambda t: t.where("sex > 3"), "kind text"),
        (lambda t: t.where(sdp.col("hours") == "many"), "kind number"),
        (lambda t: t.where(sdp.col("hours") == sdp.col("sex")), "kind number"),
        (lambda t: t.where("on > True"), "== or !="),
        (lambda t: t.sum("id"), "needs public bounds"),
        (lambda t: t.group_by("hours"), "must be public"),
        (lambda t: t.group_by(), "one column at least"),
        (lambda t: t.group_by("sex", "sex").count(), "twice"),
        (lambda t: t.agg(), "one aggregate"),
        (lambda t: t.agg("count"), "agg takes sdp.count"),
        (lambda t: t.agg(sdp.count(), sdp.count()), "two aggregates"),
        (lambda t: t.agg(sdp.mean("hours"), mean_hours=sdp.count()), "two aggregates"),
        (lambda t: t.group_by([]), "one column at least"),
        (lambda t: t.group_by(3), "of type int"),
        (lambda t: t.group_by("sex").agg(sex=sdp.count()), "must differ"),
        (lambda t: t.agg(a=sdp.count(), a_error=sdp.count()), "must differ"),
        (lambda t: t.histogram("hours", [3, 1]), "edges"),
        (lambda t: t.histogram("hours", 10), "rising numbers"),
        (lambda t: t.histogram("hours"), "needs edges"),
        (lambda t: t.where(sdp.col("sex").isin([])), "one value"),
        (lambda t: t.group_by("sex").ask(t.count(), epsilon=1.0, delta=1e-6), "group_by"),
        (lambda t: t.where("hours > 1").ask(t.count(), epsilon=1.0, delta=1e-6), "before this table"),
        (lambda t: t.ask(sdp.table(FRAME, person=None).count(), epsilon=1.0, delta=1e-6), "one table"),
        (lambda t: t.count().release(epsilon=0.0, delta=1e-6), "epsilon"),
        (lambda t: t.count().release(epsilon=1.0, delta=0.0, noise="gaussian"), "delta"),
        (lambda t: t.count().release(epsilon=1.0, delta=1e-6, noise="pink"), "noise"),
        (lambda t: t.ask(t.count(), t.median("hours"), epsilon=1.0, delta=0.0, noise="gaussian"), "delta"),
        (lambda t: t.ask(t.count(), t.median("hours"), epsilon=1.0, delta=1e-6, noise="laplace"), "Gaussian"),
        (lambda t: question_of(t, "mode(hours)"), "computes count, sum, mean, variance"),
        (lambda t: question_of(t, "mean(hours) by sex, "), "lists the columns"),
        (lambda t: question_of(t, "mean(hours) by sex; DROP TABLE people"), "no column"),
        (lambda t: question_of(t, "count(hours)"), "counts rows"),
        (lambda t: question_of(t, "mean()"), "needs a column"),
        (lambda t: question_of(t, "count, count"), "twice"),
        (lambda t: question_of(t, ""), "names what is computed"),
    ],
)
def test_questions(t, ask, said):
    with pytest.raises((ValueError, TypeError), match=said.replace("(", r"\(")):
        ask(t)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("avg(hours)", "instead of 'avg' write mean(hours)"),
        ("p90(hours) by sex", "instead of 'p90' write quantile(hours, 0.9)"),
        ("stddev(hours)", "write variance(hours)"),
        ("mode(sex)", "write top_k("),
        ("SELECT AVG(hours) FROM t", "it has no SELECT"),
        ("count by sex, sum(hours) by sex", "'by' comes once"),
        ("count where sex = 'F'", "'equal' is written =="),
        ("count where sex <> 'F'", "'not equal' is written !="),
        ("count where on", "a truth value is compared too"),
        ("count where hours > 1 and not on", "a truth value is compared too"),
        ("count where sex == 'F' AND hours > 3", "small letters"),
        ("count where hours is null", "hours is None"),
        ("count where hours between 1 and 3", "joined"),
        ("count where 1 < hours < 3", "two sides"),
        ("count where hours > 1 & sex == 'F'", "written and, or, not"),
    ],
)
def test_words_of_sql_are_answered_with_ours(t, text, said):
    with pytest.raises(ValueError) as refusal:
        question_of(t, text)
    assert said in str(refusal.value)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda t: t.groupby("sex"), "write group_by"),
        (lambda t: t.max("hours"), "somebody's"),
        (lambda t: t.head(), "never shown"),
        (lambda t: t.release(epsilon=1.0, delta=0.0), "ask a question first"),
        (lambda t: t.nothing, "no attribute 'nothing'$"),
        (lambda t: t.count().frame, "release it"),
        (lambda t: t.count().nothing, "no attribute 'nothing'$"),
    ],
)
def test_words_of_other_libraries_are_answered_with_ours(t, ask, said):
    with pytest.raises(AttributeError, match=said):
        ask(t)


def test_a_table_and_a_page_are_shown_in_a_line(t):
    shown = repr(t.where("hours > 1"))
    assert shown.startswith("PrivateTable of id (number), sex (text), hours (number), on (boolean), ")
    assert shown.endswith("where (hours > 1). A person is a value of the column 'id'; at most 1 row(s) of each are "
                          "counted, chosen by a keyed hash. Rows without one are left out.")  # fmt: skip
    page = sdp.table(FRAME, person=None).count().release(epsilon=1.0, delta=0.0).report(title="People")
    assert repr(page) == "Page('People, ε = 1, δ = 0', verdict='certified')"


def test_signs_inside_texts_are_no_mistakes(t):
    assert question_of(t, "count where sex != 'a = b AND null'").asked


def test_only_counts_are_said_to_be_rounded():
    t = sdp.table(FRAME, person=None, bounds=BOUNDS)
    notes = [t.ask(one, epsilon=1.0, delta=0.0).notes for one in (t.count(), t.sum("hours"), t.median("hours"))]
    assert [any("rounded to whole numbers" in note for note in told) for told in notes] == [True, False, False]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "say who a person is"),
        ({"person": "name"}, "no column 'name'"),
        ({"person": "id", "rows": 0}, "rows"),
        ({"person": None, "rows": 2}, "person="),
        ({"person": None, "groups": 2}, "person="),
        ({"person": "id", "groups": 0}, "groups"),
        ({"person": None, "bounds": {"hours": (9, 1)}}, "first below the second"),
        ({"person": None, "bounds": {"hours": 80}}, "two numbers"),
        ({"person": None, "bounds": {"hours": (0, float("nan"))}}, "bounds of 'hours'"),
        ({"person": None, "bounds": {"sex": (0, 1)}}, "column of text"),
        ({"person": None, "bounds": {"wages": (0, 1)}}, "no column 'wages'"),
        ({"person": None, "bounds": [("hours", (0, 1))]}, "mapping"),
        ({"person": None, "domains": {"sex": []}}, "is empty: list the values"),
        ({"person": None, "domains": {"sex": [1, 2]}}, "column of kind text"),
        ({"person": None, "domains": {"hours": ["a"]}}, "column of kind number"),
        ({"person": None, "domains": {"sex": ["F", 1]}}, "one kind"),
        ({"person": None, "domains": {"hours": [2**53 + 1]}}, "floats hold"),
        ({"person": None, "types": {"sex": "number"}}, "holds as text"),
        ({"person": None, "types": {"sex": "words"}}, "one of 'number', 'text', 'boolean'"),
        ({"person": None, "types": {"wages": "number"}}, "does not have"),
        ({"person": None, "memory": "much; DROP TABLE people"}, "memory="),
    ],
)
def test_tables(options, said):
    with pytest.raises((ValueError, TypeError), match=said):
        sdp.table(FRAME, **options)


@pytest.mark.parametrize("given", [3, np.ones((2, 2)), {"a": [1]}, None, []])
def test_no_source(given):
    with pytest.raises(TypeError, match="private table is made of"):
        sdp.table(given, person=None)


def test_columns_of_objects_are_declared():
    frame = pd.DataFrame({"x": pd.Series([1, "a", None], dtype=object)})
    t = sdp.table(frame, person=None)
    with pytest.raises(ValueError, match="declare it"):
        t.where("x > 1")
    declared = sdp.table(frame, person=None, types={"x": "number"})
    assert repr(declared.where("x > 1").count()) == "count() where (x > 1)"


def test_names_that_are_sql_are_only_names():
    frame = pd.DataFrame({INJECTED: [1.0, 2.0, 3.0], "select": ["a' OR 1=1 --", "b", "b"]})
    t = sdp.table(frame, person=None, bounds={INJECTED: (0, 5)}, domains={"select": ["a' OR 1=1 --", "b"]})
    found = t.where(sdp.col(INJECTED) >= 2).group_by("select").sum(INJECTED).release(epsilon=1e7, delta=1e-6)
    np.testing.assert_allclose(found.columns["sum"], [0, 5], atol=0.05)


def test_a_failure_quotes_no_cell(monkeypatch):
    """What the database says is neither repeated nor carried along."""
    t = sdp.table(pa.table({"x": ["secret"]}), person=None, domains={"x": ["a"]})

    def fails(*_):
        raise RuntimeError("Could not convert string 'secret'")

    monkeypatch.setattr(engine, "_query", fails)
    with pytest.raises(ValueError, match="could not be read") as raised:
        t.group_by("x").count().release(epsilon=1.0, delta=1e-6)
    assert "secret" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None


def test_too_many_sums_say_what_to_do():
    frame = pd.DataFrame({name: [1.0] for name in "abcdefg"})
    t = sdp.table(frame, person=None, bounds=dict.fromkeys("abcdefg", (0, 1)))
    with pytest.raises(ValueError, match="drop_missing"):
        t.ask(*(t.mean(name) for name in "abcdefg"), epsilon=1.0, delta=1e-6)


def test_texts_of_the_command_line():
    rows = rows_of(FRAME)
    assert domain_of(rows, {}, "sex", "F,M,*") == {"labels": ["F", "M"], "other": True}
    assert domain_of(rows, {}, "hours", "1,2.5") == {"labels": [1, 2.5], "other": False}
    assert domain_of(rows, {}, "hours", "0:18:65") == {"edges": [0, 18, 65]}
    assert domain_of(rows, {}, "id", "size:4") == 4
    assert domain_of(rows, {}, "on", "true,false") == {"labels": [True, False], "other": False}
    assert domain_of(rows, {}, "sex", '["a, b", "c"]') == ["a, b", "c"]
    assert bounds_of("-1:2.5") == (-1, 2.5)
    for wrong in ("1", "a:b", "1:2:3", ""):
        with pytest.raises(ValueError, match="LOW:HIGH"):
            bounds_of(wrong)
    for wrong in ("hours", "=3", "hours="):
        with pytest.raises(ValueError, match="COLUMN="):
            named(wrong, "--bounds")


def test_conditions_are_two_valued():
    frame = pd.DataFrame({"x": [1.0, 2.0, np.nan], "y": [2.0, 2.0, 2.0]})
    t = sdp.table(frame, person=None)
    for text, number in [
        ("x > 1", 1),
        ("not x > 1", 2),
        ("x is None", 1),
        ("x is not None and x <= 1", 1),
        ("x in [1, 2]", 2),
        ("x not in [1]", 2),
        ("x == y", 1),
        ("x != 1", 1),
        ("x > 1 or y == 2.0", 3),
    ]:
        asked = t.where(text)
        found = asked.plan(asked.count(), epsilon=1.0, delta=1e-6).exact_tables().tables
        assert next(iter(found.values())).reshape(-1)[0] == number, text


def test_a_name_is_not_taken_for_a_value():
    """Conditions of several questions are told apart by what they say."""
    frame = pd.DataFrame({"x": [1.0, 1.0, 5.0], "1": [5.0, 5.0, 5.0]})
    t = sdp.table(frame, person=None)
    one, other = t.where(sdp.col("x") == 1).count(), t.where(sdp.col("x") == sdp.col("1")).count()
    assert repr(other) == "count() where (x == col('1'))"
    answers = t.ask(one, other, epsilon=1e7, delta=1e-6)
    assert [columns["count"] for columns in answers] == [[2], [1]]


def test_nothing_is_needed_before_a_table_is_asked(tmp_path):
    """Without Ibis, DuckDB, pandas and pyarrow the names are there; only an answer says what to install."""
    (tmp_path / "people.csv").write_text("sex\nF\n")
    script = """
import sys
for name in ("ibis", "duckdb", "pandas", "pyarrow", "polars"):
    sys.modules[name] = None
import shapedp as sdp
t = sdp.table("people.csv", person=None, domains={"sex": ["F", "M"]})
plan = t.plan(t.group_by("sex").count(), epsilon=1.0, delta=1e-6)
try:
    plan.release()
except ImportError as missing:
    print(missing)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "shapedp[tables]" in done.stdout


def test_as_pandas_people_write_it(t):
    asked = t.group_by(["sex", "on"]).agg(sdp.count(), sdp.mean("hours"))
    assert list(asked.asked) == ["count", "mean_hours"]
    assert [one.name for one in asked.by] == ["sex", "on"]


def test_names_in_quotes_may_hold_anything():
    """Brackets, commas and the words of a query, in names and in the texts of a condition."""
    columns = {"cost (EUR)": [1.0], "by me": ["x"], "l'age": [1.0], "a, b": [2.0], "sex": ["F"]}
    bounds = dict.fromkeys(("cost (EUR)", "l'age", "a, b"), (0, 9))
    t = sdp.table(pd.DataFrame(columns), person=None, bounds=bounds, domains={"by me": ["x"]})
    for text, read in (
        ('mean("cost (EUR)"), median(\'cost (EUR)\') by "by me"', "mean(cost (EUR)), median(cost (EUR)) by by me"),
        ("mean(l'age), sum(l'age)", "mean(l'age), sum(l'age)"),
        ('quantile("a, b", 0.9)', "quantile(a, b, 0.9)"),
        ("count where sex == 'by where'", "count() where (sex == 'by where')"),
    ):
        assert repr(question_of(t, text)) == read
    with pytest.raises(ValueError, match="no column"):
        question_of(t, "mean(\ue0007\ue001)")
