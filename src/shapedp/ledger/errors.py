"""What can go wrong with a ledger. Every error is raised before a release, or says that one was made."""

from __future__ import annotations

RESTORE = "restore it from a backup and treat what is missing as spent"


class LedgerError(RuntimeError):
    """A ledger could not do what was asked."""


class BudgetExceededError(LedgerError):
    """The spend would take the total over the cap; nothing was reserved."""


class SpendRefusedError(LedgerError, ValueError):
    """The mechanism or the release is not one a ledger accepts."""


class LedgerLockedError(LedgerError):
    """Others held the database for longer than the timeout."""


class LedgerConflictError(LedgerLockedError):
    """The database undid the transaction because of another one, and went on doing so until the timeout."""


class LedgerPlaceError(LedgerError):
    """The file has a second name, or is not the file that the ledger was kept in: a copy, or a renamed one."""


class LedgerReadOnlyError(LedgerError):
    """The database cannot be written to."""


class LedgerFullError(LedgerError):
    """There is no room left for the database to grow."""


class LedgerCorruptedError(LedgerError):
    """The database is damaged, or was changed by something other than the ledger."""


class LedgerUnavailableError(LedgerError):
    """The database cannot be opened or reached."""
