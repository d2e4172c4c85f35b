"""People for the tests of private tables: awkward rows, every kind of source, and how far neighbours are apart."""

from __future__ import annotations

import functools
import math
import uuid
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from pyarrow import parquet
from tests.sparks import session

import shapedp as sdp
from shapedp.workloads import AnswerMechanism, WorkloadMechanism
from shapedp.workloads.counting import Counted, whole_answers

SOURCES = ("pandas", "objects", "polars", "arrow", "dictionary", "csv", "parquet", "ibis")
TYPES = {"pandas": {}, "objects": {"age": "number"}, "csv": {"age": "number"}}
HOURS = [0.0, 12.5, 40.0, 79.999, 1e9, -5.0, math.inf, -math.inf, math.nan]
SEXES = ["F", "M", "unseen", None, "", "F' OR 1=1 --"]


def rows_of_a_person(rng: np.random.Generator, name: int) -> list[dict[str, Any]]:
    """A few rows, some of them alike."""
    made = []
    for _ in range(int(rng.integers(0, 6))):
        row = {
            "id": name if rng.random() < 0.95 else None,
            "sex": SEXES[int(rng.choice(6, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05]))],
            "hours": HOURS[int(rng.integers(len(HOURS)))] if rng.random() < 0.6 else float(rng.uniform(0, 80)),
            "age": float(rng.integers(0, 90)) if rng.random() < 0.9 else math.nan,
        }
        made += [row] * int(rng.integers(1, 4))
    return made


@functools.cache
def spark() -> Any:
    """Spark on this machine through Ibis; skips where it is not installed."""
    running = session()  # first: it skips where there is none
    return ibis.pyspark.connect(running)


def spark_table(path: Path) -> Any:
    """A parquet file as a table of Spark."""
    name, connection = f"people_{uuid.uuid4().hex}", spark()
    connection._session.read.parquet(str(path)).createOrReplaceTempView(name)
    return connection.table(name)


def source(kind: str, rows: list[dict[str, Any]], folder: Path) -> Any:
    """The rows as a source of this kind."""
    columns = {
        "id": pa.array([row["id"] for row in rows], pa.int64()),
        "sex": pa.array([row["sex"] for row in rows], pa.string()),
        "hours": pa.array([row["hours"] for row in rows], pa.float64()),
        "age": pa.array([row["age"] for row in rows], pa.float64()),
    }
    for name, of in (("pair", pa.int64()), ("tag", pa.string())):  # of many pairs of neighbours in one table
        if rows and name in rows[0]:
            columns[name] = pa.array([row[name] for row in rows], of)
    table = pa.table(columns)
    if kind == "arrow":
        return table
    if kind == "dictionary":
        words = pa.array(["M", None, "unseen", "F", "", "F' OR 1=1 --"])
        places = [
            None if row["sex"] is None and n % 2 else words.to_pylist().index(row["sex"]) for n, row in enumerate(rows)
        ]
        coded = pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), words)
        return pa.table({**columns, "sex": coded})
    if kind == "polars":
        return pl.DataFrame(table)
    if kind == "pandas":
        return table.to_pandas()
    if kind == "objects":
        frame = table.to_pandas().astype(object)
        frame["age"] = [one if one == one else "no age" for one in frame["age"]]
        frame["sex"] = [7 if one is None else one for one in frame["sex"]]
        return frame
    if kind == "ibis":
        return ibis.memtable(table)
    if kind == "spark":
        path = folder / f"{uuid.uuid4().hex}.parquet"
        parquet.write_table(table, path, row_group_size=7)
        return spark_table(path)
    path = folder / f"people.{kind}"
    if kind == "parquet":
        parquet.write_table(table, path, row_group_size=7)
    else:
        lines = [",".join(columns)]
        for row in rows:
            said = {**row, "age": "unknown" if row["age"] != row["age"] else row["age"]}
            lines.append(",".join("" if said[name] is None else str(said[name]) for name in columns))
        path.write_text("\n".join(lines) + "\n")
    return path


def private(kind: str, listed: list[dict[str, Any]], folder: Path, /, **options: Any) -> sdp.PrivateTable:
    given = {"person": "id", "rows": 2, "bounds": {"hours": (0, 80)}, "domains": {"sex": ["F", "M"]}, **options}
    return sdp.table(source(kind, listed, folder), types=TYPES.get(kind), **given)


def questions(t: sdp.PrivateTable) -> list[sdp.Question]:
    """Groups, conditions, a column that may be missing, a histogram."""
    return [
        t.group_by("sex").agg(n=sdp.count(), m=sdp.mean("hours")),
        t.where((sdp.col("age") >= 18) & ~sdp.col("sex").isin(["unseen"])).agg(s=sdp.sum("hours")),
        t.histogram("age", [0, 20, 40, 60]),
    ]


def plan(t: sdp.PrivateTable, **options: Any) -> sdp.TablePlan:
    return t.plan(*questions(t), epsilon=1.0, delta=1e-6, **{"gap": 1e-2, **options})


def reach(made: WorkloadMechanism | AnswerMechanism) -> float:
    """How far apart neighbours are at most, says the mechanism: mu, or epsilon for Laplace noise on each answer."""
    return made.loss.pure if isinstance(made, AnswerMechanism) else made.loss.mu


def apart(made: WorkloadMechanism | AnswerMechanism, one: Counted, other: Counted) -> float:
    """How far two tables are apart in units of the noise: the mu, or epsilon, that tells them apart."""
    if isinstance(made, AnswerMechanism):
        pairs = [(whole_answers(term, one.tables[term.attributes]), term) for term in made.groups]
        moved = [np.abs(found - whole_answers(term, other.tables[term.attributes])).sum() for found, term in pairs]
        return float(sum(far / noise.scale for far, noise in zip(moved, made.noise, strict=True)))
    total = 0.0
    for family in made.families:
        for place, block in enumerate(family.blocks):
            moved = made._table(one.tables, family, block) - made._table(other.tables, family, block)
            for axis, k in enumerate(block):
                moved = np.moveaxis(np.tensordot(helmert(k_size(made, k)), moved, (1, axis)), 0, axis)
            for axis, mode in enumerate(family.modes_of(place), start=len(block)):
                turn = np.eye(mode.size) if mode.rotation is None else mode.rotation.matrix
                moved = np.moveaxis(np.tensordot(turn / mode.scales[:, None], moved, (1, axis)), 0, axis)
            total += float(np.square(moved / family.sigma[place]).sum())
    return math.sqrt(total)


def helmert(size: int) -> np.ndarray:
    """size - 1 orthonormal rows, each adding up to 0."""
    rows = [[1.0] * k + [-float(k)] + [0.0] * (size - k - 1) for k in range(1, size)]
    return np.array([np.array(row) / np.linalg.norm(row) for row in rows]).reshape(-1, size)


def k_size(made: WorkloadMechanism, k: int) -> int:
    return made.workload.schema.sizes[k]


def frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["id", "sex", "hours", "age"])
