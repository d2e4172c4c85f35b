"""A fixed share of the fuzz suite: the first cases of every kind break no property. `make fuzz` goes on for an hour."""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("limits memory and time as Linux does", allow_module_level=True)
pytest.importorskip("sqlalchemy")

from fuzz.api import targets
from fuzz.commands import _commands
from fuzz.pool import stock
from fuzz.properties import judge
from fuzz.run import KINDS, State, chunk, prepare, table
from fuzz.yard import watch, yard

from fuzz import api, run
from shapedp.cli import main

BUDGET = {
    "api": 6,
    "each": 6,
    "command": 6,
    "process": 2,
    "json": 5,
    "table": 4,
    "ledger": 2,
}  # seconds of processor time


@pytest.mark.parametrize("kind", KINDS)
def test_no_property_is_broken(kind: str, tmp_path: Path) -> None:
    here, state = Path.cwd(), State(None)
    prepare()
    try:
        chunk(kind, state, tmp_path, budget=BUDGET[kind])
    finally:
        os.chdir(here)
    assert state.of(kind)["next"] >= 1
    assert not state.of(kind)["broken"], table(state)


def test_what_is_public_is_found() -> None:
    names = {target.name.partition("#")[0] for target in targets()}
    assert {"shapedp.mechanisms.calibrate.calibrate", "shapedp.mechanisms.additive.Additive.release"} <= names
    assert len(names) > 200
    assert len(stock()) > 30
    assert {words[0] for words, _ in _commands()} >= {"release", "ledger", "fit", "verify", "report", "account"}


def test_every_public_callable_is_met() -> None:
    """Whatever it costs: one case in some goes through all targets in turn. Its arguments can be made."""
    every = len(targets()) * api._TURN
    turns = {api.chosen(random.Random(0), number).name for number in range(0, every, api._TURN)}
    assert turns == {target.name for target in targets()}
    others = [api.chosen(random.Random(number), number).known for number in range(1, 20000)]
    assert len(set(others)) > 0.5 * len({target.known for target in targets()})


def test_costs_are_of_public_callables() -> None:
    assert json.loads(api.COSTS.read_text()).keys() <= {target.known for target in targets()}


def test_a_case_that_waits_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    monkeypatch.setattr(run, "WAIT", 0.5)
    monkeypatch.setitem(run.KINDS, "json", lambda number, folder: fifo.read_bytes())
    assert "waits" in run.timed("json", 0, tmp_path).broken[0]


def test_the_folder_is_put_back(tmp_path: Path) -> None:
    here = Path.cwd()
    with yard(tmp_path, ledger=True) as place:
        built = watch(place)
        (place / "x.csv").write_text("gone")
        (place / "new").write_text("new")
        assert main(["ledger", "spend", "d.db", "m.json", "x.npy", "--dataset", "d", "-o", "other.csv"]) == 0
        (place / "d.db").write_bytes(b"destroyed")
        assert watch(place) != built
    with yard(tmp_path, ledger=True) as place:
        assert watch(place) == built
        assert main(["ledger", "status", "d.db", "--check"]) == 0
        (place / "x.csv").unlink()
    with yard(tmp_path, ledger=True) as place:
        assert (place / "x.csv").exists()
    assert Path.cwd() == here


def test_the_judge_sees_what_is_broken() -> None:
    assert judge(float("nan"))
    assert not judge(1.0)
