"""PostgreSQL: reads ignored the timeout (25 s behind a locked table), and under a serializable or repeatable-read
default most concurrent spends failed: 213 of 360."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.ledger import conftest
from tests.ledger.helpers import CAP, X, gaussian, race

from shapedp.ledger import Ledger, LedgerConflictError, LedgerCorruptedError, LedgerLockedError

server, postgres = conftest.server, conftest.postgres


def engine(url: str) -> sa.Engine:
    return sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"), connect_args={"client_encoding": "utf8"})


def test_a_read_ends_at_the_timeout(postgres: str) -> None:
    ledger = Ledger.create(postgres, dataset="d", timeout=0.5, **CAP)
    other = engine(postgres)
    with other.connect() as holder:
        holder.execute(sa.text("LOCK TABLE shapedp_dataset, shapedp_entry, shapedp_ledger IN ACCESS EXCLUSIVE MODE"))
        for read in (
            lambda: ledger.status("d"),
            lambda: ledger.datasets(),
            lambda: ledger.affords("d", gaussian(4)),
            lambda: list(ledger.history("d")),
            lambda: ledger.check("d"),
            lambda: Ledger.open(postgres, timeout=0.5),
        ):
            started = time.monotonic()
            with pytest.raises(LedgerLockedError, match="timeout="):
                read()
            assert time.monotonic() - started < 10
    other.dispose()
    assert ledger.status("d").entries == 0


@pytest.mark.parametrize("level", ["serializable", "repeatable read"])
def test_the_defaults_of_the_database_do_not_matter(postgres: str, tmp_path: Path, level: str) -> None:
    admin = engine(postgres)
    with admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        name = connection.execute(sa.text("SELECT current_database()")).scalar()
        connection.execute(sa.text(f"ALTER DATABASE {name} SET default_transaction_isolation = '{level}'"))
    admin.dispose()
    ledger = Ledger.create(postgres, dataset="d", **CAP)
    released = race(postgres, tmp_path, processes=4, attempts=15, fits=50)
    status = ledger.check("d")
    assert len(released) == len(set(released)) == status.entries == status.states["released"] == 50


def failing(times: int) -> tuple[list[int], object]:
    """Work that the database undoes so many times before it lets it pass."""
    calls: list[int] = []

    def work(connection: sa.Connection) -> str:
        calls.append(len(calls))
        if len(calls) <= times:
            connection.exec_driver_sql("DO $$ BEGIN RAISE EXCEPTION 'undone' USING ERRCODE = '40001'; END $$")
        return "done"

    return calls, work


def test_an_undone_transaction_is_run_again_until_the_timeout(postgres: str) -> None:
    ledger = Ledger.create(postgres, dataset="d", timeout=5, **CAP)
    calls, work = failing(3)
    assert ledger.store.perform(work) == "done"  # type: ignore[arg-type]
    assert len(calls) == 4
    short = Ledger.open(postgres, timeout=0.2)
    calls, work = failing(10**9)
    with pytest.raises(LedgerConflictError, match="gave way"):
        short.store.perform(work)  # type: ignore[arg-type]
    assert len(calls) > 1


def test_foreign_bytes_in_a_database_without_an_encoding(server: str) -> None:
    """SQL_ASCII stores any byte; text came back as bytes, and the ledger ended in a TypeError."""
    admin = engine(server)
    with admin.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.text("CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE 'C'"))
    admin.dispose()
    ledger = Ledger.create(server.replace("/postgres?", "/ascii?"), dataset="d", **CAP)
    with ledger.spend("d", gaussian(4)) as spend:
        spend.release(X)
    assert ledger.check("d").entries == 1
    other = engine(server.replace("/postgres?", "/ascii?"))
    with other.begin() as connection:
        connection.execute(sa.text("UPDATE shapedp_dataset SET adjacency = E'\\xff\\xfe'"))
    other.dispose()
    for read in (ledger.status, ledger.check, ledger.head):
        with pytest.raises(LedgerCorruptedError, match="damaged"):
            read("d")
