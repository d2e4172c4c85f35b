"""Neighbouring tables replayed without noise: nothing but the sums differs, and these by at most what is certified."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("ibis")
pytest.importorskip("duckdb")

from tests.private import people
from tests.private.neighbours import Batch, one_key, pair, replayed

from shapedp.private import engine


@pytest.fixture(autouse=True)
def same_key():
    with one_key():
        yield


@pytest.mark.parametrize("change", ["add", "remove", "replace"])
@pytest.mark.parametrize("kind", people.SOURCES)
def test_neighbours_differ_by_what_is_certified(kind, change, tmp_path):
    rng = np.random.default_rng([people.SOURCES.index(kind), len(change)])
    assert replayed(kind, change, rng, tmp_path) >= 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", people.SOURCES)
def test_a_thousand_neighbours(kind, tmp_path):
    rng = np.random.default_rng([1, people.SOURCES.index(kind)])
    far = [replayed(kind, ("add", "remove", "replace")[n % 3], rng, tmp_path) for n in range(1000)]
    assert max(far) > 0.3


@pytest.mark.parametrize("kind", people.SOURCES)
def test_many_neighbours_in_one_table(kind, tmp_path):
    """Sixty pairs, each with persons of its own: every question by pair, without noise."""
    far = Batch(60, people.SOURCES.index(kind)).checked(kind, tmp_path)
    assert max(far) > 0.2


def test_a_replay_finds_what_is_not_bounded(tmp_path, monkeypatch):
    """With a bound that is not enforced neighbours are further apart than certified."""
    monkeypatch.setattr(engine, "_chosen", lambda rows, *_: rows)
    with pytest.raises(AssertionError):
        Batch(60, 1).checked("arrow", tmp_path)


@pytest.mark.parametrize("change", ["add", "replace"])
def test_neighbours_with_groups(change, tmp_path):
    rng = np.random.default_rng(7)
    relation = "replace" if change == "replace" else "add-remove"
    for _ in range(6):
        found = []
        for rows in pair(rng, change):
            t = people.private("arrow", rows, tmp_path, rows=1, groups=2)
            plan = people.plan(t, adjacency=relation)
            found.append(plan.exact_tables())
        assert people.apart(plan.mechanism, *found) <= plan.mechanism.loss.mu


def test_the_reach_is_attained(tmp_path):
    """A person whose rows are all alike, at the end of the bounds."""
    rows = [{"id": 1, "sex": "F", "hours": 80.0, "age": 30.0}] * 5
    t = people.private("arrow", rows, tmp_path)
    nobody = people.private("arrow", [], tmp_path)
    for noise in ("gaussian", "laplace"):
        plan, empty = (
            one.plan(one.group_by("sex").sum("hours"), epsilon=1.0, delta=1e-6, noise=noise) for one in (t, nobody)
        )
        moved = people.apart(plan.mechanism, plan.exact_tables(), empty.exact_tables())
        assert people.reach(plan.mechanism) * 0.999 < moved <= people.reach(plan.mechanism)


def test_every_source_gives_the_same_bits(tmp_path):
    rng = np.random.default_rng(5)
    for _ in range(3):
        rows = [row for name in range(30) for row in people.rows_of_a_person(rng, name)]
        first = None
        for kind in people.SOURCES:
            tables = people.plan(people.private(kind, rows, tmp_path)).exact_tables().tables
            first = first or tables
            assert tables.keys() == first.keys()
            for axes, table in tables.items():
                np.testing.assert_array_equal(table, first[axes], err_msg=kind)


def test_the_order_of_rows_does_not_matter(tmp_path):
    rng = np.random.default_rng(6)
    rows = [row for name in range(40) for row in people.rows_of_a_person(rng, name)]
    mixed = [rows[k] for k in rng.permutation(len(rows))]
    one, other = (people.plan(people.private("arrow", some, tmp_path)).exact_tables().tables for some in (rows, mixed))
    for axes, table in one.items():
        np.testing.assert_array_equal(table, other[axes])


@pytest.mark.parametrize("kind", ["parquet", "ibis"])
def test_what_nan_counts_as_depends_on_no_other_row(kind, tmp_path):
    """Parquet files note the least and largest number of a column, NaN left out: no database may decide by them."""
    nan = {"id": 1, "sex": "F", "hours": float("nan"), "age": float("nan")}
    for age in (10.0, 30.0):
        rows = [nan, nan, *({"id": 2, "sex": "M", "hours": 5.0 + k, "age": age + k} for k in range(2))]
        path = people.source("parquet", rows, tmp_path)
        given = path if kind == "parquet" else people.ibis.duckdb.connect().read_parquet(path)
        t = people.sdp.table(given, person="id", rows=2, domains={"sex": ["F", "M"]}, bounds={"hours": (0, 80)})
        for asked in (t.where("age >= 18"), t.where("age < 18"), t.where("not age is None")):
            cells = asked.plan(asked.group_by("sex").count(), epsilon=1.0, delta=1e-6).exact_tables().tables[(0,)]
            assert cells[0, 0] == 0, (age, asked)
        cells = t.plan(t.group_by("sex").mean("hours"), epsilon=1.0, delta=1e-6).exact_tables().tables[(0,)]
        assert cells[:, 0].tolist() == [0, 2]
