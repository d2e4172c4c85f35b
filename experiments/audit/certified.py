"""Every certified mechanism of the library, audited: none may be caught.

python experiments/audit/certified.py                              # all of them: about two hours on one core
python experiments/audit/certified.py --groups laplace --dimensions 100
python experiments/audit/certified.py --table                      # what is stored, as the documentation shows it

1e6 outputs up to M = 100 values, 1e5 above, at 99.99% confidence each, by the whole profile; then the noise against its
law with two million values, at a false-alarm rate of 1e-6. Randomness is the secure one. Each mechanism replaces its
own row of certified.json (or --store); --resume leaves out those that have one.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.audit.helpers import GROUPS, members

from shapedp import Additive, audit

STORE = Path(__file__).with_suffix(".json")
DIMENSIONS = (2, 14, 100, 1000)
CONFIDENCE = 0.9999
VALUES = 2_000_000


def audited(group: str, dim: int, done: set[str]) -> Iterator[dict[str, Any]]:
    """One row per mechanism of the group with M = dim values that is not done."""
    samples = 1_000_000 if dim <= 100 else 100_000
    for name, m in distinct(members(group, dim)):
        if name in done:
            continue
        start = time.process_time()
        result = audit.mechanism(m, samples=samples, confidence=CONFIDENCE)
        fit = audit.distribution(m, samples=max(100, VALUES // dim)) if isinstance(m, Additive) else None
        yield {
            "group": group,
            "dim": dim,
            "name": name,
            "outputs": result.samples,
            "violation": result.violation,
            "epsilon_lower": result.epsilon_lower,
            "delta_lower": result.delta_lower,
            "fits": None if fit is None else fit.passed,
            "seconds": round(time.process_time() - start, 1),
        }


def distinct(found: Iterator[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Leave out what draws the same noise against the same neighbours as one before: a matrix is a long vector."""
    seen = set()
    for name, m in found:
        key = (json.dumps(m.law.to_json()), m.sensitivity.extreme().tobytes()) if isinstance(m, Additive) else name
        if key not in seen:
            yield name, m
        seen.add(key)


def stored(store: Path = STORE) -> list[dict[str, Any]]:
    """The rows of earlier runs."""
    return json.loads(store.read_text(encoding="utf-8")) if store.exists() else []


def keep(row: dict[str, Any], store: Path = STORE) -> None:
    """Put a row in its place."""
    rows = {key(one): one for one in [*stored(store), row]}
    order = sorted(rows.values(), key=lambda one: (list(GROUPS).index(one["group"]), one["dim"], one["name"]))
    draft = store.with_suffix(".tmp")
    draft.write_text("[\n" + ",\n".join(json.dumps(one) for one in order) + "\n]\n", encoding="utf-8")
    draft.replace(store)


def key(row: dict[str, Any]) -> tuple[str, int, str]:
    return row["group"], row["dim"], row["name"]


def table(rows: list[dict[str, Any]]) -> str:
    """Caught of audited mechanisms, by family and number of values, and the largest epsilon shown."""
    dims = sorted({row["dim"] for row in rows})
    lines = [
        "| family | " + " | ".join(f"M = {dim}" for dim in dims) + " | largest epsilon shown |",
        "|---|" + "---|" * (len(dims) + 1),
    ]
    for group in GROUPS:
        of = [row for row in rows if row["group"] == group]
        if of:
            cells = [caught([row for row in of if row["dim"] == dim]) for dim in dims]
            lines.append(f"| {group} | {' | '.join(cells)} | {max(row['epsilon_lower'] for row in of):.3f} |")
    return "\n".join(lines)


def caught(rows: list[dict[str, Any]]) -> str:
    bad = sum(row["violation"] or row["fits"] is False for row in rows)
    return f"{bad} of {len(rows)}" if rows else "-"


def main() -> None:
    """The command line."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--dimensions", default=",".join(map(str, DIMENSIONS)))
    options.add_argument("--groups", default=",".join(GROUPS))
    options.add_argument("--store", type=Path, default=STORE)
    options.add_argument("--resume", action="store_true")
    options.add_argument("--table", action="store_true")
    chosen = options.parse_args()
    if not chosen.table:
        for dim in map(int, chosen.dimensions.split(",")):
            for group in chosen.groups.split(","):
                done = {row["name"] for row in stored(chosen.store) if (row["group"], row["dim"]) == (group, dim)}
                for row in audited(group, dim, done if chosen.resume else set()):
                    print(json.dumps(row), flush=True)
                    keep(row, chosen.store)
    print(table(stored(chosen.store)))


if __name__ == "__main__":
    main()
