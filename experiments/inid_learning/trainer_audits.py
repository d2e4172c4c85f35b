"""The audits of Lasso, Ridge and PCA end to end through `fit`, honest and with 30 % less noise, one process each.

    python experiments/inid_learning/trainer_audits.py [fits]      # 100000; writes trainer_audits.json

Expected: at a claim of (1, 1e-2) and confidence 99.9 % no honest trainer is found in violation, every other is.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import warnings
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.learn.trainers import CLAIM, TRAINERS, noise_times

from shapedp import audit
from shapedp.learn import PCA, Lasso, Ridge

FACTORS = (1.0, 0.7)
RESULTS = Path(__file__).with_name("trainer_audits.json")


def audited(job: tuple[str, float, int]) -> dict[str, Any]:
    """One trainer, its noise times a factor."""
    name, factor, fits = job
    warnings.simplefilter("ignore")
    fit = TRAINERS[name]
    with noise_times(factor):
        found = audit.mechanism(fit, **CLAIM, neighbours=fit.neighbours, samples=fits, confidence=0.999, seed=0)
    return {
        "trainer": name,
        "noise": factor,
        "verdict": found.verdict,
        "epsilon_lower": found.epsilon_lower,
        "delta_lower": found.delta_lower,
        "fits": found.samples,
    }


def main() -> None:
    """Run all, print and write."""
    fits = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    names = [name for name, one in TRAINERS.items() if one.kind in (Lasso, Ridge, PCA)]
    jobs = [(name, factor, fits) for name in names for factor in FACTORS]
    with multiprocessing.Pool(min(os.cpu_count() or 1, len(jobs))) as pool:
        rows = list(pool.imap(audited, jobs))
    for row in rows:
        print(row, flush=True)
    assert all((row["verdict"] == "violation") == (row["noise"] < 1) for row in rows)
    part = RESULTS.with_suffix(".part")
    part.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    part.rename(RESULTS)


if __name__ == "__main__":
    main()
