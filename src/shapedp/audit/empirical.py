"""The empirical audit: lower bounds on delta and epsilon that hold with stated confidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from shapedp.audit.bounds import LOOKS, SPENDING
from shapedp.audit.claim import Claim
from shapedp.audit.events import Tally, choose, tally
from shapedp.audit.learned import learn
from shapedp.audit.result import Result
from shapedp.audit.runner import Hits, Runner, outputs, scores
from shapedp.audit.sketches import subject_of
from shapedp.audit.subjects import CallableSubject, Score, Subject
from shapedp.boundary.values import boolean, plain
from shapedp.numerics.checks import LAID_OUT, count, positive
from shapedp.privacy import Loss

_CHOOSE = 0.2
_LEARN = 0.2
_LEARN_ELEMENTS = 1 << 24
Looks = Iterable[tuple[float, float]]  # the share of the test samples seen, and of the error probability spent there


@dataclass(frozen=True)
class Witness:
    """The point of the profile at which the evidence against the claim is strongest.

    `against` says which promise `claimed` comes from: the claim (epsilon, delta), or the computed loss.

    Examples
    --------
    >>> from shapedp.audit import Witness
    >>> Witness(epsilon=1.0, delta_lower=0.02, claimed=0.001, reverse=False, against="claim").delta_lower
    0.02
    """

    epsilon: float
    delta_lower: float
    claimed: float
    reverse: bool
    against: str

    def __post_init__(self) -> None:
        plain(self)


@dataclass(frozen=True)
class AuditResult(Result, kind="audit", stated="verdict"):
    """What the samples show about a claim.

    Guarantee: with probability at least `confidence` every lower bound here holds, whenever the audit stopped;
    so a correct mechanism is called a violation with probability at most 1 - confidence.

    Examples
    --------
    >>> import shapedp as sdp
    >>> m = sdp.calibrate("gaussian", sdp.L2(1.0, 1), epsilon=1.0, delta=1e-3)
    >>> found = sdp.audit.mechanism(m, samples=4000, seed=1)
    >>> found.violation, found.samples, found.method
    (False, 4000, 'likelihood ratio')
    """

    epsilon: float
    delta: float
    confidence: float
    delta_lower: float
    epsilon_lower: float
    witness: Witness
    samples: int
    stopped_early: bool
    method: str
    seed: int | None

    def __post_init__(self) -> None:
        plain(self)

    @property
    def violation(self) -> bool:
        """Whether the claim is broken: at some epsilon' delta exceeds what is claimed there."""
        return self.witness.delta_lower > self.witness.claimed

    @property
    def verdict(self) -> Literal["violation", "no violation found"]:
        """`violation`, or that none was found (which proves nothing)."""
        return "violation" if self.violation else "no violation found"

    def explain(self) -> str:
        """The finding in one paragraph."""
        bounds = (
            f"with confidence {self.confidence:g}, from {self.samples} outputs ({self.method}): delta >= "
            f"{self.delta_lower:.4g} at epsilon {self.epsilon:g}, epsilon >= {self.epsilon_lower:.4g} at delta "
            f"{self.delta:g}"
        )
        if not self.violation:
            return f"no violation found: {bounds}"
        at = self.witness
        return (
            f"violation: {bounds}. At epsilon {at.epsilon:.4g} delta is at least {at.delta_lower:.4g}, "
            f"the {at.against} promises {at.claimed:.4g}"
        )


