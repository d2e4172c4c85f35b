"""Logistic regression from sums over records: convergence, neighbours, streams, what the fast path asks."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression as Plain
from tests.learn.trainers import BINARY
from tests.learn.transcripts import Drawing, Noise, classification, outnumbered

import shapedp as sdp
from shapedp import audit
from shapedp.learn import LogisticRegression, base
from shapedp.learn.moments import Bounds, moments
from shapedp.learn.residuals import gradient
from shapedp.learn.solvers.erm import descent
from shapedp.tables import InMemory

CLAIM = {"epsilon": 1.0, "delta": 1e-5, "feature_bound": 1.0, "classes": ["no", "yes"], "solver": "descent"}

pytestmark = pytest.mark.filterwarnings("ignore::shapedp.learn.RepeatedFitsWarning")


def made(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 4)) / 2
    odds = x @ [4.0, -3.0, 1.0, 0.0] + 0.5
    return x, np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "yes", "no")


def test_it_is_the_maximum_of_likelihood_where_there_is_hardly_noise():
    x, y = made()
    found = LogisticRegression(**{**CLAIM, "epsilon": 1e5, "delta": 1e-2}, random_state=0).fit(x, y)
    plain = Plain(C=1e9).fit(x, y)
    assert found.coef_ == pytest.approx(plain.coef_, abs=0.1)
    assert found.intercept_ == pytest.approx(plain.intercept_, abs=0.1)


def test_learns_and_certifies():
    x, y = made()
    found = LogisticRegression(**CLAIM).fit(x, y)
    assert found.score(x, y) > Plain().fit(x, y).score(x, y) - 0.02
    assert (found.privacy_.verdict, found.privacy_.secure, found.solver_) == ("certified", True, "descent")
    assert sdp.verify(sdp.Certificate.from_json(found.privacy_.to_json())).verdict == "certified"
    shapedp_check = pytest.importorskip("shapedp_check")
    pytest.importorskip("flint")
    assert shapedp_check.check(found.privacy_.to_json()).verdict == "certified"


def test_the_sum_is_the_gradient_of_the_loss():
    x, y = made(3000)
    signs, weights, bounds = (
        np.where(y == "yes", 1.0, -1.0),
        np.array([1.0, 2.0, -1.0, 0.5, 3.0]),
        Bounds(1.0, 1.0, 0.5),
    )
    table = InMemory(x, signs)
    known = moments(table, bounds)
    known = type(known)(known.gram, known.records, known.bounds, table)
    rows = np.hstack([x, np.full((3000, 1), 0.5)])
    expected = rows.T @ ((signs + 1) / 2 - 1 / (1 + np.exp(-(rows @ weights))))
    assert gradient(known, weights, 2.0, descent.half) == pytest.approx(expected, abs=1e-8)


def test_files_and_frames_give_the_bits_of_arrays(tmp_path):
    x, y = made(9000)
    frame = pd.DataFrame(x, columns=list("abcd")).assign(y=y)
    frame.to_parquet(tmp_path / "part.parquet")
    local = LogisticRegression(**CLAIM, random_state=1).fit(x, y).coef_
    for given in (frame[list("abcd")], tmp_path / "part.parquet"):
        target = "y" if not hasattr(given, "columns") else y
        np.testing.assert_array_equal(LogisticRegression(**CLAIM, random_state=1).fit(given, target).coef_, local)


def test_a_record_that_is_no_record_counts_as_none():
    x, y = made(500)
    other = x.copy()
    other[3] = math.nan
    blank = LogisticRegression(**CLAIM, random_state=1).fit(other, y).coef_
    unknown = y.astype(object)
    unknown[3] = "perhaps"
    np.testing.assert_array_equal(LogisticRegression(**CLAIM, random_state=1).fit(x, unknown).coef_, blank)


def test_more_classes_and_streams_that_end_are_refused():
    x, y = made(60)
    with pytest.raises(ValueError, match="binary"):
        LogisticRegression(**{**CLAIM, "classes": ["a", "b", "c"]}).fit(x, y)
    with pytest.raises(ValueError, match="regularization"):
        LogisticRegression(**CLAIM, regularization=0.1).fit(x, y)
    pa = pytest.importorskip("pyarrow")
    table = pa.Table.from_pandas(pd.DataFrame(x, columns=list("abcd")).assign(y=y))
    with pytest.raises(ValueError, match="more than once"):
        LogisticRegression(**CLAIM).fit(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()), "y")


def test_a_fit_asks_what_the_attacker_sees():
    """`fit` asks its queries at the same answers as the fast path of the audit, up to rounding of sums."""
    neighbours = outnumbered(40)
    x, y = neighbours[0]
    through = Drawing(Noise(np.random.default_rng(3)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "Draws", lambda *_: through)
        LogisticRegression(**{**BINARY, "classes": [-1, 1]}, solver="descent", random_state=0).fit(x, y)
    fast = Drawing(Noise(np.random.default_rng(3)))
    attack = classification(neighbours)
    attack.run(attack.prepared[0], fast)
    assert len(through.seen) == len(fast.seen) == 1 + descent.STEPS
    for (_, one, _), (_, other, _) in zip(through.seen, fast.seen, strict=True):
        assert one == pytest.approx(other, abs=1e-6)


def pairs(count, adjacency, seed):
    """Random tables of 1 to 40 records, one of which is dropped or exchanged; odd ones and unknown labels."""
    rng = np.random.default_rng(seed)

    def record(d):
        x = rng.standard_normal(d) * 10.0 ** rng.choice([-300, -3, 0, 0, 3, 150])
        if rng.random() < 0.1:
            x[rng.integers(d)] = rng.choice([math.nan, math.inf, -math.inf])
        return x, rng.choice(["no", "yes", "yes", "perhaps"])

    for _ in range(count):
        n, d = int(rng.integers(1, 41)), int(rng.integers(1, 5))
        x, y = rng.uniform(-1, 1, (n, d)) * rng.choice([0.01, 0.5, 20.0]), rng.choice(["no", "yes"], n).astype(object)
        at = rng.integers(n)
        x[at], y[at] = record(d)
        other, label = x.copy(), y.copy()
        other[at], label[at] = (math.nan, "none") if adjacency == "zero-out" else record(d)
        y[at] = "no" if not np.isfinite(x[at]).any() and label[at] == y[at] else y[at]  # or nothing would differ
        yield (x, y), (other, label)


def replayed(adjacency, count, seed):
    model = LogisticRegression(**{**CLAIM, "delta": 1e-3}, adjacency=adjacency, random_state=0)
    result = audit.replay(model, pairs(count, adjacency, seed), adjacency=adjacency)
    assert result.passed, result.explain()
    assert result.releases == count * (1 + descent.STEPS)
    return result


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
def test_a_few_neighbours(adjacency):
    assert 0.5 < replayed(adjacency, 12, seed=1).largest <= 1 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
def test_a_thousand_neighbours(adjacency):
    assert 0.9 < replayed(adjacency, 1000, seed=2).largest <= 1 + 1e-9
