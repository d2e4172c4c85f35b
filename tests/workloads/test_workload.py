"""Workloads: golden values, certificates by brute force, answers and their errors, never worse than one by one."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import shapedp as sdp
from shapedp.workloads import workload_from_json
from shapedp.workloads.blocks import contrasted, restored
from shapedp.workloads.counting import Counted, counted
from shapedp.workloads.mechanism import WorkloadMechanism
from shapedp.workloads.spent import mu_bounds
from shapedp.workloads.strategy import strategy
from shapedp.workloads.variances import weighted_error
from shapedp_check import check

CLAIM = {"epsilon": 1.0, "delta": 1e-6}
MU = sdp.GaussianLoss.calibrate(1.0, 1e-6).mu
SIZES = dict(zip("abcde", (100, 50, 7, 4, 2), strict=True))


def best(workload, gap=1e-7):
    """The error at mu = 1, and the proved lower bound."""
    found = strategy(workload, gap=gap, exchange=False)
    top = mu_bounds(found.families, workload.schema, False)[1]
    return weighted_error(found, workload) * top**2, found.least


@pytest.mark.parametrize(
    ("orders", "rms"), [((1,), 1.743945), ((2,), 2.034586), ((3,), 2.047661), ((0, 1, 2, 3), 2.275873)]
)
def test_golden_marginals(orders, rms):
    asked = sdp.Workload(SIZES).marginals(*orders)
    error, least = best(asked)
    assert math.sqrt(least / len(asked)) == pytest.approx(rms, rel=1e-6)
    assert error == pytest.approx(least, rel=1e-11), "contrasts of counts are whole: nothing is rounded"


@pytest.mark.parametrize(
    ("asked", "total"),
    [
        (sdp.Workload({"a": 3, "b": 4, "c": 2}).marginals(0, 1, 2), 92.648445),
        (sdp.Workload({"t": 8}).prefixes("t"), 17.866177),
        (sdp.Workload({"t": 64}).prefixes("t"), 282.20142),
        (sdp.Workload({"t": 64}).ranges("t"), 11024.3815),
        (sdp.Workload({"g": 4}, measures={"v": (0, 1)}).means("v", "g"), 2 * (3 + 5**0.5)),
        (sdp.Workload({"g": 4}, measures={"v": (-1, 1)}).means("v", "g"), 16.0),
    ],
    ids=["marginals", "prefixes-8", "prefixes-64", "ranges-64", "measure-0-1", "measure-1-1"],
)
def test_golden_totals(asked, total):
    error, least = best(asked)
    assert least == pytest.approx(total, rel=1e-6)
    assert error == pytest.approx(total, rel=4e-6)


def test_marginals_as_a_hull_cost_the_same():
    """The same queries as rows over all cells: the engine knows nothing of residuals."""
    asked = sdp.Workload({"a": 3, "b": 4, "c": 2}).marginals(0, 1, 2)
    cells = list(itertools.product(range(3), range(4), range(2)))
    columns = [np.concatenate([_one_hot(cell, term, (3, 4, 2)).reshape(-1) for term in asked.terms]) for cell in cells]
    hull = sdp.calibrate("gaussian", sdp.Hull(np.array(columns)), **CLAIM)
    ours = asked.calibrate(**CLAIM)
    assert ours.expected_squared_error == pytest.approx(hull.expected_squared_error, rel=2e-4)
    assert ours.optimality.upper < 1.0001


def _one_hot(cell, term, sizes):
    table = np.zeros([sizes[k] for k in term.attributes])
    table[tuple(cell[k] for k in term.attributes)] = 1.0
    return table


def random_workload(rng) -> sdp.Workload:
    sizes = {name: int(rng.integers(1, 4)) for name in "abc"[: int(rng.integers(1, 4))]}
    bounds = {"v": (float(rng.uniform(-2, 0)), float(rng.uniform(0.1, 3)))} if rng.random() < 0.3 else None
    made = sdp.Workload(sizes, measures=bounds)
    made = made.marginals(*sorted({int(k) for k in rng.integers(0, len(sizes) + 1, size=2)}))
    if rng.random() < 0.4:
        along = str(rng.choice(list(sizes)))
        shape = str(rng.choice(["ranges", "prefixes", "hierarchy"]))
        made = getattr(made, shape)(along, weight=float(rng.uniform(0.2, 5)))
    if bounds:
        made = made.sums("v", *list(sizes)[: int(rng.integers(0, 3))])
    return made


def helmert(size: int) -> np.ndarray:
    """Contrasts over their lengths, in extended precision."""
    rows = [[1] * k + [-k] + [0] * (size - k - 1) for k in range(1, size)]
    lengths = np.sqrt(np.array([k * (k + 1) for k in range(1, size)], dtype=np.longdouble))
    return np.array(rows, dtype=np.longdouble).reshape(size - 1, size) / lengths[:, None]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
def test_contrasts_of_a_table(size):
    rows = helmert(size)
    assert np.abs(rows @ rows.T - np.eye(size - 1)).max(initial=0.0) < 1e-17
    table = np.random.default_rng(size).integers(0, 2**40, (3, size, 2))
    exact = contrasted(table, 1)
    assert exact.dtype == np.int64
    lengths = np.sqrt([[k * (k + 1)] for k in range(1, size)]).reshape(-1, 1)
    assert exact / lengths == pytest.approx(np.einsum("kn,anb->akb", rows.astype(float), table), rel=1e-12, abs=1e-3)
    assert restored(exact / lengths, 1) == pytest.approx(table - table.mean(axis=1, keepdims=True), rel=1e-12, abs=1e-3)


def images(made: WorkloadMechanism) -> np.ndarray:
    """What a record adds to all coefficients over their scales, for every cell and corner, in extended precision."""
    schema, found = made.workload.schema, []
    for cell in itertools.product(*(range(size) for size in schema.sizes)):
        for corner in schema.corners() * schema.units():
            parts = []
            for family in made.families:
                for place, block in enumerate(family.blocks):
                    one = np.ones(1, dtype=np.longdouble)
                    for k in block:
                        one = np.kron(one, helmert(schema.sizes[k])[:, cell[k]])
                    for part, mode in zip(family.parts, family.modes_of(place), strict=True):
                        hot = np.ones(1)
                        for k in part.axes:
                            hot = np.kron(hot, np.eye(schema.sizes[k])[cell[k]])
                        hot = np.kron(hot, corner) if part.values else hot
                        turn = np.eye(mode.size) if mode.rotation is None else mode.rotation.whole / 2**24
                        one = np.kron(one, turn.astype(np.longdouble) @ hot / mode.scales)
                    parts.append(one / family.sigma[place])
            found.append(np.concatenate(parts))
    return np.array(found)


def test_every_certificate_by_brute_force():
    """500 random small workloads: mu is never below that of any two neighbours, and above by rounding alone."""
    rng = np.random.default_rng(0)
    for case in range(500):
        asked, relation = random_workload(rng), ("add-remove", "replace", "zero-out")[case % 3]
        made = asked.calibrate(**CLAIM, adjacency=relation, gap=1e-2)
        rows = images(made)
        truth = np.square(rows).sum(axis=1).max()
        if relation == "replace":
            grams = rows @ rows.T
            norms = grams.diagonal()
            truth = max(truth, (norms[:, None] + norms - 2 * grams).max())
        low, high = made._unrounded
        assert low <= math.sqrt(truth) <= high, case
        assert high <= math.sqrt(truth) * (1 + 1e-9), case
        assert high <= made.loss.mu <= high * (1 + 1e-5), case
        assert made.loss.mu <= MU
        assert made.certificate.verdict == "certified"


def test_what_noise_is_added_to_moves_no_more_than_certified(monkeypatch):
    """The very numbers and scales that noise is drawn for, on all neighbours of two tables; nothing is lost for counts.

    Tables as full as the plan allows, so that rounding is as coarse as it gets.
    """
    rng = np.random.default_rng(4)
    for case in range(60):
        asked, relation = random_workload(rng), ("add-remove", "replace")[case % 2]
        records = (2, 1 << 30, 1 << 32)[case % 3]
        made = asked.calibrate(**CLAIM, adjacency=relation, gap=1e-2, records=records)
        seen: list[tuple[np.ndarray, np.ndarray]] = []

        def kept(x, law, scale, grid, source, seen=seen):
            seen.append((x, scale))
            return np.asarray(x)

        monkeypatch.setattr("shapedp.workloads.mechanism.rounded_sum", kept)
        cells, corners = list(np.ndindex(*asked.schema.sizes)), asked.schema.corners()
        base = np.zeros((*asked.schema.sizes, corners.shape[1]), dtype=np.int64)
        base[cells[0]] += corners[-1] * (records - 1)
        whole = tuple(range(len(asked.schema.sizes)))
        tables = [base]
        for cell in cells:
            for corner in corners:
                tables.append(base.copy())
                tables[-1][cell] += corner
        images = []
        for table in tables:
            seen.clear()
            needed = {axes: table.sum(axis=tuple(k for k in whole if k not in axes)) for axes in made.needed()}
            made.release(Counted(needed, asked.schema))
            images.append(np.concatenate([x for x, _ in seen]))
        rows, scales = np.array(images, dtype=np.longdouble), np.concatenate([scale for _, scale in seen])
        pairs = (rows[:, None] - rows if relation == "replace" else rows[1:] - rows[0]) / scales
        reach = float(np.sqrt(np.square(pairs).sum(axis=-1).max()))
        assert reach <= made.loss.mu, case
        assert reach >= made._unrounded[0] * (1 - 1e-4), case
        if not asked.schema.measures and not any(f.axes for f in made.families) and records < 1 << 40:
            assert made.loss.mu == made._unrounded[1], "whole numbers"


def test_never_worse_than_one_by_one():
    """Every group answered by itself with Gaussian noise, the budget split best between the groups."""
    rng = np.random.default_rng(1)
    for case in range(100):
        asked = random_workload(rng)
        made = asked.calibrate(**CLAIM)
        alone = 0.0
        for term in asked.terms:
            widest = math.prod(float(factor.gram.diagonal().max()) for _, factor in term.factors)
            bound = asked.schema.measures[term.measure - 1].bound if term.measure else 1.0
            alone += math.sqrt(term.weight * math.prod(term.shape) * widest) * bound
        assert made.weighted_error <= alone**2 / MU**2 * (1 + 1e-4), case
        assert made.optimality.upper < 1 + 2e-4, case


def people(count: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(0, 6, count),
            "sex": rng.choice(["F", "M"], count),
            "region": rng.integers(0, 3, count),
            "hours": rng.uniform(-3, 14, count),
        }
    )


def everything() -> sdp.Workload:
    schema = {"age": 6, "sex": ["F", "M"], "region": 3}
    made = sdp.Workload(schema, measures={"hours": (0, 10)}).marginals(0, 1, 2).ranges("age", by=["sex"])
    return made.prefixes("age").hierarchy("age").rows([[1, 1, 1, 0, 0, 0]], "age", name="young").means("hours", "sex")


def truths(asked: sdp.Workload, frame: pd.DataFrame) -> dict[str, np.ndarray]:
    """Every answer from the frame itself, record by record."""
    found = {}
    for term in asked.terms:
        total = np.zeros(term.shape)
        for row in frame.itertuples():
            one = np.ones(1)
            for k, factor in term.factors:
                name = asked.schema.attributes[k].name
                code = {"F": 0, "M": 1}.get(getattr(row, name), getattr(row, name))
                one = np.multiply.outer(one, factor.matrix[:, code])
            total += one.reshape(term.shape) * (np.clip(row.hours, 0, 10) if term.measure else 1.0)
        found[term.name] = total
    return found


def test_answers_are_right_and_errors_exact():
    """400 releases of everything: unbiased, and with the variance that is stated; false alarms below 1e-6."""
    asked, frame = everything(), people(300)
    made, truth = asked.calibrate(**CLAIM), truths(everything(), people(300))
    tables, count = counted(made, frame), 400
    rng = np.random.default_rng(2)
    squares = dict.fromkeys(truth, 0.0)
    sums = dict.fromkeys(truth, 0.0)
    for _ in range(count):
        release = made.release(tables, rng=rng)
        for name, exact in truth.items():
            error = (release[name] - exact) / release.standard_error(name)
            sums[name], squares[name] = sums[name] + error, squares[name] + np.square(error)
    cells = sum(np.size(one) for one in sums.values())
    limit = stats.norm.isf(5e-7 / cells)
    low, high = (stats.chi2(count).ppf(q) for q in (5e-7 / cells, 1 - 5e-7 / cells))
    for name in truth:
        assert np.abs(sums[name]).max() / math.sqrt(count) < limit, name
        assert low < np.min(squares[name]), name
        assert np.max(squares[name]) < high, name
    assert not high > 1.5 * count, "a variance 50% off would be seen"


def test_anything_linear_with_its_exact_error():
    asked, frame = everything(), people(200)
    made = asked.calibrate(**CLAIM)
    release = made.release(frame, rng=np.random.default_rng(0))
    first = np.zeros((6, 2))
    first[0, 0] = 1.0
    one = release.of({"age x sex": first})
    assert one.value == pytest.approx(release["age x sex"][0, 0])
    assert one.standard_error == pytest.approx(release.standard_error("age x sex")[0, 0], rel=1e-6)
    apart = release.of({"age": np.eye(6)[0], "age x sex": -np.eye(6)[0][:, None] * np.ones((6, 2))})
    assert apart.value == pytest.approx(0.0, abs=1e-6)
    assert apart.standard_error < 1e-6, "tables agree where they overlap"
    young = release.of({"prefixes age": np.eye(6)[2], "young": [-1.0]})
    assert young.standard_error < 1e-6
    covariance = _covariance(made, "age x sex", first, "sex", np.array([1.0, 0.0]))
    both = release.of({"age x sex": first, "sex": [1.0, 0.0]})
    parts = [release.standard_error("age x sex")[0, 0] ** 2, release.standard_error("sex")[0] ** 2]
    assert both.standard_error**2 == pytest.approx(sum(parts) + 2 * covariance, rel=1e-6)
    low, high = one.interval(0.95)
    assert high - low == pytest.approx(2 * 1.959964 * one.standard_error)


def _covariance(made, name, weights, other, others):
    """From the maps of single coefficients, each set to one in turn."""
    release = made.release(people(5), rng=np.random.default_rng(0))
    total = 0.0
    for number, family in enumerate(made.families):
        for place in range(len(family.blocks)):
            scales = np.full((1,) * len(family.blocks[place]), family.sigma[place])
            for mode in family.modes_of(place):
                scales = np.multiply.outer(scales, mode.scales)
            table = release.coefficients[number][place]
            for spot in np.ndindex(table.shape):
                probe = [[np.zeros_like(one) for one in rows] for rows in release.coefficients]
                probe[number][place][spot] = np.broadcast_to(scales, table.shape)[spot]
                unit = type(release)(made, probe, release.certificate)
                total += float((unit[name] * weights).sum() * (unit[other] * others).sum())
    return total


def test_joint_intervals_are_wider_and_hold():
    made, frame = sdp.Workload({"age": 6}).marginal("age").calibrate(**CLAIM), people(100)
    truth = np.bincount(frame.age, minlength=6)
    tables, rng, held, count = counted(made, frame), np.random.default_rng(0), 0, 2000
    for _ in range(count):
        low, high = made.release(tables, rng=rng).interval("age", 0.9, joint=True)
        held += ((low <= truth) & (truth <= high)).all()
    assert stats.binom(count, 0.9).ppf(1e-6) <= held
    assert held <= stats.binom(count, 0.93).ppf(1 - 1e-6), "independent here, so the level is met"


def test_files_verify():
    made = everything().calibrate(**CLAIM)
    data = json.loads(json.dumps(made.certificate.to_json()))
    assert sdp.verify(sdp.Certificate.from_json(data)).verdict == "certified"
    again = sdp.mechanisms.mechanism_from_json(json.loads(json.dumps(made.to_json())))
    assert again.to_json() == made.to_json()
    assert again.optimality.upper == made.optimality.upper
    assert workload_from_json(json.loads(json.dumps(everything().to_json()))).to_json() == everything().to_json()
    for change in (("sigma", 0.9), ("lengths", 2.0), ("mode", 3.0)):
        broken = json.loads(json.dumps(data))
        family = broken["subject"]["families"][0]
        family[change[0]] = [change[1] * one for one in family[change[0]]]
        with pytest.raises(ValueError):
            sdp.verify(sdp.Certificate.from_json(broken))


def test_union():
    one, other = sdp.Workload({"a": 3, "b": 2}).marginals(1), sdp.Workload({"a": 3, "b": 2}).marginals(0, 1)
    both = one + other
    assert len(both) == 6
    assert {term.weight for term in both.terms} == {1.0, 2.0}
    with pytest.raises(ValueError, match="schemas"):
        one + sdp.Workload({"a": 3}).marginals(1)
    with pytest.raises(ValueError, match="once"):
        one.marginal("a")


def test_the_largest_variance():
    asked = sdp.Workload({"a": 5, "b": 4, "c": 2}).marginals(1, 2)
    even, worst = asked.calibrate(**CLAIM), asked.calibrate(**CLAIM, error="max")

    def largest(made):
        return max(float(made.standard_error(term.name).max()) for term in asked.terms) ** 2

    assert largest(worst) < largest(even)
    assert largest(worst) * len(asked) >= even.expected_squared_error * (1 - 1e-4), "no mean is above the largest"


@pytest.mark.parametrize("shapes", [("ranges", "ranges"), ("prefixes", "hierarchy")])
def test_products_beyond_one_engine(shapes, monkeypatch):
    """Two ordered attributes: the product of their strategies is the best there is, as one engine finds, too."""
    asked = sdp.Workload({"s": 6, "t": 5, "g": 2})
    ((first, second), by) = shapes, ["g"]
    whole = getattr(asked, first)("s", by=by).rows(getattr(asked, second)("t").terms[0].factors[0][1].matrix, "t")
    joint = whole.calibrate(**CLAIM)
    monkeypatch.setattr("shapedp.workloads.strategy.JOINT", 8)
    split = whole.calibrate(**CLAIM)
    assert len(split.families) == 2
    assert joint.weighted_error <= split.weighted_error * (1 + 1e-4)
    rng, frame = np.random.default_rng(0), pd.DataFrame({"s": [0, 5, 2], "t": [1, 1, 4], "g": [0, 1, 1]})
    answers = split.release(frame, rng=rng)
    assert answers["rows t"].shape == split.standard_error("rows t").shape


def test_product_part_of_two_ordered_attributes(monkeypatch):
    monkeypatch.setattr("shapedp.workloads.strategy.JOINT", 8)
    asked = sdp.Workload({"s": 6, "t": 5})
    both = asked.ranges(["s", "t"])
    made = both.calibrate(**CLAIM)
    assert len(made.families[0].parts) == 2
    for relation in ("add-remove", "replace"):
        other = both.calibrate(**CLAIM, adjacency=relation)
        rows = images(other)
        grams = rows @ rows.T
        apart = grams.diagonal()[:, None] + grams.diagonal() - 2 * grams
        truth = math.sqrt(max(grams.diagonal().max(), apart.max() if relation == "replace" else 0.0))
        assert truth <= other.loss.mu
        answer = check(json.loads(json.dumps(other.certificate.to_json())))
        assert answer.verdict == "certified"
    assert made.optimality.upper < 1.0003, "a product of best strategies is best for a product of queries"
    frame = pd.DataFrame({"s": [0, 5, 2, 2], "t": [1, 1, 4, 0]})
    huge = both.calibrate(epsilon=1e6, delta=1e-6).release(frame, rng=np.random.default_rng(0))
    exact = np.zeros(both.terms[0].shape)
    for s, t in frame.itertuples(index=False):
        exact += np.multiply.outer(both.terms[0].factors[0][1].matrix[:, s], both.terms[0].factors[1][1].matrix[:, t])
    assert np.abs(huge[both.terms[0].name] - exact).max() < 0.1


def test_counted_tables_are_those_of_the_frame():
    made, frame = sdp.Workload({"age": 6, "region": 3}).marginals(1, 2).calibrate(**CLAIM), people(500)
    found = counted(made, frame)
    assert isinstance(found, Counted)
    assert list(found.tables) == [(0, 1)]
    assert (found.tables[0, 1][..., 0] == pd.crosstab(frame.age, frame.region).to_numpy()).all()


def test_patterns_and_bounds_are_never_below_all_pairs(monkeypatch):
    """The same certificates by pattern of agreement, and by the bound for many attributes."""
    rng = np.random.default_rng(3)
    modes = sdp.Workload({"s": 1, "b": 3}).total(weight=100.0).marginal("b").ranges("s", by=["b"])
    for case, asked in enumerate([modes, *(random_workload(rng) for _ in range(150))]):
        planned_for = "replace" if case % 3 == 2 else "add-remove"
        families = asked.calibrate(**CLAIM, adjacency=planned_for, gap=1e-2).families
        exact = mu_bounds(families, asked.schema, True)
        with monkeypatch.context() as patch:
            patch.setattr("shapedp.workloads.spent._CELLS", 0)
            pattern = mu_bounds(families, asked.schema, True)
            patch.setattr("shapedp.workloads.spent._PATTERNS", 0)
            bound = mu_bounds(families, asked.schema, True)
        assert exact[0] * (1 - 1e-12) <= pattern[1] <= exact[1] * (1 + 5e-7)
        assert pattern[0] <= exact[1]
        assert exact[0] * (1 - 1e-12) <= bound[1] <= 2.0001 * exact[1]


def test_advice_ranks_every_family_and_never_boxes_a_histogram():
    """A histogram: the noise of the L1 ball, not that of a box; a workload: what its own plan costs, up to the gap."""
    cells = sdp.Workload({"age": 8}).marginal("age")
    best = cells.advise(**CLAIM)[0]
    ball = sdp.advise(sdp.L1(1.0, dim=8), **CLAIM)[0]
    assert 0.9 < best.expected_error / ball.expected_error < 1, "on the integers a little less noise will do"
    assert best.expected_error < sdp.advise(sdp.Box(np.ones(8)), **CLAIM)[0].expected_error / 3
    pure = cells.advise(epsilon=1.0, delta=0.0)[0]
    assert pure.family == "discrete"
    assert pure.mechanism.certificate.verdict == "certified"
    asked = sdp.Workload({"a": 3, "b": 2}, measures={"v": (0, 2)}).marginals(0, 1, 2).ranges("a").sums("v", "b")
    for relation in ("add-remove", "replace"):
        ranked = asked.advise(**CLAIM, adjacency=relation)
        planned = asked.calibrate(**CLAIM, adjacency=relation)
        assert ranked[0].family == "gaussian"
        assert "hull" in ranked[0].why
        ratio = planned.weighted_error / ranked[0].expected_error
        assert 1 - 2e-4 < ratio < (1 + 2e-4 if relation == "add-remove" else 1.001)


def test_adjusted_answers_say_their_error():
    asked, frame = sdp.Workload({"age": 6, "region": 3}).marginals(2), people(20)
    release = asked.calibrate(**CLAIM).release(frame, rng=np.random.default_rng(0))
    made = release.adjusted("age x region", nonnegative=True, whole=True, rng=np.random.default_rng(1))
    assert (made.value >= 0).all()
    assert (made.value % 1 == 0).all()
    assert made.label == "adjusted: nonnegative, whole numbers"
    assert np.square(made.error).mean() < np.square(made.before).mean(), "few people: bounding helps"
    rounded = release.adjusted("age x region", whole=True, draws=2000, rng=np.random.default_rng(1))
    assert rounded.error == pytest.approx(np.sqrt(np.square(rounded.before) + 1 / 12), rel=0.1)
    with pytest.raises(ValueError, match="what to adjust"):
        release.adjusted("age x region")


def test_more_records_need_coarser_rounding():
    asked, frame = sdp.Workload({"age": 6}, measures={"hours": (0, 10)}).means("hours", "age"), people(50)
    small, large = (asked.calibrate(**CLAIM, records=records) for records in (49, 2**32))
    assert small.loss.mu == pytest.approx(large.loss.mu, rel=1e-9)
    assert small.expected_squared_error < large.expected_squared_error < 2 * small.expected_squared_error
    assert large.release(frame)["age"].shape == (6,)
    with pytest.raises(ValueError, match="at most 49 records"):
        small.release(frame)
    wide = sdp.Workload({"a": 1000, "b": 40}).marginals(2)
    exact, rounded = (wide.calibrate(**CLAIM, records=records) for records in (2**36, 2**40))
    assert exact.loss.mu == exact._unrounded[1]
    assert rounded.loss.mu > rounded._unrounded[1], "contrasts of more than 53 bits"
    with pytest.raises(ValueError, match="beyond 2\\^62"):
        sdp.Workload({"a": 4000, "b": 4000}).marginals(2).calibrate(**CLAIM, records=2**40)
    for records in (0, 2**50, 1.5):
        with pytest.raises((ValueError, TypeError), match="records"):
            asked.calibrate(**CLAIM, records=records)


def test_pure_privacy_and_whole_numbers():
    """Exact answers, in the order of the hull, under discrete Laplace noise; the checker agrees."""
    asked, frame = everything(), people(60)
    truth = truths(asked, frame)
    exact = asked.exact(frame)
    assert exact == pytest.approx(np.concatenate([truth[term.name].reshape(-1) for term in asked.terms]), abs=1e-6)
    counts = sdp.Workload({"age": 6, "region": 3}).marginals(1, 2).prefixes("age")
    assert counts.exact(frame).dtype.kind == "i"
    for relation in ("add-remove", "replace"):
        made = sdp.calibrate("laplace", counts.hull(relation).of_integers(), epsilon=1.0, delta=0.0)
        assert made.certificate.verdict == "certified"
        assert check(json.loads(json.dumps(made.certificate.to_json()))).verdict == "certified"
        release = made.release(counts.exact(frame), rng=np.random.default_rng(0))
        assert np.abs((np.asarray(release) - counts.exact(frame)) / release.standard_error).max() < 12
    rows = counts.hull("add-remove").dense()
    one = counts.exact(frame[:1])
    cell = int(frame.age[0]) * 3 + int(frame.region[0])
    assert (rows[cell] == one).all()
