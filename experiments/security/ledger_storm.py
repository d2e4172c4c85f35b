"""Workers that spend from one cap while some are killed: releases returned = units recorded, never above the cap.

    python experiments/security/ledger_storm.py                      # every case on SQLite
    python experiments/security/ledger_storm.py --postgresql URL     # every case on PostgreSQL as well
    python experiments/security/ledger_storm.py --case 8 --folder F --minutes 15    # a part; the same line goes on
    python experiments/security/ledger_storm.py --spends 100         # of each worker, instead of 1000 and 40
    python experiments/security/ledger_storm.py --quick
    sh experiments/security/two_hosts.sh --quick                     # PostgreSQL and two hosts, made and removed

A case starts workers that each spend so many times from one dataset, by one of the ways to share a ledger:

    fork      os.fork, every child opens the ledger
    inherit   os.fork, every child uses the ledger object of its parent
    thread    threads of a few processes, one ledger object each
    process   multiprocessing, half by its start method fork, half by spawn
    spawn     fresh interpreters
    units     a reservation of many releases, whose inherited or pickled spend all workers share, by all ways above
    names     as fork, by the file's name, by a symbolic link and by a second mount of its folder, while somebody makes
              and removes hard links and mounts of the single file, and tries to spend by them (SQLite only)
    mixed     fork, inherit, thread, process and spawn at once
    hosts     as mixed, from the network namespaces of --hosts, every second pair of processes under default isolation
              `serializable` (PostgreSQL only)

A worker writes to a log before it asks for a release, when it has a reservation and when it has the release; the log
survives SIGKILL. At random times a random process is killed, and each worker kills its process once between taking a
unit and drawing the noise; a new process goes on with the rest. After the storm every entry of the ledger is matched
with the logs:

    recorded  = returned + cut, where the units in `cut` are each of an attempt that a kill ended
    recorded <= cap; nobody is refused before the entries reach the cap
    lost      = releases returned whose unit is not recorded: 0
    double    = releases returned beyond the units of their entry: 0
    by link   = spends that a second name let through: 0

Exit code 1 where one of these does not hold, 3 where a case is to be continued.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import storm_names
from storm_workers import DELTA, EPSILON, TIMEOUT, Forked, Job, Log, Multiprocess, interpreter, mechanism, work

from shapedp.ledger import Ledger, Spend

WAYS = ("fork", "inherit", "thread", "process", "spawn", "units", "names", "mixed", "hosts")
ALL = WAYS[:5]
ONLY = {"names": "sqlite", "hosts": "postgresql"}
SERIALIZABLE = "options=-c%20default_transaction_isolation%3Dserializable"
THREADS = 8
PAUSE, LONG_PAUSE, LONG = 0.05, 0.4, 10_000
"""Seconds between two looks at the workers, at most; the second where they ask for more than so many releases."""


@dataclass(frozen=True)
class Case:
    """One storm; its kills follow from its number."""

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

    ends: Counter[str]
    entries: int
    recorded: int
    lost: int
    double: int
    kills: int
    seconds: float
    finished: bool
    notes: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def returned(self) -> int:
        return self.ends["returned"]


def cases(quick: bool, backends: tuple[str, ...]) -> list[Case]:
    """The ways that mix others at full size on each database, the single ways smaller; quick: all small."""
    found = []
    for backend in backends:
        for way in WAYS:
            if ONLY.get(way, backend) == backend:
                whole = way not in ALL
                workers, spends, kills = (8, 12, 4) if quick else (64, 1000, 192) if whole else (64, 40, 32)
                found.append(Case(len(found), way, backend, workers, spends, kills))
    return found


class Storm:
    """The workers of a case, and who kills them. In a folder that holds a part of the case it goes on with that."""

    def __init__(self, case: Case, folder: Path, where: str, hosts: tuple[str | None, ...] = (None,)) -> None:
        self.case, self.folder, self.hosts = case, folder, hosts
        self.random = random.Random()
        self.state = {"signals": 0, "kills": 0, "exposed": 0, "seconds": 0.0, "addresses": []}
        self.stop = folder / "stop"
        self.logs = [Log(folder / f"log{i}") for i in range(case.workers)]
        self.faults: list[str] = []
        self.spend: Spend | None = None
        if (folder / "state").exists():
            self.state = json.loads((folder / "state").read_text())
            self.stop.unlink(missing_ok=True)
            self.ledger = Ledger.open(where, timeout=TIMEOUT)
        else:
            cap = {"epsilon": EPSILON, "delta": DELTA, "adjacency": "replace", "rule": "gaussian"}
            self.ledger = Ledger.create(where, dataset="d", timeout=TIMEOUT, **cap)
        self.names = storm_names.Names(where, folder) if case.way == "names" else None
        other = f"{where}{'&' if '?' in where else '?'}{SERIALIZABLE}"
        self.places = self.names.harmless if self.names else [where, other] if case.way == "hosts" else [where]
        self.ledgers = {place: Ledger.open(place, timeout=TIMEOUT) for place in self.places}
        if case.way == "units":
            self.spend = self.reservation()

    def reservation(self) -> Spend:
        """The reservation that all share; a part that goes on finds it in the folder."""
        kept = self.folder / "spend"
        if kept.exists():
            found: Spend = pickle.loads(kept.read_bytes())
            return found
        spend = self.ledger.spend("d", mechanism(self.case.cap), count=self.case.cap).__enter__()
        kept.write_bytes(pickle.dumps(spend))
        return spend

    def groups(self) -> list[tuple[str, list[Log], Job]]:
        """The processes: by which way, for which workers."""
        ways = ALL if self.case.way in ("mixed", "hosts", "units") else (self.case.way,)
        found: list[tuple[str, list[Log], Job]] = []
        for i, way in enumerate(ways):
            logs = self.logs[i :: len(ways)]
            size = THREADS if way == "thread" else 1
            for k in range(0, len(logs), size):
                number = len(found)
                host = self.hosts[number % len(self.hosts)]
                place = self.places[number // len(self.hosts) % len(self.places)]
                job = Job(place, self.case.cap, self.case.spends, self.case.number, host, self.spend, str(self.stop))
                found.append((way, logs[k : k + size], job))
        return found

    def start(self, way: str, logs: list[Log], job: Job) -> Any:
        """A process that does what is left for these logs."""
        inherited = self.ledgers[job.where]
        if way in ("inherit", "thread"):
            return Forked(lambda: work(job, inherited, logs))
        if way == "process":
            method = "fork" if self.logs.index(logs[0]) % 2 else "spawn"
            return Multiprocess(method, job, inherited, logs)
        if way == "spawn":
            kept = self.folder / f"job{self.logs.index(logs[0])}"
            kept.write_bytes(pickle.dumps(job))
            return interpreter(kept, logs)
        return Forked(lambda: work(job, None, logs))

    def run(self, seconds: float = float("inf")) -> Outcome:
        """The case, or what of it fits in so many seconds."""
        started = time.monotonic()
        before = self.state["seconds"]
        if self.names:
            self.names.begin()
        try:
            self.supervise(started + seconds)
        finally:
            if self.names:
                self.names.close()
            self.state["seconds"] = before + time.monotonic() - started
            (self.folder / "state").write_text(json.dumps(self.state))
        return self.outcome()

    def supervise(self, deadline: float) -> None:
        """Starts all workers and waits for all of them."""
        running: dict[int, Any] = {}
        try:
            for group in self.groups():
                worker = self.start(*group)
                running[worker.pid] = (worker, group)
            self.watch(running, deadline)
        finally:
            for pid in running:
                os.kill(pid, signal.SIGKILL)

    def watch(self, running: dict[int, Any], deadline: float) -> None:
        """Kills some at random times and starts them again, until all have ended."""
        total, planned = self.case.workers * self.case.spends, self.case.kills
        marks = sorted(random.Random(self.case.number).sample(range(total // 20, total * 19 // 20), planned))
        while running:
            for pid, (worker, group) in list(running.items()):
                code = worker.poll()
                if code is not None:
                    del running[pid]
                    self.ended(code, group, running)
            asked = sum(log.asked() for log in self.logs)
            if running and self.state["kills"] < planned and asked >= marks[self.state["kills"]]:
                os.kill(self.random.choice(sorted(running)), signal.SIGKILL)
                self.state["kills"] += 1
                self.look()
            if time.monotonic() > deadline:
                self.stop.touch()
            time.sleep(self.random.uniform(0.0, LONG_PAUSE if total > LONG else PAUSE))

    def ended(self, code: int, group: tuple[str, list[Log], Job], running: dict[int, Any]) -> None:
        """Writes down how a process ended, and starts another one where it was killed."""
        if code == -signal.SIGKILL:
            self.state["signals"] += 1
            self.state["exposed"] += len(group[1])
            worker = self.start(*group)
            running[worker.pid] = (worker, group)
        elif code:
            self.faults.append(f"a worker ({group[0]}) ended with {code}")

    def look(self) -> None:
        """From which addresses the server is used."""
        if self.case.way == "hosts":
            with self.ledger.store.read() as connection:
                query = "SELECT DISTINCT host(client_addr) FROM pg_stat_activity WHERE datname = current_database()"
                found = {str(address) for (address,) in connection.execute(sa.text(query)) if address}
            self.state["addresses"] = sorted(found | set(self.state["addresses"]))

    def outcome(self) -> Outcome:
        """Every entry of the ledger matched with the logs."""
        case, faults = self.case, list(self.faults)
        attempts = [attempt for log in self.logs for attempt in log.attempts()]
        ends = Counter(map(ending, attempts))
        returned = Counter(int(line[1:]) for attempt in attempts for line in attempt if line[0] == "+")
        named = {int(line[1:]) for attempt in attempts for line in attempt if line[0] == "="}
        cut = {int(attempt[0][1:]) for attempt in attempts if ending(attempt) == "cut after"}
        status, history = self.ledger.check("d"), list(self.ledger.history("d"))
        taken = {entry.id: entry.taken for entry in history}
        lost = sum(number for entry, number in returned.items() if not taken.get(entry))
        double = sum(max(number - taken.get(entry, 0), 0) for entry, number in returned.items()) - lost
        over = {entry: units - returned[entry] for entry, units in taken.items() if units > returned[entry]}
        if case.way != "units":
            unnamed = [entry for entry in taken if entry not in named]
            if not set(over) <= cut:
                faults.append(f"{len(set(over) - cut)} units of attempts that nobody cut off")
            if len(unnamed) > ends["cut before"]:
                faults.append(f"{len(unnamed)} entries without an owner, {ends['cut before']} attempts cut off before")
        ended = ends["cut before"] + ends["cut after"]
        if sum(over.values()) > ended or ended > self.state["exposed"]:
            faults.append(f"{sum(over.values())} units cut, {ended} attempts, {self.state['exposed']} workers killed")
        reserved = sum(entry.count for entry in history)
        if lost or double:
            faults.append("what was returned is not recorded")
        if reserved > case.cap or not status.filter.admits(status.totals):
            faults.append(f"{reserved} releases reserved under a cap of {case.cap}")
        used = reserved if case.way != "units" else sum(taken.values())
        if ends["refused"] and used < case.cap:
            faults.append(f"refused although {used} of {case.cap} were used")
        if not self.state["signals"] and case.kills:
            faults.append("nobody was killed: the storm shows nothing")
        notes = [f"clients at {', '.join(self.state['addresses'])}"] if self.state["addresses"] else []
        if self.names:
            notes += self.names.notes()
            faults += self.names.faults()
        finished = all(log.asked() >= case.spends for log in self.logs)
        figures = (ends, reserved, sum(taken.values()), lost, double, self.state["signals"], self.state["seconds"])
        return Outcome(*figures, finished, notes, faults)


def ending(attempt: list[str]) -> str:
    """How an attempt ended: a kill cuts it off before or after it has a reservation."""
    marks = {line[0] for line in attempt}
    if "+" in marks:
        return "returned"
    return "refused" if "-" in marks else "stopped" if "!" in marks else "cut after" if "=" in marks else "cut before"


def storm(
    case: Case, where: str, folder: Path, seconds: float = float("inf"), hosts: tuple[str | None, ...] = (None,)
) -> Outcome:
    """Runs one case, or a part of it, in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    return Storm(case, folder, where, hosts).run(seconds)


