"""The three changes of a ledger, each one transaction: reserve, take units of a reservation, close it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from shapedp.ledger import schema
from shapedp.ledger.errors import (
    BudgetExceededError,
    LedgerCorruptedError,
    LedgerError,
    SpendRefusedError,
)
from shapedp.ledger.records import totals_of
from shapedp.ledger.store import Store

if TYPE_CHECKING:
    from shapedp.ledger.spend import Spend


def reserve(store: Store, spend: Spend, mechanism: dict[str, Any]) -> tuple[int, str]:
    """Counts the spend; id and digest of its entry. Raises with nothing changed where the cap does not admit it."""

    def work(connection: sa.Connection) -> tuple[int, str]:
        row = dataset_row(store, connection, spend.dataset, lock=True)
        if (row["adjacency"], row["filter"], bool(row["vouching"])) != spend.terms.frozen:
            raise LedgerError(f"dataset {spend.dataset!r} is not the one it was; open the ledger again")
        after = totals_of(row).plus(spend.charge)
        if not spend.terms.filter.admits(after):
            raise BudgetExceededError(_refusal(spend, row))
        entry: dict[str, Any] = {
            "sequence": row["entries"] + 1,
            "time": now(),
            "count": spend.count,
            "mechanism": schema.to_text(mechanism),
            "certificate": _keep(store, connection, spend.certificate),
            "cost": schema.to_text(spend.charge.to_json()),
        }
        digest = schema.digest_of(row["chain"], entry)
        entry |= {"state": "reserved", "ended": entry["time"], "secure": 0, "taken": 0, "digest": digest}
        inserted = connection.execute(
            schema.entries.insert().values(**entry, dataset_id=row["id"])
        ).inserted_primary_key
        totals = schema.to_text(after.to_json())
        _advance(connection, row, None, entry, totals=totals, entries=entry["sequence"], chain=digest)
        if inserted is None:
            raise LedgerError("the database returned no id for the entry")
        return int(inserted[0]), digest

    return store.perform(work)


def take(store: Store, dataset: str, entry: int, digest: str, number: int) -> None:
    """Takes `number` units of a reservation, whoever else does so at the same time; raises where fewer are left.

    Guarantee: over all processes, threads and copies of the spend at most `count` units are ever taken.
    """

    def work(connection: sa.Connection) -> None:
        row = dataset_row(store, connection, dataset, lock=True)
        old = _entry(store, connection, row, entry, digest)
        left = old["count"] - old["taken"]
        if old["state"] != "reserved":
            raise SpendRefusedError(f"the block of this spend has ended (its entry is {old['state']}): nothing is left")
        if number > left:
            raise SpendRefusedError(
                f"{number} releases were asked for, {left} of the {old['count']} reserved are left: "
                "reserve them with count="
            )
        _change(connection, row, old, taken=old["taken"] + number)

    store.perform(work)


def left(store: Store, entry: int) -> int:
    """How many units of a reservation are not taken."""
    table = schema.entries
    with store.read() as connection:
        query = sa.select(table.c.count, table.c.taken).where(table.c.id == entry)
        found = connection.execute(query).mappings().first()
    if found is None:
        raise LedgerCorruptedError(f"entry {entry} is no longer in the ledger {store.name}")
    row = schema.typed(found, table)
    return int(row["count"] - row["taken"])


def close(store: Store, dataset: str, entry: int, digest: str, state: str) -> None:
    """Marks a reserved entry; its cost stays. Rows keep their size, so that a full disk cannot object."""

    def work(connection: sa.Connection) -> None:
        row = dataset_row(store, connection, dataset, lock=True)
        old = _entry(store, connection, row, entry, digest)
        if old["state"] != "reserved":
            raise LedgerCorruptedError(f"the reserved entry {entry} is no longer in the ledger {store.name}")
        _change(connection, row, old, state=state, ended=now(), secure=int(old["taken"] > 0))

    store.perform(work)


def dataset_row(store: Store, connection: sa.Connection, dataset: str, *, lock: bool = False) -> dict[str, Any]:
    """The dataset's row with its seal checked; `lock` holds others off until the transaction ends."""
    query = sa.select(schema.datasets).where(schema.datasets.c.name == dataset)
    found = connection.execute(query.with_for_update() if lock else query).mappings().first()
    if found is None:
        raise LedgerError(f"the ledger {store.name} has no dataset {dataset!r}")
    row = schema.typed(found, schema.datasets)
    if not schema.sealed(row):
        raise LedgerCorruptedError(
            f"the row of dataset {dataset!r} was damaged or changed by hand; restore the ledger from a "
            "backup and treat what is missing as spent"
        )
    return row


def now() -> str:
    """The time in UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _entry(store: Store, connection: sa.Connection, row: dict[str, Any], entry: int, digest: str) -> dict[str, Any]:
    """The entry that was reserved; another one may have its id where a backup was restored meanwhile."""
    table = schema.entries
    query = sa.select(table).where(table.c.id == entry, table.c.dataset_id == row["id"], table.c.digest == digest)
    found = connection.execute(query).mappings().first()
    if found is None:
        raise LedgerCorruptedError(f"the reserved entry {entry} is no longer in the ledger {store.name}")
    return schema.typed(found, table)


def _change(connection: sa.Connection, row: dict[str, Any], old: dict[str, Any], **values: Any) -> None:
    table = schema.entries
    connection.execute(table.update().where(table.c.id == old["id"]).values(**values))
    _advance(connection, row, old, old | values)


def _advance(
    connection: sa.Connection, row: dict[str, Any], old: dict[str, Any] | None, new: dict[str, Any], **values: Any
) -> None:
    """Writes the dataset's row after one of its entries has become `new`."""
    values |= {"events": row["events"] + 1, "marks": schema.remarked(row["marks"], old, new)}
    values["seal"] = schema.seal_of(row | values)
    connection.execute(schema.datasets.update().where(schema.datasets.c.id == row["id"]).values(**values))


def _keep(store: Store, connection: sa.Connection, text: str) -> str:
    """Stores a certificate unless it is there already; its digest."""
    digest = schema.document_digest(text)
    insert = sqlite.insert if store.is_sqlite else postgresql.insert
    connection.execute(insert(schema.documents).values(digest=digest, text=text).on_conflict_do_nothing())
    return digest


def _refusal(spend: Spend, row: dict[str, Any]) -> str:
    """Why the spend is not admitted: the cap, the rule that counts, and what to do."""
    budget, before = spend.terms.filter, totals_of(row)
    return (
        f"the spend would exceed the cap of {spend.dataset!r} (epsilon={budget.epsilon:g}, delta={budget.delta:g}) as "
        f"rule={budget.rule!r} counts: {budget.spent(before):.4%} of it is spent, "
        f"{budget.spent(before.plus(spend.charge)):.4%} would be; nothing was reserved or released"
        f"{budget.remedy(spend.mechanism, spend.count)}"
    )
