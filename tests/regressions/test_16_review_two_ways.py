"""A parquet file is read by DuckDB, or by Arrow where one cell is no text: both must read all other cells alike."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shapedp as sdp
from shapedp.boundary.columns import arrow_floats
from shapedp.private.sources import rows_of

pa = pytest.importorskip("pyarrow")
pytest.importorskip("ibis")
from pyarrow import parquet  # noqa: E402

ROWS = 40
PRICES = [Decimal(f"{k}.65") for k in range(1, ROWS + 1)]
LONG = [Decimal(k * 987654321987654321987 % 10**20).scaleb(-2) for k in range(ROWS)]
WIDE = [Decimal(f"{7**60 * k}.25") for k in range(1, ROWS + 1)]
COLUMNS: dict[str, Any] = {
    "decimal": pa.array(PRICES, pa.decimal128(9, 2)),
    "long decimal": pa.array(LONG, pa.decimal128(38, 2)),
    "wide decimal": pa.array(WIDE, pa.decimal256(60, 2)),
    "float16": pa.array(np.linspace(-3, 3, ROWS).astype(np.float16)),
    "float32": pa.array(np.linspace(-3, 3, ROWS).astype(np.float32)),
    "uint64": pa.array([2**64 - 1 - 3 * k for k in range(ROWS)], pa.uint64()),
    "int64": pa.array([2**63 - 1 - 3 * k for k in range(ROWS)], pa.int64()),
    "boolean": pa.array([k % 3 == 0 for k in range(ROWS)]),
}


def _written(path: Path, column: Any, odd: bytes) -> Path:
    raw = pa.array([odd, *[b"a"] * (ROWS - 1)], pa.binary())
    text = pa.Array.from_buffers(pa.string(), ROWS, raw.buffers())
    parquet.write_table(pa.table({"number": column, "group": text}), path)
    return path


@pytest.mark.parametrize("name", COLUMNS)
def test_a_cell_that_is_no_text_changes_no_other_cell(name: str, tmp_path: Path) -> None:
    found = []
    for odd in (b"b", b"\xff"):
        rows = rows_of(str(_written(tmp_path / f"{odd[0]}.parquet", COLUMNS[name], odd)))
        wanted = {"number": ("number", rows.kinds["number"]), "group": ("group", "text")}
        read = rows.computed(wanted, lambda people: people).to_pylist()
        found.append(sorted(float(one["number"]) for one in read))
    assert found[0] == found[1]


def test_one_such_cell_leaves_the_groups_of_all_others(tmp_path: Path) -> None:
    counts = []
    for odd in (b"b", b"\xff"):
        column = pa.array([Decimal("1.65")] * ROWS, pa.decimal128(9, 2))
        path = _written(tmp_path / f"{odd[0]}.parquet", column, odd)
        t = sdp.table(path, person=None, domains={"number": [1.65, 2.5]})
        asked = t.where("group == 'a'").group_by("number").count()
        counts.append(asked.release(epsilon=1e3, delta=1e-6).frame["count"].round().tolist())
    assert counts == [[ROWS - 1, 0], [ROWS - 1, 0]]


def test_decimals_are_the_nearest_floats() -> None:
    column = COLUMNS["decimal"]
    assert arrow_floats(column).tolist() == [float(one) for one in PRICES]
    assert arrow_floats(column.dictionary_encode()).tolist() == [float(one) for one in PRICES]
    spread = pa.array([PRICES[0], None], pa.decimal128(9, 2))
    assert np.isnan(arrow_floats(spread)).tolist() == [False, True]


def test_an_id_whose_floor_does_not_fit_stops_no_database() -> None:
    import ibis

    own = ibis.duckdb.connect()
    own.raw_sql("CREATE TABLE people AS SELECT CAST(id AS DECIMAL(5, 2)) AS id, 1.0 AS n FROM range(4) t(id)")
    own.raw_sql("INSERT INTO people VALUES (-999.99, 1.0), (1.50, 1.0), (100.00, 1.0), (NULL, 1.0)")
    rows = rows_of(own.table("people"))
    read = rows.computed({"person": ("id", "id")}, lambda people: people).column("person").to_pylist()
    assert sorted(one for one in read if one is not None) == ["0.00", "1.00", "100.00", "2.00", "3.00"]
    assert len(read) == 8


def test_files_without_decimals_stay_with_the_database(tmp_path: Path) -> None:
    path = _written(tmp_path / "x.parquet", COLUMNS["decimal"], b"b")
    rows = rows_of(str(path))
    assert rows.paths
    assert rows.rounded == {"number"}
    only = replace(rows, batches=None).computed({"group": ("group", "text")}, lambda people: people)
    assert only.num_rows == ROWS