HEADER = (
    f"{'case':>4} {'database':10} {'way':8} {'workers':>7} {'spends':>6} {'asked':>6} {'returned':>8} {'recorded':>8} "
    f"{'cap':>6} {'refused':>7} {'stopped':>7} {'kills':>5} {'cut':>4} {'units cut':>9} {'lost':>4} {'double':>6} "
    f"{'s':>6}"
)


def line(case: Case, found: Outcome) -> str:
    ends = found.ends
    asked, cut = ends.total() - ends["stopped"], ends["cut before"] + ends["cut after"]
    verdict = "; ".join(found.faults) or ("holds" if found.finished else "holds so far, to be continued")
    return (
        f"{case.number:>4} {case.backend:10} {case.way:8} {case.workers:>7} {case.spends:>6} {asked:>6} "
        f"{found.returned:>8} {found.recorded:>8} {case.cap:>6} {ends['refused']:>7} {ends['stopped']:>7} "
        f"{found.kills:>5} {cut:>4} {found.recorded - found.returned:>9} {found.lost:>4} {found.double:>6} "
        f"{found.seconds:>6.0f} {'; '.join([verdict, *found.notes])}"
    )


def arguments() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="eight workers of twelve spends")
    options.add_argument("--spends", type=int, help="spends of each worker")
    options.add_argument("--case", type=int, action="append", help="only the case of this number (repeatable)")
    options.add_argument("--postgresql", help="URL of an empty database for each case, with {} for the case's number")
    options.add_argument("--hosts", default="", help="network namespaces, with a comma between, for the case `hosts`")
    options.add_argument("--folder", type=Path, help="where files and logs are kept, to go on (default: temporary)")
    options.add_argument("--minutes", type=float, default=float("inf"), help="of each case; what is left is for later")
    options.add_argument("--worker", nargs="+", type=Path, help=argparse.SUPPRESS)
    return options.parse_args()


