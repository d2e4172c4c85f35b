"""What can go wrong with a ledger. Every error is raised before a release, or says that one was made."""

from __future__ import annotations

RESTORE = "restore it from a backup and treat what is missing as spent"


class LedgerError(RuntimeError):
    """A ledger could not do what was asked.

    Examples
    --------
    >>> from shapedp.ledger import Ledger
    >>> try:
    ...     Ledger.open("missing.db")
    ... except LedgerError as error:
    ...     print(type(error).__name__)
    LedgerUnavailableError
    """


class BudgetExceededError(LedgerError):
    """The spend would take the total over the cap; nothing was reserved.

    Examples
    --------
    >>> import tempfile
    >>> import shapedp as sdp
    >>> from shapedp.ledger import Ledger
    >>> mechanism = sdp.calibrate("laplace", sdp.L1(1.0, dim=1, adjacency="replace"), epsilon=0.6, delta=0.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.create(f"{folder}/l.db", dataset="d", epsilon=1.0, delta=0.0, adjacency="replace")
    ...     try:
    ...         ledger.spend("d", mechanism, count=2).__enter__()
    ...     except BudgetExceededError:
    ...         print(ledger.status("d").entries, "entries")
    0 entries
    """


class SpendRefusedError(LedgerError, ValueError):
    """The mechanism or the release is not one a ledger accepts.

    Examples
    --------
    >>> import shapedp as sdp
    >>> from shapedp.ledger import make_filter
    >>> mechanism = sdp.calibrate("gaussian", sdp.L2(1.0, dim=1), epsilon=1.0, delta=1e-6)
    >>> make_filter(epsilon=1.0, delta=0.0).charge(mechanism)
    Traceback (most recent call last):
        ...
    shapedp.ledger.errors.SpendRefusedError: the cap is pure (rule='basic', delta=0): GaussianLoss has no finite ...
    """


class LedgerLockedError(LedgerError):
    """Others held the database for longer than the timeout.

    Examples
    --------
    >>> issubclass(LedgerLockedError, LedgerError)  # nothing was counted: try again, or raise timeout=
    True
    """


class LedgerConflictError(LedgerLockedError):
    """The database undid the transaction because of another one, and went on doing so until the timeout.

    Examples
    --------
    >>> issubclass(LedgerConflictError, LedgerLockedError)  # nothing was counted: try again
    True
    """


class LedgerPlaceError(LedgerError):
    """The file has a second name, or is not the file that the ledger was kept in: a copy, or a renamed one.

    Examples
    --------
    >>> import shutil, tempfile
    >>> from shapedp.ledger import Ledger
    >>> cap = {"epsilon": 1.0, "delta": 0.0, "adjacency": "replace"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ledger = Ledger.create(f"{folder}/l.db", dataset="d", **cap)
    ...     copy = shutil.copy(f"{folder}/l.db", f"{folder}/copy.db")
    ...     try:
    ...         Ledger.open(copy).add("e", **cap)
    ...     except LedgerPlaceError:
    ...         print("the original is the one to spend from")
    the original is the one to spend from
    """


class LedgerReadOnlyError(LedgerError):
    """The database cannot be written to.

    Examples
    --------
    >>> issubclass(LedgerReadOnlyError, LedgerError)  # mend the permissions of the file and of its folder
    True
    """


class LedgerFullError(LedgerError):
    """There is no room left for the database to grow.

    Examples
    --------
    >>> issubclass(LedgerFullError, LedgerError)  # make room on the disk
    True
    """


class LedgerCorruptedError(LedgerError):
    """The database is damaged, or was changed by something other than the ledger.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from shapedp.ledger import Ledger
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "l.db").write_text("this is no database, but a text of some length")
    ...     try:
    ...         Ledger.open(f"{folder}/l.db")
    ...     except LedgerCorruptedError:
    ...         print("restore it from a backup")
    restore it from a backup
    """


class LedgerUnavailableError(LedgerError):
    """The database cannot be opened or reached.

    Examples
    --------
    >>> from shapedp.ledger import Ledger
    >>> try:
    ...     Ledger.open("missing.db")
    ... except LedgerUnavailableError:
    ...     print("make it with Ledger.create")
    make it with Ledger.create
    """


# First match decides: SQLite's error names, PostgreSQL's SQLSTATE (prefixes).
CAUSES: tuple[tuple[tuple[str, ...], type[LedgerError], str], ...] = (
    (("40001", "40P01"), LedgerConflictError,
     "gave way to other transactions until the timeout; try again, or raise timeout="),
    (("SQLITE_CONSTRAINT", "23"), LedgerCorruptedError,
     f"contradicts itself: it was changed by hand; {RESTORE}"),
    (("SQLITE_BUSY", "SQLITE_LOCKED", "55P03", "57014"), LedgerLockedError,
     "is locked by another process; wait, or raise timeout="),
    (("SQLITE_READONLY", "SQLITE_PERM", "SQLITE_AUTH", "25006", "42501"), LedgerReadOnlyError,
     "cannot be written to; check the permissions of the file and of its folder, or of the database user"),
    (("SQLITE_FULL", "SQLITE_IOERR_WRITE", "53100"), LedgerFullError,
     "has no room left on its disk; make room"),
    (("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_FORMAT", "XX001", "XX002", "22021", "22P05"), LedgerCorruptedError,
     f"is damaged or not a ledger; {RESTORE}"),
    (("SQLITE_CANTOPEN", "08", "28", "3D", "57P"), LedgerUnavailableError,
     "cannot be opened; check the path or address, and that the server is up"),
)  # fmt: skip
