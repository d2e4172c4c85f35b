"""Plans of private tables whose table was exchanged: one person moved 1000 rows under a certificate for one."""

from __future__ import annotations

import copy
import dataclasses as dc
import itertools

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("ibis")
pytest.importorskip("duckdb")

import shapedp as sdp
from shapedp.private import Condition
from shapedp.private.drawn import group_counts
from shapedp.private.engine import counted
from shapedp.workloads import Attribute, Measure

CLAIM = {"epsilon": 1.0, "delta": 1e-6}
FRAME = pd.DataFrame({"id": [1] * 1000 + [2], "x": [1.0] * 1001, "town": ["a"] * 1001})


@pytest.fixture
def t():
    return sdp.table(FRAME, person="id", rows=1, bounds={"x": (0, 1), "id": "private"}, domains={"town": ["a", "b"]})


ASKED = {
    "count": lambda t: t.count(),
    "mean": lambda t: t.group_by("town").mean("x"),
    "median": lambda t: t.median("x"),
    "quantiles": lambda t: t.quantiles("x", [0.1 * k for k in range(1, 9)]),
    "tree": lambda t: t.quantiles("x", [0.1, 0.2, 0.3, 0.4, 0.5], grid=300),
    "top_k": lambda t: t.top_k("town", 1),
    "bounds": lambda t: t.mean("id"),
}
OTHERS = {
    "rows": lambda t: dc.replace(t, rows=1000),
    "groups": lambda t: dc.replace(t, groups_touched=1000),
    "nobody": lambda t: dc.replace(t, person=None),
    "bounds": lambda t: dc.replace(t, measures={"x": Measure.of("x", (0, 1000))}),
    "domain": lambda t: dc.replace(t, attributes={"town": Attribute.of("town", ["a", "b", "c"])}),
}


def steps(plan):
    """Every mechanism of a plan, as its certificate describes it."""
    if isinstance(plan, sdp.MixedPlan):
        return plan.certificate.to_json(), plan.scope
    return plan.mechanism.to_json(), plan.scope


def meant(t, ask, **claim):
    return t.plan(ASKED[ask](t), **CLAIM, **claim)


@pytest.mark.parametrize(("ask", "other"), list(itertools.product(ASKED, ("rows", "groups", "nobody"))))
def test_a_plan_with_another_table_is_planned_anew(t, ask, other):
    changed = OTHERS[other](t)
    # the questions are those of the old table: they are refused, or of the new one, and then all noise is new
    plan = meant(t, ask)
    with pytest.raises(ValueError, match="made from one table"):
        dc.replace(plan, table=changed)
    again = dc.replace(plan, table=changed, questions=tuple(dc.replace(q, table=changed) for q in plan.questions))
    assert steps(again) == steps(meant(changed, ask))
    assert steps(again) != steps(plan)


@pytest.mark.parametrize(
    ("ask", "other"), itertools.product(("count", "mean", "median", "top_k"), ("bounds", "domain"))
)
def test_bounds_and_domains_belong_to_the_plan(t, ask, other):
    with pytest.raises(ValueError, match="made from one table"):
        dc.replace(meant(t, ask), table=OTHERS[other](t))


def test_one_person_moves_no_more_than_was_certified(t):
    """As the reviewer did it: whatever is released has the noise of what one person can move."""
    frame = pd.DataFrame({"id": [1] * 1000})
    t = sdp.table(frame, person="id", rows=1)
    plan = t.plan(t.count(), **CLAIM)
    for changed in (dc.replace(t, rows=1000), dc.replace(t, person=None), sdp.table(frame.copy(), person="id")):
        with pytest.raises(ValueError, match="made from one table"):
            dc.replace(plan, table=changed).release()
    wide = dc.replace(t, rows=1000)
    again = dc.replace(plan, table=wide, questions=(wide.count(),))
    reach = again.exact_tables().tables[()][0]
    assert reach == 1000
    assert again.mechanism.workload.max_rows == 1000
    assert again.mechanism.standard_error("total") > 999 * plan.mechanism.standard_error("total")


@pytest.mark.parametrize("name", ["mechanism", "layout"])
def test_noise_is_not_handed_in(t, name):
    plan = meant(t, "count")
    with pytest.raises((ValueError, TypeError), match=name):
        dc.replace(plan, **{name: getattr(plan, name)})
    with pytest.raises(TypeError, match=name):
        sdp.TablePlan(t, (t.count(),), **CLAIM, **{name: getattr(plan, name)})


@pytest.mark.parametrize("name", ["firsts", "drawn", "mu", "sums", "lost"])
def test_parts_are_not_handed_in(t, name):
    plan = meant(t, "median")
    with pytest.raises((ValueError, TypeError), match=name):
        dc.replace(plan, **{name: getattr(plan, name)})


