"""The fuzz suite: random cases against a written list of properties (properties.py), each seeded by its number.

    python fuzz/run.py                                  # an hour, shared out over the kinds; goes on where it stopped
    python fuzz/run.py --seconds 600 --kind api         # ten minutes of one kind
    python fuzz/run.py --kind process --cases 2000      # until so many cases have been, or the time is over
    python fuzz/run.py --kind api --case 4711           # one case again, in this process, with everything shown
    python fuzz/run.py --again                          # the broken cases of the state, after a mend
    python fuzz/run.py --state fuzz.json                # where the counts are kept (default: fuzz/state.json)

Kinds: api, each (every parameter of every public callable with every odd value), command, process, json, table,
ledger. Cases run in child processes with limited memory, so that one that hangs or dies costs itself only. Prints a
table of outcomes; exit code 1 if a property was broken.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import math
import mmap
import os
import random
import resource
import select
import shutil
import signal
import struct
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from fuzz import api, commands, documents, ledgers  # noqa: E402
from fuzz.pool import foreign  # noqa: E402
from fuzz.properties import MEMORY, SECONDS, WAIT, Outcome  # noqa: E402

KINDS: dict[str, Callable[[int, Path], Outcome]] = {
    "api": api.case,
    "each": api.each_case,
    "command": commands.case,
    "process": commands.real_case,
    "json": documents.json_case,
    "table": documents.table_case,
    "ledger": ledgers.case,
}
SHARES = {"api": 0.35, "each": 0.1, "command": 0.2, "process": 0.15, "json": 0.1, "table": 0.07, "ledger": 0.03}
_LOADED = (
    *("pandas", "pyarrow.parquet", "pyarrow.csv", "polars", "sqlalchemy", "flint", "shapedp_check.verdict", "opendp"),
    *("sklearn.linear_model", "sklearn.svm", "dp_accounting.pld.privacy_loss_distribution", "opacus.validators"),
    *("torch.distributed.tensor", "shapedp.torch", "shapedp.learn"),
)
_CHUNK = 2000  # cases of one child
_SAVED = 20.0  # seconds between two writings of the state
_SLOW = 2.0  # seconds: kept as one of the slowest
_KEPT = 5  # examples of one broken property of one target


_seen = 0.0  # processor time when a case was last seen to compute


class TooLong(BaseException):
    """The time of a case is over; no handler of Exception stops it."""


def _over(signum: int, frame: FrameType | None) -> None:
    raise TooLong


def _idle(signum: int, frame: FrameType | None) -> None:
    """Ends a case that waits; one that is computing goes on, as the processor may be shared by many."""
    global _seen
    before, _seen = _seen, time.process_time()
    if _seen - before < WAIT / 100:
        raise TooLong
    signal.setitimer(signal.ITIMER_REAL, WAIT)


def timed(kind: str, number: int, folder: Path) -> Outcome:
    """One case under the clock of property 2 and 9."""
    signal.signal(signal.SIGPROF, _over)
    signal.signal(signal.SIGALRM, _idle)
    global _seen
    _seen = started = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, WAIT)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = KINDS[kind](number, folder)
    except TooLong:
        waited = time.process_time() - started < SECONDS / 2
        target = kind
        if kind == "api":
            target = api.chosen(random.Random(f"api {number}"), number).known
        elif kind == "each":
            target = ".".join((api.one_odd(number)[0].known, api.one_odd(number)[1]))
        how = f"waits for {WAIT:g} s" if waited else f"more than {SECONDS:g} s"
        return Outcome(target, "too long", (f"in time: {how}",), f"case {number}")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    if (took := time.process_time() - started) > SECONDS:
        return Outcome(found.target, "too long", (*found.broken, f"in time: {took:.0f} s"), found.detail)
    return found


class State:
    """Counts by kind, and the number of the next case; kept in a file."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.data: dict[str, Any] = {}
        if path is not None and path.exists():
            self.data = json.loads(path.read_text(encoding="utf-8"))

    def of(self, kind: str) -> dict[str, Any]:
        """What is known of one kind."""
        fresh = {"next": 0, "seconds": 0.0, "ends": {}, "met": {}, "broken": {}, "slow": []}
        entry = self.data.setdefault(kind, fresh)
        for name, value in fresh.items():
            entry.setdefault(name, value)
        return entry  # type: ignore[no-any-return]

    def add(self, kind: str, number: int, found: dict[str, Any]) -> None:
        """Count one case."""
        entry = self.of(kind)
        entry["next"] = number + 1
        entry["ends"][found["end"]] = entry["ends"].get(found["end"], 0) + 1
        met = entry["met"].setdefault(found["target"], [0, 0.0])
        met[:] = met[0] + 1, met[1] + found["took"]
        if found["took"] > _SLOW:
            entry["slow"] = sorted([*entry["slow"], [found["took"], number, found["target"]]], reverse=True)[:20]
        for one in found["broken"]:
            seen = entry["broken"].setdefault(f"{found['target']}: {one}", {"count": 0, "cases": []})
            seen["count"] += 1
            if len(seen["cases"]) < _KEPT:
                seen["cases"].append([number, found["detail"][:4000]])

    def save(self) -> None:
        """Write the file, whole or not at all."""
        if self.path is not None:
            fresh = self.path.with_suffix(".tmp")
            fresh.write_text(json.dumps(self.data, indent=1), encoding="utf-8")
            fresh.replace(self.path)


