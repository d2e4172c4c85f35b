"""Peak memory of every command, each in a process of its own, on small input."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
from importlib.resources import files
from pathlib import Path

import numpy as np

from _harness import Result

CLAIM = "--epsilon 1 --delta 1e-6"
SCHEMA = """
[attributes]
age = { edges = [0, 18, 35, 50, 65, 120] }
[measures]
cost = [0, 500]
[[queries]]
ranges = "age"
[[queries]]
means = "cost"
"""
# In this order: a command reads what those before it wrote.
COMMANDS = {
    "--version": "--version",
    "advise": f"advise --l2 1 --dim 14 {CLAIM}",
    "calibrate": f"calibrate gaussian --box 100,10,500 --adjacency add-remove {CLAIM} -o mechanism.json",
    "certify": "certify analytic-gaussian --dim 3 --epsilon 1 --delta 1e-6",
    "release": "release mechanism.json people.csv --records --columns age,visits,cost -o totals.csv",
    "verify": "verify totals.certificate.json",
    "report": "report totals.certificate.json -o totals.html",
    "fit": f"fit linear people.csv --target cost --features age,visits --types number --feature-bound 100 "
    f"--target-bound 500 {CLAIM} --output model.json",
    "account": "account --gaussian 1.3 --rate 0.00427 --steps 10000 --delta 1e-5",
    "plan": "plan --epsilon 2 --delta 1e-5 --rate 0.01 --steps 1000 -o plan.json",
    "tabulate": "tabulate people.csv --each-row-a-person --query mean(age) --bounds age=0:100 --type age=number "
    + CLAIM,
    "workload plan": f"workload plan schema.toml {CLAIM} -o workload.json",
    "workload release": "workload release workload.json people.csv -o answers.csv",
    "ledger init": "ledger init budget.db --dataset people --adjacency add-remove --epsilon 4 --delta 1e-5",
    "ledger status": "ledger status budget.db",
    "audit": "audit mechanism.json",
    "claims": "claims",
    "reproduce": "reproduce --list",
    "demo": "demo",
}


def _people(folder: Path) -> None:
    (folder / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(0, 100, 1000), rng.integers(0, 10, 1000), rng.integers(0, 500, 1000)])
    np.savetxt(folder / "people.csv", rows, fmt="%d", delimiter=",", header="age,visits,cost", comments="")


# A process counts as its own peak what its parent held when it was forked: so a small one starts the command.
_LAUNCH = (
    "import resource, subprocess, sys; code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode; "
    "print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
)


def _measured(words: list[str], folder: Path) -> tuple[int, float]:
    """The exit code and the peak in megabytes of one command."""
    launched = subprocess.run(
        [sys.executable, "-c", _LAUNCH, sys.executable, "-m", "shapedp", *words],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=(folder / "error.txt").open("w"),
        check=True,
        text=True,
    )
    code, peak = launched.stdout.split()
    return int(code), int(peak) / 1024


def run(quick: bool) -> Result:
    result = Result("memory", what="peak memory of every command on small input, imports included")
    known = tomllib.loads((files("shapedp.cli") / "commands.toml").read_text("utf-8"))["commands"]
    left = set(known) - {name.split()[0] for name in COMMANDS}
    result.notes.append(f"Not run: {', '.join(sorted(left)) or 'none'}.")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        _people(folder)
        for name, words in COMMANDS.items():
            if quick and name in ("audit", "claims", "demo"):
                continue
            code, peak = _measured(words.split(), folder)
            if code:
                raise RuntimeError(f"shapedp {words}: {(folder / 'error.txt').read_text('utf-8')[-300:]}")
            result.figure(f"shapedp {name}: peak, MB", peak)
    return result
