"""Timing against peers, interleaved in one run; results as ratios.

A benchmark is a file `benchmarks/<name>.py` with one function `run(quick: bool) -> Result`;
`benchmarks/run.py` finds it, runs it, prints its tables and writes `benchmarks/results/<name>.json`.

    from _harness import Peers, Result, measure, ratio

    def run(quick: bool) -> Result:
        with Peers() as peers:                       # worker in .venv-peers, its own interpreter
            timings = measure(
                {
                    "shapedp": lambda: calibrate(...),
                    "dp_accounting": peers.call("dp_accounting_sigma", epsilon=1.0, delta=1e-5),
                    "opendp": peers.call("opendp_release", size=1000),
                },
                units={"opendp": 1000},              # calls that do more work: time per unit
                rounds=5 if quick else 30,
            )
            result = Result("calibration", what="Gaussian scale for (1, 1e-5)", peers=peers.versions)
        result.timings = timings
        result.ratio("opendp / shapedp", ratio(timings, "opendp", "shapedp"), at_least=500)
        result.ratio("shapedp / copy", 12.0, at_most=20)
        result.figure("median, ms", 0.12, at_most=0.3)     # a number that is not a ratio
        return result

- `measure(cases, units=None, rounds=30, min_seconds=0.01, processor=False)`: in every round each case is timed
  once, in rotating order, repeated until one sample lasts `min_seconds`; returns `{name: Timing}`, seconds per
  unit, of processor time where `processor`: other work on the machine then moves ratios little. A peer's call is
  timed inside its own interpreter, so passing messages costs it nothing.
- `ratio(timings, slower, faster)`: median over rounds of the paired quotients.
- `Peers(environment=".venv-peers")`: `.call(function, **arguments)` for `measure`,
  `.value(function, **arguments)` for the returned value, `.versions`.
  The functions live in `benchmarks/peers/worker.py`.
- `Result.ratio` and `Result.figure` take `at_least=` or `at_most=`; `Result.met` says whether all hold.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
WORKER = HERE / "peers" / "worker.py"
SCHEMA = 1


@dataclass(frozen=True)
class Timing:
    """Seconds per unit of one case, one sample per round."""

    samples: tuple[float, ...]
    loops: int

    @property
    def median(self) -> float:
        return statistics.median(self.samples)

    @property
    def best(self) -> float:
        return min(self.samples)

    def summary(self) -> dict[str, float | int]:
        return {
            "median_s": _rounded(self.median),
            "best_s": _rounded(self.best),
            "worst_s": _rounded(max(self.samples)),
            "rounds": len(self.samples),
            "loops": self.loops,
        }


@dataclass(frozen=True)
class PeerCall:
    """A call that a worker times in its own interpreter."""

    peers: Peers
    function: str
    arguments: Mapping[str, Any]
    processor: bool = False

    def elapsed(self, loops: int) -> float:
        asked = {"arguments": dict(self.arguments), "loops": loops, "processor": self.processor}
        answer = self.peers.ask(function=self.function, **asked)
        return float(answer["seconds"])


@dataclass(frozen=True)
class LocalCall:
    """A callable timed in this interpreter, with the collector off."""

    function: Callable[[], object]
    processor: bool = False

    def elapsed(self, loops: int) -> float:
        now = time.process_time if self.processor else time.perf_counter
        enabled = gc.isenabled()
        gc.disable()
        try:
            start = now()
            for _ in range(loops):
                self.function()
            return now() - start
        finally:
            if enabled:
                gc.enable()


class Peers:
    """A worker process in another environment, spoken to in JSON lines; use as a context manager."""

    def __init__(self, environment: str = ".venv-peers") -> None:
        python = HERE.parent / environment / "bin" / "python"
        if not python.exists():
            raise FileNotFoundError(f"{environment} is missing; make it with `make peers`")
        self._process = subprocess.Popen(
            [python, "-I", "-W", "ignore", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.versions: dict[str, str] = self.ask(function="versions")["value"]

    def ask(self, **message: Any) -> dict[str, Any]:
        """Send one request and wait for its answer."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(message) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"the peer worker stopped with exit status {process.wait()}; see above")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{message.get('function')}: {answer['error']}")
        return answer

    def call(self, function: str, **arguments: Any) -> PeerCall:
        """A case for `measure`."""
        return PeerCall(self, function, arguments)

    def value(self, function: str, **arguments: Any) -> Any:
        """What the peer's function returns."""
        return self.ask(function=function, arguments=arguments, loops=1)["value"]

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def measure(
    cases: Mapping[str, Callable[[], object] | PeerCall],
    *,
    units: Mapping[str, float] | None = None,
    rounds: int = 30,
    min_seconds: float = 0.01,
    processor: bool = False,
) -> dict[str, Timing]:
    """Time every case once per round, in rotating order; seconds per unit, of the processor if so asked."""
    units = units or {}
    unknown = set(units) - set(cases)
    if unknown:
        raise ValueError(f"units names no case: {sorted(unknown)}")
    calls = {
        name: replace(case, processor=processor) if isinstance(case, PeerCall) else LocalCall(case, processor)
        for name, case in cases.items()
    }
    loops = {name: _loops(call, min_seconds) for name, call in calls.items()}
    samples: dict[str, list[float]] = {name: [] for name in calls}
    names = list(calls)
    for turn in range(rounds):
        start = turn % len(names)
        for name in names[start:] + names[:start]:
            per_call = calls[name].elapsed(loops[name]) / loops[name]
            samples[name].append(per_call / units.get(name, 1))
    return {name: Timing(tuple(samples[name]), loops[name]) for name in names}


