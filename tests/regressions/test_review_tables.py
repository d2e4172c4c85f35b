"""Private tables under attack: what a row adds, whose rows are kept, and what may fail on somebody's cell."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

pytest.importorskip("ibis")
pytest.importorskip("duckdb")

import ibis
from tests.private.people import apart, reach

import shapedp as sdp
from shapedp.private import engine

CLAIM = {"epsilon": 1.0, "delta": 1e-6}


def cells(t, *questions):
    """The exact numbers of the first table that is counted."""
    return next(iter(t.plan(*questions, **CLAIM).exact_tables().tables.values()))


def never_null(hours, kind=None):
    """Arrow data whose type says that no cell is missing."""
    return pa.table({"hours": pa.array(hours)}, schema=pa.schema([pa.field("hours", kind or pa.float64(), False)]))


@pytest.mark.parametrize("through", ["arrow", "parquet", "ibis", "null in a column of integers"])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_a_type_without_nulls_holds_nan(through, adjacency, tmp_path):
    """A row adds (1, 79.9 ... 80) to count and sum, said the type; with NaN it added (1, 0), 32 times the reach."""
    found = []
    for missing in (0, 1):
        if through.startswith("null"):
            source = never_null([80, 80, *[None] * missing], pa.int64())
        else:
            source = never_null([79.95, 80.0, *[math.nan] * missing])
        if through == "parquet":
            path = tmp_path / f"{missing}.parquet"
            parquet.write_table(source, path)
            source = path
        elif through == "ibis":
            source = ibis.memtable(source, schema=ibis.schema({"hours": "!float64"}))
        t = sdp.table(source, person=None, bounds={"hours": (79.9, 80)})
        found.append(t.plan(t.count(), t.sum("hours"), adjacency=adjacency, **CLAIM))
    assert apart(found[0].mechanism, *(one.exact_tables() for one in found)) <= reach(found[0].mechanism)


@pytest.mark.parametrize(
    ("rows", "domains"),
    [
        ([("", "z"), (None, "z")], {"a": {"labels": ["", "b"], "other": True}, "b": ["z", "y|z"]}),
        ([("x|y", "z"), ("x", "y|z")], {"a": ["x|y", "x"], "b": ["z", "y|z"]}),
    ],
)
def test_no_two_rows_of_a_person_have_one_hash(rows, domains, monkeypatch):
    """Which of two was kept depended on where other people's rows stood."""
    monkeypatch.setattr(engine, "fresh_key", lambda: "a key")
    everybody = [(name, *row) for name in range(200) for row in rows]
    found = set()
    for seed in range(3):
        mixed = [everybody[k] for k in np.random.default_rng(seed).permutation(len(everybody))]
        columns = [pa.array(column) for column in zip(*mixed, strict=True)]
        t = sdp.table(pa.table(columns, names=["id", "a", "b"]), person="id", domains=domains)
        found.add(cells(t, t.group_by("a", "b").count()).tobytes())
    assert len(found) == 1


def test_a_database_that_takes_two_texts_for_one():
    """Where 'f' equals 'F' a query by label may show either for both: all of a group hung on one row."""
    con = ibis.duckdb.connect()
    con.raw_sql("SET default_collation = 'NOCASE'")
    con.raw_sql(
        "CREATE TABLE people AS SELECT i AS id, CASE WHEN i = 7 THEN 'F' ELSE 'f' END AS sex FROM range(50) r(i)"
    )
    t = sdp.table(con.table("people"), person="id", domains={"sex": ["F", "M"]})
    assert cells(t, t.group_by("sex").count())[:, 0].tolist() == [50, 0]


def test_bytes_that_are_no_text_in_a_parquet_file(tmp_path):
    """DuckDB refuses the whole file for one such cell: the cell is missing, as in Arrow data."""
    ends = pa.py_buffer(np.arange(4, dtype=np.int32).tobytes())
    text = pa.Array.from_buffers(pa.string(), 3, [None, ends, pa.py_buffer(b"F\xffM")])
    parquet.write_table(pa.table({"id": [1, 2, 3], "sex": text}), tmp_path / "people.parquet")
    t = sdp.table(tmp_path / "people.parquet", person="id", domains={"sex": ["F", "M"]})
    assert cells(t, t.group_by("sex").count())[:, 0].tolist() == [1, 1]


