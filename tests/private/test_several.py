"""Several quantiles of one column: one mechanism for all of them, read exactly, certified, with intervals that hold."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("ibis")
pytest.importorskip("duckdb")

from tests.private.people import apart

import shapedp as sdp
from shapedp.private.drawn import group_counts
from shapedp.private.several import PrefixPart, Tree, TreePart, shaped
from shapedp.workloads.counting import Counted
from shapedp_check import check

LEVELS = [k / 20 for k in range(1, 20)]


def crowd(count=4000, seed=0):
    rng = np.random.default_rng(seed)
    hours = np.where(rng.random(count) < 0.05, np.nan, rng.normal(40, 12, count).round())
    return pd.DataFrame(
        {"id": rng.integers(0, count // 2, count), "sex": rng.choice(["F", "M"], count), "hours": hours}
    )


def table(frame, **options):
    return sdp.table(frame, **{"person": None, "bounds": {"hours": (0, 80)}, "domains": {"sex": ["F", "M"]}, **options})


def rank_error(values, found, levels):
    """How many ranks each value is from the one wanted; 0 where rows of that value hold it."""
    wanted = np.asarray(levels) * values.size
    below, upto = (np.searchsorted(np.sort(values), found, side) for side in ("left", "right"))
    return np.maximum(np.maximum(below - wanted, wanted - upto), 0)


@pytest.mark.parametrize("cells", [1, 2, 7, 16, 81, 401])
@pytest.mark.parametrize("width", [1, 4, 20])
def test_a_tree_adds_up_to_prefixes(cells, width):
    tree, counts = Tree(cells, width), np.random.default_rng(cells).integers(0, 9, (3, cells))
    sums = tree.sums(counts)
    found = sum(one @ rows.T for one, rows in zip(sums, tree.rows, strict=False))
    np.testing.assert_array_equal(found, np.cumsum(counts, axis=1))
    assert len(sums) == tree.levels
    if width == 1:
        assert not tree.rows[1].any()


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("by", [[], ["sex"]])
def test_many_quantiles_are_one_mechanism(delta, by):
    t = table(crowd())
    question = (t.group_by(*by) if by else t).quantiles("hours", LEVELS)
    plan = t.plan(question, epsilon=1.0, delta=delta)
    (part,) = plan.drawn
    assert isinstance(part, PrefixPart if delta else TreePart)
    assert [one.what for one in plan.shares] == ["19 quantiles of hours"]
    answers = plan.release()
    assert check(json.loads(json.dumps(answers.certificate.to_json()))).verdict == "certified"
    columns = answers.columns
    for name in question.asked:
        for value, low, high in zip(*(columns[name + end] for end in ("", "_low", "_high")), strict=True):
            assert 0 <= low <= value <= high <= 80
    few = t.plan(t.quantiles("hours", [0.25, 0.75]), epsilon=1.0, delta=0.0, confidence=0.5)
    assert len(few.drawn) in (1, 2)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_rank_errors_are_below_those_of_one_draw_each(delta):
    frame = crowd(1000)
    frame["hours"] += np.random.default_rng(3).random(1000)
    t, values = table(frame), np.rint(frame.hours.dropna().clip(0, 80).to_numpy())
    plan = t.plan(t.quantiles("hours", LEVELS), epsilon=1.0, delta=delta)
    (part,) = plan.drawn
    counts, rng = group_counts(part, t, plan.questions[0]), np.random.default_rng(1)
    one = t.plan(t.quantile("hours", 0.25, interval=False), epsilon=1 / len(LEVELS), delta=0.0).drawn[0]
    together, alone = [], []
    for _ in range(60):
        columns = part.columns(counts, t, rng)
        together.append(rank_error(values, columns["q0.25"], [0.25]).mean())
        alone.append(rank_error(values, one.columns(counts, t, rng)["quantile"], [0.25]).mean())
    assert np.mean(together) < np.mean(alone)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_intervals_hold(delta):
    """Conservative intervals of 95% over 300 draws: each is missed at most 40 times (below 1e-6 at 5%)."""
    frame = crowd(1500)
    t = table(frame)
    plan = t.plan(t.group_by("sex").quantiles("hours", LEVELS), epsilon=1.0, delta=delta)
    (part,) = plan.drawn
    counts, rng = group_counts(part, t, plan.questions[0]), np.random.default_rng(2)
    truth = [[np.argmax(np.cumsum(one) >= level * one.sum() - 1e-9) for one in counts] for level in LEVELS]
    missed, width = np.zeros((len(LEVELS), 2)), []
    for _ in range(300):
        columns = part.columns(counts, t, rng)
        low, high = (np.array([columns[f"q{level:g}{end}"] for level in LEVELS]) for end in ("_low", "_high"))
        missed += (low > truth) | (truth > high)
        width.append((high - low).mean())
    assert missed.max() <= 40
    assert np.mean(width) < 20


@pytest.mark.parametrize("adjacency", ["add-remove", "replace"])
def test_one_person_moves_what_is_certified(adjacency):
    """Every way to put two rows into two groups of four cells, and to exchange them."""
    groups, cells, rows = 2, 4, 2
    ways = [np.bincount(one, minlength=8).reshape(2, 4) for one in itertools.combinations_with_replacement(range(8), 2)]
    ways += [np.zeros((2, 4), np.int64), *(np.eye(8, dtype=np.int64).reshape(8, 2, 4))]
    base = np.random.default_rng(0).integers(3, 9, (2, 4))
    tree = TreePart.of((0, {}, 0.95), (groups, cells, rows), 1.0, adjacency)
    made = shaped(groups, cells, rows, 0.3, {"delta": 1e-6, "adjacency": adjacency, "records": 1 << 20, "gap": 1e-3})
    assert made.loss.mu <= 0.3
    others = ways if adjacency == "replace" else [np.zeros((2, 4), np.int64)]
    farthest = [0.0, 0.0]
    for one, other in itertools.product(ways, others):
        sides = [base + one, base + other]
        for noise, *sums in zip(tree.mechanisms, *(tree.tree.sums(side) for side in sides), strict=True):
            moved = np.abs(sums[0] - sums[1]).sum()
            farthest[0] = max(farthest[0], moved / noise.sensitivity.radius)
        tables = [Counted({(0, 1): side[..., None]}) for side in sides]
        farthest[1] = max(farthest[1], apart(made, *tables) / made.loss.mu)
    assert farthest[0] == 1
    assert 0.99 < farthest[1] <= 1


def test_beside_sums_draws_and_what_is_unknown():
    rng = np.random.default_rng(4)
    frame = crowd(6000).assign(town=rng.choice(["A", "B"], 6000))
    t = table(frame, person="id", rows=2, domains={"sex": ["F", "M"], "town": "private"}, bounds={"hours": "private"})
    answers = t.ask(
        t.group_by("town").agg(
            n=sdp.count(), **{f"q{k}": sdp.quantile("hours", k / 10, grid=50) for k in range(1, 10)}
        ),
        t.group_by("sex").median("hours"),
        t.top_k("sex", 1),
        epsilon=3.0,
        delta=1e-6,
    )
    assert check(json.loads(json.dumps(answers.certificate.to_json()))).verdict == "certified"
    assert answers.tables[0]["town"] == ["A", "B"]
    assert all(np.isfinite(answers.tables[0][f"q{k}_high"]).all() for k in range(1, 10))
    whole = table(crowd(), person="id", rows=2)
    plan = whole.plan(whole.count(), whole.quantiles("hours", LEVELS), epsilon=1.0, delta=1e-6, noise="gaussian")
    assert {one.what for one in plan.shares} == {"sums", "19 quantiles of hours"}
    assert plan.plan.loss.delta(1.0).upper <= 1e-6
    assert plan.sums.loss.mu**2 + plan.drawn[0].mu ** 2 <= (1 + 1e-9) * 0.2368**2
