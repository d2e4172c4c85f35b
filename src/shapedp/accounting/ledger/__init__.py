"""A privacy budget kept in a database: reserve, release, never overspend."""

from shapedp.accounting.ledger.errors import (
    BudgetExceededError,
    LedgerCorruptedError,
    LedgerError,
    LedgerFullError,
    LedgerLockedError,
    LedgerReadOnlyError,
    LedgerUnavailableError,
    SpendRefusedError,
)
from shapedp.accounting.ledger.filters import BasicFilter, Filter, GaussianFilter, RenyiFilter, make_filter
from shapedp.accounting.ledger.fixed import Charge
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
    "Ledger",
    "LedgerCorruptedError",
    "LedgerError",
    "LedgerFullError",
    "LedgerLockedError",
    "LedgerReadOnlyError",
    "LedgerUnavailableError",
    "RenyiFilter",
    "Spend",
    "SpendRefusedError",
    "Status",
    "make_filter",
]
