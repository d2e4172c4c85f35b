"""A privacy budget kept in a database: reserve, release, never overspend."""

from shapedp.accounting.ledger.errors import (
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
from shapedp.accounting.ledger.filters import BasicFilter, Filter, GaussianFilter, RenyiFilter, make_filter
from shapedp.accounting.ledger.fixed import Charge
from shapedp.accounting.ledger.heads import Head
from shapedp.accounting.ledger.ledger import Ledger
from shapedp.accounting.ledger.records import Entry, Status
from shapedp.accounting.ledger.spend import Spend

__all__ = [
    "BasicFilter",
    "BudgetExceededError",
    "Charge",
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
