"""How long the checker takes: median over single releases, 1,000 sampled Gaussian steps, radial noise at M = 1e6.

    python experiments/trust/times.py

Expected on one idle core: under 1 s, under 20 s, under 5 s.
"""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path
from typing import Any

from shapedp_check import check

VECTORS = Path(__file__).resolve().parents[2] / "tests" / "check" / "vectors" / "certificates.jsonl"


def measured(name: str, made: dict[str, Any]) -> None:
    wall, used = time.perf_counter(), time.process_time()
    answer = check(made)
    wall, used = time.perf_counter() - wall, time.process_time() - used
    print(
        f"{name:44} {wall:7.2f} s, processor {used:6.2f} s, {answer.verdict}, [{answer.lower:.5g}, {answer.upper:.5g}]"
    )


def claim(subject: dict[str, Any], epsilon: float, delta: float, adjacency: str | None) -> dict[str, Any]:
    """A certificate that states nothing but its claim."""
    head = {"schema": 1, "kind": "certificate", "verdict": "undecided", "bracket": {"lower": 0.0, "upper": 1.0}}
    return {**head, "epsilon": epsilon, "delta": delta, "adjacency": adjacency, "subject": subject}


def main() -> int:
    singles = [json.loads(line)["certificate"] for line in VECTORS.read_text().splitlines()]
    singles = [one for one in singles if isinstance(one["subject"], dict) and one["subject"]["kind"] != "plan"]
    times, used = [], []
    for one in singles:
        begun = time.process_time()
        times.append(check(one).seconds)
        used.append(time.process_time() - begun)
    print(
        f"{len(times)} single releases: median {statistics.median(times):.3f} s, processor "
        f"{statistics.median(used):.3f} s, slowest {max(used):.1f} s"
    )
    steps = [{"subject": {"loss": "gaussian", "mu": 1.0}, "sampling_rate": 0.01, "count": 1000}]
    plan = {"schema": 1, "kind": "plan", "steps": steps}
    measured("1,000 sampled Gaussian steps", claim(plan, 1.5, 1.2e-4, "add-remove"))
    measured("1,000 sampled Gaussian steps, 0.5 % above", claim(plan, 1.5, 1.098e-4, "add-remove"))
    ball = {"set": "l2", "radius": 1.0, "dim": 10**6, "adjacency": "add-remove"}
    law = {"law": "radial", "dim": 10**6, "a": 999000.0, "b": 2.0, "scale": 6.0}
    radial = {"schema": 1, "kind": "additive", "law": law, "sensitivity": ball}
    measured("radial noise, M = 1e6", claim(radial, 1.0, 1e-5, "add-remove"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
