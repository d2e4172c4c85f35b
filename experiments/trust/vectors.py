"""Writes tests/check/vectors/certificates.jsonl: certificates, true and false, with the checker's verdicts.

    python experiments/trust/vectors.py

Half are as the library wrote them, half are edited: a smaller delta or epsilon, less noise, another bracket, another
label. Compact, and quick to check: cases that take longer than a few seconds are left out.
"""

from __future__ import annotations

import copy
import json
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from certificates import Skipped, certificate

from shapedp_check import check

OUT = Path(__file__).resolve().parents[2] / "tests" / "check" / "vectors"
LONGEST = 4  # seconds
MOST_BYTES = 4000


class Slow(BaseException):
    """Takes too long for a vector; no Exception, so that nobody catches it on the way."""


def _stop(*_: object) -> None:
    raise Slow


def edits(made: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Edited copies, each with what was done."""
    result = []

    def edit(name: str, change: Any) -> None:
        other = copy.deepcopy(made)
        if change(other) is not False:
            result.append((name, other))

    edit("delta a tenth of the bracket", lambda c: c.update(delta=c["bracket"]["lower"] / 10 or False))
    edit("epsilon halved", lambda c: c.update(epsilon=c["epsilon"] / 2))
    edit("another relation", lambda c: c.update(adjacency="replace" if c["adjacency"] != "replace" else "add-remove"))
    edit("less noise", _less_noise)
    edit("the upper end of the bracket lowered", _narrower)
    edit("the label turned", lambda c: c.update(verdict="certified" if c["verdict"] != "certified" else "refuted"))
    return result


def _less_noise(made: dict[str, Any]) -> Any:
    law = made["subject"].get("law")
    if not isinstance(law, dict) or not isinstance(law.get("scale"), float):
        return False
    law["scale"] *= 0.7
    return True


def _narrower(made: dict[str, Any]) -> Any:
    if not made["bracket"]["lower"] > 0:
        return False
    made["bracket"]["upper"] = made["bracket"]["lower"] = made["bracket"]["lower"] * 0.9
    return True


def record(name: str, made: dict[str, Any]) -> dict[str, Any] | None:
    """One vector, or None where it takes too long."""
    if len(json.dumps(made)) > MOST_BYTES:
        return None
    signal.alarm(LONGEST)
    try:
        answer = check(made)
    except Slow:
        return None
    finally:
        signal.alarm(0)
    return {"name": name, "verdict": answer.verdict, "interval": [answer.lower, answer.upper], "certificate": made}


def main() -> int:
    signal.signal(signal.SIGALRM, _stop)
    vectors = []
    for path in sorted(OUT.glob("kept-*.json")):
        vectors.append(record(path.stem, json.loads(path.read_text())))
    number = 0
    while len([v for v in vectors if v]) < int(sys.argv[1] if len(sys.argv) > 1 else 200):
        signal.alarm(2 * LONGEST)
        try:
            made = certificate(number)
        except (Skipped, Slow):
            made = None
        finally:
            signal.alarm(0)
        number += 1
        if made is None:
            continue
        first = record(f"case-{number - 1}", made)
        vectors.append(first)
        todo = edits(made) if first else []
        if todo:
            name, other = todo[number % len(todo)]
            vectors.append(record(f"case-{number - 1}, {name}", other))
    with (OUT / "certificates.jsonl").open("w") as out:
        for vector in vectors:
            if vector:
                out.write(json.dumps(vector, separators=(",", ":")) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
