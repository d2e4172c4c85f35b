"""Mutated JSON documents and mutated tables, through every command that reads them."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

from fuzz.commands import call, judged
from fuzz.properties import Outcome
from fuzz.yard import watch, yard
from shapedp.privacy import Certificate

_ATOMS: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 3, 2**53, 2**63, 10**30, 0.5, -0.0, 1e300, 1e-320, 5e-324, "", "a", "replace"),
    *([], {}, [1], [1.0, 2.0, 3.0], [[]], {"law": "gaussian"}, "NaN", "certified", "0.5", [0] * 100, 1e308),
)
_THROWN = (b"\0", b'"', b",", b"\n", b"\xff\xfe", b"\x1c", b"nan", b"1e999", b"{", b"'")
_READERS: tuple[tuple[str, ...], ...] = (
    ("verify", "mut.json"),
    ("certify", "mut.json"),
    ("report", "mut.json", "-o", "new.html"),
    ("release", "mut.json", "x.csv", "-o", "new.csv"),
    ("account", "--mechanism", "mut.json", "--delta", "1e-6"),
    ("account", "--plan", "mut.json", "--delta", "1e-6"),
    ("ledger", "spend", "d.db", "mut.json", "x.csv", "--dataset", "d", "-o", "new.csv"),
)
_TABLES: tuple[tuple[str, ...], ...] = (
    ("release", "m.json", "MUT", "-o", "new.csv", "--records"),
    ("release", "m.json", "MUT", "-o", "new.csv", "--records", "--columns", "a,b,c"),
    ("release", "m.json", "MUT", "-o", "new.csv"),
    (
        *("fit", "linear", "MUT", "--target", "b", "--features", "a", "--feature-bound", "1", "--target-bound", "1"),
        *("--epsilon", "1", "--delta", "1e-6", "-o", "new.json"),
    ),
    ("calibrate", "gaussian", "--box", "MUT", "--epsilon", "1", "--delta", "1e-6", "-o", "new.json"),
)


def json_case(number: int, folder: Path) -> Outcome:
    """One mutated mechanism, certificate or plan, read by one command."""
    rng = random.Random(f"json {number}")
    words = list(rng.choice(_READERS))
    with yard(folder, ledger="d.db" in words) as place:
        name = rng.choice(["m.json", "c.json", "l.json", "p.json"])
        text = (place / name).read_bytes()
        for _ in range(rng.randint(1, 3)):
            text = _mutated(rng, text)
        (place / "mut.json").write_bytes(text)
        before = watch(place)
        code, said = call(words)
        broken = judged(words, code, said, before, watch(place))
        if words[0] == "verify" and code == 0:
            broken += _agreed(text)
    return Outcome(words[0], f"exit {code}", tuple(broken), f"{name}: {text[:3000]!r}" if broken else name)


def _agreed(text: bytes) -> list[str]:
    """Property 13; a file that is no certificate is not for the checker, nor its label, which `verify` never reads."""
    try:
        from shapedp_check.verdict import check
    except ImportError:
        return []
    data = json.loads(text)
    if "bracket" not in data:
        return []
    answer = check({**data, "verdict": Certificate.from_json(data).verdict})
    return [f"agreed: the checker refutes it: {answer.verdict}"] if answer.verdict == "refuted" else []


def _mutated(rng: random.Random, text: bytes) -> bytes:
    """A change of the tree where the text is JSON, of the bytes otherwise and now and then."""
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return damaged(rng, text)
    if rng.random() < 0.15:
        return damaged(rng, text)
    if rng.random() < 0.03:
        depth = rng.choice([100, 2000, 100000])
        return b'{"a":' * depth + text + b"}" * depth
    spots = list(_spots(tree))
    if not spots:
        return damaged(rng, text)
    holder, key = rng.choice(spots)
    match rng.randrange(5):
        case 0:
            del holder[key]
        case 1 | 2:
            holder[key] = copy.deepcopy(rng.choice(_ATOMS))
        case 3:
            other, place = rng.choice(spots)
            holder[key] = copy.deepcopy(other[place])
        case _:
            value = holder[key]
            if isinstance(value, float | int) and not isinstance(value, bool):
                holder[key] = value * rng.choice([-1, 0.5, 0.999999, 1.000001, 2, 1e6])
            else:
                holder[key] = [value] * rng.choice([1, 3, 50])
    return json.dumps(tree).encode()


def _spots(tree: Any) -> Any:
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in pairs:
        yield tree, key
        yield from _spots(value)


def damaged(rng: random.Random, data: bytes) -> bytes:
    """Bytes cut, doubled, exchanged or thrown in."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        at, to = sorted((rng.randrange(len(changed) + 1), rng.randrange(len(changed) + 1)))
        match rng.randrange(5):
            case 0:
                changed[at : at + 1] = rng.randbytes(1)
            case 1:
                del changed[at : min(to, at + 20)]
            case 2:
                changed[at:at] = changed[at : min(to, at + 50)] * rng.randint(1, 3)
            case 3:
                changed[at:at] = rng.choice(
                    [b"\0", b'"', b",", b"\n", b"\xff\xfe", b"\x1c", b"nan", b"1e999", b"{", b"'"]
                )
            case _:
                del changed[rng.choice([at, len(changed) // 2]) :]
    return bytes(changed)


def table_case(number: int, folder: Path) -> Outcome:
    """One damaged csv, npy or parquet file, read by one command."""
    rng = random.Random(f"table {number}")
    with yard(folder, ledger=False) as place:
        name = rng.choice([one for one in ("t.csv", "x.csv", "b.csv", "x.npy", "t.parquet") if (place / one).exists()])
        mutant = f"mut{Path(name).suffix}"
        (place / mutant).write_bytes(damaged(rng, (place / name).read_bytes()))
        words = [mutant if word == "MUT" else word for word in rng.choice(_TABLES)]
        before = watch(place)
        code, text = call(words)
        broken = judged(words, code, text, before, watch(place))
    return Outcome(f"{words[0]} {Path(name).suffix}", f"exit {code}", tuple(broken), " ".join(words))
