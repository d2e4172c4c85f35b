"""Mechanisms of known cost, bulk entries and forked children for the ledger's tests."""

from __future__ import annotations

import math
import os
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa

import shapedp as sdp
from shapedp.ledger import BudgetExceededError, Ledger, schema
from shapedp.ledger.records import totals_of

EPSILON, DELTA, ADJACENCY = 1.0, 1e-6, "replace"
CAP = {"epsilon": EPSILON, "delta": DELTA, "adjacency": ADJACENCY, "rule": "gaussian"}
X = [0.25]


def gaussian(fits: int) -> sdp.Additive:
    """A Gaussian mechanism of which exactly `fits` releases fit under the cap of a Gaussian filter."""
    mu = sdp.GaussianLoss.calibrate(EPSILON, DELTA).mu
    return sdp.Additive(
        sdp.Gaussian(math.sqrt(fits + 0.5) / mu, 1), sdp.L2(1.0, 1, adjacency=ADJACENCY), EPSILON, DELTA
    )


def spend_until_done(where: str, fits: int, attempts: int, log: Path, ready: Callable[[], Any] = lambda: None) -> None:
    """Spends `attempts` times; a line "entry" after each release, a line "refused" after each refusal.

    A busy machine may hold a process up for longer than the usual timeout; what is tested is the cap, not the wait.
    """
    ledger, mechanism = Ledger.open(where, timeout=900.0), gaussian(fits)
    ledger.affords("d", mechanism)
    ready()
    with open(log, "ab", buffering=0) as out:
        for _ in range(attempts):
            try:
                with ledger.spend("d", mechanism) as spend:
                    spend.release(X)
                    out.write(f"{spend.entry}\n".encode())
            except BudgetExceededError:
                out.write(b"refused\n")


def fork(work: Callable[[], Any]) -> int:
    """Runs `work` in a child process; its exit status says whether it raised."""
    pid = os.fork()
    if pid:
        return pid
    try:
        work()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def outcome(work: Callable[[], Any], pipe_limit: int = 65536) -> str:
    """What `work` returned or raised in a child process, as text."""
    read, write = os.pipe()

    def child() -> None:
        try:
            text = f"returned {work()!r}"
        except BaseException as error:
            text = f"raised {type(error).__name__}: {error}"
        os.write(write, text.encode()[:pipe_limit])

    pid = fork(child)
    os.close(write)
    with os.fdopen(read, "rb") as answers:
        text = answers.read().decode()
    os.waitpid(pid, 0)
    return text


def race(where: str, folder: Path, *, processes: int, attempts: int, fits: int) -> list[int]:
    """The entries of all releases made by so many processes at once; every child must end well."""
    logs = [folder / f"log{i}" for i in range(processes)]
    children = [fork(lambda log=log: spend_until_done(where, fits, attempts, log)) for log in logs]
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * processes
    lines = [line for log in logs for line in log.read_text().splitlines()]
    assert len(lines) == processes * attempts
    return [int(line) for line in lines if line != "refused"]


def kill_during_spends(where: str, log: Path, *, kills: int, fits: int, rng: Any) -> None:
    """Starts a spending child and kills it within its first few spends, `kills` times; checks after each."""
    ledger, mechanism = Ledger.open(where), gaussian(fits)
    started = time.perf_counter()
    for _ in range(3):
        with ledger.spend("d", mechanism) as spend:
            spend.release(X)
    window = time.perf_counter() - started
    for _ in range(kills):
        read, write = os.pipe()

        def child(end: int = write) -> None:
            spend_until_done(where, fits, 10**9, log, ready=lambda: os.write(end, b"1"))

        pid = fork(child)
        os.read(read, 1)
        os.close(read)
        os.close(write)
        time.sleep(rng.uniform(0.0, window))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        status = ledger.check("d")
        assert status.filter.admits(status.totals)
        assert sum(status.states.values()) == status.entries <= fits


def fill(ledger: Ledger, mechanism: sdp.Additive, number: int) -> None:
    """`number` further released entries written in bulk, with digests and totals as spends would leave them."""
    with ledger.spend("d", mechanism) as spend:
        spend.release(X)

    def work(connection: sa.Connection) -> None:
        row = ledger._row(connection, "d")
        last = dict(
            connection.execute(sa.select(schema.entries).where(schema.entries.c.sequence == row["entries"]))
            .mappings()
            .one()
        )
        chain, marks, rows = row["chain"], int(row["marks"], 16), []
        for sequence in range(row["entries"] + 1, row["entries"] + number):
            entry = {k: v for k, v in last.items() if k != "id"} | {"sequence": sequence}
            chain = entry["digest"] = schema.digest_of(chain, entry)
            marks += schema.mark_of(entry)
            rows.append(entry)
        connection.execute(schema.entries.insert(), rows)
        totals = totals_of(row).plus(spend.charge.times(number - 1))
        row |= {"entries": row["entries"] + number - 1, "chain": chain, "marks": schema.marks_text(marks)}
        row["totals"] = schema.to_text(totals.to_json())
        row["seal"] = schema.seal_of(row)
        connection.execute(schema.datasets.update().where(schema.datasets.c.id == row["id"]).values(**row))

    ledger.store.perform(work)
