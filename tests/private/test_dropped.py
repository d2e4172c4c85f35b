"""The share of rows that the bounds per person drop: exact sums, what one person moves, certificates, words."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("ibis")
pytest.importorskip("duckdb")

from tests.private import people
from tests.private.neighbours import CHANGES, one_key, pair, relation

import shapedp as sdp
from shapedp.cli import main
from shapedp.private.dropped import DroppedRows
from shapedp.private.engine import dropped_rows
from shapedp.private.layout import layout
from shapedp_check import check

CLAIM = {"epsilon": 1.0, "delta": 1e-6}


def table(frame, **options):
    return sdp.table(frame, **{"person": "id", "rows": 2, "domains": {"sex": ["F", "M"]}, **options})


def exact(t, most, *questions):
    return dropped_rows(t, layout(t, questions or [t.group_by("sex").count()]), most).tolist()


def box_of(part):
    return np.array([one.sensitivity.radius for one in part.mechanisms])


def test_rows_are_counted_as_by_hand():
    """Nobody's rows and rows outside the domain are not looked at; of a person 16 rows at most."""
    sizes = {1: 1, 2: 2, 3: 5, 4: 40}
    frame = pd.DataFrame({"id": [name for name, size in sizes.items() for _ in range(size)]}).astype({"id": object})
    frame = frame.assign(sex=["F", "M"] * 24)
    more = pd.DataFrame({"id": [None, 7], "sex": ["F", "unseen"]})
    t = table(pd.concat([frame, more]), types={"id": "text"})
    assert exact(t, 16) == [1 + 2 + 2 + 2, 3 + 14]
    adults = t.where("sex == 'F'")
    assert exact(t, 16, adults.count())[0] == sum(
        min((size + k % 2) // 2, 2) for k, size in enumerate(sizes.values(), 1)
    )


def test_groups_are_counted_as_by_hand():
    """One row in each of two groups: of 3 + 2 + 1 rows in three groups two are kept, of 4 in one group one."""
    frame = pd.DataFrame({"id": [1] * 6 + [2] * 4, "sex": [*"FFFMMX", *"FFFF"]})
    t = table(frame, rows=1, groups=2, domains={"sex": ["F", "M", "X"]})
    assert exact(t, 16) == [3, 7]


@pytest.mark.parametrize("kind", ["arrow", "parquet", "csv", "ibis"])
@pytest.mark.parametrize("bounds", [{"rows": 2}, {"rows": 1, "groups": 2}])
def test_neighbours_move_what_is_certified(kind, bounds, tmp_path):
    rng = np.random.default_rng(3)
    with one_key():
        for change in CHANGES:
            found = []
            for rows in pair(rng, change):
                t = people.private(kind, rows, tmp_path, **bounds)
                part = DroppedRows.of(t, 0.1, relation(change))
                found.append(np.array(exact(t, part.most, *people.questions(t))))
            assert (np.abs(found[0] - found[1]) <= box_of(part)).all()


@pytest.mark.parametrize("bounds", [{"rows": 1}, {"rows": 2}, {"rows": 1, "groups": 2}])
def test_every_person_lies_within_the_box(bounds):
    """All ways to have up to 20 rows in three groups: alone, added to a crowd, exchanged. The box is reached."""
    ways = [way for way in itertools.product((0, 1, 3, 17), repeat=3) if sum(way) <= 20 and way >= way[::-1]]
    rows = [(name, sex) for name, way in enumerate(ways) for sex, n in zip("FMX", way, strict=True) for _ in range(n)]
    frame = pd.DataFrame(rows, columns=["id", "sex"])
    seen = []
    with one_key():
        for name in range(len(ways)):
            own = frame[frame.id == name] if sum(ways[name]) else frame[:0]
            t = table(own, domains={"sex": ["F", "M", "X"]}, **bounds)
            part = DroppedRows.of(t, 0.1, "replace")
            seen.append(exact(t, part.most))
        whole = table(frame, domains={"sex": ["F", "M", "X"]}, **bounds)
        total = exact(whole, part.most)
    moved = np.array([np.subtract(a, b) for a, b in itertools.product(seen, repeat=2)])
    box = box_of(part)
    assert (np.abs(moved) <= box).all()
    assert (np.abs(moved).max(axis=0) == box).all()
    assert all(0 <= kept <= box[0] and 0 <= lost <= box[1] for kept, lost in seen)
    assert total[0] <= len(ways) * box[0]


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_the_certificate_counts_it(adjacency):
    frame = pd.DataFrame({"id": np.arange(4000) % 1000, "sex": ["F", "M"] * 2000})
    t = table(frame)
    question = t.group_by("sex").count()
    plan = t.plan(question, **CLAIM, dropped=0.1, adjacency=adjacency, noise="gaussian")
    assert [one.what for one in plan.shares] == ["rows dropped", "sums"]
    assert plan.shares[0].share == pytest.approx(0.1, rel=1e-3)
    alone = t.plan(question, **CLAIM, adjacency=adjacency, noise="gaussian")
    assert plan.sums.loss.mu < alone.mechanism.loss.mu
    answers = plan.release()
    assert check(json.loads(json.dumps(answers.certificate.to_json()))).verdict == "certified"
    larger = plan.plan.loss.delta(CLAIM["epsilon"]).upper
    assert 0.6 * CLAIM["delta"] < larger <= CLAIM["delta"]  # little is left unused
    assert sdp.compose([plan.sums]).delta(CLAIM["epsilon"]).upper < larger
    low, high = answers.dropped.interval(0.95)
    assert 0 <= low <= answers.dropped.share <= high <= 1
    assert answers.interval(0.5).dropped.interval(0.5)[0] >= low
    assert "dropped" in answers.notes[-1]
    assert "dropped" in answers._repr_html_()


def test_intervals_hold():
    """Half of all rows are dropped. 95% or more of 400 draws hold it: missed 45 times at most (1e-6 at 5%)."""
    frame = pd.DataFrame({"id": np.arange(4000) % 1000})
    t = sdp.table(frame, person="id", rows=2)
    part = DroppedRows.of(t, 0.5, "add-remove")
    made = layout(t, [t.count()])
    assert dropped_rows(t, made, part.most).tolist() == [2000, 2000]
    from shapedp.private import dropped

    rng = np.random.default_rng(0)
    noise = part.mechanisms
    draws = [
        dropped.Dropped(np.concatenate([one.release(np.array([2000]), rng=rng).value for one in noise]), noise)
        for _ in range(400)
    ]
    ends = [one.interval(0.95) for one in draws]
    assert sum(not low <= 0.5 <= high for low, high in ends) <= 45
    assert np.mean([high - low for low, high in ends]) < 0.2


def test_with_quantiles_alone_and_with_keys_that_are_private():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"id": rng.integers(0, 300, 2000), "sex": rng.choice(["F", "M"], 2000), "x": rng.random(2000)})
    t = table(frame, bounds={"x": (0, 1)})
    alone = t.group_by("sex").median("x").release(epsilon=1.0, delta=0.0, dropped=0.2)
    assert alone.certificate.verdict == "certified"
    assert 0.4 < t.count().release(epsilon=50.0, delta=1e-6, dropped=0.5).dropped.share < 0.9
    hidden = table(frame, domains={"sex": "private"})
    found = hidden.group_by("sex").count().release(**CLAIM, dropped=0.1)
    assert check(json.loads(json.dumps(found.certificate.to_json()))).verdict == "certified"
    nobody = table(frame[:1], domains={"sex": "private"}).group_by("sex").count().release(**CLAIM, dropped=0.1)
    assert nobody.dropped is not None


