"""Noise on whole numbers for workloads: certificates by brute force, integers out, laws of draws, refusals, advice."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import shapedp as sdp
from shapedp.noise import DoesNotApplyError
from shapedp.sampling import SimulatedSource, discrete_laplace
from shapedp.workloads import AnswerMechanism, WorkloadMechanism
from shapedp.workloads.counting import counted, whole_answers
from shapedp.workloads.reach import moved
from shapedp.workloads.whole import WholeNoise
from shapedp_check import check

RELATIONS = ("add-remove", "replace", "zero-out")


def random_workload(rng, *, measures: bool = True) -> sdp.Workload:
    """Whole queries of every shape, rows with signs and large entries among them, along attributes of 1 to 3 cells."""
    sizes = {name: int(rng.integers(1, 4)) for name in "abc"[: int(rng.integers(1, 4))]}
    bounds = {"v": (float(rng.uniform(-2, 0)), float(rng.uniform(0.1, 3)))} if measures and rng.random() < 0.3 else None
    made = sdp.Workload(sizes, measures=bounds).marginals(*{int(k) for k in rng.integers(0, len(sizes) + 1, 2)})
    for number in range(int(rng.integers(0, 3))):
        along, shape = str(rng.choice(list(sizes))), str(rng.choice(["ranges", "prefixes", "hierarchy", "rows"]))
        extra = {"by": [name for name in sizes if name != along and rng.random() < 0.5], "name": f"{shape} {number}"}
        if shape != "rows":
            made = getattr(made, shape)(along, weight=float(rng.uniform(0.2, 5)), **extra)
            continue
        matrix = rng.integers(-2, 3, (2, sizes[along]))
        made = made.rows(matrix, along, **extra) if matrix.any() else made
    return made.sums("v", *list(sizes)[: int(rng.integers(0, 3))]) if bounds else made


def changes(asked: sdp.Workload, groups) -> np.ndarray:
    """What a record in every cell, at every corner of the measures, adds to the groups; and a record in no cell."""
    rows = []
    for cell in itertools.product(*map(range, asked.schema.sizes)):
        for corner in asked.schema.corners():
            parts = []
            for term in groups:
                one = np.ones(1)
                for place, factor in term.factors:
                    one = np.kron(one, factor.matrix[:, cell[place]])
                parts.append(one * corner[term.measure])
            rows.append(np.concatenate(parts))
    return np.array([*rows, np.zeros_like(rows[0])])


def differences(asked: sdp.Workload, groups, relation: str) -> np.ndarray:
    rows = changes(asked, groups)
    return (rows[:, None] - rows).reshape(-1, rows.shape[1]) if relation == "replace" else rows


@pytest.mark.parametrize("order", [1, 2])
def test_what_a_record_moves_by_brute_force(order):
    """300 workloads, all differences: never below, and exact but for rows that are not zeros and ones in products."""
    rng, exact = np.random.default_rng(order), 0
    for case in range(300):
        asked = random_workload(rng, measures=order == 1)
        weights, relation = rng.uniform(0.1, 3, len(asked.terms)), RELATIONS[case % 2]
        each = np.repeat(weights, [math.prod(term.shape) for term in asked.terms])
        truth = (np.abs(differences(asked, asked.terms, relation)) ** order @ each).max()
        found = moved(asked.terms, weights, asked.schema, relation == "replace", order)
        assert found.low <= truth <= found.high, case
        exact += found.high <= truth * (1 + 1e-9)
    assert exact >= 290


def test_many_cells_are_bounded(monkeypatch):
    """Beyond the cells that are looked at one by one the bound is the sum of the largest."""
    rng = np.random.default_rng(3)
    monkeypatch.setattr("shapedp.workloads.reach.CELLS", 0)
    monkeypatch.setattr("shapedp.workloads.reach._SINGLE", 0)
    for case in range(100):
        asked, relation, order = random_workload(rng, measures=case % 4 < 2), RELATIONS[case % 2], 1 + (case % 4) // 2
        weights = np.ones(len(asked.terms))
        truth = (np.abs(differences(asked, asked.terms, relation)) ** order).sum(axis=1).max()
        found = moved(asked.terms, weights, asked.schema, relation == "replace", order)
        assert found.low <= truth <= found.high, case


@pytest.mark.parametrize("noise", ["laplace", "discrete", "cells", "knorm"])
def test_every_certificate_by_brute_force(noise):
    """The certified loss against the largest over all neighbours; the checker agrees; files come back."""
    rng, made_ = np.random.default_rng(7), 0
    for case in range(120):
        asked, relation = random_workload(rng, measures=noise == "laplace"), RELATIONS[case % 3]
        delta = 0.0 if case % 2 else 1e-6
        try:
            made = asked.calibrate(epsilon=1.0, delta=delta, noise=noise, adjacency=relation)
        except DoesNotApplyError:
            assert noise == "knorm"
            continue
        made_ += 1
        assert isinstance(made, AnswerMechanism)
        assert made.cells == (noise in ("cells", "knorm"))
        apart = differences(asked, made.groups, relation)
        scales = np.repeat([one.scale for one in made.noise], [math.prod(term.shape) for term in made.groups])
        if made.noise[0].law == "laplace":
            truth, certified = (np.abs(apart) / scales).sum(axis=1).max(), made.loss.pure
            assert certified <= 1.0
        else:
            truth, certified = math.sqrt((np.square(apart) / scales**2).sum(axis=1).max()), made.loss.mu
            assert delta > 0
        assert truth <= certified, case
        assert certified <= truth * (2.5 if any(t.name.startswith("rows") for t in asked.terms) else 1 + 1e-9), case
        data = json.loads(json.dumps(made.certificate.to_json()))
        answer = check(data)
        assert answer.verdict == "certified", (case, answer)
        again = sdp.mechanisms.mechanism_from_json(json.loads(json.dumps(made.to_json())))
        assert again.to_json() == made.to_json()
        assert again.loss.delta(0.5) == made.loss.delta(0.5)
    assert made_ >= (20 if noise == "knorm" else 120)


def test_less_noise_is_refuted_and_odd_files_refused():
    plain = sdp.Workload({"a": 3, "b": 2}).marginals(1, 2)
    for asked, (noise, delta), relation in itertools.product(
        (plain, plain.prefixes("a")),
        (("laplace", 0.0), ("discrete", 0.0), ("discrete", 1e-6), ("cells", 0.0)),
        RELATIONS,
    ):
        made = asked.calibrate(epsilon=1.0, delta=delta, noise=noise, adjacency=relation)
        data = json.loads(json.dumps(made.certificate.to_json()))
        less = json.loads(json.dumps(data))
        less["subject"]["scales"] = [0.5 * one for one in less["subject"]["scales"]]
        if made.noise[0].law == "laplace":
            less["subject"]["bits"] = [one + 1 for one in less["subject"]["bits"]]
        assert check(less).verdict == "refuted"
        with pytest.raises(ValueError):
            sdp.verify(sdp.Certificate.from_json(less))
    odd = ({"law": "cauchy"}, {"bits": [0.5]}, {"scales": [-1.0]}, {"cells": 1}, {"records": 0}, {"whole": "no"})
    for change in odd:
        with pytest.raises((ValueError, TypeError)):
            AnswerMechanism.from_json({**data["subject"], **change})
        assert check({**data, "subject": {**data["subject"], **change}}).verdict == "not described"


def test_integers_out():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(0, 4, 500), "b": rng.integers(0, 3, 500), "v": rng.uniform(-1, 9, 500)})
    asked = sdp.Workload({"a": 4, "b": 3}).marginals(0, 1, 2).ranges("a").rows([[2, -1, 0, 5]], "a")
    for noise, delta in (("discrete", 0.0), ("discrete", 1e-6), ("cells", 0.0)):
        made = asked.calibrate(epsilon=1.0, delta=delta, noise=noise)
        release = made.release(frame, rng=rng)
        exact = asked.exact(frame)
        flat = np.concatenate([release[name].reshape(-1) for name in release])
        assert flat.dtype == np.int64
        errors = np.concatenate([release.standard_error(name).reshape(-1) for name in release])
        assert np.abs((flat - exact) / errors).max() < 12
    with pytest.raises(DoesNotApplyError, match="whole numbers are for counts"):
        sdp.Workload({"a": 4}, measures={"v": (0, 9)}).means("v", "a").calibrate(
            epsilon=1.0, delta=0.0, noise="discrete"
        )
    half = sdp.Workload({"a": 4}).rows([[0.5, 0, 0, 1]])
    with pytest.raises(DoesNotApplyError, match="whole queries"):
        half.calibrate(epsilon=1.0, delta=0.0, noise="laplace")
    assert half.calibrate(epsilon=1.0, delta=0.0).cells, "noise on the cells serves any rows"
    measured = sdp.Workload({"a": 4}, measures={"v": (0, 9)}).means("v", "a").calibrate(epsilon=1.0, delta=0.0)
    assert measured.noise[0].law == "laplace"
    assert not measured.noise[0].whole
    mean, low, high = measured.release(frame, rng=rng).means("v", "a", confidence=0.95)
    assert ((low >= 0) & (low <= mean) & (mean <= high) & (high <= 9)).all()


def test_errors_are_those_stated():
    """600 releases: unbiased, the variance that is stated (false alarms 1e-6), and intervals that hold."""
    rng, count = np.random.default_rng(5), 600
    frame = pd.DataFrame({"a": rng.integers(0, 3, 200), "b": rng.integers(0, 2, 200), "v": rng.uniform(0, 4, 200)})
    counts = sdp.Workload({"a": 3, "b": 2}).marginals(1, 2).prefixes("a")
    summed = sdp.Workload({"a": 3, "b": 2}, measures={"v": (0, 4)}).means("v", "a")
    for asked, noise, delta in (
        (counts, "discrete", 0.0),
        (counts, "discrete", 1e-6),
        (counts, "cells", 0.0),
        (summed, "laplace", 0.0),
    ):
        made = asked.calibrate(epsilon=2.0, delta=delta, noise=noise)
        tables, squares, held, joint = counted(made, frame), 0.0, 0.0, 0
        exact = np.split(asked.exact(frame), np.cumsum([math.prod(t.shape) for t in asked.terms])[:-1])
        for _ in range(count):
            release, all_held = made.release(tables, rng=rng), True
            errors, inside = [], []
            for term, truth in zip(asked.terms, exact, strict=True):
                errors.append((release[term.name].reshape(-1) - truth) / release.standard_error(term.name).reshape(-1))
                low, high = release.interval(term.name, 0.9)
                inside.append(((low.reshape(-1) <= truth) & (truth <= high.reshape(-1))).astype(float))
            low, high = release.interval(asked.terms[0].name, 0.9, joint=True)
            all_held = ((low.reshape(-1) <= exact[0]) & (exact[0] <= high.reshape(-1))).all()
            squares, held, joint = (
                squares + np.square(np.concatenate(errors)),
                held + np.concatenate(inside),
                joint + all_held,
            )
        means = squares / count
        assert np.abs(means - 1).max() < 5.2 * math.sqrt(5 / count) * 1.5, (noise, delta, means)
        assert held.min() >= stats.binom(count, 0.9).ppf(1e-7), (noise, delta)
        assert joint >= stats.binom(count, 0.9).ppf(1e-7)
        one = release.of({asked.terms[0].name: np.ones(asked.terms[0].shape)})
        low, high = one.interval(0.999999)
        assert low <= exact[0].sum() <= high


@pytest.mark.parametrize(
    ("law", "scale", "bits", "whole"),
    [
        ("laplace", 2.5, 3, True),
        ("laplace", 2.5, 3, False),
        ("laplace", 0.3125, 6, True),
        ("gaussian", 1.3, 0, True),
        ("gaussian", 0.4, 0, True),
    ],
)
def test_draws_have_their_law(law, scale, bits, whole):
    """Counts of every value against their probabilities, by chi-square (false alarms 1e-6); 4% off would be seen."""
    noise, count = WholeNoise(law, scale, bits, whole), 200_000
    drawn = noise.add_to(np.zeros(count, dtype=np.int64), SimulatedSource(np.random.default_rng(1)))
    k = np.rint(np.asarray(drawn) / noise.grid).astype(int)
    assert (k * noise.grid == drawn).all()
    reach = int(12 * max(scale, 1) / noise.grid)
    values = np.arange(-reach, reach + 1)

    def misfit(times: float) -> float:
        if law == "laplace":
            chance = np.exp(-np.abs(values) * noise.grid / (scale * times))
            chance /= chance.sum()
        else:
            chance = np.diff(stats.norm.cdf(np.arange(-reach - 0.5, reach + 1), scale=scale * times))
        kept = chance * count > 10
        seen = np.array([(k == value).sum() for value in values[kept]])
        expected = chance[kept] * count
        return stats.chi2(kept.sum()).sf(float((np.square(seen - expected) / expected).sum()))

    assert misfit(1.0) > 1e-6
    assert misfit(1.04) < 1e-6
    assert noise.variance == pytest.approx(np.var(drawn), rel=0.03)
    for level in (0.5, 0.9, 0.99):
        inside = (np.abs(drawn) <= noise.half_width(level)).mean()
        assert inside >= level - 5 * math.sqrt(level * (1 - level) / count)
        assert (np.abs(drawn) <= noise.half_width(level) - noise.grid).mean() < level + 5 * math.sqrt(0.25 / count)


@pytest.mark.parametrize("parts", [0, -1, 2**51])
def test_parts_of_a_step_are_checked(parts):
    with pytest.raises(ValueError, match="parts"):
        discrete_laplace(4, 3, SimulatedSource(np.random.default_rng(1)), parts=parts)


@pytest.mark.parametrize(
    "odd",
    [
        {"scale": 0.3},
        {"scale": -1.0},
        {"scale": 1.0, "bits": 41},
        {"scale": 2.0**41},
        {"law": "gaussian", "scale": 1.0, "whole": False},
        {"law": "gaussian", "scale": 2.0**31},
        {"law": "cauchy", "scale": 1.0},
    ],
)
def test_noise_that_cannot_be_drawn_exactly_is_refused(odd):
    with pytest.raises(ValueError):
        WholeNoise(**{"law": "laplace", **odd})


def test_whole_answers_are_those_of_the_frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.integers(0, 4, 300), "b": rng.integers(0, 3, 300)})
    asked = sdp.Workload({"a": 4, "b": 3}).marginals(2).ranges("a", by=["b"]).rows([[2, -1, 0, 5]], "a")
    made = asked.calibrate(epsilon=1.0, delta=0.0, noise="discrete")
    tables = counted(made, frame).tables
    found = [
        whole_answers(term, tables[0, 1] if len(term.attributes) == 2 else tables[0, 1].sum(axis=1))
        for term in asked.terms
    ]
    assert (np.concatenate([one.reshape(-1) for one in found]) == asked.exact(frame)).all()


def test_large_rows_do_not_wrap():
    """Ten records of weight 1e18, computed from noisy cells: not below zero."""
    asked = sdp.Workload({"g": 2}).rows([[1e18, 0.0]])
    made = asked.calibrate(epsilon=50.0, delta=0.0)
    assert made.cells
    found = made.release(pd.DataFrame({"g": [0] * 10}), rng=np.random.default_rng(0))
    assert found["rows g"] == pytest.approx([1e19], rel=0.2)


def test_default_and_refusals():
    asked = sdp.Workload({"a": 4, "b": 3}).marginals(1, 2)
    assert isinstance(asked.calibrate(epsilon=1.0, delta=1e-6), WorkloadMechanism)
    assert isinstance(asked.calibrate(epsilon=1.0, delta=0.0), AnswerMechanism)
    with pytest.raises(DoesNotApplyError, match="delta > 0"):
        asked.calibrate(epsilon=1.0, delta=0.0, noise="gaussian")
    with pytest.raises(ValueError, match="noise"):
        asked.calibrate(epsilon=1.0, delta=0.0, noise="cauchy")
    with pytest.raises(ValueError, match="asks nothing"):
        sdp.Workload({"a": 4}).calibrate(epsilon=1.0, delta=0.0)
    with pytest.raises(DoesNotApplyError, match="comes or goes"):
        asked.calibrate(epsilon=1.0, delta=0.0, noise="knorm", adjacency="replace")
    with pytest.raises(DoesNotApplyError, match="independent"):
        sdp.Workload({"a": 4, "b": 3}).marginals(1).calibrate(epsilon=1.0, delta=0.0, noise="knorm")
    with pytest.raises(ValueError, match="range of exact sums"):
        sdp.Workload({"a": 4}).rows([[2**22, 0, 0, 1]]).calibrate(
            epsilon=1.0, delta=0.0, noise="discrete", records=2**40
        )
    for noise in ("laplace", "cells"):
        with pytest.raises(DoesNotApplyError, match="4096 cells"):
            sdp.Workload({"t": 100_000}).prefixes("t").calibrate(epsilon=1.0, delta=0.0, noise=noise)
    data = asked.prefixes("a").calibrate(epsilon=1.0, delta=0.0).to_json()
    data["workload"]["attributes"]["a"] = {"size": 1 << 20}
    with pytest.raises(ValueError, match="4096 cells"):
        AnswerMechanism.from_json(data)
    frame = pd.DataFrame({"a": [0, 1, 2], "b": [0, 0, 0]})
    with pytest.raises(ValueError, match="at most 2 records"):
        asked.calibrate(epsilon=1.0, delta=0.0, records=2).release(frame)


def test_knorm_noise_is_that_of_the_body():
    """|z|_K of K-norm noise is Gamma(d, 1/epsilon): with z = W n and independent columns it is |n|_1."""
    asked = sdp.Workload({"a": 3, "b": 2}).marginals(1, 2).prefixes("a", by=["b"])
    made = asked.calibrate(epsilon=0.02, delta=0.0, noise="knorm")
    frame = pd.DataFrame({"a": [0], "b": [1]})
    tables, rng = counted(made, frame), np.random.default_rng(0)
    rows = asked.hull("add-remove").dense()[:6]
    gauges = []
    for _ in range(500):
        release = made.release(tables, rng=rng)
        noise = np.concatenate([release[name].reshape(-1) for name in release]) - asked.exact(frame)
        weights, *_ = np.linalg.lstsq(rows.T, noise, rcond=None)
        assert rows.T @ weights == pytest.approx(noise, abs=1e-6), "the noise lies in the span of the body"
        gauges.append(np.abs(weights).sum())
    assert stats.kstest(gauges, stats.gamma(6, scale=50).cdf).pvalue > 1e-6
    assert stats.kstest(gauges, stats.gamma(6, scale=58).cdf).pvalue < 1e-6


def test_never_worse_than_even_noise():
    """The proportions of the scales are at least as good as the same scale for all answers."""
    rng = np.random.default_rng(2)
    for case in range(60):
        asked, relation = random_workload(rng), RELATIONS[case % 2]
        made = asked.calibrate(epsilon=1.0, delta=0.0, noise="laplace", adjacency=relation)
        bound = asked.schema.measures[0].bound / asked.schema.measures[0].step if asked.schema.measures else 1.0
        shares = np.array([bound if term.measure else 1.0 for term in asked.terms])
        even = shares * moved(asked.terms, 1 / shares, asked.schema, relation == "replace", 1).high
        units = [asked.schema.measures[0].step if term.measure else 1.0 for term in asked.terms]
        cost = sum(
            term.weight * math.prod(term.shape) * 2 * (scale * unit) ** 2
            for term, scale, unit in zip(asked.terms, even, units, strict=True)
        )
        assert made.weighted_error <= cost * (1 + 1e-6), case


def test_advice():
    histogram = sdp.Workload({"age": 8}).marginal("age")
    for delta in (0.0, 1e-6):
        ranked = histogram.advise(epsilon=1.0, delta=delta)
        assert ranked[0].family == "discrete"
        assert "box" not in ranked[0].why.lower()
        assert ranked[0].expected_error <= sdp.advise(sdp.L1(1.0, dim=8), epsilon=1.0, delta=delta)[0].expected_error
        assert {one.family for one in ranked} >= {"gaussian", "laplace", "discrete", "knorm"}
        assert ranked[0].why.count(".") == 1 or ranked[0].why.endswith("times as much.")
    large = sdp.Workload({f"x{k}": 10 for k in range(12)}).marginals(2)
    ranked = large.advise(epsilon=1.0, delta=1e-6)
    assert [one.family for one in ranked[:1]] == ["gaussian"]
    assert "hull" in ranked[0].why
    refused = {one.family: one.reason for one in ranked if one.mechanism is None}
    assert "cell" in refused["cells"]
