"""A privacy budget kept in a database."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

import sqlalchemy as sa

from shapedp.accounting.plan import Plan
from shapedp.boundary.refusals import refusal
from shapedp.boundary.values import boolean, is_text
from shapedp.ledger import schema
from shapedp.ledger.about import UNSTATED, About, settled, unit_of
from shapedp.ledger.book import dataset_row, now
from shapedp.ledger.errors import LedgerCorruptedError, LedgerError
from shapedp.ledger.filters import Filter, make_filter
from shapedp.ledger.fixed import Charge
from shapedp.ledger.jobs import price, spendable, voucher
from shapedp.ledger.records import Entry, Head, Status, Terms, check_continues, entry_of, filter_of, totals_of
from shapedp.ledger.schema import Row
from shapedp.ledger.spend import Spend, accepted
from shapedp.ledger.store import Store, adopt, check_is_ledger, set_up
from shapedp.mechanisms import Mechanism
from shapedp.numerics.checks import count as checked_count
from shapedp.numerics.checks import one_of
from shapedp.privacy import Certificate
from shapedp.sensitivity.base import ADJACENCIES

DEFAULT_TIMEOUT = 60.0
MAX_COUNT = 10**12
_PAGE = 1000


@dataclass(frozen=True)
class Ledger:
    """Budgets of one or more datasets, spent by reservation.

    Guarantee: a release made inside `spend` was reserved and durably counted before it; the reservations of a
    dataset never pass its cap, from any number of processes and threads and through a crash at any point. A
    reservation is never taken back, whatever happens in the block: a cost that depended on the outcome would
    void the filter. `Ledger.create` makes one, `Ledger.open` opens one that exists.

    Parameters
    ----------
    store
        The database.

    Examples
    --------
    >>> import tempfile
    >>> import shapedp as sdp
    >>> mechanism = sdp.calibrate("gaussian", sdp.L2(1.0, dim=2, adjacency="replace"), epsilon=0.1, delta=1e-7)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.create(f"{folder}/l.db", dataset="d", epsilon=1.0, delta=1e-6, adjacency="replace")
    ...     with ledger.spend("d", mechanism) as spend:
    ...         release = spend.release([3.0, 4.0])
    ...     (left, entries) = ledger.affords("d", mechanism), ledger.status("d").entries
    >>> left, entries
    (88, 1)
    """

    store: Store
    _terms: dict[str, Terms] = field(default_factory=dict, compare=False, repr=False)
    _about: About = field(default_factory=About, compare=False, repr=False)

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
        vouching: bool = False,
        person: str | None = UNSTATED,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> Ledger:
        """A ledger with a new dataset in it; the database is made where it is missing.

        `person` says whose privacy is counted, as in `sdp.table`: the column whose values are persons, or None: each
        row is another person. Spends of another unit are refused: the two would not add up. A dataset without one takes
        that of the first spend that states one.

        `rule` is "either" (the default for delta > 0), "gaussian", "renyi" or "basic" (the default for delta = 0);
        `failure_share` is the part of delta kept for failure events and samplers' errors, which mechanisms
        without such events do not need. With `vouching` certificates that cannot be computed again are spent too,
        where `spend` names a person who answers for them.
        """
        vouching = boolean("vouching", vouching)
        built = make_filter(epsilon=epsilon, delta=delta, rule=rule, orders=orders, failure_share=failure_share)
        row = _new_row(dataset, adjacency, built, vouching, person)
        ledger = cls(Store.at(where, timeout=timeout))
        set_up(ledger.store)
        ledger._insert(row)
        return ledger

    @classmethod
    def open(cls, where: str | os.PathLike[str], *, timeout: float = DEFAULT_TIMEOUT) -> Ledger:
        """An existing ledger; nothing is created. One of an earlier schema is brought to this one, once."""
        ledger = cls(Store.at(where, timeout=timeout))
        check_is_ledger(ledger.store)
        return ledger

    @classmethod
    def adopt(cls, where: str | os.PathLike[str], *, timeout: float = DEFAULT_TIMEOUT) -> Ledger:
        """A ledger whose file was copied, restored or renamed, as the one to spend from; every entry is checked.

        Spends made in another copy are missing here: call it only once no other copy will be spent from, and treat
        what is missing as spent.
        """
        ledger = cls.open(where, timeout=timeout)
        for name in ledger.datasets():
            ledger.check(name)
        adopt(ledger.store)
        return ledger

    def add(
        self,
        dataset: str,
        *,
        epsilon: float,
        delta: float,
        adjacency: str,
        vouching: bool = False,
        person: str | None = UNSTATED,
        **options: Any,
    ) -> None:
        """One more dataset in this database; options as for `create`."""
        vouching = boolean("vouching", vouching)
        built = make_filter(epsilon=epsilon, delta=delta, **options)
        self._insert(_new_row(dataset, adjacency, built, vouching, person))

    def stating(self, *, person: str | None = UNSTATED, label: str = "", author: str = "", note: str = "") -> Ledger:
        """This ledger with words that every spend made through it states, unless it states its own; see `spend`.

        `sdp.table(...).ask(..., ledger=ledger.stating(author="Ada", label="week 1"), dataset=...)` signs the entry.
        """
        return replace(self, _about=About.of(person, label, author, note).over(self._about))

    def spend(
        self,
        dataset: str,
        mechanism: Mechanism | Plan | Certificate,
        count: int = 1,
        *,
        vouched_by: str | None = None,
        person: str | None = UNSTATED,
        label: str = "",
        author: str = "",
        note: str = "",
    ) -> Spend:
        """A block in which `mechanism` may be released `count` times.

        A `Plan` is spent whole, at its composed loss; a `Certificate` at the loss of the mechanism it describes
        where the dataset's rule has a price for that, else at its (epsilon, delta), computed again from what it
        describes. One that describes nothing needs a dataset that allows it and a person, `vouched_by`.
        `person` states whose privacy the release protects, as in `create`; left out, it is what the dataset declares,
        on the word of who spends. `label`, `author` and `note` are kept with the entry, under its digest.
        Refuses at once what a ledger never accepts (uncertified, other adjacency, another unit of privacy, no price in
        this currency).
        """
        count = _count(count)
        about = About.of(person, label, author, note).over(self._about)
        terms = self._terms_of(dataset, stated=about.unit)
        settled(dataset, terms.unit, about.unit)
        job = spendable(mechanism, terms.filter)
        certificate = accepted(job, terms.adjacency)
        answers = voucher(job, terms.vouching, vouched_by)
        charge = price(job, terms.filter).times(count)
        return Spend(self, dataset, job, count, charge, certificate, terms, answers, about)

    def affords(self, dataset: str, mechanism: Mechanism | Plan | Certificate) -> int | None:
        """How many more releases of `mechanism` the cap admits; None where they cost nothing."""
        row = self._read(dataset)
        budget = filter_of(row)
        job = spendable(mechanism, budget)
        accepted(job, row["adjacency"])
        voucher(job, bool(row["vouching"]), "somebody")
        return budget.affords(totals_of(row), price(job, budget))

    def datasets(self) -> tuple[str, ...]:
        """The names, in order of creation."""
        with self.store.read() as connection:
            query = sa.select(schema.datasets.c.name).order_by(schema.datasets.c.id)
            names = tuple(row["name"] for row in schema.rows(connection, query, schema.datasets))
        if not all(map(_is_name, names)):
            raise LedgerCorruptedError(f"the ledger {self.store.name} is damaged: the name of a dataset is none")
        return names

    def status(self, dataset: str) -> Status:
        """The cap, the totals and the number of entries in each state."""
        table = schema.entries
        with self.store.read() as connection:
            row = self._row(connection, dataset)
            query = sa.select(table.c.state, sa.func.count()).where(table.c.dataset_id == row["id"])
            counts = connection.execute(query.group_by(table.c.state)).all()
        states = dict.fromkeys(schema.STATES, 0) | {found[0]: found[1] for found in counts}
        kept = filter_of(row), totals_of(row), row["entries"], states, bool(row["vouching"]), row["unit"]
        return Status(dataset, row["adjacency"], *kept)

    def history(self, dataset: str, *, last: int | None = None) -> Iterator[Entry]:
        """The entries in order of reservation; the `last` ones where asked."""
        last = None if last is None else checked_count("last", last)
        row = self._read(dataset)
        start = 0 if last is None else max(0, row["entries"] - last)
        return (entry for entry, _ in self._pages(row, start))

    def head(self, dataset: str, *, key: bytes | None = None) -> Head:
        """Where the dataset stands, to be kept elsewhere and handed to `check` later; signed where a key is given."""
        head = Head.of(self._read(dataset))
        return head if key is None else head.signed(key)

    def check(self, dataset: str, *, head: Head | None = None, key: bytes | None = None) -> Status:
        """Reads every entry and compares digests, marks and totals with the dataset's row.

        Raises LedgerCorruptedError where an entry is missing, was changed, belongs to no dataset, or the totals are not
        their sum; with a `head` kept elsewhere also where the whole ledger was set back to an earlier state or
        rewritten. A `key` requires that the head was signed with it.
        """
        if head is not None and key is not None:
            head.require_signature(key)
        self._check_chain(self._read(dataset), head)
        with self.store.read() as connection:
            schema.refuse_foreign(schema.foreign(connection))
            schema.refuse_orphans(connection)
            row = self._row(connection, dataset)
            number, marks = schema.marks_sum(connection, row["id"])
        if number != row["entries"]:
            raise LedgerCorruptedError(refusal("ledger", "entries-missing", row=row, number=number))
        if schema.marks_text(marks) != row["marks"]:
            raise LedgerCorruptedError(f"the state, end or units of an entry of {dataset!r} were changed by hand")
        return self.status(dataset)

    def _check_chain(self, row: Row, head: Head | None) -> None:
        """Raises where the entries do not lead to the row, or not past the head."""
        name, totals, digest, number = row["name"], _zero(filter_of(row)), row["genesis"], 0
        kept = digest if head is not None and head.entries == 0 else None
        for entry, raw in self._pages(row, 0):
            number += 1
            digest = schema.digest_of(digest, raw)
            totals = totals.plus(entry.cost)
            if raw["digest"] != digest or entry.sequence != number:
                raise LedgerCorruptedError(refusal("ledger", "entry-changed", number=entry.sequence, dataset=name))
            kept = digest if head is not None and head.entries == number else kept
        if (number, digest, totals) != (row["entries"], row["chain"], totals_of(row)):
            raise LedgerCorruptedError(f"the entries of {name!r} do not add up to its totals")
        if head is not None:
            check_continues(head, row, kept)

    def _insert(self, row: Row) -> None:
        def work(connection: sa.Connection) -> None:
            table = schema.datasets
            if connection.execute(sa.select(table.c.id).where(table.c.name == row["name"])).first():
                raise LedgerError(refusal("ledger", "already-there", dataset=row["name"]))
            schema.refuse_orphans(connection)  # the new row could take the number of the one that was removed
            connection.execute(table.insert().values(**row, seal=schema.seal_of(row)))

        self.store.perform(work)

    def _terms_of(self, dataset: str, *, stated: str = "") -> Terms:
        """What never changes about a dataset, read once; again where a unit is stated and none was declared yet."""
        known = self._terms.get(_name(dataset))
        if known is None or (stated and not known.unit):
            row = self._read(dataset)
            fixed = row["adjacency"], row["filter"], bool(row["vouching"])
            known = self._terms[dataset] = Terms(*fixed, filter_of(row), row["unit"])
        return known

    def _row(self, connection: sa.Connection, dataset: str) -> Row:
        return dataset_row(self.store, connection, _name(dataset))

    def _read(self, dataset: str) -> Row:
        with self.store.read() as connection:
            return self._row(connection, dataset)

    def _pages(self, row: Row, after: int) -> Iterator[tuple[Entry, Row]]:
        """Entries up to those the row counts, a page per transaction: writers are not held up."""
        table, kept = schema.entries, schema.documents
        while after < row["entries"]:
            counted = table.c.sequence.between(after + 1, row["entries"])
            query = sa.select(table).where(table.c.dataset_id == row["id"], counted)
            with self.store.read() as connection:
                page = list(schema.rows(connection, query.order_by(table.c.sequence).limit(_PAGE), table))
                wanted = kept.c.digest.in_({found["certificate"] for found in page})
                documents = schema.rows(connection, sa.select(kept).where(wanted), kept)
                texts = {document["digest"]: document["text"] for document in documents}
            if not page:
                return
            for found in page:
                after = found["sequence"]
                yield entry_of(row["name"], found, texts), found


def _new_row(dataset: str, adjacency: str, built: Filter, vouching: bool, person: Any) -> Row:
    """The row of a dataset of which nothing is spent; everything is checked before a database is touched."""
    genesis = secrets.token_hex(32)
    return {
        "name": _name(dataset),
        "created": now(),
        "adjacency": one_of("adjacency", adjacency, ADJACENCIES),
        "filter": schema.to_text(built.to_json()),
        "vouching": int(vouching),
        "unit": unit_of(person),
        "totals": schema.to_text(_zero(built).to_json()),
        "entries": 0,
        "events": 0,
        "genesis": genesis,
        "chain": genesis,
        "marks": schema.marks_text(0),
    }


def _zero(built: Filter) -> Charge:
    return Charge((0,) * len(built.capacities))


def _is_name(dataset: object) -> TypeGuard[str]:
    return isinstance(dataset, str) and bool(dataset.strip()) and len(dataset) <= 200 and is_text(dataset)


def _name(dataset: object) -> str:
    if not _is_name(dataset):
        raise ValueError(f"dataset must be a name of 1 to 200 whole characters, without NUL, got {dataset!r}")
    return dataset


def _count(count: object) -> int:
    number = checked_count("count", count)
    if number > MAX_COUNT:
        raise ValueError(f"count must be at most {MAX_COUNT}, got {count!r}")
    return number
