"""What a newcomer from SQL typed into private tables and was not told how to mend; numbers that hid their digits."""

from __future__ import annotations

import math
from decimal import Decimal

import pandas as pd
import pytest

pytest.importorskip("ibis")
pytest.importorskip("duckdb")

import shapedp as sdp
from shapedp.private.figures import texts
from shapedp.private.text import question_of

COLUMNS = ["sex", "hours", "cost"]


@pytest.fixture
def t(tmp_path):
    pd.DataFrame([["F", 30.0, 2e8], ["M", 40.0, 1e8]], columns=COLUMNS).to_csv(tmp_path / "people.csv", index=False)
    given = {"bounds": {"cost": (0, 1e9)}, "domains": {"sex": ["F", "M"]}}
    return sdp.table(tmp_path / "people.csv", person=None, **given)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda t: t.mean("hours"), r"public bounds: pass bounds=\{'hours'"),  # it said: declare it, as 'text'
        (lambda t: t.where("cost / 2 > 3"), "no arithmetic"),
        (lambda t: t.where("len(sex) > 3"), "no function"),
        (lambda t: t.where("hours-per-week > 3"), "col\\('hours-per-week'\\)"),
        (lambda t: t.where("sex like 'F%'"), "no patterns"),
        (lambda t: question_of(t, "count where cost > 3 by sex"), "'by' comes before 'where'"),
        (lambda t: sdp.table(t_frame(), person=None, domains={"sex": []}), "domain of 'sex' is empty"),
        (lambda t: t.count().release(epsilon=1.0, delta=0.0, ledger="b.db", dataset="d"), "Ledger.open"),
        (lambda t: t.median("cost").release(epsilon=1.0, delta=0.0, ledger="b.db", dataset="d"), "Ledger.open"),
        (lambda t: t.order_by("sex"), "costs nothing"),
        (lambda t: t.count().sort_values("count"), "costs nothing"),
        (lambda t: t.count().group_by("sex"), "groups come first"),
        (lambda t: t.nunique("sex"), "rows=1 and count"),
    ],
)
def test_the_remedy_is_said(t, ask, said):
    with pytest.raises((ValueError, TypeError, AttributeError), match=said):
        ask(t)


def t_frame() -> pd.DataFrame:
    return pd.DataFrame({"sex": ["F"]})


def test_group_by_is_understood_as_in_sql(t):
    assert repr(question_of(t, "sum(cost) GROUP BY sex")) == "sum(cost) by sex"
    assert list(question_of(t, "count as group by sex").asked) == ["group"]


def test_a_sum_is_shown_with_the_digits_that_its_error_leaves(t):
    answer = {"s": [159159133.6, -0.2], "s_error": [31339.2, 31339.2], "s_low": [1.25, -7.5], "s_high": [1.25, -7.5]}
    shown = texts(answer, commas=True)
    assert shown["s"] == ["159,159,134", "0"]
    assert shown["s_low"] == ["1", "-8"]
    assert shown["s_high"] == ["2", "-7"]
    page = t.sum("cost").release(epsilon=1.0, delta=0.0)
    assert "e+0" not in page._repr_html_().partition("<svg")[0]


@pytest.mark.parametrize("error", [3e-9, 0.0006, 0.02, 1.36, 15.67, 31339.2, 1e14])
@pytest.mark.parametrize("value", [0.0, -3.98986, 530307.25, 1.591591e8, -9.7e14])
def test_shown_ends_hold_the_ends(value, error):
    given = {"m": [value], "m_error": [error], "m_low": [value - 2 * error], "m_high": [value + 2 * error]}
    shown = {name: Decimal(one[0]) for name, one in texts(given, commas=False).items()}
    assert shown["m_low"] <= Decimal(given["m_low"][0])
    assert shown["m_high"] >= Decimal(given["m_high"][0])
    assert abs(float(shown["m"]) - value) <= max(0.005 * error, 1e-11 * abs(value))
    assert abs(float(shown["m_high"]) - given["m_high"][0]) <= max(0.01 * error, 1e-10 * abs(value))


def test_what_has_no_error_and_what_is_no_number_is_shown_as_it_is():
    cells = {
        "g": ["a", "b"],
        "n": [1200, 3],
        "x": [1.5, math.nan],
        "x_error": [math.inf, 0.0],
        "x_low": [-math.inf, 0.1],
    }
    assert texts(cells, commas=True) == {
        "g": ["a", "b"],
        "n": ["1200", "3"],
        "x": ["1.5", "nan"],
        "x_error": ["inf", "0"],
        "x_low": ["-inf", "0.1"],
    }


def test_answers_are_printed_with_all_their_columns(t):
    asked = t.group_by("sex").agg(people=sdp.count(), cost=sdp.mean("cost"), spread=sdp.variance("cost"))
    printed = repr(asked.release(epsilon=1.0, delta=1e-6))
    assert "..." not in printed
    assert "cost_low" in printed


def test_pictures_are_named(t):
    page = t.agg(people=sdp.count(), cost=sdp.mean("cost")).release(epsilon=1.0, delta=1e-6)._repr_html_()
    assert "<figcaption>people, with intervals of 0.95</figcaption>" in page
    assert "<figcaption>cost, with intervals of 0.95</figcaption>" in page


@pytest.mark.parametrize("cells", [[b"a", b"\xff", b"\\xff", None], [b"", b"\x00", b"a", None]])
def test_bytes_of_polars_tell_persons_apart_as_those_of_arrow_do(cells):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"id": cells * 3, "place": [0, 1, 2, 3] * 3})  # refused before: a type of polars' own
    t = sdp.table(frame, person="id", rows=2, domains={"place": 4})
    (found,) = t.plan(t.group_by("place").count(), epsilon=1.0, delta=0.0).exact_tables().tables.values()
    assert found.reshape(-1).tolist() == [2, 2, 2, 0]


def test_a_sentence_ends_with_one_full_stop(t):
    asked = sdp.table(t_frame(), person=None, domains={"sex": "private"}).group_by("sex").count()
    said = asked.table.plan(asked, epsilon=1.0, delta=1e-6).certificate.explain()
    assert "Assumed" in said
    assert ". Scope: Each row" in said
    assert ".." not in said
