"""Who a person is: equal ids of any type are one person, two values are never taken for one, no cell stops a reader."""

from __future__ import annotations

import uuid
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import shapedp as sdp
from shapedp.boundary.arrays import ids
from shapedp.boundary.cells import identity
from shapedp.private.cells import pandas_column
from shapedp.tables.vectors import read_ids

NEAR = np.longdouble(1) + np.finfo(np.longdouble).eps


class Hostile(str):
    """A text that fails whatever is asked of it, but is one."""

    def __str__(self) -> str:
        raise RuntimeError("HIV+")

    def encode(self, *_: Any) -> bytes:
        raise RuntimeError("HIV+")


SAME: list[list[Any]] = [
    [7, 7.0, "7", Hostile("7"), np.int8(7), np.float32(7), Fraction(7), Decimal("7.00"), Decimal("7E+0")],
    [0, 0.0, -0.0, "0"],
    [2**70, str(2**70)],
    [uuid.UUID(int=5), str(uuid.UUID(int=5))],
]
APART: list[Any] = [
    7, "07", "7.0", " 7", b"7", "0x37", "\x1fb37", "\x1f", "\x1ft", 2**130, hex(2**130), str(2**130),
    "\x1fi4" + "0" * 32,
    -(2**130), 10**5000, "\u00e9", "e\u0301", "nan", "None", "", b"", 2**53, 2**53 + 1, "x" * 10**6, "x" * 10**6 + "y",
]  # fmt: skip


NOBODY: list[Any] = [
    None, float("nan"), True, np.True_, 7.5, NEAR, Fraction(10**30 + 1, 10**30), Decimal("sNaN"), Decimal("1E+999999"),
    pd.NA, 2.0**53, 2.0**70, (7,), pd.Timestamp(0),
]  # fmt: skip


def _objects(cells: list[Any]) -> pd.Series:
    found = np.empty(len(cells), dtype=object)
    for i, one in enumerate(cells):
        found[i] = one
    return pd.Series(found, dtype=object)


@pytest.mark.parametrize("read", ["owner", "table"])
def test_equal_ids_are_one_person_and_no_others(read: str) -> None:
    cells = [*APART, *NOBODY, *(one for group in SAME for one in group)]
    column = _objects(cells)
    told = ids(column).tolist() if read == "owner" else pandas_column(column, "id").to_pylist()
    apart, rest = told[: len(APART)], told[len(APART) :]
    assert len(set(apart)) == len(APART)
    assert set(rest[: len(NOBODY)]) == {-1 if read == "owner" else None}
    rest = rest[len(NOBODY) :]
    for group in SAME:
        assert len(set(rest[: len(group)])) == 1
        rest = rest[len(group) :]


def test_a_person_leaves_the_rows_of_another_alone() -> None:
    for cells in ([b"1", "0x31"], [2**130, hex(2**130)]):
        frame = pd.DataFrame({"id": _objects(cells), "vote": [1.0, -1.0]})
        t = sdp.table(frame, person="id", bounds={"vote": (-1, 1)})
        total = t.sum("vote").release(epsilon=1e4, delta=1e-6).frame["sum"][0]
        assert abs(total) < 0.5, "the two have one row each, which cancel"


def test_a_hostile_text_is_its_text() -> None:
    frame = pd.DataFrame({"group": _objects(["a", Hostile("a"), "b"])})
    t = sdp.table(frame, person=None, domains={"group": ["a", "b"]})
    counts = t.group_by("group").count().release(epsilon=1e4, delta=1e-6).frame["count"]
    assert counts.round().tolist() == [2, 1]
    assert identity(Hostile("a")) == "a"


def test_only_spaces_around_an_id_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text("id,n\n 7 ,1\n7,1\n7\u00a0,1\n\x1c7,1\n ,1\n")
    assert read_ids(path, "id") == ["7", "7", "7\u00a0", "\x1c7", None]