def main() -> int:
    chosen = arguments()
    if chosen.worker:
        work(pickle.loads(chosen.worker[0].read_bytes()), None, [Log(path) for path in chosen.worker[1:]])
        return 0
    backends = ("sqlite", "postgresql") if chosen.postgresql else ("sqlite",)
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="storm"))
    print(HEADER, flush=True)
    outcomes = []
    for case in cases(chosen.quick, backends):
        if chosen.case and case.number not in chosen.case:
            continue
        case = replace(case, spends=chosen.spends or case.spends)
        own = folder / str(case.number)
        where = str(own / "l.db") if case.backend == "sqlite" else chosen.postgresql.format(case.number)
        hosts = tuple(chosen.hosts.split(",")) if chosen.hosts and case.way == "hosts" else (None,)
        found = storm(case, where, own, 60 * chosen.minutes, hosts)
        print(line(case, found), flush=True)
        outcomes.append(found)
    if not chosen.folder:
        shutil.rmtree(folder)
    returned, recorded, kills = (sum(getattr(o, n) for o in outcomes) for n in ("returned", "recorded", "kills"))
    broken = sum(bool(o.faults) for o in outcomes)
    print(f"{returned} releases returned, {recorded} units recorded, {kills} kills, {broken} cases that do not hold")
    return 1 if broken else 0 if all(o.finished for o in outcomes) else 3


if __name__ == "__main__":
    sys.exit(main())
