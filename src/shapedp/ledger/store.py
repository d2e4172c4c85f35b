"""The database behind a ledger: durable, serialised transactions on SQLite or PostgreSQL."""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from shapedp.boundary.values import whole_text
from shapedp.ledger import schema
from shapedp.ledger.errors import CAUSES, LedgerConflictError, LedgerCorruptedError, LedgerError, LedgerUnavailableError
from shapedp.ledger.place import check_beside, check_one_name, check_place, place_of
from shapedp.numerics.checks import positive

import sqlalchemy as sa  # isort: skip
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

T = TypeVar("T")
_SETUP_LOCK = 0x5348444C
_PAUSE = 0.02
_WRITE = ("PRAGMA journal_mode=PERSIST", "BEGIN IMMEDIATE")
_READ = ("BEGIN", "SELECT count(*) FROM sqlite_master")  # which takes the lock: a view begins here
_PLACE = f"SELECT place, ({schema.FOREIGN['sqlite']}) FROM {schema.meta.name}"
_RELEASED_AT_FORK: list[Any] = []


@dataclass(frozen=True)
class Store:
    """Where a ledger lives: a SQLite file, or a PostgreSQL database.

    Guarantee: a write transaction sees every committed one before it, and when it returns its effect survives
    a crash of the process or the machine (SQLite: BEGIN IMMEDIATE, rollback journal, synchronous=FULL, a file of one
    name; PostgreSQL: row locks, synchronous_commit=on). Safe in threads and after a fork. Whatever the database's
    defaults are, the isolation level is set here, and no wait is longer than the timeout.
    """

    url: sa.URL
    timeout: float

    @classmethod
    def at(cls, where: str | os.PathLike[str], *, timeout: float) -> Store:
        """The store at a path (SQLite) or a URL (sqlite:///..., postgresql://...). Touches nothing."""
        timeout = positive("timeout", timeout)
        text = _text(where)
        if "://" not in text:
            url = sa.URL.create("sqlite", database=text)
        else:
            try:
                url = sa.make_url(text.replace("postgres://", "postgresql://", 1))
            except (ArgumentError, ValueError):  # a port that is none may be a piece of the password
                raise ValueError("the address is not a database URL such as postgresql://user@host/name") from None
        backend = url.get_backend_name()
        if backend == "postgresql":
            return cls(_hidden(url).set(drivername="postgresql+psycopg"), timeout)
        if backend != "sqlite":
            raise ValueError(f"a ledger is kept in sqlite or postgresql, got {backend!r}")
        if url.host or url.port or url.username or url.password:
            raise ValueError("a SQLite ledger has no host and no user: write sqlite:///FILE, or the path")
        path = url.database or ""
        if path in ("", ":memory:") or "\0" in path or url.query:
            raise ValueError(f"a SQLite ledger must be a plain file, got {path!r}: one in memory would be forgotten")
        return cls(sa.URL.create("sqlite", database=os.path.abspath(path)), timeout)

    @property
    def name(self) -> str:
        """The address without a password."""
        return self.url.database or "" if self.is_sqlite else self.url.render_as_string(hide_password=True)

    @property
    def is_sqlite(self) -> bool:
        return self.url.get_backend_name() == "sqlite"

    def read(self) -> AbstractContextManager[sa.Connection]:
        """A transaction that only reads: one consistent view."""
        return self._transaction(write=False)

    def perform(self, work: Callable[[sa.Connection], T]) -> T:
        """What `work` returns, durable by then; any error rolls it back.

        Where the database undoes the transaction in favour of another one it is run again, until the timeout.
        """
        deadline = time.monotonic() + self.timeout
        while True:
            try:
                with self._transaction(write=True) as connection:
                    if self.is_sqlite:
                        place, foreign = connection.exec_driver_sql(_PLACE).first() or (None, 0)
                        check_place(self.name, place)
                        schema.refuse_foreign(foreign)
                    found = work(connection)
                return found
            except LedgerConflictError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(random.uniform(0.0, _PAUSE))

    @contextmanager
    def set_up(self, *, create: bool) -> Iterator[sa.Connection]:
        """A write transaction on tables that may not be there yet, or are of an earlier schema."""
        with self._transaction(write=True, create=create) as connection:
            if not self.is_sqlite:
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _SETUP_LOCK})
            yield connection

    @contextmanager
    def _transaction(self, *, write: bool, create: bool = False) -> Iterator[sa.Connection]:
        if self.is_sqlite:
            check_one_name(self.name)
            check_beside(self.name)
        try:
            with _gate.transaction(), _engine(self, create).connect() as plain:
                connection = plain.execution_options(ledger_write=write)
                with connection.begin():
                    yield connection
        except (DBAPIError, sqlite3.Error) as error:
            raise self._explained(error) from error
        except UnicodeDecodeError as error:
            raise LedgerCorruptedError(f"the ledger {self.name} is damaged: it holds unreadable text") from error
        except ModuleNotFoundError as error:
            raise LedgerError(f"the ledger {self.name} needs {error.name}: pip install 'shapedp[ledger]'") from error
        except SQLAlchemyError as error:
            raise LedgerError(f"the ledger {self.name} failed: {error}") from error

    def _explained(self, error: DBAPIError | sqlite3.Error) -> LedgerError:
        """The ledger's error for a driver's."""
        cause: Any = error.orig if isinstance(error, DBAPIError) else error
        code = getattr(cause, "sqlite_errorname", None) or getattr(cause, "sqlstate", None) or ""
        if not code and not isinstance(cause, sqlite3.Error):
            code = "08"
        for codes, kind, remedy in CAUSES:
            if code.startswith(codes):
                return kind(f"the ledger {self.name} {remedy} ({_first_line(cause)})")
        if "decode" in str(cause):
            return LedgerCorruptedError(f"the ledger {self.name} is damaged: {_first_line(cause)}")
        return LedgerError(f"the ledger {self.name} failed: {_first_line(cause)}")


