"""A privacy budget kept in a database."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from shapedp.accounting.ledger import schema
from shapedp.accounting.ledger.errors import BudgetExceededError, LedgerCorruptedError, LedgerError
from shapedp.accounting.ledger.filters import Filter, make_filter
from shapedp.accounting.ledger.fixed import Charge
from shapedp.accounting.ledger.jobs import price, spendable
from shapedp.accounting.ledger.records import Entry, Status, Terms, entry_of, filter_of, totals_of
from shapedp.accounting.ledger.spend import Spend, accepted, describe
from shapedp.accounting.ledger.store import Store, check_is_ledger, set_up
from shapedp.accounting.plan import Plan
from shapedp.mechanisms import Mechanism
from shapedp.numerics.checks import count as checked_count
from shapedp.numerics.checks import one_of
from shapedp.privacy import Certificate
from shapedp.sensitivity.base import ADJACENCIES

DEFAULT_TIMEOUT = 60.0
MAX_COUNT = 10**12
_GENESIS = "0" * 64
_PAGE = 1000


@dataclass(frozen=True)
class Ledger:
    """Budgets of one or more datasets, spent by reservation.

    Guarantee: a release made inside `spend` was reserved and durably counted before it; the reservations of a
    dataset never pass its cap, from any number of processes and threads and through a crash at any point. A
    reservation is never taken back, whatever happens in the block: a cost that depended on the outcome would
    void the filter.
    """

    store: Store
    _terms: dict[str, Terms] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def create(
        cls,
        where: str | os.PathLike[str],
        *,
        dataset: str,
        epsilon: float,
        delta: float,
        adjacency: str,
        rule: str | None = None,
        orders: Iterable[float] | None = None,
        failure_share: float = 0.0,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> Ledger:
        """A ledger with a new dataset in it; the database is made where it is missing.

        `rule` is "gaussian" (the default for delta > 0), "renyi" or "basic" (the default for delta = 0);
        `failure_share` is the part of delta kept for failure events and samplers' errors, which mechanisms
        without such events do not need.
        """
        built = make_filter(epsilon=epsilon, delta=delta, rule=rule, orders=orders, failure_share=failure_share)
        _name(dataset), one_of("adjacency", adjacency, ADJACENCIES)
        ledger = cls(Store.at(where, timeout=timeout))
        set_up(ledger.store)
        ledger._insert(dataset, adjacency, built)
        return ledger

    @classmethod
    def open(cls, where: str | os.PathLike[str], *, timeout: float = DEFAULT_TIMEOUT) -> Ledger:
        """An existing ledger; nothing is created."""
        ledger = cls(Store.at(where, timeout=timeout))
        check_is_ledger(ledger.store)
        return ledger

    def add(self, dataset: str, *, epsilon: float, delta: float, adjacency: str, **options: Any) -> None:
        """One more dataset in this database; options as for `create`."""
        built = make_filter(epsilon=epsilon, delta=delta, **options)
        self._insert(_name(dataset), one_of("adjacency", adjacency, ADJACENCIES), built)

    def spend(self, dataset: str, mechanism: Mechanism | Plan | Certificate, count: int = 1) -> Spend:
        """A block in which `mechanism` may be released `count` times.

        A `Plan` is spent whole, at its composed loss; a `Certificate` at the loss of the mechanism it describes
        where the dataset's rule has a price for that, else at its (epsilon, delta).
        Refuses at once what a ledger never accepts (uncertified, other adjacency, no price in this currency).
        """
        count = _count(count)
        terms = self._terms_of(dataset)
        job = spendable(mechanism, terms.filter)
        certificate = accepted(job, terms.adjacency)
        charge = price(job, terms.filter).times(count)
        return Spend(self, dataset, job, count, charge, certificate, terms)

    def affords(self, dataset: str, mechanism: Mechanism | Plan | Certificate) -> int | None:
        """How many more releases of `mechanism` the cap admits; None where they cost nothing."""
        with self.store.read() as connection:
            row = self._row(connection, dataset)
        budget = filter_of(row)
        job = spendable(mechanism, budget)
        accepted(job, row["adjacency"])
        return budget.affords(totals_of(row), price(job, budget))

    def datasets(self) -> tuple[str, ...]:
        """The names, in order of creation."""
        with self.store.read() as connection:
            rows = connection.execute(sa.select(schema.datasets.c.name).order_by(schema.datasets.c.id))
            return tuple(rows.scalars())

    def status(self, dataset: str) -> Status:
        """The cap, the totals and the number of entries in each state."""
        table = schema.entries
        with self.store.read() as connection:
            row = self._row(connection, dataset)
            counts = connection.execute(
                sa.select(table.c.state, sa.func.count().label("number"))
                .where(table.c.dataset_id == row["id"])
                .group_by(table.c.state)
            ).all()
        states = dict.fromkeys(schema.STATES, 0) | {row.state: row.number for row in counts}
        return Status(dataset, row["adjacency"], filter_of(row), totals_of(row), row["entries"], states)

    def history(self, dataset: str, *, last: int | None = None) -> Iterator[Entry]:
        """The entries in order of reservation; the `last` ones where asked."""
        last = None if last is None else checked_count("last", last)
        with self.store.read() as connection:
            row = self._row(connection, dataset)
        start = 0 if last is None else max(0, row["entries"] - last)
        return (entry for entry, _ in self._pages(row, start))

    def check(self, dataset: str) -> Status:
        """Reads every entry and compares digests and totals with the dataset's row.

        Raises LedgerCorruptedError where an entry is missing, was changed, or the totals are not their sum.
        """
        with self.store.read() as connection:
            row = self._row(connection, dataset)
        totals, head, number = _zero(filter_of(row)), _GENESIS, 0
        for entry, raw in self._pages(row, 0):
            number += 1
            head = schema.digest_of(head, raw)
            totals = totals.plus(entry.cost)
            if raw["digest"] != head or entry.sequence != number:
                raise LedgerCorruptedError(
                    f"entry {entry.sequence} of {dataset!r} was changed or its predecessor is missing"
                )
        if (number, head, totals) != (row["entries"], row["head"], totals_of(row)):
            raise LedgerCorruptedError(f"the entries of {dataset!r} do not add up to its totals")
        return self.status(dataset)

    def _insert(self, dataset: str, adjacency: str, built: Filter) -> None:
        row: dict[str, Any] = {
            "name": dataset,
            "created": now(),
            "adjacency": adjacency,
            "filter": schema.to_text(built.to_json()),
            "totals": schema.to_text(_zero(built).to_json()),
            "entries": 0,
            "head": _GENESIS,
        }
        with self.store.write() as connection:
            table = schema.datasets
            if connection.execute(sa.select(table.c.id).where(table.c.name == dataset)).first():
                raise LedgerError(f"dataset {dataset!r} is already in the ledger; its cap cannot be changed")
            connection.execute(table.insert().values(**row, seal=schema.seal_of(row)))

    def _reserve(self, spend: Spend) -> int:
        """Counts the spend and commits, or raises with nothing changed."""
        table = schema.datasets
        with self.store.write() as connection:
            row = self._row(connection, spend.dataset, lock=True)
            budget, before = spend.terms.filter, totals_of(row)
            if (row["adjacency"], row["filter"]) != (spend.terms.adjacency, spend.terms.text):
                raise LedgerError(f"dataset {spend.dataset!r} is not the one it was; open the ledger again")
            after = before.plus(spend.charge)
            if not budget.admits(after):
                raise BudgetExceededError(
                    f"the spend would exceed the cap of {spend.dataset!r} (epsilon={budget.epsilon:g}, "
                    f"delta={budget.delta:g}): {budget.spent(before):.4%} of it is spent, "
                    f"{budget.spent(after):.4%} would be; nothing was reserved or released"
                )
            entry: dict[str, Any] = {
                "sequence": row["entries"] + 1,
                "time": now(),
                "count": spend.count,
                "mechanism": schema.to_text(describe(spend.mechanism)),
                "certificate": self._keep(connection, spend.certificate),
                "cost": schema.to_text(spend.charge.to_json()),
            }
            head = schema.digest_of(row["head"], entry)
            inserted = connection.execute(
                schema.entries.insert().values(
                    **entry, dataset_id=row["id"], state="reserved", ended=entry["time"], secure=0, digest=head
                )
            ).inserted_primary_key
            changed = row | {
                "totals": schema.to_text(after.to_json()),
                "entries": entry["sequence"],
                "head": head,
            }
            new = {name: changed[name] for name in ("totals", "entries", "head")}
            connection.execute(
                table.update().where(table.c.id == row["id"]).values(**new, seal=schema.seal_of(changed))
            )
        if inserted is None:
            raise LedgerError("the database returned no id for the entry")
        return int(inserted[0])

    def _finish(self, entry: int, state: str, *, secure: bool) -> None:
        """Marks a reserved entry; its cost stays. The row keeps its size, so that a full disk cannot object."""
        table = schema.entries
        with self.store.write() as connection:
            done = connection.execute(
                table.update()
                .where(table.c.id == entry, table.c.state == "reserved")
                .values(state=state, ended=now(), secure=int(secure))
            )
            if done.rowcount != 1:
                raise LedgerCorruptedError(f"the reserved entry {entry} is no longer in the ledger {self.store.name}")

    def _keep(self, connection: sa.Connection, text: str) -> str:
        """Stores a certificate unless it is there already; its digest."""
        digest = schema.document_digest(text)
        insert = sqlite.insert if self.store.is_sqlite else postgresql.insert
        row = {"digest": digest, "text": text}
        connection.execute(insert(schema.documents).values(**row).on_conflict_do_nothing())
        return digest

    def _terms_of(self, dataset: str) -> Terms:
        """What never changes about a dataset, read once."""
        if _name(dataset) not in self._terms:
            with self.store.read() as connection:
                row = self._row(connection, dataset)
            self._terms[dataset] = Terms(row["adjacency"], row["filter"], filter_of(row))
        return self._terms[dataset]

    def _row(self, connection: sa.Connection, dataset: str, *, lock: bool = False) -> dict[str, Any]:
        """The dataset's row with its seal checked; `lock` holds others off until the transaction ends."""
        query = sa.select(schema.datasets).where(schema.datasets.c.name == _name(dataset))
        found = connection.execute(query.with_for_update() if lock else query).mappings().first()
        if found is None:
            raise LedgerError(f"the ledger {self.store.name} has no dataset {dataset!r}")
        row = dict(found)
        if not schema.sealed(row):
            raise LedgerCorruptedError(
                f"the row of dataset {dataset!r} was damaged or changed by hand; restore the ledger from a "
                "backup and treat what is missing as spent"
            )
        return row

    def _pages(self, row: dict[str, Any], after: int) -> Iterator[tuple[Entry, dict[str, Any]]]:
        """Entries up to those the row counts, a page per transaction: writers are not held up."""
        table = schema.entries
        while after < row["entries"]:
            query = sa.select(table).where(
                table.c.dataset_id == row["id"], table.c.sequence > after, table.c.sequence <= row["entries"]
            )
            with self.store.read() as connection:
                page = connection.execute(query.order_by(table.c.sequence).limit(_PAGE)).mappings().all()
                wanted = {found["certificate"] for found in page}
                kept = schema.documents
                documents = connection.execute(sa.select(kept).where(kept.c.digest.in_(wanted)))
                texts = {document.digest: document.text for document in documents}
            if not page:
                return
            for found in page:
                after = found["sequence"]
                yield entry_of(row["name"], dict(found), texts), dict(found)


def now() -> str:
    """The time in UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _zero(built: Filter) -> Charge:
    return Charge((0,) * len(built.capacities))


def _name(dataset: object) -> str:
    if not isinstance(dataset, str) or not dataset.strip() or "\0" in dataset or len(dataset) > 200:
        raise ValueError(f"dataset must be a name of 1 to 200 characters, got {dataset!r}")
    return dataset


def _count(count: object) -> int:
    number = checked_count("count", count)
    if number > MAX_COUNT:
        raise ValueError(f"count must be at most {MAX_COUNT}, got {count!r}")
    return number
