"""csv output was joined by hand, formulas in names ran in spreadsheets, and escapes in names reached the terminal."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest

from shapedp.boundary.files import csv_bytes
from shapedp.boundary.values import printable
from shapedp.cli import main
from shapedp.tables.vectors import Vector, read_vector, write_columns, write_vector

NAMES = ("a,b", 'say "x"', "=A1+1", "@SUM(A1)", "+x", "-x", " =x", "\tx", "\x1b[31mred", "line\nbreak", "\u202erev")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_one_harmless_cell(name: str, tmp_path: Path) -> None:
    write_vector(tmp_path / "x.csv", Vector(np.array([1.5, -2.5]), name))
    text = (tmp_path / "x.csv").read_text()
    rows = list(csv.reader(io.StringIO(text)))
    assert [len(row) for row in rows] == [1, 1, 1]
    assert rows[0][0].lstrip()[0] not in "=+-@"
    assert printable(text.replace("\n", "")) == text.replace("\n", "")
    assert np.array_equal(read_vector(tmp_path / "x.csv").values, [1.5, -2.5])


def test_columns_are_quoted_and_numbers_exact(tmp_path: Path) -> None:
    write_columns(tmp_path / "x.csv", {"column": ["=cmd|' /C calc'!A0", "b,c"], "value": [-0.1, 1e-300]})
    rows = list(csv.reader(io.StringIO((tmp_path / "x.csv").read_text())))
    assert rows == [["column", "value"], ["'=cmd|' /C calc'!A0", "-0.1"], ["b,c", "1e-300"]]
    assert csv_bytes([[-1.5, "-1.5"]]) == b"-1.5,'-1.5\n"


def test_the_terminal_sees_no_escape(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "x\x1b]0;owned\x07\r\u202e.csv"
    assert main(["calibrate", "gaussian", "--box", str(tmp_path / name), "--epsilon", "1", "--delta", "1e-6"]) == 2
    seen = capsys.readouterr()
    assert "\\x1b]0;owned\\x07\\r\\u202e" in seen.err
    assert all(c.isprintable() or c == "\n" for c in seen.out + seen.err)


def test_what_the_terminal_cannot_encode_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "\udc80.json"]) == 2
    assert "\\udc80" in capsys.readouterr().err
