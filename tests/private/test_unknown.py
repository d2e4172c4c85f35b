"""Keys and bounds that nobody declared: counted right, bounded by person, released under one certificate."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("ibis")
pytest.importorskip("duckdb")

from tests.private import people

import shapedp as sdp
from shapedp.private.unknown import EDGES, _coarse, key_counts
from shapedp_check import check


def visits(seed=0, persons=1500):
    rng = np.random.default_rng(seed)
    ids = np.repeat(np.arange(persons), rng.integers(1, 5, persons))
    towns = np.array(["Aal", "Bonn", "Ulm", "it's; --"])[rng.choice(4, ids.size, p=[0.5, 0.3, 0.199, 0.001])]
    return pd.DataFrame(
        {"id": ids, "town": towns, "cost": rng.gamma(2.0, 30.0, ids.size), "n": rng.integers(0, 3, ids.size)}
    )


def table(frame, **options):
    return sdp.table(frame, **{"person": "id", "rows": 2, "domains": {"town": "private"}, **options})


def test_keys_count_persons_once():
    frame = visits()
    want = frame.drop_duplicates(["id", "town"]).town.value_counts().to_dict()
    assert key_counts(table(frame, rows=9), "town") == want
    assert key_counts(table(frame, person=None, rows=1), "town") == frame.town.value_counts().to_dict()


@pytest.mark.parametrize("options", [{"rows": 1}, {"rows": 2}, {"rows": 5, "groups": 1}])
def test_a_person_counts_for_so_many_keys(options):
    frame = pd.DataFrame({"id": [1] * 6 + [2], "town": ["a", "b", "c", "d", "a", None, "a"]})
    most = options.get("groups", options["rows"])
    found = key_counts(table(frame, **options), "town")
    assert sum(found.values()) == most + 1
    t = table(frame, **options)
    plan = t.plan(t.group_by("town").count(), epsilon=1.0, delta=1e-6)
    assert plan.firsts[0].mechanisms[0].keys == most


@pytest.mark.parametrize("kind", people.SOURCES)
def test_neighbours_differ_in_the_keys_of_one_person(kind, tmp_path, monkeypatch):
    """A person who goes takes at most so many keys along, whatever the rows hold; no name depends on another row."""
    monkeypatch.setattr("shapedp.private.unknown.fresh_key", lambda: "a key that both see")
    rng = np.random.default_rng(people.SOURCES.index(kind))
    for _ in range(3):
        crowd = [people.rows_of_a_person(rng, name) for name in range(12)]
        for row in crowd[3]:
            row["id"] = 3
        found = []
        for listed in (crowd, [*crowd[:3], *crowd[4:]]):
            flat = [row for rows in listed for row in rows]
            types = {"sex": "text"} if kind in ("objects", "csv") else None
            given = people.source(kind, flat, tmp_path)
            t = sdp.table(given, person="id", rows=2, domains={"sex": "private"}, types=types)
            found.append(key_counts(t, "sex"))
        moved = {name: found[0].get(name, 0) - found[1].get(name, 0) for name in {*found[0], *found[1]}}
        assert all(0 <= one <= 1 for one in moved.values())
        assert sum(moved.values()) <= 2


def test_numbers_are_keys_where_they_are_whole():
    frame = pd.DataFrame({"id": range(6), "town": [1.0, -0.0, 0.0, 2.5, np.inf, np.nan]})
    assert key_counts(table(frame), "town") == {0: 2, 1: 1}


def test_names_are_those_that_pass_and_are_counted():
    frame = visits()
    t = table(frame, bounds={"cost": (0, 200)})
    answers = t.group_by("town").agg(people=sdp.count(), cost=sdp.mean("cost")).release(epsilon=4.0, delta=1e-6)
    found = answers.columns
    assert found["town"] == ["Aal", "Bonn", "Ulm"]
    assert answers.release.found == {"town": ["Aal", "Bonn", "Ulm"]}
    assert all(isinstance(one, int) for one in found["people"])
    certificate = answers.certificate
    assert certificate.verdict == sdp.verify(certificate).verdict == "certified"
    assert check(json.loads(json.dumps(certificate.to_json()))).verdict == "certified"
    kinds = [step["subject"].get("mechanism", {}).get("kind", "gaussian") for step in certificate.subject["steps"]]
    assert kinds == ["keys", "gaussian"]


def test_the_noise_is_at_most_what_was_planned():
    frame = visits()
    t = table(frame, bounds="private")
    plan = t.plan(t.group_by("town").mean("cost"), epsilon=2.0, delta=1e-6)
    assert plan.certificate.subject["steps"][-1]["subject"]["mu"] == plan.mu
    answers = plan.release()
    assert answers.release.sums.mechanism.loss.mu <= plan.mu
    assert answers.release.sums.mechanism.loss.mu > 0.99 * plan.mu
    low, high = answers.release.found["cost"]
    assert low >= 0
    assert 100 <= high <= 1024


def test_no_name_passes():
    frame = pd.DataFrame({"id": [1, 2], "town": ["a", "b"]})
    t = table(frame, rows=1)
    answers = t.ask(t.group_by("town").count(), t.count(), epsilon=1.0, delta=1e-9)
    assert answers.tables[0] == {"town": [], "count": [], "count_error": [], "count_low": [], "count_high": []}
    assert len(answers.tables[1]["count"]) == 1


def test_coarse_cells_hold_every_number():
    frame = pd.DataFrame({"x": [0.0, -0.75, 3.0, 1e30, -1e30, 1e-30, np.nan, np.inf]})
    t = sdp.table(frame, person=None, bounds={"x": "private"})
    counts = _coarse(t, "x")
    ends = np.array(EDGES)
    want = np.bincount(
        np.searchsorted(ends, [0.0, -0.75, 3.0, 1e30, -1e30, 1e-30], side="right"), minlength=ends.size + 1
    )
    np.testing.assert_array_equal(counts, want)
    moved = t.plan(t.mean("x"), epsilon=1.0, delta=1e-6, adjacency="replace").firsts[0].mechanisms[0].sensitivity
    assert moved.radius == 2.0


def test_quantiles_of_unknown_bounds():
    t = table(visits(), bounds="private")
    answers = t.median("cost").release(epsilon=20.0, delta=0.0)
    assert 40 < answers.columns["median"][0] < 65
    assert answers.certificate.delta == 0


def test_bad_input():
    frame = visits()
    with pytest.raises(ValueError, match="no column"):
        table(frame, domains={"nobody": "private"})
    with pytest.raises(ValueError, match="text"):
        table(frame, bounds={"town": "private"})
    with pytest.raises(ValueError, match="public values"):
        table(frame).top_k("town", 2)
    t = table(frame, domains={"town": "private", "n": "private"})
    with pytest.raises(ValueError, match="one column at a time"):
        t.plan(t.group_by("town", "n").count(), epsilon=1.0, delta=1e-6)
    with pytest.raises(ValueError, match="delta > 0"):
        t.plan(t.group_by("town").count(), epsilon=1.0, delta=0.0)
    with pytest.raises(ValueError, match="first"):
        t.plan(t.group_by("town").count(), epsilon=1.0, delta=1e-6, first=1.5)
