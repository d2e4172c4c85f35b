"""Quantiles and most frequent values of private tables: exact utilities, certified reach, intervals that hold."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("ibis")
pytest.importorskip("duckdb")

import shapedp as sdp
from shapedp.private.drawn import How, QuantilePart, TopPart, cells_around, group_counts, missed
from shapedp_check import check

LEVELS = (Fraction(1, 2), Fraction(9, 10), Fraction(1, 4), Fraction(1, 1000))


def crowd(count=3000, seed=0):
    rng = np.random.default_rng(seed)
    hours = np.where(rng.random(count) < 0.05, np.nan, rng.normal(40, 12, count).round())
    ids, sexes, ages = (
        rng.integers(0, count // 2, count),
        rng.choice(["F", "M", "X"], count),
        rng.integers(0, 90, count),
    )
    return pd.DataFrame({"id": ids, "sex": sexes, "hours": hours, "age": ages})


def table(frame, **options):
    given = {"person": None, "bounds": {"hours": (0, 80)}, "domains": {"sex": ["F", "M"]}, **options}
    return sdp.table(frame, **given)


def log_law(mechanism, utilities):
    return np.log(mechanism.probabilities(utilities))


def true_cell(counts, level):
    """The first cell up to which the share of all rows is reached."""
    return int(np.argmax(np.cumsum(counts) * level.denominator >= level.numerator * counts.sum()))


@pytest.mark.parametrize("level", LEVELS)
def test_the_true_cell_misses_by_nothing(level):
    rng = np.random.default_rng(1)
    for _ in range(50):
        counts = rng.integers(0, 6, 9)
        counts[int(rng.integers(9))] += 1
        gaps = missed(counts, level)
        assert gaps[true_cell(counts, level)] == 0
        assert (gaps >= 0).all()


def neighbours(size, rows):
    """All ways to add `rows` rows to the cells of two groups, and none."""
    for chosen in itertools.combinations_with_replacement(range(2 * size), rows):
        yield np.bincount(chosen, minlength=2 * size).reshape(2, size)


@pytest.mark.parametrize("margin", [0, -2, 2])
@pytest.mark.parametrize("level", LEVELS[:3])
@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_one_person_moves_what_is_certified(rows, level, margin, adjacency):
    """Every neighbour of small tables with two groups: log-probabilities of both draws together, by enumeration.

    The loss of both groups lies in an interval of the certified length (bounded range), and that length is reached.
    """
    size, widest = 3, 0.0
    frame = pd.DataFrame({"id": [1], "sex": ["F"], "hours": [1.0]})
    t = table(frame, person="id", rows=rows)
    ask = sdp.quantile("hours", float(level), grid=[0, 1, 2])
    part = QuantilePart.of((0, "q", ask), t, size, How(1.0, "exponential", adjacency, 0.95))
    mechanism = part.mechanisms[{0: 0, -2: 1, 2: 2}[margin]]
    rng = np.random.default_rng(2)
    tables = [rng.integers(0, 5, (2, size)) + 2 * k for k in range(3)]
    moves = list(neighbours(size, rows))
    for base, added in itertools.product(tables, moves):
        removed = (
            moves[:: max(len(moves) // 12, 1)] if adjacency == "replace" else [np.zeros((2, size), dtype=np.int64)]
        )
        for other in removed:
            one, two = base + added, base + other
            laws = [[log_law(mechanism, -missed(counts, level, margin)) for counts in each] for each in (one, two)]
            ratios = [p - q for p, q in zip(*laws, strict=True)]
            length = sum(float(each.max() - each.min()) for each in ratios)
            widest = max(widest, length)
    assert widest <= mechanism.loss.reach * (1 + 1e-9)
    if adjacency == "add-remove" and margin == 0:
        assert widest > 0.4 * mechanism.loss.reach


@pytest.mark.parametrize("rows", [1, 2])
def test_top_values_move_by_what_is_certified(rows):
    frame = pd.DataFrame({"id": [1], "sex": ["F"]})
    t = sdp.table(frame, person="id", rows=rows, domains={"sex": ["F", "M", "X"]})
    ask = t.top_k("sex", 2).asked["top"]
    (mechanism,) = TopPart.of((0, "top", ask), t, How(1.0, "exponential", "add-remove", 0.95)).mechanisms
    rng, widest = np.random.default_rng(3), 0.0
    for base, added in itertools.product(rng.integers(0, 4, (4, 2, 3)), neighbours(3, rows)):
        ratios = [log_law(mechanism, a + b) - log_law(mechanism, a) for a, b in zip(base, added, strict=True)]
        widest = max(widest, sum(float(one.max() - one.min()) for one in ratios))
    assert math.isclose(widest, mechanism.loss.reach, rel_tol=1e-9)
    assert mechanism.loss.times == 2


def test_replace_costs_twice():
    t = table(crowd(), person="id", rows=2)
    made = [
        t.plan(t.median("hours"), epsilon=1.0, delta=0.0, adjacency=relation).drawn[0].mechanisms[0]
        for relation in ("add-remove", "replace")
    ]
    assert made[1].sensitivity == 2 * made[0].sensitivity
    top = t.plan(t.top_k("sex", 1), epsilon=1.0, delta=0.0, adjacency="replace").drawn[0].mechanisms[0]
    assert not top.monotone


def test_counts_are_those_of_pandas():
    """Rows outside the domain and without a value are left out; values beyond the grid count at its ends."""
    frame = crowd()
    t = table(frame)
    question = t.where("age >= 18").group_by("sex").median("hours", grid=list(range(20, 61)))
    plan = t.plan(question, epsilon=1.0, delta=0.0)
    counts = group_counts(plan.drawn[0], t, question)
    kept = frame[(frame.age >= 18) & frame.hours.notna()]
    for row, sex in zip(counts, ("F", "M"), strict=True):
        hours = kept[kept.sex == sex].hours.clip(20, 60).astype(int)
        np.testing.assert_array_equal(row, np.bincount(hours - 20, minlength=41))


def test_persons_are_bounded():
    frame = pd.DataFrame({"id": [1] * 9 + [2], "sex": ["F"] * 10, "hours": [1.0, 2, 3, 4, 5, 6, 7, 8, 9, 50]})
    for options, most in (({"rows": 2}, 2), ({"rows": 2, "groups": 3}, 6)):
        t = table(frame, person="id", **options)
        question = t.group_by("sex").median("hours")
        counts = group_counts(t.plan(question, epsilon=1.0, delta=0.0).drawn[0], t, question)
        assert counts[0].sum() == most + 1
        assert counts[0, 50] == 1


def test_values_without_noise():
    frame = crowd()
    t = table(frame)
    loud = {"epsilon": 2000.0, "delta": 1e-6}
    found = (
        t.group_by("sex").agg(sdp.count(), sdp.median("hours"), p=sdp.quantile("hours", 0.9)).release(**loud).columns
    )
    inside = frame.dropna(subset="hours").assign(hours=lambda x: x.hours.clip(0, 80)).groupby("sex").hours
    want = inside.quantile([0.5, 0.9], interpolation="lower")
    for k, sex in enumerate(("F", "M")):
        assert abs(found["median_hours"][k] - want[sex, 0.5]) <= 1
        assert abs(found["p"][k] - want[sex, 0.9]) <= 1
        assert found["median_hours_low"][k] <= found["median_hours"][k] <= found["median_hours_high"][k]
    assert found["count"] == [int((frame.sex == sex).sum()) for sex in ("F", "M")]
    several = t.quantiles("hours", [0.25, 0.5, 0.75]).release(epsilon=2000.0, delta=0.0).columns
    assert several["q0.25"][0] < several["q0.5"][0] < several["q0.75"][0]
    top = t.top_k("sex", 1)
    best = "F" if (frame.sex == "F").sum() >= (frame.sex == "M").sum() else "M"
    assert top.release(epsilon=2000.0, delta=0.0).columns["sex"] == [best]


def test_top_values_by_group():
    frame = pd.DataFrame({"sex": ["F"] * 60 + ["M"] * 40, "town": ["A"] * 40 + ["B"] * 20 + ["C"] * 30 + ["A"] * 10})
    t = sdp.table(frame, person=None, domains={"sex": ["F", "M"], "town": ["A", "B", "C"]})
    found = t.group_by("sex").top_k("town", 2).release(epsilon=500.0, delta=0.0).columns
    assert found["sex"] == ["F", "F", "M", "M"]
    assert found["rank"] == [1, 2, 1, 2]
    assert found["town"] == ["A", "B", "C", "A"]


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_intervals_hold(level):
    """Conservative intervals of 95% over 300 draws: missed at most 30 times (probability below 1e-4 at 5%)."""
    frame = crowd(1500)
    t = table(frame)
    question = t.quantile("hours", level)
    plan = t.plan(question, epsilon=1.0, delta=0.0)
    counts, rng = group_counts(plan.drawn[0], t, question), np.random.default_rng(4)
    truth = true_cell(counts[0], plan.drawn[0].ask.fraction)
    missed_by = 0
    for _ in range(300):
        found = plan.drawn[0].columns(counts, t, rng)
        low, high = found["quantile_low"][0], found["quantile_high"][0]
        missed_by += not low <= truth <= high
        assert low >= 0
        assert high <= 80
    assert missed_by <= 30


def test_intervals_of_few_rows_hold():
    """With fewer rows than the ends are moved by, the ends are those of the grid."""
    frame = pd.DataFrame({"hours": [70.0, 71.0, 72.0]})
    t = sdp.table(frame, person=None, bounds={"hours": (0, 80)})
    rng = np.random.default_rng(5)
    found = [t.median("hours").release(epsilon=1.0, delta=0.0, rng=rng).columns for _ in range(60)]
    assert sum(one["median_low"][0] <= 71 <= one["median_high"][0] for one in found) >= 52


def test_certificates_are_checked_by_the_other_program():
    t = table(crowd(), person="id", rows=2)
    asked = (
        ((t.median("hours"),), 0.0),
        ((t.group_by("sex").agg(sdp.count(), sdp.median("hours")), t.top_k("sex", 1)), 1e-6),
    )
    for questions, delta in asked:
        answers = t.ask(*questions, epsilon=1.0, delta=delta)
        found = answers.certificate
        assert found.verdict == sdp.verify(found).verdict == "certified"
        assert found.secure
        assert check(json.loads(json.dumps(found.to_json()))).verdict == "certified"
        assert "at most 2 row(s)" in found.scope


def test_sums_get_more_than_their_share():
    """Composition is exact: counts beside a median have less Gaussian noise than at their half of epsilon."""
    t = table(crowd())
    both = t.plan(t.count(), t.median("hours"), epsilon=1.0, delta=1e-6, noise="gaussian")
    alone = t.plan(t.count(), epsilon=0.5, delta=1e-6, noise="gaussian")
    assert both.sums.standard_error("total") < 0.8 * alone.mechanism.standard_error("total")
    assert sum(one.share for one in both.shares if one.share) == pytest.approx(0.5)


def test_sums_take_the_noise_of_less_error():
    """At (1, 1e-6) Laplace noise of a half errs less than Gaussian noise of what a median leaves; at delta 0.1 more."""
    t = table(crowd())
    least, gaussian = (
        t.plan(t.count(), t.median("hours"), epsilon=1.0, delta=1e-6, noise=noise) for noise in ("least", "gaussian")
    )
    assert least.sums.weighted_error < 0.5 * gaussian.sums.weighted_error
    assert least.sums.loss.pure <= 0.5
    assert math.fsum(one.share for one in least.shares) == pytest.approx(1)
    assert math.fsum(one.share for one in least.shares) <= 1
    pure = t.plan(t.group_by("sex").mean("hours"), t.median("hours"), epsilon=1.0, delta=0.0)
    assert pure.certificate.bracket.upper == 0
    assert pure.plan.loss.epsilon(0.0).upper <= 1
    found = pure.release()
    assert check(json.loads(json.dumps(found.certificate.to_json()))).verdict == "certified"
    assert found.tables[0]["mean_low"][0] < found.tables[0]["mean"][0] < found.tables[0]["mean_high"][0]
    loose = t.plan(t.group_by("sex").variance("hours"), t.median("hours"), epsilon=0.1, delta=0.1)
    assert loose.sums.kind == "workload"
    both = t.plan(t.count(), t.quantiles("hours", [k / 20 for k in range(1, 20)]), epsilon=1.0, delta=1e-6)
    assert both.certificate.verdict == "certified"
    other = t.plan(
        t.count(), t.quantiles("hours", [k / 20 for k in range(1, 20)]), epsilon=1.0, delta=1e-6, noise="gaussian"
    )
    assert both.sums.weighted_error < other.sums.weighted_error


def test_other_confidences():
    t = table(crowd())
    answers = t.ask(t.count(), t.median("hours"), epsilon=1.0, delta=1e-6)
    assert answers.interval(0.5).tables[0]["count_low"][0] > answers.tables[0]["count_low"][0]
    with pytest.raises(ValueError, match="confidence"):
        answers.interval(0.99)
    assert t.ask(t.median("hours"), epsilon=1.0, delta=0.0, confidence=0.99).confidence == 0.99


def test_a_ledger_is_spent_before_a_row_is_read(tmp_path, monkeypatch):
    from shapedp.ledger import Ledger
    from shapedp.private.sources import Rows

    t = table(crowd())
    cap = {"dataset": "d", "epsilon": 1.0, "delta": 1e-6, "adjacency": "add-remove"}
    budget = Ledger.create(tmp_path / "budget.db", **cap)
    made = t.ask(t.median("hours"), epsilon=0.5, delta=0.0, ledger=budget, dataset="d")
    assert made.certificate.verdict == "certified"
    assert budget.status("d").entries == 1
    monkeypatch.setattr(Rows, "computed", lambda *_: pytest.fail("a row was read"))
    with pytest.raises(Exception, match=r"."):
        t.ask(t.median("hours"), epsilon=5.0, delta=0.0, ledger=budget, dataset="d")


def test_bad_questions_are_refused_before_a_row_is_read(monkeypatch):
    from shapedp.private.sources import Rows

    monkeypatch.setattr(Rows, "computed", lambda *_: pytest.fail("a row was read"))
    t = table(crowd())
    wrong = {
        "no column": lambda: t.median("nobody"),
        "text": lambda: t.median("sex"),
        "bounds": lambda: t.median("age"),
        "multiple of": lambda: t.quantile("hours", 1.5),
        "multiple of 0.001": lambda: t.quantile("hours", 0.00051),
        "grid must": lambda: t.median("hours", grid=[3, 2]),
        "below that": lambda: t.top_k("sex", 2),
        "public": lambda: t.top_k("age", 2),
        "itself": lambda: t.group_by("sex").top_k("sex", 1),
        "no column 'sex; DROP": lambda: t.group_by("sex; DROP TABLE people"),
        "one column at least": lambda: t.group_by(),
        "delta > 0": lambda: t.ask(t.count(), t.median("hours"), epsilon=1.0, delta=0.0, noise="gaussian"),
        "first below the second": lambda: table(crowd(), bounds={"hours": (80, 0)}),
        "asked twice": lambda: t.quantiles("hours", [0.5, 0.5]),
    }
    for said, ask in wrong.items():
        with pytest.raises((ValueError, TypeError), match=said):
            ask()


def test_cells_are_those_of_the_nearest_value():
    cells = cells_around(np.array([0.0, 1.0, 3.0]), "x")
    assert cells.codes(np.array([-1e9, 0.4, 0.6, 1.9, 2.1, 1e9, np.nan])).tolist() == [0, 0, 1, 1, 2, 2, -1]
