"""The storm of experiments/security/ledger_storm.py, small: workers killed while they spend from one cap."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def storms() -> ModuleType:
    path = Path(__file__).parents[2] / "experiments" / "security" / "ledger_storm.py"
    spec = importlib.util.spec_from_file_location("ledger_storm", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("way", ["fork", "inherit", "thread", "units"])
def test_returned_is_recorded_and_never_above_the_cap(where: str, tmp_path: Path, storms: ModuleType, way: str) -> None:
    case = storms.Case(storms.WAYS.index(way), way, "any", workers=4, spends=8, kills=3)
    found = storms.storm(case, where, tmp_path / "storm")
    assert found.faults == ()
    assert found.returned <= found.recorded <= found.returned + found.kills * storms.THREADS
    assert found.kills > 0


def test_links_made_meanwhile_stop_the_workers(tmp_path: Path, storms: ModuleType) -> None:
    case = storms.Case(5, "names", "sqlite", workers=3, spends=6, kills=1)
    found = storms.storm(case, str(tmp_path / "l.db"), tmp_path / "storm")
    assert found.faults == ()


@pytest.mark.slow
@pytest.mark.parametrize("way", ["spawn", "mixed"])
def test_fresh_interpreters(where: str, tmp_path: Path, storms: ModuleType, way: str) -> None:
    case = storms.Case(storms.WAYS.index(way), way, "any", workers=8, spends=12, kills=4)
    assert storms.storm(case, where, tmp_path / "storm").faults == ()


def test_a_storm_sees_an_overspend(tmp_path: Path, storms: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is taken in the database, what is returned is not what is recorded."""
    from shapedp.ledger import book

    monkeypatch.setattr(book, "take", lambda *_: None)
    case = storms.Case(0, "fork", "sqlite", workers=2, spends=5, kills=1)
    found = storms.storm(case, str(tmp_path / "l.db"), tmp_path / "storm")
    assert any("recorded" in fault for fault in found.faults)
