"""Workers that spend from one cap while some are killed: releases returned = units recorded, never above the cap.

    python experiments/security/ledger_storm.py                      # every case on SQLite
    python experiments/security/ledger_storm.py --postgresql URL     # every case on PostgreSQL as well
    python experiments/security/ledger_storm.py --case 3 --case 4    # only these (cases are seeded by their number)
    python experiments/security/ledger_storm.py --spends 100         # of each worker, instead of 1000 and 40
    python experiments/security/ledger_storm.py --quick

A case starts workers that each spend so many times from one dataset, by one of the ways to share a ledger:

    fork      os.fork, every child opens the ledger
    inherit   os.fork, every child uses the ledger object of its parent
    thread    threads of a few processes, one ledger object each
    spawn     fresh interpreters
    units     a reservation of many releases, whose pickled or inherited spend all workers share
    names     as fork, while somebody makes and removes a hard link of the file (SQLite only)
    mixed     fork, inherit, thread and spawn at once

A worker writes one byte string to a log before it asks for a release and another when it has it; the log survives
SIGKILL. At random times a random worker is killed and a new one goes on with the rest of its spends. After the storm:

    recorded  = returned + lost, where `lost` are units of workers that were killed between asking and having
    recorded <= cap, the entries add up, and the cap is used up where enough was asked for

Exit code 1 where one of these does not hold.
"""

from __future__ import annotations

import argparse
import math
import os
import pickle
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import shapedp as sdp
from shapedp.ledger import BudgetExceededError, Ledger, LedgerPlaceError, Spend, SpendRefusedError

WAYS = ("fork", "inherit", "thread", "spawn", "units", "names", "mixed")
EPSILON, DELTA, X = 1.0, 1e-6, [0.25]
TIMEOUT = 600.0
THREADS = 8


@dataclass(frozen=True)
class Case:
    """One storm; everything random in it follows from its number."""

    number: int
    way: str
    backend: str
    workers: int
    spends: int
    kills: int

    @property
    def cap(self) -> int:
        """Fewer releases than are asked for: the cap is reached."""
        return self.workers * self.spends * 3 // 4


@dataclass
class Outcome:
    """What a storm left."""

    returned: int
    asked: int
    refused: int
    recorded: int
    kills: int
    spent: float
    seconds: float
    faults: tuple[str, ...]


def cases(quick: bool, backends: tuple[str, ...]) -> list[Case]:
    """The mixed case at full size on each database, the single ways smaller; quick: all small."""
    found = []
    for backend in backends:
        for way in WAYS:
            if way == "names" and backend != "sqlite":
                continue
            whole = way in ("mixed", "units")
            workers, spends, kills = (8, 12, 4) if quick else (64, 1000, 64) if whole else (64, 40, 32)
            found.append(Case(len(found), way, backend, workers, spends, kills))
    return found


def mechanism(fits: int) -> sdp.Additive:
    """Gaussian noise of which exactly `fits` releases fit under the cap."""
    mu = sdp.GaussianLoss.calibrate(EPSILON, DELTA).mu
    return sdp.Additive(
        sdp.Gaussian(math.sqrt(fits + 0.5) / mu, 1), sdp.L2(1.0, 1, adjacency="replace"), EPSILON, DELTA
    )


