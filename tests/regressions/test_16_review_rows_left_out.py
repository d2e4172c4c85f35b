"""A csv row of another length is left out of a private table, also where its bytes are no text."""

from __future__ import annotations

import numpy as np
import pytest

import shapedp as sdp
from shapedp.private.sources import rows_of
from shapedp.tables.csvfiles import csv_batches

HEAD = b"id,town,hours\n"
PEOPLE = ["1,K\u00f6ln,5\n".encode(), b"2,Ulm,6\n", "3,K\u00f6ln,7\n".encode(), b"4,\xff,8\n"]
NO_TEXT = [b"\xff\xfe\n", b"\xc3(\n", b"\xed\xa0\x80\n", b"9,\x85\n", b"9,\xff,1,2\n"]


@pytest.mark.parametrize("place", [0, 2, 4])
@pytest.mark.parametrize("row", NO_TEXT)
def test_the_other_rows_are_read_as_without_it(tmp_path, row, place, capfd):
    path = tmp_path / "people.csv"
    path.write_bytes(HEAD + b"".join([*PEOPLE[:place], row, *PEOPLE[place:]]))
    wanted = [("id", "id"), ("town", "text"), ("hours", "number")]
    (columns,) = rows_of(path).batches(wanted)
    assert columns[0].to_pylist() == ["1", "2", "3", "4"]
    assert columns[1].to_pylist() == ["K\u00f6ln", "Ulm", "K\u00f6ln", None]
    assert columns[2].to_pylist() == [5.0, 6.0, 7.0, 8.0]
    assert capfd.readouterr() == ("", "")  # Arrow printed the byte that is no text


def test_in_a_later_block_no_row_is_read_twice_or_lost(tmp_path):
    path, many = tmp_path / "people.csv", 150_000
    rows = [f"{i},K\u00f6ln,{i}\n".encode() for i in range(many)]
    path.write_bytes(HEAD + b"".join([*rows[:-10], b"\xff\n", *rows[-10:]]))
    batches = list(csv_batches(path, ("id", "town", "hours"), True, ["id", "town"], ragged="skip"))
    assert len(batches) > 1
    found = [cell for batch in batches for cell in batch.column("id").to_pylist()]
    assert found == [str(i).encode() for i in range(many)]
    assert {cell for batch in batches for cell in batch.column("town").to_pylist()} == {"K\u00f6ln".encode()}


def test_a_release_does_not_tell_of_it(tmp_path):
    pytest.importorskip("ibis")
    path = tmp_path / "people.csv"
    path.write_bytes(HEAD + b"".join(PEOPLE) + b"\xff\n")
    table = sdp.table(path, person="id", domains={"town": ["K\u00f6ln", "Ulm"]})
    counts = table.group_by("town").count().release(epsilon=1e4, delta=1e-3).frame["count"]
    np.testing.assert_array_equal(np.asarray(counts), [2, 1])