def mechanism(
    mechanism: Any,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: tuple[Any, Any] | None = None,
    samples: int = 1_000_000,
    confidence: float = 0.99,
    loss: Loss | None = None,
    score: Score | None = None,
    classifier: Any = None,
    vectorized: bool = False,
    early_stop: bool = True,
    seed: int | None = None,
    parallel: int = 1,
    progress: bool = False,
) -> AuditResult:
    """Audit a claim by sampling: a mechanism of the library, or any function f(x, rng) -> array.

    A mechanism of the library brings its own claim, density, whole profile and worst neighbours. A function needs
    (epsilon, delta) and neighbours, and its score is learned from samples of its own.

    Parameters
    ----------
    mechanism : what is audited.
    epsilon, delta : the claim; a mechanism of the library is held to its own unless both are given.
    neighbours : two inputs that one person's data sets apart.
    samples : the number of outputs drawn, all in all.
    confidence : of the bounds.
    loss : a loss whose whole profile is claimed too.
    score : one number per output of a function; the log-likelihood ratio is best.
    classifier : an object with fit and decision_function (or predict_proba) that learns the score.
    vectorized : whether the function is called f(x, rng, n) and returns n rows.
    early_stop : whether the audit looks four times and stops once the claim is broken.
    seed : makes the audit reproducible, and replaces secure randomness.
    parallel : the number of processes; the result is that of one.
    progress : whether a bar is shown.

    Returns
    -------
    An `AuditResult`.

    Guarantee: as `AuditResult`. Learning, choosing events and testing use separate samples; the error probability
    is split over at most three events, two sides and, unless `early_stop=False`, four looks (at 1/64, 1/16, 1/4 and
    all of the test samples), at which the audit stops if the claim is broken. One look gives the tightest bounds.

    Examples
    --------
    >>> import shapedp as sdp
    >>> def leaky(x, rng, n):
    ...     return x + rng.normal(size=(n, 1))
    >>> found = sdp.audit.mechanism(
    ...     leaky, neighbours=(0.0, 3.0), epsilon=1.0, delta=1e-3, samples=4000, vectorized=True, seed=1
    ... )
    >>> found.verdict
    'violation'
    """
    vectorized = boolean("vectorized", vectorized)
    early_stop = boolean("early_stop", early_stop)
    progress = boolean("progress", progress)
    subject = subject_of(mechanism, neighbours, score, vectorized)
    if classifier is not None and not isinstance(subject, CallableSubject):
        raise TypeError("classifier goes with a function: a mechanism of the library is scored by its density")
    claim = _claim(mechanism, epsilon, delta, loss)
    per_input = count("samples", samples, least=2000, most=LAID_OUT) // 2
    level = positive("confidence", confidence)
    if not level < 1:
        raise ValueError(f"confidence must lie in (0, 1), got {confidence!r}")
    with Runner(seed, count("parallel", parallel), progress, 2 * per_input) as runner:
        if isinstance(subject, CallableSubject) and subject.given is None:
            subject = _learned(runner, subject, int(_LEARN * per_input), classifier)
        runner.stage()
        chosen = int(_CHOOSE * per_input)
        first, second = (np.concatenate(side) for side in runner.both(subject, 0, chosen, scores))
        hits = Hits(choose(first, second, claim))
        looks = zip(LOOKS, SPENDING, strict=True) if early_stop else ((1.0, 1.0),)
        tallies, stopped = _test(runner, subject, hits, per_input - runner.drawn // 2, 1 - level, claim, looks)
        low = max(t.delta(claim.epsilon) for t in tallies), max(t.epsilon(claim.delta) for t in tallies)
        return AuditResult(
            claim.epsilon, claim.delta, level, *low, _worst(tallies, claim), runner.drawn, stopped, subject.method, seed
        )


def _claim(mechanism: Any, epsilon: float | None, delta: float | None, loss: Loss | None) -> Claim:
    if (epsilon is None) != (delta is None):
        raise ValueError("epsilon and delta go together: give both, or neither to hold a mechanism to its own claim")
    if epsilon is None or delta is None:
        epsilon, delta = getattr(mechanism, "epsilon", None), getattr(mechanism, "delta", None)
        if not isinstance(epsilon, float) or not isinstance(delta, float):
            raise ValueError("epsilon and delta must be given: the function carries no claim of its own")
    return Claim(epsilon, delta, getattr(mechanism, "loss", None) if loss is None else loss)


def _learned(runner: Runner, subject: CallableSubject, n: int, classifier: Any) -> CallableSubject:
    width = subject.draw(0, 1, np.random.default_rng(0)).size
    n = max(min(n, _LEARN_ELEMENTS // max(width, 1)), 100)
    first, second = (np.concatenate(side) for side in runner.both(subject, 0, n, outputs))
    return replace(subject, given=learn(first, second, subject.inputs, classifier))


def _test(
    runner: Runner, subject: Subject, hits: Hits, n: int, alpha: float, claim: Claim, looks: Looks
) -> tuple[list[Tally], bool]:
    """Bounds at the last look: each look spends its own share of alpha, so stopping at any of them is sound."""
    runner.stage()
    totals = np.zeros((2, len(hits.events)), dtype=np.int64)
    seen = 0
    tallies: list[Tally] = []
    for share, spent in looks:
        upto = max(int(share * n), 1)
        if upto > seen:
            for side, found in enumerate(runner.both(subject, seen, upto, hits)):
                totals[side] += np.sum(found, axis=0)
            seen = upto
        each = alpha * spent / len(hits.events)
        counted = zip(hits.events, totals.T.tolist(), strict=True)
        tallies = [tally(event, found, seen, each) for event, found in counted]
        witness = _worst(tallies, claim)
        if witness.delta_lower > witness.claimed:
            return tallies, share < 1
    return tallies, False


def _worst(tallies: list[Tally], claim: Claim) -> Witness:
    """The epsilon and event with the largest excess over the claim; all bounds hold together, so any may be used."""
    grid, claimed = claim.points
    pairs = list(zip(grid.tolist(), claimed.tolist(), strict=True))
    points = [(one.delta(e), promised, e, one.event.reverse) for one in tallies for e, promised in pairs]
    lower, promised, at, reverse = max(points, key=lambda point: point[0] - point[1])
    return Witness(at, lower, promised, reverse, claim.broken(at, promised))
