"""Texts of a caller or a file: broken ones are refused in words, none steers a terminal. Lost output has a code."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import shapedp as sdp
from shapedp.accounting import Plan
from shapedp.boundary.arrays import numbers
from shapedp.boundary.documents import parse
from shapedp.ledger import Ledger

HALF = "a\ud800"
SHOUT = "a\x1b[31m<script>\u202e"
CAP = {"epsilon": 1.0, "delta": 0.0, "adjacency": "add-remove"}
FRAME = pd.DataFrame({"g": ["a", "b"], "x": [1.0, 2.0]})


def _noise() -> Any:
    return sdp.calibrate("laplace", sdp.L1(1.0, dim=1, adjacency="add-remove"), epsilon=0.1, delta=0.0)


def _table(**how: Any) -> Any:
    return sdp.table(FRAME, person=None, **how)


BROKEN: dict[str, Callable[[Path], Any]] = {
    "dataset": lambda folder: Ledger.create(folder / "l.db", dataset=HALF, **CAP),
    "path": lambda folder: Ledger.create(folder / f"{HALF}.db", dataset="d", **CAP),
    "address": lambda folder: Ledger.open(f"postgresql://{HALF}@localhost/x"),
    "vouched": lambda folder: Plan([(_noise(), 1.0, 1)], vouched=(HALF,)),
    "label of a domain": lambda folder: _table(domains={"g": ["a", HALF]}),
    "condition": lambda folder: _table().where(sdp.col("g") == HALF),
    "list": lambda folder: _table().where(sdp.col("g").isin([HALF])),
    "column": lambda folder: sdp.col(HALF),
    "aggregate": lambda folder: _table().agg(**{HALF: sdp.count()}),
    "column of a frame": lambda folder: sdp.table(
        FRAME.set_axis(pd.Index(["g", HALF], dtype=object), axis=1), person=None
    ),
    "attribute": lambda folder: sdp.Workload({HALF: 3}),
    "measure": lambda folder: sdp.Workload({"g": 3}, measures={HALF: (0, 1)}),
    "document": lambda folder: parse('{"name": "a\\ud800"}'),
}


@pytest.mark.parametrize("what", BROKEN)
def test_half_a_character_is_refused_in_words(what: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"broken character|whole characters") as refused:
        BROKEN[what](tmp_path)
    assert not isinstance(refused.value, UnicodeError)
    assert list(tmp_path.iterdir()) == []


def test_two_halves_are_a_character() -> None:
    assert parse('{"name": "\\ud83d\\ude00"}') == {"name": "\U0001f600"}


def _silent(text: str) -> bool:
    return all(one.isprintable() or one == "\n" for one in text)


def test_no_view_of_an_answer_steers_a_terminal() -> None:
    frame = pd.DataFrame({SHOUT: ["a", SHOUT] * 300, "x": [1.0, 2.0] * 300})
    t = sdp.table(frame, person=None, bounds={"x": (0, 3)}, domains={SHOUT: ["a", SHOUT]})
    hidden = sdp.table(frame, person=None, domains={SHOUT: "private"})
    asked = [t.group_by(SHOUT).agg(**{SHOUT + "n": sdp.count(), "m": sdp.mean("x")}), t.top_k(SHOUT, 1)]
    for question in (*asked, hidden.group_by(SHOUT).count()):
        answers = question.release(epsilon=50.0, delta=1e-3)
        assert _silent(repr(question))
        assert _silent(repr(answers))
        shown = answers._repr_html_()
        assert _silent(shown)
        assert "<script>" not in shown
        assert SHOUT in answers.columns, "the data themselves keep the name"


def test_no_error_of_a_reader_steers_a_terminal() -> None:
    table = pa.table({SHOUT: ["a"], "y": [1.0]})
    for failing in (
        lambda: sdp.table(table, person=None, bounds={"no": (0, 1)}),
        lambda: numbers(table),
        lambda: sdp.table(pa.table([pa.array([1]), pa.array([1])], names=[SHOUT, SHOUT]), person=None),
    ):
        with pytest.raises(ValueError) as refused:
            failing()
        assert _silent(str(refused.value))


@pytest.mark.parametrize("size", ["0GB", "0.000TB", "1KB", "99MB", "0MiB", 4])
def test_too_little_memory_is_refused_before_a_row_is_read(size: Any) -> None:
    with pytest.raises(ValueError, match="100MB at least"):
        sdp.table(FRAME, person=None, memory=size)


def test_enough_memory_is_taken() -> None:
    for size in ("100MB", "0.1GB", "4GiB", "1TB"):
        assert sdp.table(FRAME, person=None, memory=size).memory == size


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_lost_output_leaves_the_work_done(tmp_path: Path) -> None:
    """What was written or spent stays so. The code says neither "done" nor "wrong input": do not run it again."""
    from shapedp.boundary.documents import write

    write(tmp_path / "m.json", _noise().to_json())
    (tmp_path / "x.csv").write_text("1.0\n")
    ledger = Ledger.create(tmp_path / "l.db", dataset="d", **CAP)
    commands = {
        "out.csv": "release m.json x.csv -o out.csv",
        "spent.csv": "ledger spend l.db m.json x.csv --dataset d -o spent.csv",
    }
    for name, command in commands.items():
        with open("/dev/full", "w") as full:
            words = [sys.executable, "-m", "shapedp", *command.split()]
            done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 4, done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert (tmp_path / name).exists()
        assert (tmp_path / name).with_suffix(".certificate.json").exists()
    assert ledger.status("d").states["released"] == 1