def test_options_are_not_changed_in_place(t):
    """The neighbour relation of quantiles of unknown keys was a dictionary that anybody could write into."""
    keys = sdp.table(FRAME, person="id", bounds={"x": (0, 1)}, domains={"town": "private"})
    asked = keys.group_by("town").quantiles("x", [0.1 * k for k in range(1, 9)])
    plan = keys.plan(asked, **CLAIM, adjacency="replace")
    for one in (plan, *plan.drawn):
        options = getattr(one, "options", None)
        if options is not None:
            options["adjacency"] = "add-remove"
    assert plan.options["adjacency"] == "replace"
    assert all(one.claim.adjacency == "replace" for one in plan.drawn if hasattr(one, "claim"))


def test_a_plan_in_other_words_is_planned_anew(t):
    plan = meant(t, "count")
    again = dc.replace(plan, epsilon=2.0)
    assert again.mechanism.epsilon == 2.0
    assert again.mechanism.certificate.epsilon == 2.0
    assert dc.replace(plan, confidence=0.5).confidence == 0.5
    mixed = dc.replace(meant(t, "median"), adjacency="replace")
    assert {one.adjacency for part in mixed.drawn for one in part.mechanisms} == {"replace"}


def test_copies_release_as_the_plan_does(t):
    for ask in ("count", "median"):
        plan = meant(t, ask)
        for one in (copy.copy(plan), copy.deepcopy(plan)):
            assert steps(one) == steps(plan)
            assert one.release().certificate.verdict == "certified"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"person": None, "rows": 2}, "rows= and groups= bound"),
        ({"person": None, "groups_touched": 2}, "rows= and groups= bound"),
        ({"rows": 0}, "rows must be at least 1"),
        ({"groups_touched": 0}, "groups must be at least 1"),
        ({"person": "whoever"}, "no column 'whoever'"),
    ],
)
def test_a_table_checks_itself(t, change, said):
    with pytest.raises(ValueError, match=said):
        dc.replace(t, **change)


def test_what_is_counted_bears_the_bounds_of_its_table(t):
    plan = meant(t, "count")
    wide = dc.replace(t, rows=1000)
    assert wide.kept == {"max_rows": 1000}
    assert dc.replace(t, rows=3, groups_touched=2).kept == {"max_rows": 3, "max_groups": 2}
    with pytest.raises(ValueError, match="another number of rows or groups"):
        counted(wide, plan.layout, plan.mechanism.needed())


def test_measures_changed_in_place_are_refused_or_cut(t):
    """A plan keeps what it was computed of, or refuses; it never sums beyond its bounds."""
    plan, mixed = meant(t, "mean"), t.plan(t.mean("x"), t.median("x"), **CLAIM)
    t.measures["x"] = Measure.of("x", (0, 1000))
    assert plan.layout.features[0].bounds == (0.0, 1.0)
    assert plan.exact_tables().schema.measures[0].high == 0.5  # about the centre
    with pytest.raises(ValueError, match="counted for another schema"):
        mixed.release()


def test_answers_come_from_the_plan_that_released_them(t):
    """A release for single rows was stated to protect persons."""
    rows = sdp.table(FRAME, person=None)
    other, plan = rows.plan(rows.count(), **CLAIM), meant(t, "count")
    release = other.mechanism.release(other.exact_tables())
    with pytest.raises(ValueError, match="another plan"):
        plan.answers(release)
    assert "Each row is another person" in other.answers(release).certificate.scope


def test_no_condition_of_ones_own(t):
    """It could compare a row with others, which no certificate knows of."""
    with pytest.raises(TypeError, match="comparisons of"):
        type("Above", (Condition,), {"sql": lambda self, cells: cells["x"] > cells["x"].mean()})


def test_questions_of_one_table_are_answered(t):
    found = t.ask(t.count(), t.where("x > 0.5").median("x"), **CLAIM, rng=np.random.default_rng(1))
    assert len(found) == 2
    plan = t.plan(t.median("x"), **CLAIM)
    assert group_counts(plan.drawn[0], t, plan.questions[0]).sum() == 2


@pytest.mark.parametrize("rows", [100, 1000, 10**5])
def test_draws_for_persons_with_many_rows(rows):
    """Rates of exact draws are fractions of two numbers up to 2^62; those above 2^53 were refused."""
    t = sdp.table(FRAME, person="id", rows=rows, bounds={"x": (0, 1)}, domains={"town": ["a", "b"]})
    for asked in (t.median("x"), t.top_k("town", 1)):
        assert asked.release(epsilon=1.0, delta=0.0).certificate.verdict == "certified"


def test_answers_take_what_their_own_table_counted() -> None:
    """Tables counted for another person, or a raw frame, bore the scope of the plan that answered."""
    frame = pd.DataFrame({"id": [1] * 50 + [2], "row": range(51), "g": ["a"] * 51})
    domains = {"g": ["a", "b"]}
    plan, other = (
        (t := sdp.table(frame, person=who, domains=domains)).plan(t.group_by("g").count(), epsilon=1.0, delta=1e-6)
        for who in ("id", "row")
    )
    for foreign in (other.exact_tables(), frame):
        with pytest.raises(ValueError, match="counted by this plan's table"):
            plan.answers(plan.mechanism.release(foreign))
    own = plan.mechanism.release(plan.exact_tables())
    assert "'id'" in own.certificate.scope
    assert plan.answers(own).certificate.scope == plan.scope
