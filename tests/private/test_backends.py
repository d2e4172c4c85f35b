"""Databases through Ibis: the same bits as our own, or a refusal in words; the choice of rows, checked by hand."""

from __future__ import annotations

import hashlib
import itertools
import math
import sqlite3

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("ibis")
pytest.importorskip("duckdb")

import ibis
from pyarrow import parquet
from tests.private import people
from tests.private.neighbours import Batch, replayed
from tests.sparks import quiet

import shapedp as sdp
from shapedp.private import engine, unknown
from shapedp.private.sources import rows_of

KEY = "a key that both see"
IDS = ["a", "A", "a ", "7", "a|b", "é", "e\u0301", "", "\U0001f600", "NaN", None]
WHOLE = [-(1 << 63), (1 << 63) - 1, 0, 7, -7, None]
HOURS = [-0.0, 0.0, 5e-324, -5e-324, 1e308, math.nan, math.inf, -math.inf, 12.5, 79.99, None]
WARDS = ["é", "e\u0301", "A", "a", "a|b", "", "unseen", None]


@pytest.fixture(autouse=True)
def one_key(monkeypatch):
    monkeypatch.setattr(engine, "fresh_key", lambda: KEY)
    monkeypatch.setattr(unknown, "fresh_key", lambda: KEY)