def set_up(store: Store) -> None:
    """Creates the tables where they are missing. A SQLite file that holds something else is refused."""
    with store.set_up(create=True) as connection:
        present = set(sa.inspect(connection).get_table_names())
        if store.is_sqlite and present and schema.meta.name not in present:
            raise LedgerError(f"{store.name} is a database of something else; choose a file of its own for the ledger")
        schema.refuse_foreign(schema.foreign(connection))
        schema.metadata.create_all(connection)
        if connection.execute(sa.select(schema.meta.c.schema_version)).scalar() is None:
            connection.execute(schema.meta.insert().values(id=1, schema_version=schema.SCHEMA_VERSION))
            _register(store, connection)
        elif schema.bring_to_this(connection):
            _register(store, connection)


def check_is_ledger(store: Store) -> None:
    """Raises a clear error where the database is missing, damaged or something else; upgrades an earlier schema."""
    if store.is_sqlite and not os.path.exists(store.name):
        raise LedgerUnavailableError(f"{store.name}: no such ledger: make it with shapedp ledger init")
    with store.read() as connection:
        if schema.meta.name not in sa.inspect(connection).get_table_names():
            raise LedgerError(f"{store.name} holds no ledger; create one first")
        schema.refuse_foreign(schema.foreign(connection))
        version = connection.execute(sa.select(schema.meta.c.schema_version)).scalar()
    if version != schema.SCHEMA_VERSION:
        with store.set_up(create=False) as connection:
            if schema.bring_to_this(connection):
                _register(store, connection)


def adopt(store: Store) -> None:
    """Says in the file that this is the one; nothing to do on a server."""
    with store.set_up(create=False) as connection:
        _register(store, connection)


def _register(store: Store, connection: sa.Connection) -> None:
    if store.is_sqlite:
        connection.execute(schema.meta.update().values(place=place_of(store.name)))


class ForkGate:
    """Many transactions, or one fork.

    A child that inherits a transaction of another thread inherits locks nobody will release (SQLite keeps its
    own table of file locks per process) and could even end that transaction.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """In a child: the other threads are gone."""
        self._condition = threading.Condition()
        self._inside: Counter[int] = Counter()
        self._closing = 0

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Forks wait until the block has ended."""
        me = threading.get_ident()
        with self._condition:
            while self._closing and not self._inside[me]:
                self._condition.wait()
            self._inside[me] += 1
        try:
            yield
        finally:
            with self._condition:
                self._inside[me] -= 1
                if not self._inside[me]:
                    del self._inside[me]
                    self._condition.notify_all()

    def close(self) -> None:
        """Waits for the transactions of other threads and keeps new ones out."""
        me = threading.get_ident()
        self._condition.acquire()
        self._closing += 1
        while any(number for thread, number in self._inside.items() if thread != me):
            self._condition.wait()

    def reopen(self) -> None:
        """Lets transactions in again."""
        self._closing -= 1
        self._condition.notify_all()
        self._condition.release()


