"""What must hold after every case, as a list, and how one case is judged.

Calls:
 1. documented   an exception is a TypeError, a ValueError (the library's own errors among them), NotCertifiedError, a
                 LedgerError, PlanningError, BudgetError, RecordError, SearchError, SelfCheckError, ImportError, OSError
                 or NotImplementedError; AttributeError only of an attribute that the caller's own object lacks; never
                 KeyError, IndexError, ArithmeticError, AssertionError, RecursionError, MemoryError (the memory of a
                 case is limited)
 2. in time      at most SECONDS of processor time, and no wait of WAIT by the clock for what never comes
 3. finite       a released value is finite; no float, bracket or law that comes back is NaN; lower <= upper
 4. dimensions   a release has the shape of what went in (a sketch: its columns); sizes are whole and positive
 5. masks        what a mask hides is not released
 6. described    a certified certificate names its subject, and its bracket proves its claim
 7. untouched    arrays that went in are as they were
Command lines, real processes, documents, tables:
 8. no traceback, and an exit code of 0, 2 or 3 (1 is a fault of the library)
 9. in time      as 2
10. kept         every file but the named outputs keeps its inode, its kind and its bytes; an output that is also an
                 input keeps them too; special files and links stay what they are
11. nothing left nothing new appears but the named outputs and the certificate beside them
12. nothing told no cell of a table is quoted on standard output or error
13. agreed       what `verify` certifies the independent checker does not refute
Ledgers:
14. counted      releases returned <= units recorded <= cap, whoever was killed or forked
15. sound        the ledger's own check passes afterwards
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import shapedp as sdp
from shapedp.accounting import PlanningError
from shapedp.ledger import LedgerError
from shapedp.numerics import SearchError, SelfCheckError

SECONDS = 20.0  # of processor time, for one case
WAIT = 10 * SECONDS  # by the clock: a case that waits for something that never comes
MEMORY = 4 << 30  # bytes beyond what the process has when it starts


@cache
def documented() -> tuple[type[BaseException], ...]:
    """The exceptions of property 1."""
    found: list[type[BaseException]] = [TypeError, ValueError, sdp.NotCertifiedError, LedgerError, PlanningError]
    found += [SearchError, SelfCheckError, ImportError, OSError, NotImplementedError]
    try:
        from shapedp.torch import BudgetError, RecordError

        found += [BudgetError, RecordError]
    except ImportError:
        pass
    return tuple(found)


@dataclass(frozen=True)
class Outcome:
    """What a case called, how it ended in a word, and the properties it broke."""

    target: str
    end: str
    broken: tuple[str, ...] = ()
    detail: str = ""


def judge(result: Any, given: Any = None) -> list[str]:
    """The properties 3, 4 and 6 that a result breaks."""
    broken: list[str] = []
    if isinstance(result, float | np.floating) and math.isnan(result):
        broken.append("finite: NaN came back")
    elif isinstance(result, sdp.Bracket):
        if not result.lower <= result.upper:
            broken.append("finite: an upside-down bracket")
    elif isinstance(result, np.ndarray):
        if result.dtype.kind == "f" and np.isnan(result).any():
            broken.append("finite: an array with NaN came back")
    elif isinstance(result, sdp.Certificate):
        broken += _certificate(result)
    elif isinstance(result, sdp.Release):
        broken += _release(result, given)
    elif isinstance(result, sdp.Law | sdp.Sensitivity):
        if not (isinstance(result.dim, int) and result.dim >= 1):
            broken.append(f"dimensions: dim {result.dim!r}")
    elif isinstance(result, tuple | list) and len(result) <= 8:
        for one in result:
            if isinstance(one, float | sdp.Bracket):
                broken += judge(one)
    return broken


def _certificate(found: sdp.Certificate) -> list[str]:
    broken = judge(found.bracket)
    if found.verdict == "certified" and not found.bracket.upper <= found.delta:
        broken.append("described: certified above its claim")
    return broken


def _release(found: sdp.Release, given: Any) -> list[str]:
    broken = []
    value = np.asarray(found.value)
    if not np.isfinite(np.asarray(value, dtype=np.float64)).all():
        broken.append("finite: a released value is not")
    kind = (found.certificate.subject or {}).get("kind")
    sketch = kind == "mixing"
    if given is not None and kind in ("additive", "mixing") and np.shape(given)[sketch:] != value.shape[sketch:]:
        broken.append(f"dimensions: {np.shape(given)} went in, {value.shape} came out")
    if np.ma.isMaskedArray(given):
        hidden = np.abs(np.asarray(given.data, dtype=float) - value)[np.ma.getmaskarray(given)]
        if (hidden < 1e5).any():
            broken.append("masks: a hidden value was released")
    if not found.unsafe and found.certificate.verdict != "certified":
        broken.append("described: released without a certified claim")
    if found.certificate.verdict == "certified" and found.certificate.subject is None:
        broken.append("described: a certificate without a subject")
    return broken + _certificate(found.certificate)