def _loops(call: LocalCall | PeerCall, min_seconds: float) -> int:
    """Repetitions that make one sample last about min_seconds; also warms the case up."""
    call.elapsed(1)
    loops = 1
    while (elapsed := call.elapsed(loops)) < min_seconds:
        loops = max(2 * loops, int(loops * min_seconds / max(elapsed, 1e-9)))
    return loops


def ratio(timings: Mapping[str, Timing], slower: str, faster: str) -> float:
    """Median over rounds of slower / faster, sample by sample."""
    pairs = zip(timings[slower].samples, timings[faster].samples, strict=True)
    return statistics.median(a / b for a, b in pairs)


@dataclass(frozen=True)
class Point:
    """What one call of a size took: processor seconds, and peak memory: of the process, and beyond its input."""

    size: int
    seconds: float
    megabytes: float
    beyond: float


@dataclass(frozen=True)
class Curve:
    """Points of ascending size, and the exponent fitted to their time."""

    name: str
    axis: str
    points: list[Point]
    exponent: float | None

    def to_json(self) -> dict[str, Any]:
        points = [
            [one.size, _rounded(one.seconds), _rounded(one.megabytes), _rounded(one.beyond)] for one in self.points
        ]
        return {
            "name": self.name,
            "axis": self.axis,
            "exponent": None if self.exponent is None else _rounded(self.exponent),
            "points": points,
        }


@dataclass
class Result:
    """What one benchmark found."""

    name: str
    what: str
    peers: dict[str, str] = field(default_factory=dict)
    timings: dict[str, Timing] = field(default_factory=dict)
    ratios: list[dict[str, Any]] = field(default_factory=list)
    figures: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    guards: bool = False  # a bound that is not met fails every run, checked or not

    def ratio(self, what: str, value: float, *, at_least: float | None = None, at_most: float | None = None) -> None:
        """Record a quotient of two times measured in this run."""
        self.ratios.append(_entry(what, value, at_least, at_most))

    def figure(self, what: str, value: float, *, at_least: float | None = None, at_most: float | None = None) -> None:
        """Record a number with its unit in `what`."""
        self.figures.append(_entry(what, value, at_least, at_most))

    @property
    def met(self) -> bool:
        return all(entry.get("met", True) for entry in self.ratios + self.figures)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "name": self.name,
            "what": self.what,
            "machine": {"python": platform.python_version(), "cpus": os.cpu_count() or 0},
            "peers": dict(sorted(self.peers.items())),
            "ratios": self.ratios,
            "figures": self.figures,
            "timings": {name: timing.summary() for name, timing in self.timings.items()},
            "notes": self.notes,
            **({"curves": [curve.to_json() for curve in self.curves]} if self.curves else {}),
        }

    def write(self, folder: Path = RESULTS) -> Path:
        """Write folder/<name>.json: whole or not at all."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        temporary.write_text(json.dumps(self.to_json(), indent=2) + "\n", encoding="utf-8")
        temporary.replace(path)
        return path


def _entry(what: str, value: float, at_least: float | None, at_most: float | None) -> dict[str, Any]:
    entry: dict[str, Any] = {"what": what, "value": _rounded(value)}
    if at_least is not None:
        entry |= {"at_least": at_least, "met": value >= at_least}
    if at_most is not None:
        entry |= {"at_most": at_most, "met": entry.get("met", True) and value <= at_most}
    return entry


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