def awkward(count=400, seed=3):
    """Every kind of cell that databases read differently, with rows that are alike."""
    rng = np.random.default_rng(seed)

    def drawn(cells, size=count):
        return [cells[k] for k in rng.integers(0, len(cells), size)]

    wards = pa.array(WARDS)
    table = pa.table(
        {
            "text": pa.array(drawn(IDS), pa.string()),
            "whole": pa.array(drawn(WHOLE), pa.int64()),
            "real": pa.array(drawn([1.0, -0.0, 2.5, math.nan, 2.0**53, 4.0, None]), pa.float64()),
            "hours": pa.array(drawn(HOURS), pa.float64()),
            "large": pa.array(drawn(WHOLE), pa.int64()),
            "age": pa.array(drawn([0.0, -0.0, 17.5, 18.0, 90.0, math.nan, None]), pa.float32()),
            "on": pa.array(drawn([True, False, None]), pa.bool_()),
            "ward": pa.DictionaryArray.from_arrays(pa.array(drawn([0, 1, 2, 3, 4, 5, 6, 7, None]), pa.int32()), wards),
        }
    )
    return pa.concat_tables([table, table.slice(0, count // 2)])


def written(table, path):
    """A parquet file; its dictionaries hold no null, but their places do."""
    coded = table["ward"].cast(pa.string()).dictionary_encode()
    parquet.write_table(table.set_column(table.column_names.index("ward"), "ward", coded), path, row_group_size=50)
    return path


def sums(given, person, **bounds):
    """The tables of several questions without noise."""
    t = sdp.table(
        given,
        person=person,
        bounds={"hours": (-1, 80), "large": (-10, 1e19)},
        domains={"ward": ["é", "A", "a|b", ""], "on": [True, False]},
        **bounds,
    )
    adults = t.where((sdp.col("age") >= 18) | ~sdp.col("ward").isin(["a", "A"]) & (sdp.col("hours") <= sdp.col("age")))
    plan = t.plan(
        t.group_by("ward", "on").agg(n=sdp.count(), s=sdp.sum("hours")),
        adults.agg(v=sdp.sum("large")),
        t.histogram("age", [0, 17.5, 20]),
        epsilon=1.0,
        delta=1e-6,
        gap=1e-2,
    )
    return plan.exact_tables().tables


def assert_same(one, other):
    assert one.keys() == other.keys()
    for axes, table in one.items():
        np.testing.assert_array_equal(table, other[axes])


BOUNDS = [("text", {"rows": 3}), ("text", {"rows": 2, "groups": 2}), ("whole", {"rows": 20}), ("real", {"rows": 9})]


@pytest.mark.parametrize(("person", "bounds"), BOUNDS)
def test_files_frames_and_duckdb_give_the_same_bits(person, bounds, tmp_path):
    table = awkward()
    path = written(table, tmp_path / "people.parquet")
    want = sums(table, person, **bounds)
    assert_same(sums(path, person, **bounds), want)
    assert_same(sums(ibis.duckdb.connect().read_parquet(path), person, **bounds), want)


@quiet
@pytest.mark.parametrize(("person", "bounds"), BOUNDS)
def test_spark_gives_the_same_bits(person, bounds, tmp_path):
    table = awkward()
    path = written(table, tmp_path / "people.parquet")
    assert_same(sums(people.spark_table(path), person, **bounds), sums(table, person, **bounds))


@quiet
@pytest.mark.parametrize("change", ["add", "remove", "replace"])
def test_neighbours_on_spark(change, tmp_path):
    people.spark()
    assert replayed("spark", change, np.random.default_rng([2, len(change)]), tmp_path) >= 0


@quiet
def test_many_neighbours_in_one_table_on_spark(tmp_path):
    people.spark()
    assert max(Batch(60, 2).checked("spark", tmp_path)) > 0.2


@quiet
@pytest.mark.slow
def test_a_thousand_neighbours_on_spark(tmp_path):
    people.spark()
    rng = np.random.default_rng(9)
    far = [replayed("spark", ("add", "remove", "replace")[n % 3], rng, tmp_path) for n in range(1000)]
    print(f"{len(far)} pairs of neighbours on Spark, at most {max(far):.3f} of what is certified apart")
    assert max(far) > 0.3


def lacking(kind, folder):
    if kind == "polars":
        return pytest.importorskip("ibis").polars.connect({"people": people.pl.DataFrame({"id": [1], "x": [1.0]})})
    path = folder / "people.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE people (id INTEGER, x REAL)")
    return ibis.sqlite.connect(path)


@pytest.mark.parametrize("kind", ["polars", "sqlite"])
def test_a_database_that_lacks_a_function_is_refused_in_words(kind, tmp_path):
    t = sdp.table(lacking(kind, tmp_path).table("people"), person="id", rows=2, bounds={"x": (0, 1)})
    with pytest.raises(ValueError, match="lacks a function") as raised:
        t.sum("x").release(epsilon=1.0, delta=1e-6)
    assert raised.value.__context__ is None


def kept_by_hand(rows, most, key):
    """The rule in Python: of a person's rows in order, those whose step meets a multiple of their number."""
    found = []
    for person, group in itertools.groupby(sorted(rows), lambda row: row[0]):
        own = [held for _, held in group]
        start = int(hashlib.sha256(f"{key}|{person}".encode()).hexdigest()[:8], 16) % len(own)
        chosen = [x for i, x in enumerate(own, 1) if len(own) <= most or (start + i * most) % len(own) < most]
        assert len(chosen) == min(most, len(own))
        found += chosen
    return found


@pytest.mark.parametrize("most", [1, 2, 3, 5, 11])
def test_the_choice_is_the_stated_rule(most):
    rng = np.random.default_rng(most)
    rows = [(int(p), int(w)) for p, w in zip(rng.integers(0, 40, 300), rng.integers(0, 6, 300), strict=True)]
    table = pa.table({"id": [p for p, _ in rows], "ward": [w for _, w in rows]})
    t = sdp.table(table, person="id", rows=most, domains={"ward": 6})
    cells = t.plan(t.group_by("ward").count(), epsilon=1.0, delta=1e-6).exact_tables().tables[(0,)][:, 0]
    want = np.bincount(kept_by_hand(rows, most, KEY), minlength=6)
    assert cells.tolist() == want.tolist()


def test_each_row_is_kept_as_often_as_any_other(monkeypatch):
    """One person with 7 rows, 3 kept: over 400 keys each is kept in 3/7 of the draws, to within 5 deviations."""
    keys = iter(f"key {k}" for k in itertools.count())
    monkeypatch.setattr(engine, "fresh_key", lambda: next(keys))
    table = pa.table({"id": [1] * 7 * 60, "ward": list(range(7)) * 60})
    many = pa.table({"id": np.repeat(np.arange(3000), 7), "ward": np.tile(np.arange(7), 3000)})
    t = sdp.table(many, person="id", rows=3, domains={"ward": 7})
    cells = t.plan(t.group_by("ward").count(), epsilon=1.0, delta=1e-6).exact_tables().tables[(0,)][:, 0]
    assert cells.sum() == 9000
    assert np.all(np.abs(cells - 9000 / 7) < 5 * math.sqrt(3000 * 3 / 7 * 4 / 7))
    alike = sdp.table(table, person="id", rows=3, domains={"ward": 7})
    cells = alike.plan(alike.group_by("ward").count(), epsilon=1.0, delta=1e-6).exact_tables().tables[(0,)][:, 0]
    assert cells.sum() == 3


def test_many_attributes_are_packed_into_several_numbers():
    """Domains of 2^20 cells each: four of them do not fit into one number."""
    from shapedp.workloads import Attribute

    attributes = [Attribute.of(f"a{k}", 1 << 20) for k in range(4)]
    assert engine._runs(attributes) == [[0, 1, 2], [3]]
    places = np.random.default_rng(0).integers(0, 1 << 20, (50, 4))
    size = 1 << 20
    packed = {"k0": (places[:, 0] * size + places[:, 1]) * size + places[:, 2], "k1": places[:, 3]}
    found = engine._places(attributes, pa.table(packed))
    np.testing.assert_array_equal(np.stack(found, axis=1), places)


@pytest.mark.parametrize("nullable", [True, False])
def test_ids_beyond_int64_are_persons(nullable, tmp_path):
    """Unsigned numbers of 64 bits stay what they are; no cast fails on one of them."""
    schema = pa.schema([pa.field("id", pa.uint64(), nullable=nullable), pa.field("ward", pa.int64())])
    table = pa.table([[(1 << 64) - 1, (1 << 64) - 1, (1 << 64) - 2, 7], [0, 0, 0, 0]], schema=schema)
    parquet.write_table(table, tmp_path / "people.parquet")
    connection = ibis.duckdb.connect()
    for given in (table, tmp_path / "people.parquet", connection.read_parquet(tmp_path / "people.parquet")):
        t = sdp.table(given, person="id", rows=1, domains={"ward": 1})
        (cells,) = t.plan(t.group_by("ward").count(), epsilon=1.0, delta=1e-6).exact_tables().tables.values()
        assert cells.reshape(-1)[0] == 3


def test_texts_that_a_database_takes_for_one_are_two_persons(tmp_path):
    """With a collation of its own a database groups 'a' and 'A' together; persons are told apart by hashes."""
    connection = ibis.duckdb.connect()
    connection.raw_sql("CREATE TABLE crowd (id VARCHAR COLLATE NOCASE, ward BIGINT)")
    connection.raw_sql("INSERT INTO crowd SELECT CASE WHEN i % 2 = 0 THEN 'a' ELSE 'A' END, i % 3 FROM range(60) r(i)")
    t = sdp.table(connection.table("crowd"), person="id", rows=2, domains={"ward": 3})
    cells = t.plan(t.group_by("ward").count(), epsilon=1.0, delta=1e-6).exact_tables().tables[(0,)][:, 0]
    assert cells.sum() == 4
    assert rows_of(connection.table("crowd")).kinds == {"id": "text", "ward": "number"}
