"""A privacy budget kept in a database: reserve, release, never overspend."""

from shapedp.ledger.errors import (
    BudgetExceededError,
    LedgerConflictError,
    LedgerCorruptedError,
    LedgerError,
    LedgerFullError,
    LedgerLockedError,
    LedgerPlaceError,
    LedgerReadOnlyError,
    LedgerUnavailableError,
    SpendRefusedError,
)
from shapedp.ledger.filters import BasicFilter, EitherFilter, Filter, GaussianFilter, RenyiFilter, make_filter
from shapedp.ledger.fixed import Charge
from shapedp.ledger.ledger import Ledger
from shapedp.ledger.records import Entry, Head, Status
from shapedp.ledger.spend import Spend

__all__ = [
    "BasicFilter",
    "BudgetExceededError",
    "Charge",
    "EitherFilter",
    "Entry",
    "Filter",
    "GaussianFilter",
    "Head",
    "Ledger",
    "LedgerConflictError",
    "LedgerCorruptedError",
    "LedgerError",
    "LedgerFullError",
    "LedgerLockedError",
    "LedgerPlaceError",
    "LedgerReadOnlyError",
    "LedgerUnavailableError",
    "RenyiFilter",
    "Spend",
    "SpendRefusedError",
    "Status",
    "make_filter",
]