class Log:
    """What one worker did: `?` before a release is asked for, then `+` returned or `-` refused. Survives SIGKILL."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, mark: bytes) -> None:
        with open(self.path, "ab", buffering=0) as file:
            file.write(mark)

    def count(self, mark: bytes) -> int:
        return self.path.read_bytes().count(mark) if self.path.exists() else 0

    def attempts(self) -> int:
        return self.count(b"?")


def opened(where: str) -> Ledger:
    """The ledger, as soon as its file has one name."""
    while True:
        try:
            return Ledger.open(where, timeout=TIMEOUT)
        except LedgerPlaceError:
            time.sleep(0.01)


def one_by_one(ledger: Ledger, noise: sdp.Additive, log: Log, spends: int) -> None:
    """Reserve and release once, until so many attempts are in the log."""
    while log.attempts() < spends:
        log.write(b"?")
        try:
            with ledger.spend("d", noise) as spend:
                spend.release(X)
                log.write(b"+")
        except BudgetExceededError:
            log.write(b"-")
        except LedgerPlaceError:
            log.write(b"!")
            time.sleep(0.01)


def shared(spend: Spend, log: Log, spends: int) -> None:
    """Releases of one reservation that others use as well."""
    while log.attempts() < spends:
        log.write(b"?")
        try:
            spend.release(X)
            log.write(b"+")
        except SpendRefusedError:
            log.write(b"-")


def fork(work: Callable[[], Any]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
        os._exit(0)
    except BaseException as error:
        print(f"worker: {type(error).__name__}: {error}", file=sys.stderr)
        os._exit(1)


def threads(work: Callable[[Log], None], logs: list[Log]) -> None:
    """One thread per log; raises where one of them failed."""
    failed: list[BaseException] = []

    def guarded(log: Log) -> None:
        try:
            work(log)
        except BaseException as error:
            failed.append(error)

    running = [threading.Thread(target=guarded, args=(log,)) for log in logs]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if failed:
        raise failed[0]


class Storm:
    """The workers of a case, and who kills them."""

    def __init__(self, case: Case, folder: Path, where: str) -> None:
        self.case, self.folder, self.where = case, folder, where
        self.random = random.Random(case.number)
        self.noise = mechanism(case.cap)
        cap = {"epsilon": EPSILON, "delta": DELTA, "adjacency": "replace", "rule": "gaussian"}
        self.ledger = Ledger.create(where, dataset="d", timeout=TIMEOUT, **cap)
        self.logs = [Log(folder / f"log{i}") for i in range(case.workers)]
        self.spend: Spend | None = None

    def groups(self) -> list[tuple[str, list[Log]]]:
        """Processes as (way, logs of its workers)."""
        ways = {"mixed": ("fork", "inherit", "thread", "spawn")}.get(self.case.way, (self.case.way,))
        found: list[tuple[str, list[Log]]] = []
        for i, way in enumerate(ways):
            logs = self.logs[i :: len(ways)]
            size = THREADS if way == "thread" else 1
            found += [(way, logs[k : k + size]) for k in range(0, len(logs), size)]
        return found

    def start(self, way: str, logs: list[Log]) -> int:
        """A process that does what is left for these logs; its id."""
        spends = self.case.spends
        if way == "spawn" or (way == "units" and self.logs.index(logs[0]) % 2):
            return self.spawn(logs[0])
        if way == "units" and self.spend is not None:
            spend = self.spend
            return fork(lambda: shared(spend, logs[0], spends))
        if way in ("inherit", "thread"):
            return fork(lambda: threads(lambda log: one_by_one(self.ledger, self.noise, log, spends), logs))
        return fork(lambda: one_by_one(opened(self.where), self.noise, logs[0], spends))

    def spawn(self, log: Log) -> int:
        """A fresh interpreter; it gets the open spend, or the ledger's address, as a file."""
        job = self.folder / "job"
        if not job.exists():
            content = (self.spend, None, None) if self.spend is not None else (None, self.where, self.case.cap)
            job.write_bytes(pickle.dumps((*content, self.case.spends)))
        command = [sys.executable, __file__, "--worker", str(job), str(log.path)]
        return os.posix_spawn(sys.executable, command, os.environ)

    def run(self) -> Outcome:
        started = time.monotonic()
        if self.case.way == "units":
            self.spend = self.ledger.spend("d", self.noise, count=self.case.cap)
            self.spend.__enter__()
        stop = threading.Event()
        linker = threading.Thread(target=self.link, args=(stop,))
        if self.case.way == "names":
            linker.start()
        kills, faults = self.supervise()
        stop.set()
        if self.case.way == "names":
            linker.join()
        if self.spend is not None:
            self.spend.__exit__(None, None, None)
        return self.outcome(kills, faults, time.monotonic() - started)

    def supervise(self) -> tuple[int, list[str]]:
        """Starts all workers, kills some at random times and starts them again; waits for all."""
        running = {self.start(way, logs): (way, logs) for way, logs in self.groups()}
        total, kills, faults, planned = self.case.workers * self.case.spends, 0, [], self.case.kills
        marks = sorted(self.random.sample(range(total // 20, total * 19 // 20), planned))
        while running:
            for pid, status in [found for found in (os.waitpid(p, os.WNOHANG) for p in running) if found[0]]:
                way, logs = running.pop(pid)
                if os.WIFSIGNALED(status):
                    running[self.start(way, logs)] = (way, logs)
                elif status:
                    faults.append(f"a worker ({way}) failed")
            if running and kills < planned and sum(log.attempts() for log in self.logs) >= marks[kills]:
                os.kill(self.random.choice(sorted(running)), signal.SIGKILL)
                kills += 1
            time.sleep(self.random.uniform(0.0, 0.05))
        return kills, faults

    def link(self, stop: threading.Event) -> None:
        """Somebody makes a hard link now and then: every worker stops until it is gone."""
        other = f"{self.where}.other"
        while not stop.wait(0.2):
            with suppress(OSError):
                os.link(self.where, other)
                time.sleep(0.05)
            with suppress(OSError):
                os.unlink(other)

    def outcome(self, kills: int, faults: list[str], seconds: float) -> Outcome:
        returned, asked, refused = (sum(log.count(mark) for log in self.logs) for mark in (b"+", b"?", b"-"))
        stopped = sum(log.count(b"!") for log in self.logs)
        status = self.ledger.check("d")
        recorded = sum(entry.taken for entry in self.ledger.history("d"))
        lost = asked - returned - refused - stopped
        if not returned <= recorded <= returned + lost + stopped:
            faults.append(f"{returned} returned and {lost} in flight at a kill, but {recorded} recorded")
        if recorded > self.case.cap or not status.filter.admits(status.totals):
            faults.append(f"{recorded} units recorded under a cap of {self.case.cap}")
        if kills == 0 and self.case.kills:
            faults.append("nobody was killed: the storm shows nothing")
        if asked - stopped >= self.case.cap + lost and self.case.way != "names" and recorded + lost < self.case.cap:
            faults.append("the cap was not reached although enough was asked for")
        return Outcome(returned, asked, refused, recorded, kills, status.spent, seconds, tuple(faults))


def worker(job: Path, log: Path) -> None:
    """The work of a fresh interpreter."""
    spend, where, cap, spends = pickle.loads(job.read_bytes())
    if spend is not None:
        shared(spend, Log(log), spends)
    else:
        one_by_one(opened(where), mechanism(cap), Log(log), spends)


def storm(case: Case, where: str, folder: Path) -> Outcome:
    """Runs one case in a folder of its own."""
    folder.mkdir(parents=True)
    return Storm(case, folder, where).run()


HEADER = (
    f"{'case':>4} {'database':10} {'way':8} {'workers':>7} {'asked':>7} {'returned':>8} "
    f"{'recorded':>8} {'cap':>7} {'kills':>5} {'spent':>9} {'s':>6}"
)


def line(case: Case, found: Outcome) -> str:
    return (
        f"{case.number:>4} {case.backend:10} {case.way:8} {case.workers:>7} {found.asked:>7} {found.returned:>8} "
        f"{found.recorded:>8} {case.cap:>7} {found.kills:>5} {found.spent:>9.4%} {found.seconds:>6.0f} "
        f"{'; '.join(found.faults) or 'holds'}"
    )


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="eight workers of twelve spends")
    options.add_argument("--spends", type=int, help="spends of each worker")
    options.add_argument("--case", type=int, action="append", help="only the case of this number (repeatable)")
    options.add_argument("--postgresql", help="URL of an empty database for each case, with {} for the case's number")
    options.add_argument("--folder", help="where the SQLite files and logs go (default: a temporary folder)")
    options.add_argument("--worker", nargs=2, type=Path, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.worker:
        worker(*chosen.worker)
        return 0
    backends = ("sqlite", "postgresql") if chosen.postgresql else ("sqlite",)
    folder = Path(tempfile.mkdtemp(prefix="storm", dir=chosen.folder))
    print(HEADER, flush=True)
    broken, returned, recorded, kills = 0, 0, 0, 0
    for case in cases(chosen.quick, backends):
        if chosen.case and case.number not in chosen.case:
            continue
        case = replace(case, spends=chosen.spends or case.spends)
        own = folder / str(case.number)
        where = str(own / "l.db") if case.backend == "sqlite" else chosen.postgresql.format(case.number)
        found = storm(case, where, own)
        print(line(case, found), flush=True)
        broken += bool(found.faults)
        returned, recorded, kills = returned + found.returned, recorded + found.recorded, kills + found.kills
    shutil.rmtree(folder)
    print(f"{returned} releases returned, {recorded} units recorded, {kills} kills, {broken} cases that do not hold")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
