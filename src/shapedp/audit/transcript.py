"""The replay audit: what reaches each release, on neighbouring data, given the same releases before."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.audit.equality import same
from shapedp.audit.gauge import moved
from shapedp.audit.result import Result
from shapedp.mechanisms import Release, Sketch
from shapedp.mechanisms.watch import Draw, watching
from shapedp.numerics.checks import nonnegative, one_of
from shapedp.privacy import Certificate
from shapedp.sensitivity import ADJACENCIES, Adjacency

Array = NDArray[Any]
_SHOWN = 5


@dataclass(frozen=True)
class Finding:
    """One thing that differs between neighbours and must not; `release` counts from 0, None for the whole run.

    Examples
    --------
    >>> from shapedp.audit import Finding
    >>> print(Finding(pair=0, release=2, what="sensitivity", detail="the query moved 3 times as far as declared"))
    pair 0, release 2: sensitivity: the query moved 3 times as far as declared
    """

    pair: int
    release: int | None
    what: str
    detail: str

    def __str__(self) -> str:
        where = "the run" if self.release is None else f"release {self.release}"
        return f"pair {self.pair}, {where}: {self.what}: {self.detail}"


@dataclass(frozen=True)
class ReplayResult(Result, kind="replay-audit", stated="passed"):
    """What a run let through.

    `largest` is the largest difference seen, in units of the declared sensitivity: at most 1 if it holds.
    Passing proves nothing about pairs that were not tried.

    Examples
    --------
    >>> from shapedp.audit import ReplayResult
    >>> ReplayResult(pairs=8, releases=8, largest=0.9, findings=()).explain()
    'no leak found: 8 releases on 8 pairs, largest difference 0.9 of the declared'
    """

    pairs: int
    releases: int
    largest: float
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def explain(self) -> str:
        """The findings, the first few in words."""
        seen = f"{self.releases} releases on {self.pairs} pairs, largest difference {self.largest:.6g} of the declared"
        if self.passed:
            return f"no leak found: {seen}"
        more = "" if len(self.findings) <= _SHOWN else f"; and {len(self.findings) - _SHOWN} more"
        return f"leak: {'; '.join(map(str, self.findings[:_SHOWN]))}{more} ({seen})"


@dataclass(frozen=True)
class _Step:
    mechanism: Any
    x: Array
    value: Array


@dataclass
class _Player:
    """Keeps what a run releases and shows, or how it fails; answers releases as the script does, as long as it goes.

    The noise is drawn all the same: a generator the run shares with other steps stays in place.
    """

    script: list[_Step]
    steps: list[_Step] = field(default_factory=list)
    shown: Any = None
    error: str | None = None

    def __call__(self, mechanism: Any, x: Array, draw: Draw) -> Array:
        value, at = draw(), len(self.steps)
        if at < len(self.script) and self.script[at].value.shape == value.shape:
            value = self.script[at].value.astype(value.dtype)
        self.steps.append(_Step(mechanism, np.array(x), np.array(value)))
        return value.copy()


def _fitted(given: Any, data: Any) -> Any:
    """A copy of the estimator, fitted: runs share no state."""
    estimator = copy.deepcopy(given)
    fitted = estimator.fit(*data) if isinstance(data, tuple) else estimator.fit(data)
    return estimator if fitted is None else fitted


def replay(
    run: Any,
    pairs: Iterable[tuple[Any, Any]],
    *,
    adjacency: Adjacency | None = None,
    public: Callable[[Any], Any] | None = None,
    tolerance: float = 1e-9,
) -> ReplayResult:
    """Run on neighbouring datasets and compare everything but the noise.

    `run(data)` is anything that releases through mechanisms of the library: a query, a trainer. An object with a
    `fit` is copied for each run and fitted: fit(data), or fit(X, y) where the data are a tuple (X, y).
    For each pair (D, D') it runs on D, then on D' with every release answered as on D: given the same releases so
    far, what enters the next one may differ only as declared (`moved`), and the number, order and kind of releases,
    and what the run returns, may not differ at all. `public(result)` picks what is published; by default arrays,
    numbers, releases, certificates and attributes whose name ends in an underscore are compared.

    Parameters
    ----------
    run : a function of the data, or an object with `fit`.
    pairs : neighbouring datasets.
    adjacency : the neighbour relation of the pairs; a mechanism that declares another one is reported.
    public : picks what is published from what the run returns.
    tolerance : the share by which a query may move further than declared.

    Returns
    -------
    A `ReplayResult`.

    Guarantee: a finding is a leak (or a run that is random by itself, which is reported as such: fix its seed).

    Examples
    --------
    >>> import numpy as np, shapedp as sdp
    >>> m = sdp.calibrate("laplace", sdp.L1(1.0, dim=1), epsilon=1.0, delta=0.0)
    >>> def count(data):
    ...     return m.release(np.array([float(len(data))]))
    >>> sdp.audit.replay(count, sdp.audit.neighbours(np.ones(5), adjacency="add-remove")).passed
    True
    >>> sdp.audit.replay(lambda data: len(data), [(np.ones(5), np.ones(4))]).passed
    False
    """
    slack, shown = 1 + nonnegative("tolerance", tolerance), published if public is None else public
    one_of("adjacency", adjacency, (*ADJACENCIES, None))
    run = partial(_fitted, run) if hasattr(run, "fit") else run
    findings: list[Finding] = []
    largest, releases, tried = 0.0, 0, 0
    for number, (data, other) in enumerate(pairs):
        tried += 1
        if same(data, other):
            raise ValueError(f"the datasets of pair {number} are equal, so that nothing would be compared")
        before = _watch(run, data, shown, [])
        control = _watch(run, data, shown, before.steps)
        if odd := _compare(before, control, 0.0, None)[1]:
            what = "the run is random by itself, so neighbours cannot be compared: fix its seed"
            findings.append(Finding(number, odd[0][0], what, odd[0][2]))
            continue
        after = _watch(run, other, shown, before.steps)
        reach, found = _compare(before, after, slack, adjacency)
        findings += [Finding(number, *one) for one in found]
        largest, releases = max(largest, reach), releases + len(before.steps)
    if not tried:
        raise ValueError("pairs must hold at least one pair of neighbouring datasets")
    return ReplayResult(tried, releases, largest, tuple(findings))


def _watch(run: Callable[[Any], Any], data: Any, shown: Callable[[Any], Any], script: list[_Step]) -> _Player:
    player = _Player(script)
    try:
        with watching(player):
            result = run(data)
    except Exception as raised:  # whatever a run raises is control flow that the data decided
        player.error = f"{type(raised).__name__}: {raised}"
    else:
        player.shown = copy.deepcopy(shown(result))  # an estimator is the same object next time
    return player


def _compare(
    before: _Player, after: _Player, slack: float, adjacency: Adjacency | None
) -> tuple[float, list[tuple[int | None, str, str]]]:
    found: list[tuple[int | None, str, str]] = []
    largest = 0.0
    for i, (one, two) in enumerate(zip(before.steps, after.steps, strict=False)):
        found += [(i, *claim) for claim in _claims(one, two, adjacency)]
        if one.x.shape != two.x.shape:
            found.append((i, "control flow", f"shapes {one.x.shape} and {two.x.shape} reach the release"))
            continue
        reach = moved(one.mechanism, one.x, two.x)
        largest = max(largest, reach)
        if reach > slack:
            found.append((i, "sensitivity", f"the query moved {reach:.6g} times as far as declared"))
    if len(before.steps) != len(after.steps):
        found.append((None, "control flow", f"{len(before.steps)} releases against {len(after.steps)}"))
    if before.error != after.error:
        found.append((None, "control flow", f"one run ends in {before.error}, the other in {after.error}"))
    elif not found and not same(before.shown, after.shown):
        found.append((None, "another door", "after equal releases the results differ: data leaves without noise"))
    return largest, found


def _claims(one: _Step, two: _Step, adjacency: Adjacency | None) -> Iterator[tuple[str, str]]:
    first, second = (_description(step.mechanism) for step in (one, two))
    if first != second:
        changed = [key for key in first if first.get(key) != second.get(key)] or ["kind"]
        yield "claim", f"the mechanism itself depends on the data ({', '.join(map(str, changed))})"
    declared = getattr(getattr(one.mechanism, "sensitivity", one.mechanism), "adjacency", None)
    if adjacency is not None and declared is not None and declared != adjacency:
        yield "adjacency", f"the sensitivity was derived for {declared}, the pairs are {adjacency}"


def _description(mechanism: Any) -> dict[str, Any]:
    if hasattr(mechanism, "to_json"):
        return dict(json.loads(json.dumps(mechanism.to_json())))
    return {"repr": repr(mechanism)}


def published(result: Any) -> Any:
    """What a result shows: arrays, numbers, releases, certificates, containers, attributes that end in `_`."""
    if result is None or isinstance(result, bool | int | float | str | np.generic | np.ndarray):
        return result
    if isinstance(result, Sketch):
        return [result.value, result.noise_variance]
    if isinstance(result, Release):
        return result.value
    if isinstance(result, Certificate):
        return published(result.to_json())
    if isinstance(result, Mapping):
        return {str(key): published(value) for key, value in result.items()}
    if isinstance(result, tuple | list):
        return [published(value) for value in result]
    if not hasattr(result, "__dict__"):
        return None
    learned = {k: v for k, v in vars(result).items() if k.endswith("_") and not k.startswith("_")}
    return {key: published(value) for key, value in learned.items()}
