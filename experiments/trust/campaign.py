"""Certificates through two programs: ours makes them, `shapedp_check` recomputes them.

    python experiments/trust/campaign.py --cases 20000        # resumes where it stopped
    python experiments/trust/campaign.py --seconds 120        # what CI runs

Each case is seeded by its number. Agreement: our upper end is never below the checker's lower end, our lower end never
above its upper end. Disagreements are kept in tests/check/vectors/disagreements.jsonl.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from certificates import Skipped, certificate, kind_of

from shapedp_check import check

ROOT = Path(__file__).resolve().parents[2]
VECTORS = ROOT / "tests" / "check" / "vectors" / "disagreements.jsonl"


class Slow(BaseException):
    """A case took too long; no Exception, so that nobody catches it on the way."""


def _stop(*_: object) -> None:
    raise Slow


def limited(number: int, seconds: int) -> dict[str, object]:
    """The record of one case, or that it took too long."""
    signal.setitimer(signal.ITIMER_PROF, seconds)  # processor time: a busy machine changes no outcome
    try:
        return one(number)
    except Slow:
        return {"case": number, "kind": kind_of(number), "outcome": "too slow"}
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def one(number: int) -> dict[str, object]:
    """The record of one case."""
    kind = kind_of(number)
    begun = time.process_time()
    try:
        made = certificate(number)
    except Skipped as why:
        return {"case": number, "kind": kind, "outcome": "skipped", "why": str(why)}
    between = time.process_time()
    answer = check(made)
    after = time.process_time()
    record = {
        "case": number,
        "kind": kind,
        "stated": made["verdict"],
        "verdict": answer.verdict,
        "bracket": made["bracket"],
        "interval": [answer.lower, answer.upper],
        "made_s": round(between - begun, 3),
        "checked_s": round(after - between, 3),
    }
    if answer.lower is None or answer.upper is None:
        return {**record, "outcome": "not described", "why": answer.reason}
    bad = made["bracket"]["upper"] < answer.lower or made["bracket"]["lower"] > answer.upper
    if bad:
        _keep({"name": f"case-{number}", "certificate": made, "interval": [answer.lower, answer.upper]})
    return {**record, "outcome": "DISAGREE" if bad else "agree"}


def _keep(vector: dict[str, object]) -> None:
    known = VECTORS.read_text().splitlines() if VECTORS.exists() else []
    if not any(json.loads(line)["name"] == vector["name"] for line in known):
        with VECTORS.open("a") as out:
            out.write(json.dumps(vector) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="the first case")
    parser.add_argument("--cases", type=int, default=10**9, help="how many cases")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after about so long")
    parser.add_argument("--log", type=Path, help="a file of finished cases, to resume from")
    parser.add_argument("--longest", type=int, default=30, help="seconds of processor time that one case may take")
    options = parser.parse_args()
    signal.signal(signal.SIGPROF, _stop)
    resumed = options.log is not None and options.log.exists()
    before = [json.loads(line) for line in options.log.read_text().splitlines()] if resumed else []
    done = {record["case"] for record in before}
    end = time.monotonic() + options.seconds
    outcomes: Counter[tuple[object, object]] = Counter()
    for record in before:  # a disagreement that an earlier run logged is still one
        outcomes[record["kind"], record["outcome"]] += 1
    for number in range(options.first, options.first + options.cases):
        if time.monotonic() > end:
            break
        if number in done:
            continue
        record = limited(number, options.longest)
        outcomes[record["kind"], record["outcome"]] += 1
        outcomes["verdicts", f"{record.get('stated')}->{record.get('verdict')}"] += 1
        if record["outcome"] == "DISAGREE":
            print(json.dumps(record), flush=True)
        if options.log:
            with options.log.open("a") as out:
                out.write(json.dumps(record) + "\n")
    for (kind, outcome), count in sorted(outcomes.items(), key=str):
        print(f"{kind!s:12} {outcome!s:28} {count}")
    return 1 if any(outcome == "DISAGREE" for _, outcome in outcomes) else 0


if __name__ == "__main__":
    raise SystemExit(main())