def prepare() -> None:
    """Load and build before the first child is made whatever every child would build for itself."""
    for target in api.targets():
        target.parameters  # noqa: B018
    for name in _LOADED:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    foreign()


def chunk(
    kind: str, state: State, folder: Path, until: float = math.inf, budget: float = math.inf, cases: int = _CHUNK
) -> None:
    """Run cases in a child until it has done its share, the time or its processor time is over or a case kills it."""
    first = state.of(kind)["next"]
    mark = mmap.mmap(-1, 8)
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read)
        _child(kind, range(first, first + cases), folder, until, budget, mark, write)
    os.close(write)
    done = first
    saved = time.monotonic()
    for line in _lines(read, pid):
        state.add(kind, done, json.loads(line))
        done += 1
        if time.monotonic() > saved + _SAVED:
            state.save()
            saved = time.monotonic()
    _, status = os.waitpid(pid, 0)
    if status:
        at = struct.unpack("q", mark[:8])[0]
        how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit code {os.WEXITSTATUS(status)}"
        end = "too long" if how in (f"signal {signal.SIGXCPU}", f"signal {signal.SIGKILL}") else "died"
        lost: dict[str, Any] = {
            "target": kind,
            "end": end,
            "broken": [f"in time: the process ended by {how}"],
            "detail": f"case {at}",
        }
        lost["took"] = 2 * SECONDS
        state.add(kind, at, lost)
    state.save()


def _lines(read: int, pid: int) -> Iterator[bytes]:
    """The whole lines that a child wrote; one that is silent for too long, where no signal ends it, is killed."""
    left = b""
    while True:
        if not select.select([read], [], [], 20 * WAIT)[0]:
            os.kill(pid, signal.SIGKILL)
        if not (found := os.read(read, 1 << 16)):
            break
        *lines, left = (left + found).split(b"\n")
        yield from lines
    os.close(read)


def _child(kind: str, numbers: range, folder: Path, until: float, budget: float, mark: mmap.mmap, write: int) -> None:
    """Never returns. A case that hangs below Python is ended by the system."""
    code = 1
    try:
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
        os.chdir(folder)
        with os.fdopen(write, "w", encoding="utf-8") as out:
            for number in numbers:
                mark[:8] = struct.pack("q", number)
                limit = int(time.process_time() + 2 * SECONDS) + 1
                resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
                started = time.process_time()
                found = timed(kind, number, folder)
                text = {**vars(found), "took": round(time.process_time() - started, 5)}
                out.write(json.dumps(text, ensure_ascii=True) + "\n")
                out.flush()
                if time.time() > until or _spent() > budget:
                    break
        code = 0
    finally:
        os._exit(code)


def _spent() -> float:
    """Processor time of this process and of those it waited for."""
    return sum(os.times()[:4])


