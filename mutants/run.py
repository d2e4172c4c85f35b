"""Seeded faults: each mutant changes one line of a copy of the library and must be killed by the tests it names.

    python mutants/run.py                     # all of them, and the score
    python mutants/run.py --ci                # the ten that CI runs
    python mutants/run.py --only gaussian     # those whose name contains the text

A mutant is an entry of mutants/*.toml: name, fault (what goes wrong, in words), file, old (text that occurs exactly
once), new, kill (pytest arguments: the tests and audits that should see it), ci = true for the ten of CI,
survives (why no test sees it, where none does: it counts against the score all the same), hangs = true where the
fault shows as a test that never ends.
The tests of a mutant may take 30 s of processor time (user and system, of all processes they start), whatever else
the machine does; twenty times that by the clock.
At the end the tests that killed run without any fault and must pass.
results.txt holds the output of the last complete run.
Exit code 1 if the score is below 95%, a mutant no longer applies, or a killing test fails without any fault.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 30
WALL = 20  # times the processor time
SCORE = 0.95
KILLED, SURVIVED, SLOW, STALE = "killed", "survived", "too slow", "stale"
BROKEN, SICK = "names no test", "killed by a test that fails anyway"
# Plugins that the tests do without: most of the time of a short run would go to loading them.
_WITHOUT = ("cacheprovider", "randomly", "anyio", "hypothesispytest", "xdist", "xdist.looponfail")
_PYTEST = ("-x", "-q", "--no-header", "--tb=line", *(f"-pno:{name}" for name in _WITHOUT), "-m", "not slow")


@dataclass(frozen=True)
class Mutant:
    """One fault in one line."""

    name: str
    fault: str
    file: str
    old: str
    new: str
    kill: tuple[str, ...]
    ci: bool = False
    survives: str | None = None
    hangs: bool = False

    def applied(self, text: str) -> str | None:
        """The text with the fault, or None where the line has changed since."""
        return text.replace(self.old, self.new) if text.count(self.old) == 1 else None


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant."""

    mutant: Mutant
    verdict: str
    seconds: float
    by: str = ""


def load(folder: Path = ROOT / "mutants") -> list[Mutant]:
    """Every mutant of the folder's toml files."""
    found = []
    for path in sorted(folder.glob("*.toml")):
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]:
            entry["kill"] = tuple(entry["kill"])
            found.append(Mutant(**entry))
    return found


def copy_tree(target: Path) -> Path:
    """The library, its tests and their settings, without caches."""
    for name in ("src", "tests", "experiments", "fuzz"):
        if (ROOT / name).exists():
            shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", target)
    return target


@dataclass(frozen=True)
class Run:
    """How a run of tests ended: pytest's exit status (None when out of time), its last lines, processor seconds."""

    status: int | None
    output: str
    seconds: float


def tested(tree: Path, tests: tuple[str, ...], seconds: float) -> Run:
    """Run tests in a tree with so many seconds of processor time."""
    settings = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    settings.pop("PYTEST_ADDOPTS", None)
    limited = ["sh", "-c", f'ulimit -t {int(seconds) + 1}; exec "$@"', "sh"]
    call = [*limited, sys.executable, "-m", "pytest", *_PYTEST, *tests]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        child = subprocess.Popen(call, cwd=tree, env=settings, stdout=log, stderr=log, start_new_session=True)
        end, ended = time.monotonic() + WALL * seconds, 0
        while not ended:
            ended, state, used = os.wait4(child.pid, os.WNOHANG)
            if not ended and time.monotonic() > end:
                os.killpg(child.pid, signal.SIGKILL)
            time.sleep(0.02)
        child.returncode = os.waitstatus_to_exitcode(state)
        log.seek(0)
        output = log.read()[-4000:]
    spent = used.ru_utime + used.ru_stime
    if child.returncode < 0 or spent > seconds:
        return Run(None, f"out of time\n{output}", spent)
    return Run(child.returncode, output, spent)


