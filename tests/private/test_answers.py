"""Answers of private tables: right on average, intervals that hold, kept rows that are a fair choice."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("ibis")
pytest.importorskip("duckdb")

import shapedp as sdp
from shapedp.private.sources import Rows
from shapedp.workloads.answered import pair_half_width
from shapedp_check import check

CLAIM = {"epsilon": 1.0, "delta": 1e-6}


def crowd(count=400, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "sex": rng.choice(["F", "M", "X"], count, p=[0.5, 0.4, 0.1]),
            "region": rng.integers(0, 4, count),
            "hours": np.where(rng.random(count) < 0.1, np.nan, rng.normal(40, 15, count)),
            "age": rng.integers(0, 100, count),
        }
    )


def table(frame, **options):
    given = {"person": None, "bounds": {"hours": (0, 80)}, "domains": {"sex": ["F", "M"], "region": 3}, **options}
    return sdp.table(frame, **given)


def truth(frame):
    """What pandas says, value by value: clipped, and groups outside the domains left out."""
    clipped = frame.assign(hours=frame.hours.clip(0, 80))
    inside = clipped[clipped.sex.isin(["F", "M"]) & (clipped.region < 3)]
    by = inside.groupby(["sex", "region"])
    return {
        "n": by.size().to_numpy(),
        "s": by.hours.sum().to_numpy(),
        "m": by.hours.mean().to_numpy(),
        "v": by.hours.var(ddof=0).to_numpy(),
        "adults": (clipped.age >= 18).sum(),
        "young": clipped[clipped.age < 18].hours.mean(),
        "ages": np.histogram(clipped.age, [0, 25, 50, 75, 101])[0],
    }


def asked(t):
    grouped = t.group_by("sex", "region")
    return (
        grouped.agg(n=sdp.count(), s=sdp.sum("hours"), m=sdp.mean("hours")),
        t.where("age >= 18").agg(adults=sdp.count()),
        t.histogram("age", [0, 25, 50, 75, 101]),
    )


def test_values_without_noise():
    """With very little noise the answers are those of pandas; a mean leaves out what is missing."""
    frame = crowd()
    t, want = table(frame), truth(frame)
    loud = {"epsilon": 1e7, "delta": 1e-6}
    first, adults, ages = t.ask(*asked(t), **loud)
    assert first["sex"] == ["F"] * 3 + ["M"] * 3
    assert first["region"] == [0, 1, 2] * 2
    assert first["n"] == want["n"].tolist()
    assert all(isinstance(one, int) for one in first["n"])
    np.testing.assert_allclose(first["s"], want["s"], rtol=1e-3)
    np.testing.assert_allclose(first["m"], want["m"], rtol=1e-3)
    assert adults["adults"] == [want["adults"]]
    assert ages["count"] == want["ages"].tolist()
    assert ages["age"] == ["[0, 25)", "[25, 50)", "[50, 75)", "[75, 101)"]
    spread = t.group_by("sex", "region").variance("hours").release(**loud).columns
    np.testing.assert_allclose(spread["variance"], want["v"], rtol=1e-2)
    young = t.where(sdp.col("age") < 18).mean("hours").release(**loud).columns
    np.testing.assert_allclose(young["mean"], [want["young"]], rtol=1e-3)


def test_rows_are_counted_without_any_column():
    assert table(crowd()).count().release(epsilon=1e7, delta=1e-6).columns["count"] == [400]


def test_other_is_one_more_group():
    frame = crowd()
    t = table(frame, domains={"sex": {"labels": ["F"], "other": True}})
    found = t.group_by("sex").count().release(epsilon=1e7, delta=1e-6).columns
    assert found["sex"] == ["F", "(other)"]
    assert found["count"] == [(frame.sex == "F").sum(), (frame.sex != "F").sum()]


def test_intervals_hold():
    """95% intervals over 400 releases of the same table: at least 93%, those of counts and sums at most 97%.

    A count over 400 x 6 intervals of probability 0.95 leaves these bounds with probability below 1e-4 each.
    """
    frame = crowd(4000)
    t, want = table(frame), truth(frame)
    plan = t.plan(*asked(t)[:1], t.group_by("sex", "region").variance("hours"), **CLAIM)
    tables, rng = plan.exact_tables(), np.random.default_rng(1)
    held = dict.fromkeys(("n", "s", "m", "v"), 0.0)
    for _ in range(400):
        first, second = plan.answers(plan.mechanism.release(tables, rng=rng))
        for name in held:
            found, column = (second, "variance") if name == "v" else (first, name)
            low, high = (np.array(found[column + end]) for end in ("_low", "_high"))
            held[name] += float(((low <= want[name]) & (want[name] <= high)).mean()) / 400
    assert all(share > 0.93 for share in held.values()), held
    assert held["n"] < 0.97, held
    assert held["s"] < 0.97, held


def test_errors_are_those_of_the_noise():
    t = table(crowd())
    plan = t.plan(t.group_by("sex").count(), **CLAIM)
    tables, rng = plan.exact_tables(), np.random.default_rng(2)
    drawn = [plan.answers(plan.mechanism.release(tables, rng=rng)).columns["count"] for _ in range(2000)]
    stated = plan.answers(plan.mechanism.release(tables, rng=rng)).columns["count_error"]
    np.testing.assert_allclose(np.std(drawn, axis=0), stated, rtol=0.08)


def visits(each):
    """A person with the given wards, one per row."""
    return pd.DataFrame({"id": [1] * len(each), "ward": each})


def test_kept_rows_are_a_fair_choice():
    """Of 3 rows in A and 1 in B each is kept as often as any other: A for 3/4 of the people when one row counts."""
    frame = pd.DataFrame({"id": np.repeat(np.arange(4000), 4), "ward": np.tile([0, 0, 0, 1], 4000)})
    t = sdp.table(frame, person="id", rows=1, domains={"ward": 2})
    kept = t.plan(t.group_by("ward").count(), **CLAIM).exact_tables().tables[(0,)][:, 0]
    assert kept.sum() == 4000
    assert abs(kept[0] - 3000) < 140  # 5 standard deviations


def test_keys_are_fresh():
    t = sdp.table(visits(list(range(100))), person="id", rows=1, domains={"ward": 100})
    plan = t.plan(t.group_by("ward").count(), **CLAIM)
    kept = {tuple(plan.exact_tables().tables[(0,)][:, 0].tolist()) for _ in range(5)}
    assert len(kept) > 1


@pytest.mark.parametrize("most", [1, 3, 7])
def test_at_most_so_many_rows_of_each_person(most):
    frame = pd.DataFrame({"id": np.repeat(np.arange(20), np.arange(20)), "ward": 0})
    t = sdp.table(frame, person="id", rows=most, domains={"ward": 2})
    cells = t.plan(t.group_by("ward").count(), **CLAIM).exact_tables().tables[(0,)]
    assert cells[:, 0].tolist() == [np.minimum(np.arange(20), most).sum(), 0]


def test_at_most_so_many_groups_of_each_person():
    """A person with 3 rows in each of 10 wards counts in 4 of them, with 2 rows each; all wards are as likely."""
    frame = pd.DataFrame({"id": np.repeat(np.arange(500), 30), "ward": np.tile(np.repeat(np.arange(10), 3), 500)})
    t = sdp.table(frame, person="id", rows=2, groups=4, domains={"ward": 10})
    plan = t.plan(t.group_by("ward").count(), **CLAIM)
    kept = plan.exact_tables().tables[(0,)][:, 0]
    assert kept.sum() == 500 * 4 * 2
    assert np.all(kept % 2 == 0)
    assert np.all(np.abs(kept - 400) < 110)  # 5 standard deviations
    assert "at most 2 row(s) of each in each of at most 4 group(s)" in plan.scope
    assert plan.mechanism.workload.max_groups == 4
    one = sdp.table(frame, person="id", rows=1, domains={"ward": 10})
    for noise, times in (("gaussian", 4.0), ("laplace", 8.0)):  # 2 rows times the root of 4 groups, or all 8 rows
        two = (each.plan(each.group_by("ward").count(), noise=noise, **CLAIM).mechanism for each in (t, one))
        ratio = next(two).standard_error("ward") / next(two).standard_error("ward")
        np.testing.assert_allclose(ratio, times, rtol=1e-3)


def test_rows_without_a_person_are_left_out():
    frame = pd.DataFrame({"id": [1.0, None, None, 2.5], "ward": [0, 0, 0, 0]})
    t = sdp.table(frame, person="id", rows=3, domains={"ward": 1})
    cells = t.plan(t.group_by("ward").count(), **CLAIM).exact_tables().tables
    assert next(iter(cells.values())).reshape(-1)[0] == 1  # 2.5 is nobody's id


def test_rows_that_add_nothing_are_within_the_bounds():
    """Between 20 and 80, a row whose hours are missing adds 0: under replace it changes the sum by 80, not by 60."""
    t = table(crowd(), bounds={"hours": (20, 80)})
    (feature,) = t.plan(t.sum("hours"), adjacency="replace", **CLAIM).layout.features
    assert feature.measure.ends[0] == 0
    known = t.drop_missing("hours")
    (feature,) = known.plan(known.sum("hours"), adjacency="replace", **CLAIM).layout.features
    assert (feature.measure.low, feature.measure.high) == (20, 80)


def test_one_certificate_for_all_with_who_a_person_is():
    frame = crowd().assign(id=np.arange(400) // 4)
    t = table(frame, person="id", rows=4)
    answers = t.ask(*asked(t), **CLAIM)
    stated = answers.certificate
    assert stated.verdict == "certified"
    assert stated.secure is True
    assert "'id'" in stated.scope
    assert "at most 4 row(s)" in stated.scope
    assert stated.subject["workload"]["max_rows"] == 4
    assert check(json.loads(json.dumps(stated.to_json()))).verdict == "certified"
    assert sdp.verify(stated).verdict == "certified"
    nobody = table(crowd()).count().release(**CLAIM)
    assert "Each row is another person" in nobody.certificate.explain()
    assert "Each row is another person" in nobody._repr_html_()
    assert "Each row is another person" in repr(nobody)


def test_questions_share_noise():
    """Together the questions cost less than each with half of the budget."""
    t = table(crowd())
    both = t.plan(t.group_by("sex").count(), t.group_by("region").count(), **CLAIM)
    alone = t.plan(t.group_by("sex").count(), epsilon=0.5, delta=5e-7)
    assert both.mechanism.standard_error("sex").max() < alone.mechanism.standard_error("sex").max()
    mean = t.drop_missing("hours").group_by("sex").agg(n=sdp.count(), m=sdp.mean("hours"))
    known = t.plan(mean, **CLAIM).layout
    assert [one.measure.name for one in known.features] == ["sum(hours)"]
    assert known.features[0].centre == 40.0
    anyway = t.plan(t.group_by("sex").agg(n=sdp.count(), m=sdp.mean("hours")), **CLAIM).layout
    assert len(anyway.features) == 2
    more = t.plan(t.group_by("sex").agg(n=sdp.count(), s=sdp.sum("hours"), m=sdp.mean("hours")), **CLAIM).layout
    assert [one.measure.name for one in more.features] == ["sum(hours)", "count(*) where ~(hours is None)"]


def test_the_page_escapes():
    frame = pd.DataFrame({"<b>": ["<script>", "x"]})
    t = sdp.table(frame, person=None, domains={"<b>": ["<script>", "x"]})
    page = t.group_by("<b>").count().release(**CLAIM)._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_intervals_of_another_confidence_cost_nothing():
    answer = table(crowd()).group_by("sex").count().release(**CLAIM)
    wide = answer.interval(0.999)
    assert wide.columns["count"] == answer.columns["count"]
    assert wide.columns["count_low"][0] < answer.columns["count_low"][0]


def test_a_ledger_is_spent(tmp_path, monkeypatch):
    ledger = pytest.importorskip("shapedp.ledger")
    book = ledger.Ledger.create(
        str(tmp_path / "book.db"), dataset="people", epsilon=1.0, delta=2e-6, adjacency="add-remove"
    )
    t = table(crowd())
    answer = t.ask(t.group_by("sex").count(), ledger=book, dataset="people", **CLAIM)
    assert answer.certificate.verdict == "certified"
    assert book.status("people").states["released"] == 1
    monkeypatch.setattr(Rows, "computed", lambda *_: pytest.fail("a row was read"))
    with pytest.raises(ledger.BudgetExceededError):
        t.ask(t.group_by("sex").count(), ledger=book, dataset="people", **CLAIM)
    assert book.status("people").entries == 1
    with pytest.raises(ValueError, match="go together"):
        t.ask(t.count(), ledger=book, **CLAIM)


def test_noise_of_least_error():
    """At (1, 1e-6) Laplace noise on one table is a third of Gaussian noise; tables that overlap agree."""
    t = table(crowd())
    one = t.plan(t.group_by("sex").count(), noise="least", **CLAIM).mechanism
    gaussian = t.plan(t.group_by("sex").count(), noise="gaussian", **CLAIM).mechanism
    assert one.standard_error("sex").max() < 0.33 * gaussian.standard_error("sex").max()
    assert (
        t.plan(t.group_by("sex").count(), epsilon=1.0, delta=0.0, noise="least").mechanism.certificate.verdict
        == "certified"
    )
    tiny = t.plan(t.group_by("sex", "region").variance("hours"), epsilon=0.1, delta=0.01, noise="least").mechanism
    assert tiny.loss.delta(0.1).upper <= 0.01
    assert tiny.loss.delta(0.1).upper > 0  # Gaussian: its delta is spent
    full = table(crowd(), domains={"sex": {"labels": ["F", "M"], "other": True}})  # every row is in a group
    by, total = full.ask(full.group_by("sex").count(), full.count(), noise="least", **CLAIM)
    assert abs(sum(by["count"]) - total["count"][0]) <= 2  # each was rounded


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
def test_half_width_of_two_laplace_draws(confidence):
    """Against the tail of each pair, and of pairs with scales that differ by less than a thousandth."""
    left = 1 - confidence
    first, second = np.array([1.0, 1.0, 2.0, 1.0, 0.0, 3.0]), np.array([0.0, 1.0, 0.5, 0.9995, 0.0, -1.0])
    found = pair_half_width(first, second, confidence)
    assert found[0] == pytest.approx(-np.log(left), rel=1e-6)
    assert (1 + found[1] / 2) * np.exp(-found[1]) == pytest.approx(left, rel=1e-6)
    for k, (a, b) in enumerate([(1.0, 0.0), (1.0, 1.0 - 1e-9), (2.0, 0.5), (1.0, 0.9995)]):
        c = found[k]
        tail = np.exp(-c / a) if not b else (a**2 * np.exp(-c / a) - b**2 * np.exp(-c / b)) / (a**2 - b**2)
        assert tail <= left * (1 + 1e-6)
        assert tail > left * 0.995
    assert found[4] == 0
    assert found[5] == pytest.approx(pair_half_width(3.0, 1.0, confidence))


def test_intervals_of_means_with_laplace_noise_hold():
    """Means of 6 groups of about 60 rows over 800 releases: 95% of them at least, and not many more.

    Of 800 x 6 intervals with probability 0.95, more than 6.5% fail with probability below 1e-5. Conservative at most by
    the bound on the mean, 3%: a half width that is a tenth too small would fail 6.6%.
    """
    frame = crowd().assign(hours=lambda one: one.hours.fillna(40.0).clip(0, 80))
    t = table(frame).drop_missing("hours")
    plan = t.plan(t.group_by("sex", "region").mean("hours"), epsilon=0.5, delta=1e-6, noise="least")
    assert plan.mechanism.kind == "workload-answers"
    tables, rng, want = plan.exact_tables(), np.random.default_rng(3), truth(frame)["m"]
    held = []
    for _ in range(800):
        found = plan.answers(plan.mechanism.release(tables, rng=rng)).columns
        held.append((np.array(found["mean_low"]) <= want) & (want <= np.array(found["mean_high"])))
    assert 0.935 < np.mean(held) < 0.98, np.mean(held)