def test_an_id_of_thousands_of_digits():
    frame = pd.DataFrame({"id": pd.Series([10**5000, 1, Decimal("1E+999999"), Decimal(2)], dtype=object)})
    t = sdp.table(frame, person="id")
    assert cells(t, t.count()).reshape(-1).tolist() == [3]


@pytest.mark.parametrize("kind", ["arrow", "parquet", "pandas"])
def test_ids_are_read_alike_everywhere(kind, tmp_path):
    """All rows were left out in silence where ids were decimals, and from frames where they were dates or booleans."""
    decimals = pa.table(
        {"id": pa.array([Decimal(7), Decimal(8)], pa.decimal128(10, 2)), "day": pa.array([1, 2], pa.date32())}
    )
    parquet.write_table(decimals, tmp_path / "people.parquet")
    days = decimals["day"].cast(pa.timestamp("us"))
    source = {"arrow": decimals, "parquet": tmp_path / "people.parquet"}.get(kind)
    source = decimals.set_column(1, "day", days).to_pandas() if source is None else source
    t = sdp.table(source, person="id")
    assert cells(t, t.count()).reshape(-1).tolist() == [2]
    with pytest.raises(ValueError, match="told apart by whole numbers or texts"):
        sdp.table(source, person="day")


def test_tables_counted_for_more_rows_of_a_person_are_refused():
    frame = pd.DataFrame({"id": [1] * 50})
    one, fifty = (sdp.table(frame, person="id", rows=rows) for rows in (1, 50))
    plan, other = (t.plan(t.count(), **CLAIM) for t in (one, fifty))
    with pytest.raises(ValueError, match="another number of rows or groups"):
        plan.mechanism.release(other.exact_tables())


def test_groups_whose_names_look_numbered():
    """The second histogram of age was answered from the column 'age (2)'."""
    frame = pd.DataFrame({"age": [1.0, 1.0, 5.0], "age (2)": [0, 0, 0]})
    t = sdp.table(frame, person=None, domains={"age (2)": 2})
    asked = (t.histogram("age", [0, 2, 10]), t.histogram("age", [0, 1, 10]), t.group_by("age (2)").count())
    for order in ((0, 1, 2), (2, 0, 1)):
        answers = t.ask(*(asked[k] for k in order), epsilon=1e7, delta=1e-6)
        found = [answers.tables[order.index(k)]["count"] for k in range(3)]
        assert found == [[2, 1], [0, 3], [3, 0]]


def test_a_seed_is_refused_before_the_budget_is_spent(tmp_path):
    from shapedp.ledger import Ledger

    budget = Ledger.create(tmp_path / "budget.db", dataset="people", epsilon=2.0, delta=1e-5, adjacency="add-remove")
    t = sdp.table(pd.DataFrame({"x": [1]}), person=None)
    with pytest.raises(ValueError, match="rng"):
        t.ask(t.count(), ledger=budget, dataset="people", rng=np.random.default_rng(0), **CLAIM)
    assert budget.status("people").spent == 0


def test_spaces_after_commas(tmp_path):
    """Files such as Adult have them: every group was empty, in silence."""
    path = tmp_path / "people.csv"
    path.write_text("id, sex, hours\n1, F, 40\n 1, F, 40\n2, M, 38\n")
    t = sdp.table(path, person="id", domains={"sex": ["F", "M"]})
    assert cells(t, t.group_by("sex").count())[:, 0].tolist() == [1, 1]


def test_verbs_in_capitals():
    from shapedp.private.text import question_of

    t = sdp.table(pd.DataFrame({"sex": ["F"]}), person=None, domains={"sex": ["F", "M"]})
    assert repr(question_of(t, "COUNT(*) AS n BY sex WHERE sex != 'M'")) == "count() by sex where (sex != 'M')"