def table(state: State) -> str:
    """The outcomes, and every broken property with the numbers of its first cases."""
    lines = []
    for kind, entry in state.data.items():
        ends = Counter(entry["ends"])
        total = sum(ends.values())
        rate = f"{entry['seconds']:.0f} s by the clock"
        lines.append(f"{kind:8} {total:>9,} cases, {rate}")
        lines += [f"    {count:>9,}  {end}" for end, count in ends.most_common()]
        count = sum(one["count"] for one in entry["broken"].values())
        lines.append(f"    {count:>9,}  broken properties")
        for what, one in sorted(entry["broken"].items(), key=lambda pair: -pair[1]["count"]):
            lines.append(
                f"        {one['count']:>5} x {what[:200]}  (cases {', '.join(str(c[0]) for c in one['cases'])})"
            )
        if kind == "api" and (missed := {target.known for target in api.targets()} - entry["met"].keys()):
            lines.append(f"        {len(missed)} public callables not met yet: {', '.join(sorted(missed)[:20])}")
        lines += [f"        {took:.1f} s of processor time: {what} (case {at})" for took, at, what in entry["slow"][:5]]
    return "\n".join(lines)


def run(kinds: list[str], seconds: float, state: State, say: Callable[[str], None], most: float = math.inf) -> None:
    """Each kind for its share of the time, in turns, or until it has had so many cases."""
    memory = "/dev/shm"  # no disk: what is synced is not what is measured
    whole = sum(SHARES[kind] for kind in kinds)
    folder = Path(tempfile.mkdtemp(prefix="shapedp-fuzz-", dir=memory if os.access(memory, os.W_OK) else None))
    prepare()
    turns = max(1, int(seconds // 300))
    here = Path.cwd()
    try:
        for _ in range(turns):
            for kind in kinds:
                started = time.time()
                until = started + seconds / turns * SHARES[kind] / whole
                (folder / kind).mkdir(exist_ok=True)
                while time.time() < until and state.of(kind)["next"] < most:
                    chunk(kind, state, folder / kind, until)
                entry = state.of(kind)
                entry["seconds"] += time.time() - started
                state.save()
                bad = sum(one["count"] for one in entry["broken"].values())
                say(f"{kind}: {entry['next']:,} cases so far, {bad} broken properties")
    finally:
        os.chdir(here)
        shutil.rmtree(folder, ignore_errors=True)


def costs(state: State) -> None:
    """Write what a call of each target took on average, where it is more than a millisecond, for api.chosen."""
    means = {name: round(1e3 * seconds / count, 1) for name, (count, seconds) in state.of("api")["met"].items()}
    slow = {name: mean for name, mean in sorted(means.items()) if mean > 1}
    api.COSTS.write_text(json.dumps(slow, indent=1) + "\n", encoding="utf-8")


def again(kinds: list[str], state: State) -> None:
    """Run the kept cases of every broken property anew, each in a child; one whose cases all hold now is forgotten."""
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            broken = state.of(kind)["broken"]
            for what, seen in list(broken.items()):
                trial = State(None)
                for number, _ in seen["cases"]:
                    trial.of(kind)["next"] = number
                    chunk(kind, trial, Path(folder), cases=1)
                if not trial.of(kind)["broken"]:
                    del broken[what]
    state.save()


def main() -> int:
    """Run, print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=3600.0)
    options.add_argument("--kind", action="append", choices=list(KINDS))
    options.add_argument("--cases", type=int, default=math.inf, help="stop a kind once it has had about so many cases")
    options.add_argument("--case", type=int, action="append")
    options.add_argument("--state", type=Path, default=ROOT / "fuzz" / "state.json")
    options.add_argument("--again", action="store_true", help="run the kept broken cases anew, forget those that hold")
    options.add_argument("--costs", action="store_true", help="write costs.json anew from the state; runs nothing")
    chosen = options.parse_args()
    kinds = chosen.kind or list(KINDS)
    if chosen.case:
        with tempfile.TemporaryDirectory() as folder:
            found = [timed(kind, number, Path(folder)) for kind in kinds for number in chosen.case]
        print(*found, sep="\n")
        return int(any(one.broken for one in found))
    state = State(chosen.state)
    if chosen.costs:
        costs(state)
        return 0
    if chosen.again:
        prepare()
        again(kinds, state)
        chosen.cases = 0
    run(kinds, chosen.seconds, state, lambda text: print(text, file=sys.stderr, flush=True), chosen.cases)
    print(table(state))
    return int(any(entry["broken"] for entry in state.data.values()))


if __name__ == "__main__":
    sys.exit(main())