def test_bad_shares_are_refused_before_a_row_is_read(monkeypatch):
    from shapedp.private.sources import Rows

    monkeypatch.setattr(Rows, "computed", lambda *_: pytest.fail("a row was read"))
    frame = pd.DataFrame({"id": [1], "sex": ["F"]})
    for share in (0.0, -0.1, 1.0, 0.9, float("nan"), True):
        with pytest.raises((ValueError, TypeError), match="dropped"):
            table(frame).count().release(**CLAIM, dropped=share)
    with pytest.raises(ValueError, match="per person"):
        sdp.table(frame, person=None).count().release(**CLAIM, dropped=0.1)


def test_on_the_command_line(tmp_path, capsys):
    path = tmp_path / "people.csv"
    pd.DataFrame({"id": np.arange(4000) % 1000}).to_csv(path, index=False)
    given = ["tabulate", str(path), "--person", "id", "--rows", "2", "--query", "count", "--epsilon", "2"]
    assert main([*given, "--delta", "1e-6", "--dropped", "0.2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert 0 <= found["dropped"]["low"] <= found["dropped"]["share"] <= found["dropped"]["high"] <= 1
    assert main([*given, "--delta", "1e-6", "--dropped", "0.2", "--report", str(tmp_path / "page.html")]) == 0
    assert "The bounds per person dropped" in capsys.readouterr().out
    assert "The bounds per person dropped" in (tmp_path / "page.html").read_text()
