"""The storm of experiments/security/ledger_storm.py, small: workers killed while they spend from one cap."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture(scope="module")
def storms() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2] / "experiments" / "security"))
        yield importlib.import_module("ledger_storm")


@pytest.mark.parametrize("way", ["fork", "inherit", "thread", "units"])
def test_returned_is_recorded_and_never_above_the_cap(where: str, tmp_path: Path, storms: ModuleType, way: str) -> None:
    case = storms.Case(storms.WAYS.index(way), way, "any", workers=4, spends=8, kills=3)
    found = storms.storm(case, where, tmp_path / "storm")
    assert found.faults == []
    assert found.finished
    assert (found.lost, found.double) == (0, 0)
    cut = found.ends["cut before"] + found.ends["cut after"]
    assert found.returned <= found.recorded <= found.returned + cut
    assert found.kills > 0
    assert found.ends.total() == 4 * 8


def test_second_names_are_refused_and_harmless_ones_share_the_cap(tmp_path: Path, storms: ModuleType) -> None:
    case = storms.Case(6, "names", "sqlite", workers=3, spends=6, kills=1)
    folder = tmp_path / "storm"
    found = storms.storm(case, str(folder / "l.db"), folder)
    assert found.faults == []
    assert "all refused" in found.notes[0]
    assert (folder / "tries").read_text().count("L") > 0


def test_clients_under_serializable_share_the_cap(postgres: str, tmp_path: Path, storms: ModuleType) -> None:
    """Every second process; from one host here (two_hosts.sh makes two)."""
    case = storms.Case(15, "hosts", "postgresql", workers=4, spends=6, kills=2)
    storm = storms.Storm(case, _made(tmp_path / "storm"), postgres)
    levels = set()
    for ledger in storm.ledgers.values():
        with ledger.store.read() as connection:
            levels.add(connection.exec_driver_sql("SHOW default_transaction_isolation").scalar())
    assert levels == {"read committed", "serializable"}
    assert storm.run().faults == []


def test_a_storm_goes_on_where_it_stopped(where: str, tmp_path: Path, storms: ModuleType) -> None:
    case = storms.Case(0, "fork", "any", workers=3, spends=10, kills=2)
    first = storms.storm(case, where, tmp_path / "storm", seconds=0.05)
    assert (first.finished, first.faults) in ((False, []), (False, ["nobody was killed: the storm shows nothing"]))
    second = storms.storm(case, where, tmp_path / "storm")
    assert (second.finished, second.faults) == (True, [])
    assert second.ends.total() == 30 > first.ends.total()


@pytest.mark.slow
@pytest.mark.parametrize("way", ["process", "spawn", "mixed"])
def test_fresh_interpreters(where: str, tmp_path: Path, storms: ModuleType, way: str) -> None:
    case = storms.Case(storms.WAYS.index(way), way, "any", workers=8, spends=12, kills=4)
    assert storms.storm(case, where, tmp_path / "storm").faults == []


def test_multiprocessing_shares_the_cap(tmp_path: Path, storms: ModuleType) -> None:
    case = storms.Case(3, "process", "sqlite", workers=2, spends=6, kills=1)
    assert storms.storm(case, str(tmp_path / "l.db"), tmp_path / "storm").faults == []


def test_a_storm_sees_an_overspend(tmp_path: Path, storms: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is taken in the database, what is returned is not what is recorded."""
    from shapedp.ledger import book

    monkeypatch.setattr(book, "take", lambda *_: None)
    case = storms.Case(0, "fork", "sqlite", workers=2, spends=5, kills=1)
    found = storms.storm(case, str(tmp_path / "l.db"), tmp_path / "storm")
    assert found.lost == found.returned > 0
    assert "what was returned is not recorded" in found.faults


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ("? =1 +1 ? =1 +1", "what was returned is not recorded"),
        ("? =9 +9", "what was returned is not recorded"),
        ("? -", "refused although"),
        ("?", "workers killed"),
        ("", "units of attempts that nobody cut off"),
    ],
)
def test_a_storm_sees_what_does_not_match(tmp_path: Path, storms: ModuleType, lines: str, fault: str) -> None:
    """One entry with its unit taken; the log of the only worker says something else."""
    case = storms.Case(0, "fork", "sqlite", workers=1, spends=4, kills=0)
    storm = storms.Storm(case, _made(tmp_path / "storm"), str(tmp_path / "l.db"))
    with storm.ledger.spend("d", storms.mechanism(case.cap)) as spend:
        spend.release([0.25])
    assert spend.entry == 1
    storm.logs[0].path.write_text(lines.replace(" ", "\n"))
    assert any(fault in found for found in storm.outcome().faults)


def _made(folder: Path) -> Any:
    folder.mkdir()
    return folder
