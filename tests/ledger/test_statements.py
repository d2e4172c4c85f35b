"""What a spend sends to its database: a fixed number of statements, and on a server the limits in one journey."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from tests.ledger.helpers import CAP, X, gaussian

from shapedp.ledger import Ledger


@pytest.fixture
def sent() -> Iterator[list[str]]:
    """Every statement that is sent, in order."""
    found: list[str] = []

    def note(_c: object, _u: object, statement: str, *_: object) -> None:
        found.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    yield found
    sa.event.remove(sa.Engine, "before_cursor_execute", note)


def test_a_spend_is_three_transactions_of_a_few_statements(where: str, sent: list[str]) -> None:
    """Five: limits on PostgreSQL, the place on SQLite, whose lock is taken beside, and four of the ledger."""
    ledger = Ledger.create(where, dataset="d", **CAP)
    for _ in range(7):  # psycopg prepares what it has seen five times
        with ledger.spend("d", gaussian(10)) as spend:
            sent.clear()
            spend.release(X)
            taken = len(sent)
    assert taken == 5
    assert len(sent) == 2 * taken
    with ledger.spend("d", gaussian(10)):
        assert len(sent) == 3 * taken
    assert ledger.check("d").states["released"] == 8


def test_a_certificate_is_kept_before_the_dataset_is_locked(where: str, sent: list[str]) -> None:
    """Others wait for the lock: what does not need it is done before."""
    ledger = Ledger.create(where, dataset="d", **CAP)
    sent.clear()
    with ledger.spend("d", gaussian(10)):
        order = [one.split()[0] for one in sent if "shapedp_d" in one and not one.startswith("SET TRANSACTION")]
    assert order == ["SELECT", "INSERT", "SELECT", "UPDATE"]  # the terms; document, dataset's row twice


@pytest.mark.parametrize("write", [True, False])
def test_one_journey_sets_all_limits(postgres: str, write: bool) -> None:
    other = "&options=-c%20synchronous_commit%3Doff%20-c%20default_transaction_isolation%3Dserializable"
    ledger = Ledger.create(postgres + other, dataset="d", timeout=7.0, **CAP)
    names = ("transaction_isolation", "lock_timeout", "statement_timeout", "synchronous_commit")
    for _ in range(7):
        with ledger.store._transaction(write=write) as connection:
            found = [connection.exec_driver_sql(f"SHOW {name}").scalar() for name in names]
        level, durable = ("read committed", "on") if write else ("repeatable read", "off")
        assert found == [level, "7s", "7s", durable]
    with ledger.store._transaction(write=False) as connection:
        assert connection.exec_driver_sql("SHOW transaction_read_only").scalar() == "on"
