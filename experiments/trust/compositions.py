"""A scan of random compositions of every loss with every other, against bounds computed without the library.

    python experiments/trust/compositions.py --from 0 --to 1000 [--state FILE] [--quick] [--cheap | --ways] [--settle]
    python experiments/trust/compositions.py --sum FILE FILE ...

Cases are made from their number alone, so a scan resumes from its state file and parts add up. Expected: no fault.
Quick: 300 cases. Exit status 1 if there was a fault.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import cases
import ways

_SHOWN = 40


class TookTooLong(Exception):
    """A question was not answered in time."""


def limited(seconds: int) -> Callable[[Callable[[], Any]], Any]:
    """Runs a question, or raises TookTooLong."""

    def late(*_: Any) -> None:
        raise TookTooLong(f"no answer within {seconds} s")

    signal.signal(signal.SIGPROF, late)

    def ask(question: Callable[[], Any]) -> Any:
        signal.setitimer(signal.ITIMER_PROF, seconds)  # processor time: a busy machine changes no outcome
        try:
            return question()
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    return ask


class State:
    """Counts of a part of the scan, kept in a JSON file."""

    def __init__(self, first: int, last: int) -> None:
        self.data: dict[str, Any] = {
            "from": first,
            "to": last,
            "next": first,
            "cases": 0,
            "questions": 0,
            "faults": {},
            "kinds": {},
            "raised": {},
            "seconds": {},
            "checks": 0.0,
            "refused": {},
            "settled": [0, 0],
            "examples": [],
        }

    @classmethod
    def load(cls, file: Path) -> State:
        state = cls(0, 0)
        state.data = json.loads(file.read_text())
        return state

    def save(self, file: Path) -> None:
        beside = file.with_suffix(file.suffix + ".part")
        beside.write_text(json.dumps(self.data, indent=1))
        os.replace(beside, file)

    def add(self, outcome: cases.Outcome, settle: int = 0) -> None:
        data, case = self.data, outcome.case
        data["next"], data["cases"] = case.number + 1, data["cases"] + 1
        data["questions"] += len(case.questions)
        data["checks"] += outcome.checks
        for kind in case.kinds.split(" + "):
            data["seconds"].setdefault(kind, []).append(round(outcome.library, 3))
        for sort in {fault.sort for fault in outcome.faults}:
            data["faults"][sort] = data["faults"].get(sort, 0) + 1
        if outcome.faults:
            data["kinds"][case.kinds] = data["kinds"].get(case.kinds, 0) + 1
            shown = [str(fault) for fault in outcome.faults[:3]]
            if data["settled"][1] < settle:
                data["settled"] = [data["settled"][0] + _proved(case, outcome.faults[0]), data["settled"][1] + 1]
            data["examples"].append({"case": case.number, "what": case.text, "faults": shown})
        for text in outcome.refused:
            data["refused"][text] = data["refused"].get(text, 0) + 1
        for text in outcome.raised:
            name = text.split(": ", 1)[1][:90]
            kept = data["raised"].setdefault(name, [])
            kept.append(case.number)

    def join(self, other: State) -> None:
        mine, theirs = self.data, other.data
        for name in ("cases", "questions", "checks"):
            mine[name] += theirs[name]
        mine["settled"] = [a + b for a, b in zip(mine["settled"], theirs["settled"], strict=True)]
        for name in ("faults", "kinds", "refused"):
            mine[name] = dict(Counter(mine[name]) + Counter(theirs[name]))
        for name in ("raised", "seconds"):
            for key, values in theirs[name].items():
                mine[name].setdefault(key, []).extend(values)
        mine["examples"] += theirs["examples"]

    def summary(self) -> str:
        data = self.data
        wrong = len(data["examples"])
        lines = [
            f"cases {data['cases']}, questions {data['questions']}, false cases {wrong}",
            f"own work per case {1e3 * data['checks'] / max(data['cases'], 1):.1f} ms",
            "faults by sort: " + (", ".join(f"{k} {v}" for k, v in sorted(data["faults"].items())) or "none"),
            f"settled in ball arithmetic: {data['settled'][1]}, confirmed {data['settled'][0]}",
            "seconds per case of the library, by kind (median, 95%, largest):",
        ]
        for kind, seconds in sorted(data["seconds"].items()):
            late = sorted(seconds)[int(0.95 * (len(seconds) - 1))]
            lines.append(
                f"  {kind:22s}{statistics.median(seconds):9.3f}{late:9.3f}{max(seconds):9.3f}  n {len(seconds)}"
            )
        for name, title in (("kinds", "false cases by kinds"),):
            if data[name]:
                lines.append(title + ":")
                lines += [f"  {v:6d}  {k}" for k, v in sorted(data[name].items(), key=lambda kv: -kv[1])]
        if data["refused"]:
            lines.append("ways that refused: " + ", ".join(f"{k} {v}" for k, v in sorted(data["refused"].items())))
        if data["raised"]:
            lines.append("raised (not counted as faults):")
            lines += [f"  {len(v):6d}  {k}  e.g. case {v[0]}" for k, v in data["raised"].items()]
        for example in data["examples"][:_SHOWN]:
            lines.append(f"case {example['case']}: {example['what']}")
            lines += [f"    {fault}" for fault in example["faults"]]
        return "\n".join(lines)


def _proved(case: cases.Case, fault: cases.Fault) -> int:
    """1 if ball arithmetic confirms the fault; 0 if it does not, or cannot tell."""
    try:
        return int(case.proved(fault))
    except TypeError:
        return 0


def scan(state: State, options: argparse.Namespace, every: float = 15.0) -> None:
    """Runs what is left of the state's cases."""
    ask, last, file = limited(options.seconds), time.monotonic(), options.state
    for number in range(state.data["next"], state.data["to"]):
        if options.ways:
            outcome = ways.run(ways.make(number), ask)
        else:
            outcome = cases.run(cases.make(number, cheap=options.cheap), ask)
        state.add(outcome, options.settle)
        if time.monotonic() - last > every:
            last = time.monotonic()
            done = number + 1 - state.data["from"]
            print(
                f"... {done} of {state.data['to'] - state.data['from']}, false {len(state.data['examples'])}",
                flush=True,
            )
            if file is not None:
                state.save(file)
    if file is not None:
        state.save(file)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--from", dest="first", type=int, default=0)
    parser.add_argument("--to", type=int, default=100_000)
    parser.add_argument("--state", type=Path, help="keep counts here, and resume from them")
    parser.add_argument("--quick", action="store_true", help="300 cases from --from on")
    parser.add_argument(
        "--cheap", action="store_true", help="the quick kinds more often, few questions each (as in CI)"
    )
    parser.add_argument("--ways", action="store_true", help="every public way to ask, in random order")
    parser.add_argument("--settle", type=int, default=20, help="how many faults to confirm in ball arithmetic")
    parser.add_argument("--seconds", type=int, default=60, help="the most one question may take")
    parser.add_argument("--case", type=int, help="one case, in full")
    parser.add_argument("--sum", type=Path, nargs="+", help="add up state files")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    if options.sum:
        state = State.load(options.sum[0])
        for file in options.sum[1:]:
            state.join(State.load(file))
    else:
        first = options.first if options.case is None else options.case
        last = first + 1 if options.case is not None else first + 300 if options.quick else options.to
        state = State(first, last)
        if options.state is not None and options.state.exists():
            state = State.load(options.state)
            state.data["to"] = max(last, state.data["next"])
        scan(state, options)
    print(state.summary())
    return 1 if state.data["examples"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
