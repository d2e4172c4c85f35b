"""Counting: every kind of table gives the same counts; bad input is refused before anything is read or spent."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest

import shapedp as sdp
from shapedp.workloads.counting import counted

CLAIM = {"epsilon": 1.0, "delta": 1e-6}
SCHEMA = {
    "age": {"edges": [0, 18, 65, 120]},
    "sex": {"labels": ["F", "M"], "other": True},
    "code": [10, 20, 30],
    "region": 3,
}


def people() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    count = 1000
    return pd.DataFrame(
        {
            "age": rng.integers(-5, 130, count),
            "sex": rng.choice(["F", "M", "X"], count),
            "code": rng.choice([10, 20, 30, 40], count),
            "region": rng.integers(0, 4, count),
            "pay": rng.uniform(-10, 200, count).round(2),
            "unused": rng.normal(size=count),
        }
    )


def mechanism() -> sdp.workloads.WorkloadMechanism:
    return sdp.Workload(SCHEMA, measures={"pay": (0, 100)}).marginals(2).means("pay", "sex").calibrate(**CLAIM)


def expected(frame: pd.DataFrame) -> pd.DataFrame:
    known = frame[frame.age.between(0, 119) & frame.code.isin([10, 20, 30]) & (frame.region < 3)]
    return known.assign(sex=known.sex.replace("X", "(other)"), pay=known.pay.clip(0, 100))


def test_every_source_gives_the_same(tmp_path):
    frame, made = people(), mechanism()
    frame.to_csv(tmp_path / "people.csv", index=False)
    frame.to_parquet(tmp_path / "people.parquet", row_group_size=100)
    dask = pytest.importorskip("dask.dataframe")
    sources = {
        "pandas": frame,
        "categories": frame.astype({"sex": "category"}),
        "polars": polars.from_pandas(frame),
        "arrow": pyarrow.Table.from_pandas(frame),
        "csv": tmp_path / "people.csv",
        "parquet": str(tmp_path / "people.parquet"),
        "dask": dask.from_pandas(frame, npartitions=3),
    }
    truth = expected(frame)
    first = counted(made, frame).tables
    by = pd.crosstab(truth.sex, truth.region).loc[["F", "M", "(other)"]].to_numpy()
    assert (first[1, 3][..., 0] == by).all()
    sums = truth.groupby("sex").pay.sum().loc[["F", "M", "(other)"]].to_numpy()
    step = made.workload.schema.measures[0].step
    assert first[1, 3][..., 1].sum(axis=1) * step == pytest.approx(sums, abs=len(truth) * step)
    for name, source in sources.items():
        found = counted(made, source).tables
        assert found.keys() == first.keys()
        assert all((found[axes] == first[axes]).all() for axes in first), name


def test_only_what_is_needed_is_read():
    made = sdp.Workload(SCHEMA).marginal("region").calibrate(**CLAIM)
    assert counted(made, people()[["region"]]).tables[(3,)].shape == (3, 1)


def test_missing_cells_are_counted_nowhere_or_as_other():
    frame = people().astype({"sex": object})
    frame.loc[:99, "sex"] = None
    frame.loc[100:199, "pay"] = np.nan
    made = sdp.Workload(SCHEMA, measures={"pay": (0, 100)}).means("pay", "sex").calibrate(**CLAIM)
    table = counted(made, frame).tables[(1,)]
    assert table[:, 0].sum() == 900
    assert table[2, 0] == 100 + (frame.sex[200:] == "X").sum()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sdp.Workload({}), "one attribute at least"),
        (lambda: sdp.Workload([("a", 2), ("a", 3)]), "each name once"),
        (lambda: sdp.Workload({"a": 2}, measures={"a": (0, 1)}), "each name once"),
        (lambda: sdp.Workload({"a": 0}), "size"),
        (lambda: sdp.Workload({"a": pd.Series(["x", "y"])}), "known before any record is read"),
        (lambda: sdp.Workload({"a": "xy"}), "known before any record is read"),
        (lambda: sdp.Workload({"a": ["x", "x"]}), "must differ"),
        (lambda: sdp.Workload({"a": ["x", None]}), "words or numbers"),
        (lambda: sdp.Workload({"a": {"edges": [1, 1]}}), "each above"),
        (lambda: sdp.Workload({"a": {"labels": ["x"], "size": 2}}), "one of size, labels and edges"),
        (lambda: sdp.Workload({"a": 2}, measures={"m": (1, 1)}), "first below the second"),
        (lambda: sdp.Workload({"a": 2}, measures={"m": (0, float("nan"))}), "finite"),
        (lambda: sdp.Workload({"a": 2}).marginal("b"), "no attribute 'b'"),
        (lambda: sdp.Workload({"a": 2}).marginal("a", "a"), "named twice"),
        (lambda: sdp.Workload({"a": 2}).marginals(2), "at most 1"),
        (lambda: sdp.Workload({"a": 2, "b": 2}).ranges("a", by="b"), "list of attributes"),
        (lambda: sdp.Workload({"a": 2}).ranges(pd.DataFrame()), "no attribute of type DataFrame"),
        (lambda: sdp.Workload(5), "mapping of names"),
        (lambda: sdp.Workload({"a": 2}, measures=[1]), "mapping of names"),
        (lambda: sdp.Workload({"a": 2}).total().calibrate(epsilon=1e-320, delta=1e-300), "usual one"),
        (lambda: sdp.Workload({"a": 2}).total().hull(None), "adjacency"),
        (lambda: sdp.Workload({"a": 2}).sums("m"), "no measure"),
        (lambda: sdp.Workload({"a": 2}).rows([[1.0]]), "2 columns"),
        (lambda: sdp.Workload({"a": 2}).rows([[0.0, 0.0]]), "asks something"),
        (lambda: sdp.Workload({"a": 2}).marginal("a", weight=0.0), "weight"),
        (lambda: sdp.Workload({"a": 2}).calibrate(**CLAIM), "asks nothing"),
        (lambda: sdp.Workload({"a": 2}).total().calibrate(epsilon=1.0, delta=0.0, noise="gaussian"), "delta > 0"),
        (lambda: sdp.Workload({"a": 2}).total().calibrate(epsilon=1e-320, delta=0.0), "larger epsilon"),
        (lambda: sdp.Workload({"a": 2}).total().calibrate(epsilon=1e-20, delta=0.0), "larger epsilon"),
        (lambda: sdp.Workload({"a": 2}).total().calibrate(**CLAIM, adjacency=None), "adjacency"),
        (lambda: sdp.Workload({"a": 2}).total().calibrate(**CLAIM, error="absolute"), "error"),
        (lambda: sdp.Workload({"a": 2}).ranges("a").calibrate(**CLAIM, error="max"), "marginals only"),
    ],
)
def test_refused_before_any_record_is_read(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_a_failing_partition_tells_nothing():
    dask = pytest.importorskip("dask.dataframe")

    def broken(piece):
        raise KeyError("secret cell")

    frame = dask.from_pandas(people(), npartitions=2)
    with pytest.raises(ValueError, match="could not be computed") as refused:
        counted(mechanism(), frame.map_partitions(broken, meta=frame._meta))
    assert "secret" not in str(refused.value)
    assert refused.value.__context__ is None


def test_tables_that_do_not_fit():
    made = mechanism()
    with pytest.raises(ValueError, match="no column 'sex'"):
        made.release(people().drop(columns="sex"))
    with pytest.raises(ValueError, match="numbers"):
        made.release(people().assign(pay=pd.Series(["secret"] * 1000, dtype="string")))
    with pytest.raises(TypeError, match="frame"):
        made.release(np.zeros((3, 2)))
