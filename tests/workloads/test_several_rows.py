"""A person with several rows: mu against all multisets of rows, the plan file, the checker."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest
from tests.workloads.test_workload import images, random_workload

import shapedp as sdp
from shapedp.workloads import WorkloadMechanism, workload_from_json
from shapedp.workloads.described import described_workload
from shapedp_check import check

CLAIM = {"epsilon": 1.0, "delta": 1e-6}


def with_rows(asked: sdp.Workload, most: int) -> sdp.Workload:
    return workload_from_json({**asked.to_json(), "max_rows": most})


def test_mu_by_all_multisets_of_rows():
    """Every person of at most k rows, and under replace every pair of them: never above mu, and mu is reached."""
    rng = np.random.default_rng(3)
    for case in range(60):
        relation = ("add-remove", "replace", "zero-out")[case % 3]
        most = 2 + (case % 2 if relation != "replace" else 0)
        made = with_rows(random_workload(rng), most).calibrate(**CLAIM, adjacency=relation, gap=1e-2)
        rows = images(made)
        if len(rows) > 12:
            continue
        rows = np.vstack([np.zeros(rows.shape[1]), rows])  # a row outside the domains, or none
        people = np.array([sum(one) for one in itertools.combinations_with_replacement(rows, most)])
        moves = people if relation != "replace" else (people[:, None] - people).reshape(-1, rows.shape[1])
        truth = math.sqrt(float(np.square(moves).sum(axis=1).max()))
        low, high = made._unrounded
        assert low <= truth <= high <= truth * (1 + 1e-9), case
        assert high <= made.loss.mu <= sdp.GaussianLoss.calibrate(1.0, 1e-6).mu
        assert made.certificate.verdict == "certified"


def test_noise_grows_with_the_rows_and_stays_the_best():
    asked = sdp.Workload({"a": 4, "b": 3}, measures={"v": (0, 5)}).marginals(1, 2).sums("v", "a")
    one, five = (with_rows(asked, most).calibrate(**CLAIM) for most in (1, 5))
    assert five.expected_squared_error == pytest.approx(25 * one.expected_squared_error, rel=1e-4)
    assert 1.0 <= five.optimality.upper < 1.0003
    assert asked.to_json() == with_rows(asked, 1).to_json()


def test_the_set_of_a_small_workload_grows_too():
    asked = sdp.Workload({"a": 2}).marginals(1)
    assert with_rows(asked, 3).hull("add-remove").extreme() == pytest.approx(3 * asked.hull("add-remove").extreme())
    assert with_rows(asked, 3).hull("replace").extreme() == pytest.approx(3 * asked.hull("replace").extreme())


@pytest.mark.parametrize("relation", ["add-remove", "replace", "zero-out"])
def test_files_and_the_checker(relation):
    made = with_rows(sdp.Workload({"a": 3, "b": 2}).marginals(1, 2), 4).calibrate(**CLAIM, adjacency=relation)
    again = WorkloadMechanism.from_json(json.loads(json.dumps(made.to_json())))
    assert again.workload.max_rows == 4
    assert again.loss.mu == made.loss.mu
    written = json.loads(json.dumps(made.certificate.to_json()))
    answer = check(written)
    assert answer.verdict == "certified"
    assert answer.upper == pytest.approx(written["bracket"]["upper"], rel=1e-3)
    written["subject"]["workload"]["max_rows"] = 5
    assert check(written).verdict == "refuted"
    for wrong in (0, 1.5, "4", None, True):
        written["subject"]["workload"]["max_rows"] = wrong
        assert check(written).verdict == "not described", wrong


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "two", None, True, 1 << 21])
def test_only_whole_numbers_of_rows(wrong):
    with pytest.raises((ValueError, TypeError), match="max_rows"):
        sdp.Workload({"a": 2}, max_rows=wrong)


def test_a_union_needs_one_bound():
    with pytest.raises(ValueError, match="max_rows"):
        sdp.Workload({"a": 2}, max_rows=2).total() + sdp.Workload({"a": 2}).total()
    both = sdp.Workload({"a": 2}, max_rows=2).total() + sdp.Workload({"a": 2}, max_rows=2).marginal("a")
    assert both.max_rows == 2


def test_described_in_toml():
    made = described_workload({"attributes": {"a": 2}, "queries": [{"total": True}], "max_rows": 7})
    assert made.max_rows == 7
    plan = made.calibrate(**CLAIM)
    answer = plan.release(pd.DataFrame({"a": [0, 1, 1]}))
    assert answer.certificate.subject["workload"]["max_rows"] == 7


def people_in_cells(rows: np.ndarray, cell: list[int], groups: int) -> np.ndarray:
    """Every sum of rows in at most so many different cells, one in each."""
    found = [np.zeros(rows.shape[1])]
    for number in range(1, groups + 1):
        for chosen in itertools.combinations(range(len(rows)), number):
            if len({cell[k] for k in chosen}) == number:
                found.append(rows[list(chosen)].sum(axis=0))
    return np.array(found)


def test_mu_by_all_sets_of_cells():
    """Every person with rows in at most g cells, and under replace every pair: never above mu, and mostly near it."""
    rng = np.random.default_rng(4)
    loose = []
    for case in range(120):
        relation = ("add-remove", "replace", "zero-out")[case % 3]
        asked = {**random_workload(rng).to_json(), "max_rows": 1 + case % 2, "max_groups": 2 + case % 2}
        made = workload_from_json(asked).calibrate(**CLAIM, adjacency=relation, gap=1e-2)
        rows = np.asarray(images(made), dtype=np.float64)
        corners = len(made.workload.schema.corners())
        if len(rows) > 14:
            continue
        sums = people_in_cells(rows, [k // corners for k in range(len(rows))], made.workload.max_groups)
        moves = sums if relation != "replace" else (sums[:, None] - sums).reshape(-1, rows.shape[1])
        truth = made.workload.max_rows * math.sqrt(float(np.square(moves).sum(axis=1).max()))
        low, high = made._unrounded
        assert low <= truth * (1 + 1e-12), case
        assert truth <= high, case
        assert made.certificate.verdict == "certified"
        loose.append(high / truth)
    assert len(loose) > 50
    assert np.median(loose) < 1.1


@pytest.mark.parametrize("groups", [1, 2, 5, 12, 100])
def test_one_table_grows_with_the_root_of_the_groups(groups):
    """Different cells of one table have nothing in common: mu is sqrt(g) times that of one row."""
    table = sdp.Workload({"a": 4, "b": 3}).marginal("a", "b").to_json()
    one, some = (workload_from_json(data).calibrate(**CLAIM) for data in (table, {**table, "max_groups": groups}))
    assert some.expected_squared_error == pytest.approx(min(groups, 12) * one.expected_squared_error, rel=1e-4)
    assert some.optimality is None


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("measured", [False, True])
def test_the_checker_knows_groups(relation, measured):
    measures = {"v": (-1, 3)} if measured else None
    asked = sdp.Workload({"a": 3, "b": 2}, measures=measures, max_rows=2, max_groups=3).marginals(1, 2)
    made = (asked.sums("v", "a") if measured else asked).calibrate(**CLAIM, adjacency=relation)
    written = json.loads(json.dumps(made.certificate.to_json()))
    answer = check(written)
    assert answer.verdict in ("certified", "undecided")
    assert answer.upper == pytest.approx(written["bracket"]["upper"], rel=1e-3)
    assert WorkloadMechanism.from_json(json.loads(json.dumps(made.to_json()))).loss.mu == made.loss.mu
    written["subject"]["workload"]["max_groups"] = 4
    assert check(written).verdict != "certified"
    assert check(written).upper > 1.5 * answer.upper
    written["subject"]["workload"]["max_groups"] = 0
    assert check(written).verdict == "not described"


def test_groups_are_whole_and_have_no_list_of_vertices():
    with pytest.raises((ValueError, TypeError), match="max_groups"):
        sdp.Workload({"a": 2}, max_groups=0)
    with pytest.raises(ValueError, match="max_groups"):
        sdp.Workload({"a": 2}, max_groups=2).marginals(1).hull("add-remove")
    with pytest.raises(ValueError, match="whole"):
        workload_from_json({**sdp.Workload({"a": 2}).total().to_json(), "max_groups": None})


@pytest.mark.parametrize("relation", ["add-remove", "replace", "zero-out"])
@pytest.mark.parametrize(("rows", "groups"), [(2, None), (1, 2), (2, 2)])
def test_noise_on_whole_numbers_for_people_of_several_rows(relation, rows, groups):
    """Every person allowed, and under replace every pair: neither epsilon nor mu is ever exceeded."""
    bounds = {"max_rows": rows} if groups is None else {"max_rows": rows, "max_groups": groups}
    asked = sdp.Workload({"a": 3, "b": 2}, **bounds).marginals(1, 2).prefixes("a")
    cells = list(itertools.product(range(3), range(2)))
    table = {"a": [a for a, _ in cells], "b": [b for _, b in cells]}
    answers = [asked.exact(pd.DataFrame({k: [v[i]] for k, v in table.items()})) for i in range(len(cells))]
    listed = [tuple(one) for one in itertools.combinations(range(len(cells)), groups or 1)]
    chosen = [
        [(cell, n) for cell, n in zip(some, ns, strict=True)]
        for some in listed
        for ns in itertools.product(range(rows + 1), repeat=len(some))
    ]
    if groups is None:  # rows anywhere
        chosen = [
            [(cell, 1) for cell in some] for some in itertools.combinations_with_replacement(range(len(cells)), rows)
        ]
    people = np.array([sum((n * answers[cell] for cell, n in one), np.zeros(len(answers[0]))) for one in chosen])
    moves = people if relation != "replace" else (people[:, None] - people).reshape(-1, people.shape[1])
    for noise, delta in (("laplace", 0.0), ("discrete", 0.0), ("discrete", 1e-6)):
        made = asked.calibrate(epsilon=1.0, delta=delta, noise=noise, adjacency=relation)
        scales = np.concatenate(
            [np.full(math.prod(t.shape), n.scale) for t, n in zip(asked.terms, made.noise, strict=True)]
        )
        if made.noise[0].law == "laplace":
            truth, stated = float((np.abs(moves) / scales).sum(axis=1).max()), made.loss.pure
        else:
            truth, stated = math.sqrt(float(np.square(moves / scales).sum(axis=1).max())), made.loss.mu
        assert truth <= stated
        if groups is None:
            assert stated <= truth * (1 + 1e-9)
        assert check(json.loads(json.dumps(made.certificate.to_json()))).verdict == "certified"
