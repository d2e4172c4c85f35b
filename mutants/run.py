"""Seeded faults: each mutant changes one line of a copy of the library and must be killed by the tests it names.

    python mutants/run.py                     # all of them, and the score
    python mutants/run.py --ci                # the ten that CI runs
    python mutants/run.py --only gaussian     # those whose name contains the text

A mutant is an entry of mutants/*.toml: name, fault (what goes wrong, in words), file, old (text that occurs exactly
once), new, kill (pytest arguments: the tests and audits that should see it), ci = true for the ten of CI,
survives (why no test sees it, where none does: it counts against the score all the same), hangs = true where the
fault shows as a test that never ends.
Exit code 1 if the score is below 95%, a mutant no longer applies, or a named test fails without any fault.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 30
SCORE = 0.95
KILLED, SURVIVED, SLOW, STALE, BROKEN = "killed", "survived", "too slow", "stale", "names no test"
_PYTEST = ("-x", "-q", "--no-header", "--tb=line", "-p", "no:cacheprovider", "-p", "no:randomly", "-m", "not slow")


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
    for name in ("src", "tests", "experiments"):
        if (ROOT / name).exists():
            shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", target)
    return target


def tested(tree: Path, tests: tuple[str, ...], seconds: float) -> tuple[int | None, str]:
    """Run tests in a tree: pytest's exit status (None when out of time) and its last lines."""
    settings = {**os.environ, "PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    settings.pop("PYTEST_ADDOPTS", None)
    call = [sys.executable, "-m", "pytest", *_PYTEST, *tests]
    try:
        done = subprocess.run(
            call, cwd=tree, env=settings, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return None, "out of time"
    return done.returncode, done.stdout[-2000:] + done.stderr[-2000:]


def judge(mutant: Mutant, tree: Path, seconds: float = SECONDS) -> Outcome:
    """Put the fault into a tree, run what should kill it, take it out again."""
    path, start = tree / mutant.file, time.perf_counter()
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    changed = mutant.applied(text)
    if changed is None:
        return Outcome(mutant, STALE, 0.0)
    try:
        path.write_text(changed, encoding="utf-8")
        status, output = tested(tree, mutant.kill, seconds)
    finally:
        path.write_text(text, encoding="utf-8")
    took = time.perf_counter() - start
    if status in (4, 5) or (status == 2 and "No module named" in output):
        return Outcome(mutant, BROKEN, took, output.strip().splitlines()[-1])
    failed = [line for line in output.splitlines() if line.startswith(("FAILED", "ERROR"))]
    by = "out of time" if status is None else (failed[0] if failed else "")
    verdict = {0: SURVIVED, None: KILLED if mutant.hangs else SLOW}.get(status, KILLED)
    return Outcome(mutant, verdict, took, by)


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


def healthy(mutants: list[Mutant]) -> str | None:
    """None if every named test passes without a fault; otherwise what pytest said."""
    named = tuple(sorted({test for mutant in mutants for test in mutant.kill}))
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        status, output = tested(copy_tree(Path(folder) / "tree"), named, 1800)
    return None if status == 0 else output


def report(outcomes: list[Outcome]) -> int:
    """Print the score and what is left to do; the exit code."""
    killed = sum(o.verdict == KILLED for o in outcomes)
    bad = [o for o in outcomes if o.verdict in (SLOW, STALE, BROKEN)]
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
    options.add_argument("--no-baseline", action="store_true", help="skip the run without a fault")
    chosen = options.parse_args()
    mutants = [m for m in load() if chosen.only in m.name and (m.ci or not chosen.ci)]
    if not mutants:
        print("no such mutant")
        return 1
    if not chosen.no_baseline and (output := healthy(mutants)):
        print(f"the named tests fail without any fault:\n{output}")
        return 1
    return report(run(mutants, chosen.workers, chosen.seconds))


if __name__ == "__main__":
    sys.exit(main())
