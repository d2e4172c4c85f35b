"""Mutated certificates: each field in turn by 1e-6, by 1 %, halved, negated, swapped. No false one may pass.

    python experiments/trust/mutated_certificates.py [--most 500]

A mutant that the checker certifies must be true. The library has the second word: it must not refuse what
the mutant describes, and its lower end of delta must not exceed the claim. (Of a stated bracket the checker reports a
contradiction only.) A relation changed in one place must never pass.
Fields that do not enter the claim are listed at the end.
"""

from __future__ import annotations

import argparse
import copy
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shapedp.mechanisms import certify, mechanism_from_json
from shapedp_check import check

VECTORS = Path(__file__).resolve().parents[2] / "tests" / "check" / "vectors" / "certificates.jsonl"
IDLE = {("method",), ("secure",), ("version",), ("reason",)}
IDLE |= {("subject", name) for name in ("epsilon", "delta", "recipe", "row_bound", "records")}
OWN_CLAIM = ("mechanism.epsilon", "mechanism.delta", "mechanism.recipe")  # what a step claimed by itself
SWAPS = {
    "adjacency": ["add-remove", "replace", "zero-out", None],
    "verdict": ["certified", "refuted", "undecided"],
    "law": ["gaussian", "laplace", "radial", "mixed"],
    "set": ["l1", "l2", "box", "blocks"],
    "kind": ["additive", "mixing", "plan", "certificate"],
}


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Every number, word and null of a JSON value with its path (of a list the first entry only)."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        yield from leaves(value[0], (*path, 0))
    else:
        yield path, value


def mutants(certificate: Any) -> Iterator[tuple[str, tuple[Any, ...], Any, Any]]:
    """(what, path, the new value, the mutant)."""
    for path, value in leaves(certificate):
        options: list[tuple[str, Any]] = []
        if isinstance(value, bool) or value is None or isinstance(value, str):
            options = [("swap", other) for other in SWAPS.get(str(path[-1]), ["other"]) if other != value]
        elif isinstance(value, int):
            options = [("one more", value + 1), ("half", value // 2), ("sign", -value)]
        else:
            options = [("1e-6", value * (1 + 1e-6)), ("-1e-6", value * (1 - 1e-6)), ("1%", value * 1.01)]
            options += [("-1%", value * 0.99), ("half", value / 2), ("sign", -value)]
        for name, new in options:
            other = copy.deepcopy(certificate)
            place = other
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = new
            if new != value:
                yield name, path, new, other


def field(path: tuple[Any, ...]) -> str:
    return ".".join(str(key) for key in path if key != 0)


def false(mutant: Any) -> bool:
    """Whether the library refuses what the mutant describes, or refutes the claim."""
    try:
        subject = mechanism_from_json(mutant["subject"])
        return certify(subject, epsilon=mutant["epsilon"], delta=mutant["delta"]).verdict == "refuted"
    except ValueError:
        return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most", type=int, default=500)
    parser.add_argument(
        "--slowest", type=float, default=0.5, help="leave out certificates that take longer, in seconds"
    )
    options = parser.parse_args()
    cases = [json.loads(line) for line in VECTORS.read_text().splitlines()]
    true = [case["certificate"] for case in cases if case["verdict"] == "certified"]
    done, wrong, passed, idle = 0, 0, Counter[str](), Counter[str]()
    seen: set[tuple[Any, ...]] = set()
    for certificate in true:
        first = check(certificate)
        if first.seconds > options.slowest:
            continue
        for name, path, new, mutant in mutants(certificate):
            key = (
                certificate["subject"]["kind"],
                json.dumps(certificate["subject"].get("law"))[:20],
                field(path),
                name,
            )
            if key in seen or done >= options.most:
                continue
            seen.add(key)
            done += 1
            answer = check(mutant)
            if answer.verdict != "certified":
                continue
            passed[field(path)] += 1
            if tuple(step for step in path if step != 0) in IDLE or field(path).endswith(OWN_CLAIM):
                idle[field(path)] += 1
            elif path[-1] == "adjacency" or false(mutant):
                wrong += 1
                print("FALSE, PASSED", name, path, new)
    print(f"{done} mutants of {len(true)} certificates, {sum(passed.values())} still true, {wrong} false ones passed")
    print("fields whose mutants stay true within the margin or weaken the claim:", dict(passed - idle))
    print("fields that do not enter the claim:", dict(idle))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
