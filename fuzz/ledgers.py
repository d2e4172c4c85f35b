"""One ledger, a few forked children that spend from it, some of them killed."""

from __future__ import annotations

import contextlib
import math
import os
import random
import signal
import time
from pathlib import Path

import shapedp as sdp
from fuzz.properties import Outcome
from shapedp.ledger import BudgetExceededError, Ledger, LedgerError

_X = [0.25]


def _mechanism(fits: int) -> sdp.Additive:
    """Of which exactly `fits` releases fit under the cap."""
    mu = sdp.GaussianLoss.calibrate(1.0, 1e-6).mu
    return sdp.Additive(sdp.Gaussian(math.sqrt(fits + 0.5) / mu, 1), sdp.L2(1.0, 1, adjacency="replace"), 1.0, 1e-6)


def case(number: int, folder: Path) -> Outcome:
    """Children share the file, the parent's ledger or the parent's open spend; a byte is logged for every release."""
    rng = random.Random(f"ledger {number}")
    folder.mkdir(parents=True, exist_ok=True)
    where, log = folder / f"{number}.db", folder / f"{number}.log"
    for path in (where, log):
        path.unlink(missing_ok=True)
    fits, way = rng.randint(1, 6), rng.choice(["open", "inherit", "spend"])
    mechanism = _mechanism(fits)
    ledger = Ledger.create(where, dataset="d", epsilon=1.0, delta=1e-6, adjacency="replace", rule="gaussian")
    log.write_bytes(b"")
    children = rng.randint(1, 4)
    with contextlib.ExitStack() as stack:
        shared = stack.enter_context(ledger.spend("d", mechanism)) if way == "spend" else None
        pids = [_child(where, log, mechanism, ledger if way == "inherit" else None, shared) for _ in range(children)]
        for pid in pids:
            if rng.random() < 0.5:
                time.sleep(rng.uniform(0, 0.05))
                os.kill(pid, signal.SIGKILL)
        ends = [os.waitpid(pid, 0)[1] for pid in pids]
    broken = []
    if any(os.WIFEXITED(end) and os.WEXITSTATUS(end) for end in ends):
        broken.append("documented: a child met an exception that is no LedgerError")
    again = Ledger.open(where)
    recorded = sum(entry.taken for entry in again.history("d"))
    try:
        again.check("d")
    except LedgerError as error:
        broken.append(f"sound: {error}")
    returned = len(log.read_bytes())
    if not returned <= recorded <= fits:
        broken.append(f"counted: {returned} returned, {recorded} recorded, cap {fits}")
    for path in folder.glob(f"{number}.*"):
        path.unlink()
    return Outcome(f"ledger {way}", "counted", tuple(broken), f"{children} children, cap {fits}")


def _child(where: Path, log: Path, mechanism: sdp.Additive, ledger: Ledger | None, shared: object) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        handle = os.open(log, os.O_WRONLY | os.O_APPEND)
        own = ledger or Ledger.open(where)
        for _ in range(4):
            with contextlib.suppress(BudgetExceededError, LedgerError):
                if shared is not None:
                    shared.release(_X)  # type: ignore[attr-defined]
                    os.write(handle, b".")
                    continue
                with own.spend("d", mechanism) as spend:
                    spend.release(_X)
                    os.write(handle, b".")
        code = 0
    finally:
        os._exit(code)
