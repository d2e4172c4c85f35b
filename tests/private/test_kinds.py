"""Columns of every type that a table may have: read by its type, each cell by itself."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

pytest.importorskip("ibis")
pytest.importorskip("duckdb")

import shapedp as sdp

NUMBERS = [0, 1, 1, 3, None]
TEXTS = ["a", "b", "b", "unseen", None]
LOUD = {"epsilon": 1e7, "delta": 1e-6}

NUMERIC = {
    "Int64": pd.array(NUMBERS, dtype="Int64"),
    "Float32": pd.array(NUMBERS, dtype="Float32"),
    "float32": np.array([0, 1, 1, 3, np.nan], dtype=np.float32),
    "uint8": np.array([0, 1, 1, 3, 7], dtype=np.uint8),
    "category": pd.Categorical(NUMBERS),
    "arrow": pd.array(NUMBERS, dtype=pd.ArrowDtype(pa.int16())),
    "decimal": pd.array(
        [None if one is None else Decimal(one) for one in NUMBERS], dtype=pd.ArrowDtype(pa.decimal128(9, 2))
    ),
    "object": np.array([0, 1.0, np.int8(1), "3", Decimal("NaN")], dtype=object),
}
WORDS = {
    "str": pd.array(TEXTS, dtype="str"),
    "python": pd.array(TEXTS, dtype=pd.StringDtype("python")),
    "pyarrow": pd.array(TEXTS, dtype=pd.StringDtype("pyarrow")),
    "category": pd.Categorical(TEXTS),
    "arrow": pd.array(TEXTS, dtype=pd.ArrowDtype(pa.large_string())),
    "object": np.array(["a", "b", "b", "\ud800", {"not": "a text"}], dtype=object),
    "mixed category": pd.Categorical(np.array(["a", "b", "b", 7, None], dtype=object)),
}


def counts(frame, domain, **options):
    t = sdp.table(frame, person=None, domains={"x": domain}, **options)
    return t.group_by("x").count().release(**LOUD).columns["count"]


@pytest.mark.parametrize("kind", NUMERIC)
def test_numbers_of_pandas(kind):
    frame = pd.DataFrame({"x": NUMERIC[kind]})
    assert counts(frame, 3) == [1, 2, 0]
    assert counts(frame, [1, 0]) == [2, 1]
    assert counts(frame, {"edges": [0.5, 1.5]}) == [2]


@pytest.mark.parametrize("kind", WORDS)
def test_texts_of_pandas(kind):
    frame = pd.DataFrame({"x": WORDS[kind]})
    assert counts(frame, ["b", "a"]) == [2, 1]
    assert counts(frame, {"labels": ["b"], "other": True}) == [2, 3]


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["a", "b", "unseen"]), pl.String])
def test_texts_of_polars(kind):
    assert counts(pl.DataFrame({"x": pl.Series(TEXTS, dtype=kind)}), ["b", "a"]) == [2, 1]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_texts_of_arrow(kind):
    assert counts(pa.table({"x": pa.array(TEXTS).cast(kind)}), ["b", "a"]) == [2, 1]


def test_bytes_that_are_no_text_are_missing():
    broken = pa.Array.from_buffers(
        pa.string(), 3, [None, pa.py_buffer(np.array([0, 1, 2, 3], np.int32)), pa.py_buffer(b"a\xffb")]
    )
    assert counts(pa.table({"x": broken}), {"labels": ["a", "b"], "other": True}) == [1, 1, 1]


def test_truth_values():
    for column in (np.array([True, False, True]), pd.array([True, None, True], dtype="boolean")):
        frame = pd.DataFrame({"x": column})
        assert counts(frame, [True])[0] == 2
        t = sdp.table(frame, person=None, bounds={"x": (0, 1)})
        assert t.where(sdp.col("x") == True).count().release(**LOUD).columns["count"] == [2]  # noqa: E712
        assert t.histogram("x", [0.5, 1.5]).release(**LOUD).columns["count"] == [2]
        np.testing.assert_allclose(t.sum("x").release(**LOUD).columns["sum"], [2], atol=0.01)


def test_a_csv_row_that_does_not_fit_is_left_out(tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes(b'x,y\na,1\nb\n"b",2\nb,3,4\n\xff,5\na,"6"\n,7\n')
    assert counts(path, {"labels": ["a", "b"], "other": True}) == [2, 1, 2]
    t = sdp.table(path, person=None, bounds={"y": (0, 10)})
    np.testing.assert_allclose(t.sum("y").release(**LOUD).columns["sum"], [21], atol=0.05)


@pytest.mark.parametrize("ids", [[1, 1, 2], ["1", "1", "2"], [1.0, 1.0, 2.0], np.array([1, "1", 2], dtype=object)])
def test_persons_of_every_type(ids):
    t = sdp.table(pd.DataFrame({"id": ids}), person="id", rows=1)
    assert t.count().release(**LOUD).columns["count"] == [2]


def test_several_files_and_a_folder(tmp_path):
    for number in range(3):
        pd.DataFrame({"x": ["a"] * (number + 1)}).to_parquet(tmp_path / f"part{number}.parquet")
    listed = sorted(tmp_path.iterdir())
    assert counts(listed, ["a"]) == counts(tmp_path, ["a"]) == [6]
    table = pa.table({"x": ["a", "b"]})
    with pa.ipc.new_file(str(tmp_path / "x.arrow"), table.schema) as sink:
        sink.write_table(table)
    assert counts(tmp_path / "x.arrow", ["a", "b"]) == [1, 1]


def test_names_of_files_and_columns_are_taken_as_they_are(tmp_path):
    """No pattern, no partition and no case is read into a name."""
    folder = tmp_path / "x=b"
    folder.mkdir()
    frame = pd.DataFrame({"x": ["a", "a"], "y": [1, 2]})
    frame.to_parquet(folder / "part[1]*?.parquet")
    frame.iloc[:1].to_parquet(folder / "part1x.parquet")
    assert counts(folder / "part[1]*?.parquet", ["a", "b"]) == [2, 0]
    assert counts(folder, ["a", "b"]) == [3, 0]
    pd.DataFrame({"X": ["b"], "x": ["a"]}).to_parquet(tmp_path / "cases.parquet")
    assert counts(tmp_path / "cases.parquet", ["a", "b"]) == [1, 0]
