"""One published statement, and how it is read from the data of its paper's room."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, Literal

from shapedp.papers.register.condition import holds
from shapedp.papers.values import Compute, Judge, Values, read_toml

DATA = "claims.toml"
Verdict = Literal["holds", "false"]
_VERDICTS = ("holds", "false")
_ABOUT = ("privacy", "approximation", "other")
_TEXTS = ("id", "statement", "source", "verdict", "witness", "compute", "holds_if")
_NUMBERS = ("parameters", "found")
READINGS = {"printed": "As printed", "intended": "As intended", "code": "As in the authors' code"}


@dataclass(frozen=True, eq=False)
class Claim:
    """A published statement, where it stands, and what computing it found.

    `printed` holds numbers of the paper and the relative accuracy to which `compute` must give them again;
    `found` holds every number that `compute` returns; `judge` says from those whether the statement holds.
    `witness` tells in words what decides it; `command` recomputes it. `about` says whether the statement promises
    privacy, approximates it without promising, or speaks of something else (sizes, formulas). `readings` says what each
    version does where the printed text, what is meant and the authors' code differ; the verdict is on what is meant.

    >>> from shapedp import claims
    >>> claims.CLAIMS["baselines/laplace"].standing
    'certified'
    """

    id: str
    statement: str
    source: str
    parameters: Values
    printed: Mapping[str, tuple[float, float]]
    found: Values
    verdict: Verdict
    witness: str
    compute: Compute
    judge: Judge
    about: Literal["privacy", "approximation", "other"] = "privacy"
    readings: Mapping[str, str] = field(default_factory=dict)

    @property
    def standing(self) -> str:
        """The verdict in the words of certificates, where the statement is about privacy."""
        if self.about == "approximation":
            return "approximate"
        if self.about == "other":
            return f"not a privacy claim; {self.verdict}"
        return "certified" if self.verdict == "holds" else "refuted"

    @property
    def slack(self) -> float | None:
        """Claimed over exact delta (or epsilon), where the claim compares them: above 1 there is room."""
        exact = self.found.get("exact", self.found.get("exact_at_least"))
        claimed = self.found.get("claimed")
        return None if exact is None or claimed is None or exact == 0 else claimed / exact

    @property
    def command(self) -> str:
        """What recomputes it on the command line."""
        return f"shapedp claims --verify {self.id}"


def read_claims(room: str) -> Iterator[Claim]:
    """The claims of a paper's room, from its data file; raises ValueError where an entry is not well formed."""
    package = f"shapedp.papers.{room}"
    for entry in read_toml(package, DATA)["claim"]:
        problem = _problem(entry)
        if problem:
            raise ValueError(f"{room}/{DATA}: claim {entry.get('id')!r}: {problem}")
        module, _, name = entry.pop("compute").rpartition(".")
        compute: Compute = vars(import_module(f"{package}.{module or 'claims'}"))[name]
        judge = partial(holds, entry.pop("holds_if"))
        printed = {key: tuple(pair) for key, pair in entry.pop("printed", {}).items()}
        yield Claim(**entry, printed=printed, compute=compute, judge=judge)


def _problem(entry: dict[str, Any]) -> str:
    """What is wrong with an entry, or nothing."""
    unknown = sorted(set(entry) - {*_TEXTS, *_NUMBERS, "printed", "about", "readings"})
    if unknown:
        return f"unknown fields {', '.join(unknown)}"
    if any(not isinstance(entry.get(name), str) or not entry[name] for name in _TEXTS):
        return f"the fields {', '.join(_TEXTS)} must be texts"
    if entry["verdict"] not in _VERDICTS or entry.get("about", "privacy") not in _ABOUT:
        return f"verdict must be one of {', '.join(_VERDICTS)}, about one of {', '.join(_ABOUT)}"
    if not set(entry.get("readings", {})) <= set(READINGS):
        return f"readings must be among {', '.join(READINGS)}"
    numbers = [value for name in _NUMBERS for value in entry.get(name, {None: None}).values()]
    pairs = list(entry.get("printed", {}).values())
    if any(len(pair) != 2 for pair in pairs) or not all(map(_is_number, numbers + [v for pair in pairs for v in pair])):
        return "parameters and found must be tables of numbers, printed one of pairs of numbers"
    return ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
