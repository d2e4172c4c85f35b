"""The three changes of a ledger, each one transaction: reserve, take units of a reservation, close it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from shapedp.boundary.refusals import refusal
from shapedp.ledger import schema
from shapedp.ledger.about import settled
from shapedp.ledger.errors import RESTORE, BudgetExceededError, LedgerCorruptedError, LedgerError, SpendRefusedError
from shapedp.ledger.fixed import Charge
from shapedp.ledger.records import filter_of, totals_of
from shapedp.ledger.remedies import remedy
from shapedp.ledger.schema import Row
from shapedp.ledger.store import Store

if TYPE_CHECKING:
    from shapedp.ledger.spend import Spend

# Statements are built once, their values come with each call: building them anew took a quarter of a spend's time.
_ROW = sa.select(schema.datasets).where(schema.datasets.c.name == sa.bindparam("of_name"))
_LOCKED_ROW = _ROW.with_for_update()
_SET_ROW = schema.datasets.update().where(schema.datasets.c.id == sa.bindparam("of_id"))
_ENTRY = sa.select(schema.entries).where(
    schema.entries.c.id == sa.bindparam("of_id"),
    schema.entries.c.dataset_id == sa.bindparam("of_dataset"),
    schema.entries.c.digest == sa.bindparam("of_digest"),
)
_SET_ENTRY = schema.entries.update().where(schema.entries.c.id == sa.bindparam("of_id"))
_ADD_ENTRY = schema.entries.insert()
_ADD_DOCUMENT = {
    True: sqlite.insert(schema.documents).on_conflict_do_nothing(),
    False: postgresql.insert(schema.documents).on_conflict_do_nothing(),
}


def reserve(spend: Spend, mechanism: dict[str, Any]) -> tuple[int, str, Charge]:
    """Counts the spend; id and digest of its entry, and the totals before it.

    Raises with nothing changed where the cap, or the unit of privacy, does not admit it.
    """
    store = spend.ledger.store

    def work(connection: sa.Connection) -> tuple[int, str, Charge]:
        certificate = _keep(store, connection, spend.certificate)  # before the lock: others need not wait for it
        row = dataset_row(store, connection, spend.dataset, lock=True)
        if (row["adjacency"], row["filter"], bool(row["vouching"])) != spend.terms.frozen:
            raise LedgerError(f"dataset {spend.dataset!r} is not the one it was; open the ledger again")
        unit = settled(spend.dataset, row["unit"], spend.about.unit)
        before = totals_of(row)
        after = before.plus(spend.charge)
        if not filter_of(row).admits(after):
            raise BudgetExceededError(_refusal(spend, row))
        entry: Row = {
            "sequence": row["entries"] + 1,
            "time": now(),
            "count": spend.count,
            "mechanism": schema.to_text(mechanism | replace(spend.about, unit=unit).kept()),
            "certificate": certificate,
            "cost": schema.to_text(spend.charge.to_json()),
        }
        digest = schema.digest_of(row["chain"], entry)
        entry |= {"state": "reserved", "ended": entry["time"], "secure": 0, "taken": 0, "digest": digest}
        inserted: Any = connection.execute(_ADD_ENTRY, {**entry, "dataset_id": row["id"]})
        values = {"totals": schema.to_text(after.to_json()), "entries": entry["sequence"], "chain": digest}
        _advance(connection, row, None, entry, **values, unit=row["unit"] or spend.about.unit)
        return int(inserted.inserted_primary_key[0]), digest, before

    return store.perform(work)


def take(spend: Spend, number: int) -> None:
    """Takes `number` units of a reservation, whoever else does so at the same time; raises where fewer are left.

    Guarantee: over all processes, threads and copies of the spend at most `count` units are ever taken.
    """

    def taken(old: Row) -> Row:
        left = old["count"] - old["taken"]
        if old["state"] != "reserved":
            raise SpendRefusedError(f"the block of this spend has ended (its entry is {old['state']}): nothing is left")
        if number > left:
            raise SpendRefusedError(refusal("ledger", "too-few-reserved", number=number, left=left, count=old["count"]))
        return {"taken": old["taken"] + number}

    _change(spend, taken)


def close(spend: Spend, state: str) -> None:
    """Marks a reserved entry; its cost stays. Rows keep their size, so that a full disk cannot object."""

    def closed(old: Row) -> Row:
        if old["state"] != "reserved":
            raise _missing(spend)
        return {"state": state, "ended": now(), "secure": int(old["taken"] > 0)}

    _change(spend, closed)


def left(spend: Spend) -> int:
    """How many units of a reservation are not taken."""
    table = schema.entries
    query = sa.select(table.c.count, table.c.taken).where(table.c.id == spend.entry)
    with spend.ledger.store.read() as connection:
        row = schema.first(connection, query, table)
    if row is None:
        raise _missing(spend)
    return int(row["count"] - row["taken"])


def dataset_row(store: Store, connection: sa.Connection, dataset: str, *, lock: bool = False) -> Row:
    """The dataset's row with its seal checked; `lock` holds others off until the transaction ends."""
    row = schema.first(connection, _LOCKED_ROW if lock else _ROW, schema.datasets, of_name=dataset)
    if row is None:
        raise LedgerError(refusal("ledger", "no-such-dataset", ledger=store.name, dataset=dataset))
    if schema.seal_of(row) != row["seal"]:
        raise LedgerCorruptedError(f"the row of dataset {dataset!r} was damaged or changed by hand; {RESTORE}")
    return row


def now() -> str:
    """The time in UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _change(spend: Spend, change: Callable[[Row], Row]) -> None:
    """Gives the entry that was reserved the values that `change` makes of it, in one transaction.

    Another entry may have its id where a backup was restored meanwhile, but not its digest.
    """
    store = spend.ledger.store

    def work(connection: sa.Connection) -> None:
        row = dataset_row(store, connection, spend.dataset, lock=True)
        mine = {"of_id": spend.entry, "of_dataset": row["id"], "of_digest": spend.digest}
        old = schema.first(connection, _ENTRY, schema.entries, **mine)
        if old is None:
            raise _missing(spend)
        values = change(old)
        connection.execute(_SET_ENTRY, {**values, "of_id": old["id"]})
        _advance(connection, row, old, old | values)

    store.perform(work)


def _missing(spend: Spend) -> LedgerCorruptedError:
    return LedgerCorruptedError(f"entry {spend.entry}, reserved, is no longer in the ledger {spend.ledger.store.name}")


def _advance(connection: sa.Connection, row: Row, old: Row | None, new: Row, **values: Any) -> None:
    """Writes the dataset's row after one of its entries has become `new`."""
    values |= {"events": row["events"] + 1, "marks": schema.remarked(row["marks"], old, new)}
    values["seal"] = schema.seal_of(row | values)
    connection.execute(_SET_ROW, {**values, "of_id": row["id"]})


def _keep(store: Store, connection: sa.Connection, text: str) -> str:
    """Stores a certificate unless it is there already; its digest."""
    digest = schema.document_digest(text)
    connection.execute(_ADD_DOCUMENT[store.is_sqlite], {"digest": digest, "text": text})
    return digest


def _refusal(spend: Spend, row: Row) -> str:
    """Why the spend is not admitted: the cap, the rule that counts, and what to do."""
    budget, before = spend.terms.filter, totals_of(row)
    now, after = budget.spent(before), budget.spent(before.plus(spend.charge))
    advice = remedy(budget, before, spend.mechanism, spend.count)
    return refusal("ledger", "over-the-cap", dataset=spend.dataset, cap=budget, now=now, after=after, remedy=advice)
