"""Solvers of several releases audited by an attacker who sees all of them: as they are, and with 30 % less noise.

    python experiments/erm/transcript_audits.py run [name ...]     # rows that are missing, into transcript_audits.json
    python experiments/erm/transcript_audits.py write              # transcript_audits.json into docs/classification.md

Each claims (1, 1e-2). The attack is the exact likelihood ratio of everything that was released
(`tests/learn/transcripts.py`). The audit holds it to the certificate as a whole profile, at 99.9 % confidence, on 1e5
runs as it is, on fewer where noise is missing. Expected: nothing is found as it is, and every cut of 30 % is.
"""

from __future__ import annotations

import gc
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.learn.trainers import CLAIM, CUT, first, noise_times
from tests.learn.transcripts import TRANSCRIPTS

from shapedp import audit

RUNS, FEWER, MORE = 100_000, 10_000, 40_000
RESULTS = Path(__file__).with_suffix(".json")
PAGE = Path(__file__).parents[2] / "docs" / "classification.md"
BEGIN, END = "<!-- transcripts: written by experiments/erm/transcript_audits.py -->", "<!-- end of transcripts -->"


def once(name: str, kept: float, runs: int) -> dict[str, Any]:
    """One audit against the certificate."""
    attack = TRANSCRIPTS[name]()
    epsilon, start = attack.certified().epsilon(CLAIM["delta"]).upper, time.process_time()
    with noise_times(kept):
        found = audit.mechanism(
            attack,
            epsilon=epsilon,
            delta=CLAIM["delta"],
            loss=attack.certified(),
            neighbours=attack.neighbours,
            samples=runs,
            confidence=0.999,
            score=first,
            early_stop=False,
            seed=0,
        )
    row = {"name": name, "kept": kept, "certificate": epsilon, "epsilon_lower": found.epsilon_lower}
    seconds = round(time.process_time() - start, 1)
    return row | {"violation": found.violation, "runs": found.samples, "seconds": seconds}


def audited(name: str, kept: float) -> dict[str, Any]:
    """As it is on 1e5 runs; with less noise on more where few are not enough to tell."""
    if kept == 1:
        return once(name, kept, RUNS)
    for runs in (FEWER, MORE, RUNS):
        row = once(name, kept, runs)
        if row["violation"]:
            break
    return row


def stored() -> list[dict[str, Any]]:
    """Rows that were written."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []


def run(names: list[str]) -> None:
    """The rows of these, or all, that are missing; each is written as it ends."""
    warnings.simplefilter("ignore")
    gc.disable()
    order = [(name, kept) for name in TRANSCRIPTS for kept in (1.0, CUT)]
    for name, kept in order:
        if (names and name not in names) or any((row["name"], row["kept"]) == (name, kept) for row in stored()):
            continue
        row = audited(name, kept)
        print(row, flush=True)
        gc.collect()
        rows = sorted([*stored(), row], key=lambda one: order.index((one["name"], one["kept"])))
        RESULTS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def table(rows: list[dict[str, Any]]) -> str:
    """One line per solver, as Markdown."""
    head = ["fit", "claim", "certified", "at least", "runs", "seconds", "with 30% less noise at least", "caught"]
    lines = [head, ["---"] * len(head)]
    found = {(row["name"], row["kept"]): row for row in rows}
    done = [name for name in TRANSCRIPTS if (name, 1.0) in found and (name, CUT) in found]
    for name in done:
        whole, cut = found[name, 1.0], found[name, CUT]
        claim = f"({CLAIM['epsilon']:g}, {CLAIM['delta']:g})"
        seen = [f"{whole['certificate']:.3f}", f"{whole['epsilon_lower']:.3f}", str(whole["runs"])]
        less = [f"{cut['epsilon_lower']:.3f}", "yes" if cut["violation"] else "no"]
        lines.append([name, claim, *seen, f"{whole['seconds']:.0f}", *less])
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    waiting = "; ".join(name for name in TRANSCRIPTS if name not in done)
    return text + (f"\n\nListed, but not run yet: {waiting}." if waiting else "")


def write() -> None:
    """The table into the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, after = text[: text.index(BEGIN)], text[text.index(END) :]
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(stored())}\n\n{after}", encoding="utf-8")


if __name__ == "__main__":
    run(sys.argv[2:]) if sys.argv[1:2] == ["run"] else write()
