"""The default noise of private tables, attacked: every neighbour of small tables against what is certified."""

from __future__ import annotations

import io
import itertools
import json
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("ibis")
pytest.importorskip("duckdb")

from mpmath import mp, mpf
from tests.private.neighbours import one_key

import shapedp as sdp
from shapedp.ledger import Ledger
from shapedp.private import engine
from shapedp.workloads import AnswerMechanism
from shapedp.workloads.blocks import table_by
from shapedp.workloads.counting import whole_answers
from shapedp_check import check

RELATIONS = ("add-remove", "replace", "zero-out")
VERBS = ("count", "sum", "mean", "variance")
CLAIM = {"epsilon": 1.0, "delta": 1e-6}
DELTAS = (0.0, 1e-6, 1e-3)
FRAME = pd.DataFrame({"sex": ["F", "M"] * 30, "hours": np.arange(60.0)})


class Case:
    """Random declarations and questions, and all rows that a person may have."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.low, self.high = sorted(rng.choice([-7.0, -1.0, 0.0, 2.0, 10.0, 33.5], 2, replace=False).tolist())
        self.domains = {"a": list("xyz")[: rng.integers(1, 4)], "b": list("pqr")[: rng.integers(1, 4)]}
        self.rows = int(rng.choice([1, 1, 2]))
        self.asked = [self._question(rng) for _ in range(rng.integers(1, 3))]
        values = [self.low - 5, self.low, (self.low + self.high) / 2 + 0.3, self.high, math.nan]
        cells = itertools.product([*self.domains["a"], "unseen"], self.domains["b"], values)
        self.universe = pd.DataFrame(cells, columns=["a", "b", "v"])
        self.claim = {"epsilon": float(np.exp(rng.uniform(-3, 1.8))), "delta": float(rng.choice(DELTAS))}
        self.claim["adjacency"] = str(rng.choice(RELATIONS))

    @staticmethod
    def _question(rng: np.random.Generator) -> tuple[list[str], list[str], str]:
        by = [name for name in "ab" if rng.random() < 0.5]
        verbs = rng.choice(VERBS, rng.integers(1, 3), replace=False).tolist()
        return by, verbs, str(rng.choice(["", "", "v >= 3", "a == 'x'", "not v is None"]))

    def plan(self, frame: pd.DataFrame) -> Any:
        """The plan of the default noise."""
        frame = frame.assign(id=0).astype({"a": str, "b": str, "v": float})
        t = sdp.table(frame, person="id", rows=self.rows, bounds={"v": (self.low, self.high)}, domains=self.domains)
        asked = []
        for by, verbs, condition in self.asked:
            some = t.where(condition) if condition else t
            some = some.group_by(*by) if by else some
            asked.append(some.agg(**{v: sdp.count() if v == "count" else getattr(sdp, v)("v") for v in verbs}))
        return t.plan(*asked, **self.claim)

    def vector(self, frame: pd.DataFrame) -> tuple[int, ...]:
        """What these rows of one person add to everything that gets noise."""
        plan = self.plan(frame)
        tables = plan.exact_tables().tables
        parts = [whole_answers(one, table_by(tables, one.attributes)) for one in plan.mechanism.groups]
        return tuple(int(value) for part in parts for value in part.reshape(-1))

    def farthest(self, made: AnswerMechanism) -> tuple[Fraction, list[tuple[int, Fraction]]]:
        """The largest sum of |d|/scale over all neighbours, exactly, and where it is found."""
        scales = [Fraction(one.scale) for one, term in zip(made.noise, made.groups, strict=True)
                  for _ in range(math.prod(term.shape))]  # fmt: skip
        single = {self.vector(self.universe.iloc[[k]]) for k in range(len(self.universe))}
        nobody = (0,) * len(scales)
        people = {nobody} | {
            tuple(map(sum, zip(*rows, strict=True)))
            for n in range(1, self.rows + 1)
            for rows in itertools.combinations_with_replacement(single, n)
        }
        array, others = np.array(sorted(people), float), [nobody]
        if self.claim["adjacency"] == "replace":
            others = sorted(people)
        best = max(
            ((np.abs(array - np.array(one)) / np.array(scales, float)).sum(axis=1).max(), one) for one in others
        )[1]
        far = max(
            sorted(people), key=lambda one: sum(abs(x - y) / s for x, y, s in zip(one, best, scales, strict=True))
        )
        apart = [(abs(x - y), s) for x, y, s in zip(far, best, scales, strict=True) if x != y]
        return sum((d / s for d, s in apart), Fraction(0)), apart


def exact_delta(apart: list[tuple[int, Fraction]], epsilon: float) -> Any:
    """delta of independent discrete Laplace noise on the integers, by adding up all losses."""
    losses = {Fraction(0): mpf(1)}
    for d, scale in apart:
        q = mp.exp(-mpf(scale.denominator) / scale.numerator)
        own = {Fraction(d) / scale: 1 / (1 + q), Fraction(-d) / scale: q**d / (1 + q)}
        for x in range(1, d):
            at = Fraction(d - 2 * x) / scale
            own[at] = own.get(at, mpf(0)) + (1 - q) / (1 + q) * q**x
        more: dict[Fraction, Any] = {}
        for (a, p), (b, r) in itertools.product(losses.items(), own.items()):
            more[a + b] = more.get(a + b, mpf(0)) + p * r
        losses = more
    pairs = ((mpf(at.numerator) / at.denominator, p) for at, p in losses.items())
    return sum((p * (1 - mp.exp(mpf(epsilon) - at)) for at, p in pairs if at > epsilon), mpf(0))


@pytest.mark.parametrize("seed", range(6))
def test_no_neighbour_is_farther_than_certified(seed):
    """Rows out of the domains, beyond the bounds and missing; one or two rows of a person; every relation."""
    rng, seen = np.random.default_rng([21, seed]), 0
    with one_key(), mp.workdps(40):
        while seen < 1:
            case = Case(rng)
            made = case.plan(case.universe).mechanism
            stated = made.certificate
            assert stated.verdict == "certified"
            assert check(json.loads(json.dumps(stated.to_json()))).verdict != "refuted"
            if case.claim["delta"]:
                gaussian = made.workload.calibrate(**case.claim, noise="gaussian", records=made.records)
                assert made.weighted_error <= gaussian.weighted_error * (1 + 1e-9)
            if not isinstance(made, AnswerMechanism) or made.noise[0].law != "laplace":
                continue
            seen += 1
            truth, apart = case.farthest(made)
            assert truth <= Fraction(made.loss.pure), case.asked
            assert made.loss.pure <= case.claim["epsilon"]
            if made.noise[0].whole:
                for share in (0.0, 0.4, 0.9):
                    at = case.claim["epsilon"] * share
                    assert exact_delta(apart, at) <= made.loss.delta(at).upper * (1 + 1e-14) + 1e-16


def test_rows_do_not_choose_the_noise():
    """The same declarations over other rows: the same plan, to the last digit."""
    rng = np.random.default_rng(4)
    for _ in range(5):
        case = Case(rng)
        few, many = case.universe.iloc[:1], pd.concat([case.universe] * 5)
        plans = [case.plan(frame).mechanism.to_json() for frame in (few, many)]
        assert json.dumps(plans[0]) == json.dumps(plans[1])


def test_a_ledger_counts_what_the_noise_costs(tmp_path):
    """Three pure releases of epsilon 1 fill a budget of 3; of Gaussian ones it takes more, as the page says."""
    t = sdp.table(FRAME, person=None, bounds={"hours": (0, 60)}, domains={"sex": ["F", "M"]})
    book = {"dataset": "x", "epsilon": 3.0, "delta": 1e-5, "adjacency": "add-remove", "person": None}
    budget = Ledger.create(str(tmp_path / "least.db"), **book)
    least, gaussian = (
        t.plan(t.group_by("sex").count(), noise=noise, **CLAIM).mechanism for noise in ("least", "gaussian")
    )
    assert (budget.affords("x", least), budget.affords("x", gaussian)) == (3, 8)
    for _ in range(3):
        answers = t.group_by("sex").mean("hours").release(**CLAIM, ledger=budget, dataset="x")
        assert answers.certificate.verdict == "certified"
    assert budget.affords("x", least) == 0


def test_pure_claims_and_plans_as_json():
    t = sdp.table(FRAME, person=None, bounds={"hours": (0, 60)}, domains={"sex": ["F", "M"]})
    for question in (t.count(), t.sum("hours"), t.group_by("sex").mean("hours"), t.variance("hours")):
        made = t.plan(question, epsilon=0.7, delta=0.0).mechanism
        again = sdp.mechanisms.mechanism_from_json(json.loads(json.dumps(made.to_json())))
        assert again.to_json() == made.to_json()
        assert made.loss.delta(0.7).upper == again.loss.delta(0.7).upper == 0
        assert question.release(epsilon=0.7, delta=0.0).certificate.verdict == "certified"


@pytest.mark.parametrize(
    "edges",
    [
        [k - 0.5 for k in range(102)],
        [0, 10, 20, 30, 40, 50, 60],
        [-3, -2.75, -2.5, -2.25, -2, -1.75, -1.5],
        [-(2.0**40) - 0.1, *(12.0 * k for k in range(9)), 97],
        (np.arange(9) / 2**30).tolist(),
        [-1e15, *(k - 0.5 for k in range(9)), 1e16],
    ],
)
def test_even_cells_are_counted_off(edges):
    """Next to each edge, at both ends of all floats, and between: as by comparing."""
    ends = np.array(edges, float)
    assert engine._even(tuple(edges[1:-1]))
    odd = [np.nan, np.inf, -np.inf, 5e-324, -5e-324, 1e308, -1e308, 0.0, -0.0]
    near = [ends, np.nextafter(ends, -np.inf), np.nextafter(ends, np.inf)]
    values = np.concatenate([*near, np.random.default_rng(1).uniform(ends[1] - 9, ends[-2] + 9, 500), odd])
    place = np.searchsorted(ends, values, side="right") - 1
    place = place[(values >= ends[0]) & (values < ends[-1])]
    t = sdp.table(pd.DataFrame({"v": values}), person=None, domains={"v": {"edges": list(edges)}})
    found = t.plan(t.group_by("v").count(), **CLAIM).exact_tables().tables[(0,)][..., 0]
    assert found.tolist() == np.bincount(place, minlength=len(edges) - 1).tolist()


@pytest.mark.parametrize(
    "edges", [[0, 0.1, 0.2, 0.3, 0.4], [0, 1, 2, 3, 5], [2.0**60 * k for k in range(6)], [1e-9, 2e-9, 3e-9]]
)
def test_uneven_cells_are_compared(edges):
    assert engine._even(edges) is None


def test_one_missing_cell_does_not_choose_the_plan():
    """pandas reads a column of integers as one of floats where a cell is missing: what is published must not tell."""
    made = []
    for cell in ("30", ""):
        frame = pd.read_csv(io.StringIO(f"sex,hours,on\nF,10,True\nM,20,False\nF,{cell},True\n"))
        t = sdp.table(frame, person=None, bounds={"hours": (0, 80)}, domains={"sex": ["F", "M"]})
        asked = t.group_by("sex").agg(n=sdp.count(), s=sdp.sum("hours"), m=sdp.mean("hours"), q=sdp.variance("hours"))
        made += [t.plan(asked, adjacency=one, **CLAIM).mechanism.to_json() for one in ("add-remove", "replace")]
    assert made[:2] == made[2:]
