"""A cell that is infinite or too large for 64 bits is in no group: the floor of one must not stop the whole query."""

from __future__ import annotations

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shapedp as sdp

TOO_LARGE = [float("inf"), float("-inf"), 1e308, 2.0**63]


def _counts(source):
    table = sdp.table(source, person=None, domains={"region": 3})
    return np.asarray(table.group_by("region").count().release(epsilon=1e4, delta=1e-3).frame["count"])


@pytest.mark.parametrize("cell", TOO_LARGE)
@pytest.mark.parametrize("container", ["arrow", "ibis"])
def test_a_number_outside_64_bits_is_in_no_group(cell, container, tmp_path):
    table, path = pa.table({"region": pa.array([0.0, 1.0, 1.0, 2.0, cell])}), tmp_path / "people.parquet"
    pq.write_table(table, path)
    source = ibis.duckdb.connect().read_parquet(path) if container == "ibis" else table
    np.testing.assert_array_equal(_counts(source), [1, 2, 1])


@pytest.mark.parametrize("cell", [2**63 - 1, -(2**63)])
def test_the_ends_of_integers_are_in_no_group(cell):
    np.testing.assert_array_equal(_counts(pa.table({"region": [0, 1, 1, 2, cell]})), [1, 2, 1])


def test_conditions_of_a_size_hold_at_its_ends():
    cells = [-1.0, -0.5, -0.0, 0.5, 2.0, 2.5, 3.0, None, float("nan")]
    np.testing.assert_array_equal(_counts(pa.table({"region": pa.array(cells, pa.float64())})), [1, 0, 1])


@pytest.mark.parametrize("cell", TOO_LARGE)
def test_a_person_by_a_number_that_is_too_large_is_nobody(cell, tmp_path):
    """In a database that looks at every part of a condition, in any order."""
    from shapedp.private.sources import is_whole

    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"x": [0.0, 1.5, 7.0, cell]}), path)
    rows = ibis.duckdb.connect().read_parquet(path)
    found = rows.select(whole=is_whole(rows.x, 2.0**53)).to_pyarrow()
    assert found["whole"].to_pylist()[:3] == [True, False, True]


def test_neighbours_with_an_infinite_cell_spend_alike(tmp_path):
    from shapedp.ledger import Ledger

    ledger = Ledger.create(tmp_path / "b.db", dataset="p", epsilon=3.0, delta=1e-5, adjacency="add-remove")
    for cells in ([0.0, 1.0], [0.0, 1.0, float("inf")]):
        table = sdp.table(pa.table({"region": cells}), person=None, domains={"region": 3})
        question = table.group_by("region").count()
        table.ask(question, epsilon=0.5, delta=1e-7, ledger=ledger, dataset="p")
    assert ledger.status("p").entries == 2
