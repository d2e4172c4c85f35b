"""Every trainer of `sdp.learn` audited end to end through `fit`: as it is, with 30 % less noise, with product noise.

    python experiments/erm/trainer_audits.py run [trainer ...]     # rows that are missing, into trainer_audits.json
    python experiments/erm/trainer_audits.py write                 # trainer_audits.json into docs/classification.md

Each fit claims (1, 1e-2). The audit holds the trainer to its certificate as a whole profile, at 99.9 % confidence: on
1e5 fits as it is, on fewer where noise is missing. Expected: no trainer as it is is found in violation.
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

from tests.learn.trainers import CLAIM, CUT, PRODUCT, ROOM, TRAINERS, noise_times

from shapedp import audit

FITS, FEWER, MORE = 100_000, 10_000, 40_000
CONFIDENCE = 0.999
NOT_RUN = "not run yet"
RESULTS = Path(__file__).with_suffix(".json")
EARLIER = Path(__file__).parents[1] / "inid_learning" / "trainer_audits.json"
PAGE = Path(__file__).parents[2] / "docs" / "classification.md"
BEGIN, END = "<!-- audits: written by experiments/erm/trainer_audits.py -->", "<!-- end of audits -->"


def jobs() -> list[tuple[str, float]]:
    """Trainers and the shares of their noise that are kept."""
    found = [(name, kept) for name, trainer in TRAINERS.items() for kept in (1.0, *trainer.kept)]
    return found + [(name, 1.0) for name in PRODUCT]


def audited(name: str, kept: float) -> dict[str, Any]:
    """One trainer as it is, or with less noise: on more fits where few are not enough to tell."""
    if kept == 1 and name not in PRODUCT:
        return once(name, kept, FITS)
    for fits in (FEWER, MORE, FITS):
        row = once(name, kept, fits)
        if row["violation"] or (name in ROOM and kept == CUT):
            break
    return row


def once(name: str, kept: float, fits: int) -> dict[str, Any]:
    """One audit, which holds the trainer to its certificate (product noise: to its claim)."""
    trainer = (TRAINERS | PRODUCT)[name]
    loss = None if name in PRODUCT else trainer.certified()
    epsilon = CLAIM["epsilon"] if loss is None else loss.epsilon(CLAIM["delta"]).upper
    start = time.process_time()
    with noise_times(kept):
        found = audit.mechanism(
            trainer,
            epsilon=epsilon,
            delta=CLAIM["delta"],
            loss=loss,
            neighbours=trainer.neighbours,
            samples=fits,
            confidence=CONFIDENCE,
            score=trainer.score,
            early_stop=False,
            seed=0,
        )
    return {
        "trainer": name,
        "kept": kept,
        "certificate": None if loss is None else epsilon,
        "epsilon_lower": found.epsilon_lower,
        "delta_lower": found.delta_lower,
        "violation": found.violation,
        "fits": found.samples,
        "seconds": round(time.process_time() - start, 1),
    }


def stored() -> list[dict[str, Any]]:
    """Rows that were written."""
    return json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []


def everything() -> list[dict[str, Any]]:
    """These rows and those of experiments/inid_learning/trainer_audits.py, which held trainers to the claim alone."""
    rows = stored()
    for row in json.loads(EARLIER.read_text(encoding="utf-8")):
        same = {name: row[name] for name in ("trainer", "epsilon_lower", "delta_lower", "fits")}
        certified = TRAINERS[row["trainer"]].certified().epsilon(CLAIM["delta"]).upper
        violation = row["verdict"] == "violation"
        same |= {"kept": row["noise"], "certificate": certified, "violation": violation, "seconds": None}
        rows.append(same)
    return rows


def run(names: list[str]) -> None:
    """The rows of these trainers, or all."""
    earlier = {row["trainer"] for row in everything()} - {row["trainer"] for row in stored()}
    queue([job for job in jobs() if (job[0] in names if names else job[0] not in earlier)])


def queue(wanted: list[tuple[str, float]]) -> None:
    """Each row that is missing, written as it ends."""
    warnings.simplefilter("ignore")
    gc.disable()
    order = jobs()
    for name, kept in wanted:
        if any((row["trainer"], row["kept"]) == (name, kept) for row in stored()):
            continue
        row = audited(name, kept)
        print(row, flush=True)
        gc.collect()
        rows = sorted([*stored(), row], key=lambda one: order.index((one["trainer"], one["kept"])))
        keep(RESULTS, json.dumps(rows, indent=1) + "\n")


def keep(path: Path, text: str) -> None:
    """Write under another name, then rename."""
    part = path.with_suffix(".part")
    part.write_text(text, encoding="utf-8")
    part.rename(path)


def table(rows: list[dict[str, Any]]) -> str:
    """One line per trainer, as Markdown."""
    head = ["trainer", "claim", "certified", "at least", "fits", "seconds", "with 30% less noise at least", "caught"]
    lines = [head, ["---"] * len(head)]
    found = {(row["trainer"], row["kept"]): row for row in rows}
    waiting = [name for name in TRAINERS if (name, 1.0) not in found]
    for name, trainer in TRAINERS.items():
        if name in waiting:
            continue
        certified = trainer.certified().epsilon(CLAIM["delta"]).upper
        plain = found[name, 1.0]
        cut = [found[name, kept] for kept in trainer.kept if (name, kept) in found]
        less = [bound(cut[0]), caught(cut)] if len(cut) == len(trainer.kept) else [NOT_RUN, ""]
        lines.append([name, claim(), f"{certified:.3f}", *cells(plain), *less])
    for row in (found[name, 1.0] for name in PRODUCT if (name, 1.0) in found):
        lines.append([row["trainer"], claim(), "REFUTED", *cells(row), "", caught([row])])
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return text + (f"\n\nListed, but not run yet: {'; '.join(waiting)}." if waiting else "")


def claim() -> str:
    """(epsilon, delta) of every fit."""
    return f"({CLAIM['epsilon']:g}, {CLAIM['delta']:g})"


def bound(row: dict[str, Any]) -> str:
    """The epsilon that was shown."""
    return f"{row['epsilon_lower']:.3f}"


def cells(row: dict[str, Any]) -> list[str]:
    """What was shown, by how many fits, in how long."""
    return [bound(row), str(row["fits"]), "" if row["seconds"] is None else f"{row['seconds']:.0f}"]


def caught(cut: list[dict[str, Any]]) -> str:
    """Whether the first was caught, and where it was not, the one that was."""
    if cut[0]["violation"]:
        return "yes"
    return "; ".join(["no", *(f"{1 - row['kept']:.0%} less: {bound(row)}, yes" for row in cut[1:] if row["violation"])])


def write() -> None:
    """The table into the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, after = text[: text.index(BEGIN)], text[text.index(END) :]
    keep(PAGE, f"{before}{BEGIN}\n\n{table(everything())}\n\n{after}")


if __name__ == "__main__":
    run(sys.argv[2:]) if sys.argv[1:2] == ["run"] else write()
