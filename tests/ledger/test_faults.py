"""A corrupted, read-only, full, locked or absent database: a clear error and no release."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from tests.ledger.helpers import CAP, X, gaussian, outcome

import shapedp as sdp
from shapedp.ledger import (
    Ledger,
    LedgerCorruptedError,
    LedgerError,
    LedgerFullError,
    LedgerLockedError,
    LedgerReadOnlyError,
    LedgerUnavailableError,
)
from shapedp.ledger.records import totals_of


@pytest.fixture
def path() -> Iterator[Path]:
    """A ledger with one entry, in a folder that other users can reach."""
    folder = Path(tempfile.mkdtemp(prefix="ledger"))
    folder.chmod(0o755)
    ledger = Ledger.create(folder / "ledger.db", dataset="d", **CAP)
    with ledger.spend("d", gaussian(100)) as spend:
        spend.release(X)
    yield folder / "ledger.db"
    shutil.rmtree(folder)


class Watched(sdp.Additive):
    """A mechanism that tells of every release."""

    released = 0

    def release(self, *arguments: object, **options: object) -> sdp.Release:
        type(self).released += 1
        return super().release(*arguments, **options)


def watched() -> Watched:
    plain = gaussian(100)
    Watched.released = 0
    return Watched(plain.law, plain.sensitivity, plain.epsilon, plain.delta)


def spend_once(where: Path | str, *, timeout: float = 0.3) -> int:
    """One spend from a fresh ledger; the number of entries after it."""
    ledger = Ledger.open(where, timeout=timeout)
    with ledger.spend("d", watched()) as spend:
        spend.release(X)
    with ledger.store.read() as connection:
        return int(ledger._row(connection, "d")["entries"])


def refused(kind: type[LedgerError], work: Callable[[], object]) -> str:
    with pytest.raises(kind) as caught:
        work()
    assert Watched.released == 0, "a release was made"
    return str(caught.value)


@pytest.mark.parametrize(
    "damage",
    [lambda old: b"not a database" * 100, lambda old: old[:200] + b"\xff" * 3000 + old[3200:], lambda old: old[:5000]],
    ids=["another file", "overwritten", "cut short"],
)
def test_corrupted(path: Path, damage: Callable[[bytes], bytes]) -> None:
    path.write_bytes(damage(path.read_bytes()))
    Watched.released = 0
    message = refused(LedgerCorruptedError, lambda: spend_once(path))
    assert "restore" in message


def test_empty_file_is_not_a_ledger(path: Path) -> None:
    path.write_bytes(b"")
    Watched.released = 0
    assert "holds no ledger" in refused(LedgerError, lambda: spend_once(path))


def test_random_damage_never_lowers_the_total(path: Path) -> None:
    """Blocks of garbage all over the file: either an error, or a spend on top of the full earlier total."""
    whole, rng, clear = path.read_bytes(), np.random.default_rng(5), 0
    used = np.flatnonzero(np.frombuffer(whole, dtype=np.uint8))
    before = Ledger.open(path).status("d").totals.amounts[0]
    journal = path.with_name(path.name + "-journal")
    for _ in range(80):
        start, length = int(rng.choice(used)), int(rng.integers(1, 80))
        path.write_bytes(whole[:start] + rng.bytes(length) + whole[start + length :])
        journal.unlink(missing_ok=True)
        Watched.released = 0
        try:
            spend_once(path)
        except LedgerError:
            clear += 1
            assert Watched.released == 0
        else:
            ledger = Ledger.open(path)
            with ledger.store.read() as connection:
                assert totals_of(ledger._row(connection, "d")).amounts[0] == 2 * before
    assert clear > 10


@pytest.mark.parametrize(
    "statement",
    [
        'UPDATE shapedp_dataset SET totals = \'{"amounts":["0"],"failure":"0"}\'',
        "UPDATE shapedp_dataset SET entries = 0",
    ],
)
def test_a_row_changed_by_hand_is_refused(path: Path, statement: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()
    Watched.released = 0
    assert "changed by hand" in refused(LedgerCorruptedError, lambda: spend_once(path))


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM shapedp_entry WHERE sequence = 2",
        'UPDATE shapedp_entry SET cost = \'{"amounts":["1"],"failure":"0"}\' WHERE sequence = 2',
        "UPDATE shapedp_document SET text = '{}'",
    ],
)
def test_check_finds_changed_entries(path: Path, statement: str) -> None:
    spend_once(path)
    spend_once(path)
    Ledger.open(path).check("d")
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()
    with pytest.raises(LedgerCorruptedError):
        Ledger.open(path).check("d")


def test_read_only(path: Path) -> None:
    journal = path.with_name(path.name + "-journal")
    for file in (path, journal):
        file.chmod(0o444)
    path.parent.chmod(0o555)

    def as_nobody() -> str:
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        assert Ledger.open(path).status("d").entries == 1
        return refused(LedgerReadOnlyError, lambda: spend_once(path))

    text = outcome(as_nobody)
    path.parent.chmod(0o755)
    assert text.startswith("returned")
    assert "cannot be written to" in text
    assert Ledger.open(path).check("d").entries == 1


def test_full_by_file_size(path: Path) -> None:
    """The process may not make files grow: spends end in an error, and what is counted stays consistent."""
    mechanism = gaussian(100)

    def limited() -> str:
        size = path.stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        ledger = Ledger.open(path)
        for number in range(200):
            Watched.released = 0
            different = Watched(mechanism.law, mechanism.sensitivity, 1.0 + number / 1e4, mechanism.delta)
            try:
                with ledger.spend("d", different) as spend:
                    spend.release(X)
            except LedgerFullError as error:
                return f"{error} released={Watched.released}"
        return "never full"

    text = outcome(limited)
    assert "no room left" in text
    assert text.endswith("released=0'")
    status = Ledger.open(path).check("d")
    assert status.entries == status.states["released"] > 1


def test_full_disk(tmp_path: Path) -> None:
    """A real file system without room."""
    mounted = tmp_path / "small"
    mounted.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=192k", "tmpfs", str(mounted)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a small file system cannot be mounted here")
    try:
        ledger = Ledger.create(mounted / "ledger.db", dataset="d", **CAP)
        (mounted / "filler").write_bytes(b"0" * (os.statvfs(mounted).f_bavail * os.statvfs(mounted).f_frsize - 8192))
        released = 0

        def fill() -> None:
            nonlocal released
            for _ in range(500):
                with ledger.spend("d", gaussian(10**6)) as spend:
                    spend.release(X)
                    released += 1

        with pytest.raises(LedgerFullError, match="no room left"):
            fill()
        (mounted / "filler").unlink()
        status = ledger.check("d")
        assert released == status.entries == status.states["released"]
        with ledger.spend("d", gaussian(10**6)) as spend:
            spend.release(X)
    finally:
        subprocess.run(["umount", str(mounted)], check=True)


def test_locked_sqlite(path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    Watched.released = 0
    assert "locked" in refused(LedgerLockedError, lambda: spend_once(path))
    other.execute("ROLLBACK")
    other.close()
    assert spend_once(path) == 2


def test_locked_postgresql(postgres: str) -> None:
    ledger = Ledger.create(postgres, dataset="d", timeout=0.3, **CAP)
    engine = sa.create_engine(postgres.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as other:
        other.execute(sa.text("SELECT * FROM shapedp_dataset FOR UPDATE"))
        mechanism = watched()

        def work() -> None:
            with ledger.spend("d", mechanism) as spend:
                spend.release(X)

        assert "locked" in refused(LedgerLockedError, work)
    engine.dispose()


def test_a_lock_at_the_end_leaves_the_spend_counted(path: Path) -> None:
    ledger = Ledger.open(path, timeout=0.2)
    other = sqlite3.connect(path, isolation_level=None)

    def work() -> None:
        with ledger.spend("d", gaussian(100)) as spend:
            spend.release(X)
            other.execute("BEGIN IMMEDIATE")

    with pytest.raises(LedgerLockedError) as caught:
        work()
    other.close()
    assert "stays reserved and counted" in caught.value.__notes__[0]
    assert ledger.check("d").states == {"reserved": 1, "released": 1, "abandoned": 0}


def test_absent_file_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(LedgerUnavailableError, match="no such ledger"):
        Ledger.open(tmp_path / "none.db")
    assert not list(tmp_path.iterdir())


def test_server_that_is_down() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(LedgerUnavailableError, match="server is up") as caught:
        Ledger.open("postgresql://someone:secret@127.0.0.1:1/none", timeout=2)
    assert "secret" not in str(caught.value)


def test_a_server_crash_loses_no_spend(postgres: str) -> None:
    """Connections cut by the server in the middle: the error comes before the release."""
    ledger = Ledger.create(postgres, dataset="d", **CAP)
    with ledger.spend("d", gaussian(100)):
        engine = sa.create_engine(postgres.replace("postgresql:", "postgresql+psycopg:"))
        with engine.connect() as other:
            cut = (
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid != pg_backend_pid()"
            )
            other.execute(sa.text(cut))
        engine.dispose()
    assert ledger.check("d").states["released"] == 1


def test_another_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "data.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE people (name TEXT)")
    connection.close()
    with pytest.raises(LedgerError, match="something else"):
        Ledger.create(path, dataset="d", **CAP)
    with pytest.raises(LedgerError, match="holds no ledger"):
        Ledger.open(path)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("people",)]
    connection.close()
