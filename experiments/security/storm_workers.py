"""The workers of a storm: what they write down, what they do, and the ways to start them."""

from __future__ import annotations

import ctypes
import math
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import shapedp as sdp
from shapedp.ledger import BudgetExceededError, Ledger, LedgerPlaceError, Spend, SpendRefusedError

EPSILON, DELTA, X = 1.0, 1e-6, [0.25]
TIMEOUT = 1800.0
_CLONE_NEWNET = 0x40000000


def mechanism(fits: int) -> sdp.Additive:
    """Gaussian noise of which exactly `fits` releases fit under the cap."""
    mu = sdp.GaussianLoss.calibrate(EPSILON, DELTA).mu
    return sdp.Additive(
        sdp.Gaussian(math.sqrt(fits + 0.5) / mu, 1), sdp.L2(1.0, 1, adjacency="replace"), EPSILON, DELTA
    )


class Deadly:
    """A query whose reading kills the process: the unit is taken by then, the release never comes out."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


class Log:
    """What one worker did, line by line; it survives SIGKILL.

    An attempt is `?`, then `=ENTRY` once it has a reservation, then `+ENTRY` once it has a release, or `-` refused for
    the cap, or `!` stopped because the file has a second name (`~` where that was seen only after the release).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read, self._asked = 0, 0

    def write(self, mark: str) -> None:
        with open(self.path, "ab", buffering=0) as file:
            file.write(f"{mark}\n".encode())

    def asked(self) -> int:
        """How many attempts were begun and not stopped; only what is new is read."""
        if self.path.exists():
            with open(self.path, "rb") as file:
                file.seek(self._read)
                new = file.read()
            self._read += len(new)
            self._asked += new.count(b"?") - new.count(b"!")
        return self._asked

    def attempts(self) -> list[list[str]]:
        """The lines of each attempt, without its `?`."""
        found: list[list[str]] = []
        for line in self.path.read_text().split() if self.path.exists() else ():
            if line == "?":
                found.append([])
            else:
                found[-1].append(line)
        return found


@dataclass(frozen=True)
class Job:
    """What a worker needs to know; it travels to other interpreters."""

    where: str
    fits: int
    spends: int
    number: int
    host: str | None = None
    spend: Spend | None = None
    stop: str = ""

    def deadly(self, log: Log) -> int:
        """The attempt of this worker that kills its process."""
        return random.Random(f"{self.number}/{log.path.name}").randrange(self.spends)

    def goes_on(self, log: Log) -> bool:
        return log.asked() < self.spends and not os.path.exists(self.stop)


def enter(host: str | None) -> None:
    """Makes this process a session of its own, as another user's would be, in a namespace made by `ip netns add`."""
    os.setsid()
    if host is None:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{host}", "rb") as namespace:
        if libc.setns(namespace.fileno(), _CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"cannot enter the network namespace {host}")


def opened(where: str) -> Ledger:
    """The ledger, as soon as its file has one name."""
    while True:
        try:
            return Ledger.open(where, timeout=TIMEOUT)
        except LedgerPlaceError:
            time.sleep(0.01)


def one_by_one(job: Job, ledger: Ledger, log: Log) -> None:
    """Reserve and release once, until so many attempts are in the log."""
    noise, deadly = mechanism(job.fits), job.deadly(log)
    while job.goes_on(log):
        x: Any = Deadly() if log.asked() == deadly else X
        log.write("?")
        stopped = "!"
        try:
            with ledger.spend("d", noise) as spend:
                log.write(f"={spend.entry}")
                spend.release(x)
                log.write(f"+{spend.entry}")
                stopped = "~"
        except BudgetExceededError:
            log.write("-")
        except LedgerPlaceError:
            log.write(stopped)
            time.sleep(0.01)


def shared(job: Job, spend: Spend, log: Log) -> None:
    """Releases of one reservation that others use as well."""
    deadly = job.deadly(log)
    while job.goes_on(log):
        x: Any = Deadly() if log.asked() == deadly else X
        log.write("?")
        try:
            spend.release(x)
            log.write(f"+{spend.entry}")
        except SpendRefusedError:
            log.write("-")


def work(job: Job, ledger: Ledger | None, logs: list[Log]) -> None:
    """All that a process does: one thread per log; raises where one of them failed."""
    enter(job.host)
    spend = job.spend
    if spend is not None:
        together: Callable[[Log], None] = lambda log: shared(job, spend, log)  # noqa: E731
    else:
        mine = ledger or opened(job.where)
        together = lambda log: one_by_one(job, mine, log)  # noqa: E731
    if len(logs) == 1:
        return together(logs[0])
    failed: list[BaseException] = []

    def guarded(log: Log) -> None:
        try:
            together(log)
        except BaseException as error:
            failed.append(error)

    running = [threading.Thread(target=guarded, args=(log,)) for log in logs]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if failed:
        raise failed[0]


class Forked:
    """A child made by os.fork."""

    def __init__(self, task: Callable[[], Any]) -> None:
        self.pid, self._status = os.fork(), None
        if self.pid:
            return
        try:
            task()
            os._exit(0)
        except BaseException as error:
            print(f"worker: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)

    def poll(self) -> int | None:
        """The exit code, minus the signal where one ended it; None while it runs."""
        found, status = os.waitpid(self.pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if found else None


class Multiprocess:
    """A child made by multiprocessing, by the start method `method`."""

    def __init__(self, method: str, *arguments: Any) -> None:
        self._process = multiprocessing.get_context(method).Process(target=work, args=arguments)  # type: ignore[attr-defined]
        self._process.start()
        self.pid: int = self._process.pid

    def poll(self) -> int | None:
        found: int | None = self._process.exitcode
        return found


def interpreter(job: Path, logs: list[Log]) -> subprocess.Popen[bytes]:
    """A fresh interpreter; it reads its job, with the pickled spend in it, from a file."""
    here = Path(__file__).with_name("ledger_storm.py")
    return subprocess.Popen([sys.executable, str(here), "--worker", str(job), *(str(log.path) for log in logs)])
