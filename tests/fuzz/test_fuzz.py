"""A fixed share of the fuzz suite: the first cases of every kind break no property. `make fuzz` goes on for an hour."""

from __future__ import annotations

import os
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

BUDGET = {"api": 8, "command": 6, "process": 2, "json": 5, "table": 4, "ledger": 2}  # seconds of processor time


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


def test_the_judge_sees_what_is_broken() -> None:
    assert judge(float("nan"))
    assert not judge(1.0)