_gate = ForkGate()
_engines: dict[tuple[Store, bool, int], sa.Engine] = {}
_engines_lock = threading.Lock()


def _engine(store: Store, create: bool) -> sa.Engine:
    """One engine per store and process: a child process never touches its parent's connections."""
    key = (store, create and store.is_sqlite, os.getpid())
    with _engines_lock:
        if key not in _engines:
            _engines[key] = _sqlite(store, create) if store.is_sqlite else _postgresql(store)
        return _engines[key]


def _after_fork() -> None:
    """In a child: keeps the parent's engines alive, unused, so that nothing closes its connections."""
    global _engines, _engines_lock
    _gate.reset()
    _RELEASED_AT_FORK.append(_engines)
    _engines, _engines_lock = {}, threading.Lock()


os.register_at_fork(before=_gate.close, after_in_parent=_gate.reopen, after_in_child=_after_fork)


def _sqlite(store: Store, create: bool) -> sa.Engine:
    path, mode = store.url.database or "", "rwc" if create else "rw"
    address = f"file:{urllib.parse.quote(path)}?mode={mode}"

    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(address, uri=True, timeout=0.0, isolation_level=None)
        try:
            _patiently(connection, "PRAGMA synchronous=FULL", store.timeout)
            connection.execute("PRAGMA foreign_keys=ON")
            connection.execute("PRAGMA cell_size_check=ON")
        except BaseException:
            connection.close()
            raise
        return connection

    engine = sa.create_engine("sqlite://", creator=connect, poolclass=NullPool)

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        write, plain = connection.get_execution_options().get("ledger_write"), connection.connection.dbapi_connection
        for statement in _WRITE if write else _READ:
            _patiently(plain, statement, store.timeout)
        _patiently(plain, f"PRAGMA busy_timeout={int(store.timeout * 1000)}", store.timeout)  # of the commit

    return engine


def _patiently(connection: Any, statement: str, timeout: float) -> None:
    """Runs a statement that takes a lock, again and again until the timeout.

    SQLite's own pauses grow to a tenth of a second, while between two transactions of other processes a file is free
    for a few milliseconds: whoever looks that seldom may be passed over for minutes. Short pauses of random length
    give each process the same chance.
    """
    deadline = time.monotonic() + timeout
    while True:
        try:
            connection.execute(statement).fetchall()
            return
        except sqlite3.OperationalError as error:
            if not str(getattr(error, "sqlite_errorname", "")).startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
        time.sleep(random.uniform(0.0, _PAUSE))


def _postgresql(store: Store) -> sa.Engine:
    milliseconds = max(1, int(store.timeout * 1000))
    options = {
        "connect_timeout": max(2, int(store.timeout)),
        "tcp_user_timeout": milliseconds,
        "client_encoding": "utf8",
    }
    engine = sa.create_engine(store.url, pool_pre_ping=True, pool_timeout=store.timeout, connect_args=options)

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        write = connection.get_execution_options().get("ledger_write")
        level = "READ COMMITTED" if write else "REPEATABLE READ READ ONLY"
        wanted = [f"SET TRANSACTION ISOLATION LEVEL {level}"]
        wanted += [f"SET LOCAL {limit} = {milliseconds}" for limit in ("lock_timeout", "statement_timeout")]
        wanted += ["SET LOCAL synchronous_commit = on", schema.NO_FOREIGN] if write else []
        connection.exec_driver_sql("; ".join(wanted))  # one journey to the server

    return engine


def _hidden(url: sa.URL) -> sa.URL:
    """The address with its password where messages, reprs and reports leave it out, not among the options."""
    password = url.query.get("password")
    if "sslpassword" in url.query or not isinstance(password, str | None):
        raise ValueError("the ledger's address must not hold sslpassword, or two passwords: use a service file")
    return url if password is None else url.difference_update_query(["password"]).set(password=password)


def _text(where: object) -> str:
    text = os.fspath(where) if isinstance(where, str | os.PathLike) else where
    if not isinstance(text, str) or not text:
        raise TypeError(f"the ledger must be a path or a database URL, got {where!r}")
    return whole_text("the path or address of the ledger", text)


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