def judge(mutant: Mutant, tree: Path, seconds: float = SECONDS) -> Outcome:
    """Put the fault into a tree, run what should kill it, take it out again."""
    path = tree / mutant.file
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    changed = mutant.applied(text)
    if changed is None:
        return Outcome(mutant, STALE, 0.0)
    try:
        path.write_text(changed, encoding="utf-8")
        done = tested(tree, mutant.kill, seconds)
    finally:
        path.write_text(text, encoding="utf-8")
    if done.status in (4, 5) or (done.status == 2 and "No module named" in done.output):
        return Outcome(mutant, BROKEN, done.seconds, done.output.strip().splitlines()[-1])
    failed = [line for line in done.output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    by = "out of time" if done.status is None else (failed[0] if failed else "")
    verdict = {0: SURVIVED, None: KILLED if mutant.hangs else SLOW}.get(done.status, KILLED)
    return Outcome(mutant, verdict, done.seconds, by)


def run(mutants: list[Mutant], workers: int = 2, seconds: float = SECONDS) -> list[Outcome]:
    """Judge mutants on copies, one copy per worker."""
    trees: Queue[Path] = Queue()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(workers) as pool:
        for i in range(workers):
            trees.put(copy_tree(Path(folder) / str(i)))

        def one(mutant: Mutant) -> Outcome:
            tree = trees.get()
            try:
                outcome = judge(mutant, tree, seconds)
            finally:
                trees.put(tree)
            print(
                f"{outcome.verdict:<9} {outcome.seconds:5.1f} s  {mutant.name}: {mutant.fault}  {outcome.by}",
                flush=True,
            )
            return outcome

        return list(pool.map(one, mutants))


def checked(outcomes: list[Outcome]) -> list[Outcome]:
    """The outcomes, after the tests that killed have run without any fault: one that fails there kills nothing."""
    named = sorted({test for outcome in outcomes if outcome.verdict == KILLED for test in killers(outcome)})
    if not named:
        return outcomes
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = copy_tree(Path(folder) / "tree")
        print(f"{len(named)} killing tests without a fault:", flush=True)
        if tested(tree, tuple(named), 1800).status == 0:
            print("all pass")
            return outcomes
        sick = {test for test in named if tested(tree, (test,), 600).status != 0}
    for test in sorted(sick):
        print(f"fails without a fault: {test}")
    return [replace(o, verdict=SICK) if o.verdict == KILLED and sick & killers(o) else o for o in outcomes]


def killers(outcome: Outcome) -> set[str]:
    """The test that failed; all that the mutant names where none could."""
    if outcome.by.startswith(("FAILED ", "ERROR ")):
        return {outcome.by.split(" ", 1)[1].split(" - ")[0]}
    return set(outcome.mutant.kill)


def report(outcomes: list[Outcome]) -> int:
    """Print the score and what is left to do; the exit code."""
    killed = sum(o.verdict == KILLED for o in outcomes)
    bad = [o for o in outcomes if o.verdict in (SLOW, STALE, BROKEN, SICK)]
    score = killed / len(outcomes) if outcomes else 1.0
    for o in outcomes:
        if o.verdict == SURVIVED:
            print(f"survivor  {o.mutant.name}: {o.mutant.fault} ({o.mutant.survives or 'a test is missing'})")
        elif o.mutant.survives is not None:
            print(f"no longer survives: {o.mutant.name}; remove its `survives`")
    for o in bad:
        print(f"{o.verdict}: {o.mutant.name} in {o.mutant.file}: {o.by or 'update its `old` in mutants/*.toml'}")
    slow = [o for o in outcomes if o.seconds > SECONDS * 0.9]
    if slow:
        print(f"near {SECONDS} s: {', '.join(o.mutant.name for o in slow)}")
    print(f"mutation score {killed}/{len(outcomes)} = {100 * score:.1f}% (required {100 * SCORE:.0f}%)")
    return int(score < SCORE or bool(bad))


def main() -> int:
    """The command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--ci", action="store_true")
    options.add_argument("--only", default="")
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--seconds", type=float, default=SECONDS)
    options.add_argument("--no-baseline", action="store_true", help="skip the run of the killing tests without a fault")
    chosen = options.parse_args()
    mutants = [m for m in load() if chosen.only in m.name and (m.ci or not chosen.ci)]
    if not mutants:
        print("no such mutant")
        return 1
    outcomes = run(mutants, chosen.workers, chosen.seconds)
    return report(outcomes if chosen.no_baseline else checked(outcomes))


if __name__ == "__main__":
    sys.exit(main())
