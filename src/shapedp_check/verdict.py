"""The answer about one certificate: an interval that holds delta at the claimed epsilon, and what follows."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from shapedp_check.balls import BITS, Ball, TooLarge, ball, down, exact, limited, precision, sharp, up
from shapedp_check.canonical import digest
from shapedp_check.compose import Counted, composed
from shapedp_check.files import NotDescribed, adjacency, entry, number, premises, schema, sentences
from shapedp_check.pairs import Gaussian, Pair
from shapedp_check.subjects import Case, read_subject

_GRIDS = (11, 13, 15, 17)  # log2 of the points of a grid, one after the other until the answer is clear
_MOST_CUT = 700
_NOTHING = 2.0**-20
SECONDS = 45.0


@dataclass(frozen=True)
class Answer:
    """`verdict` is certified, refuted, undecided or not described; delta lies in [lower, upper] where known."""

    verdict: str
    lower: float | None
    upper: float | None
    reason: str
    formulas: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: float
    digest: str

    def to_json(self) -> dict[str, Any]:
        """A JSON object."""
        return {"kind": "independent-check", **asdict(self)}


def check(certificate: Any, *, seconds: float = SECONDS) -> Answer:
    """Recompute the claim of a certificate (a JSON object) from what it describes, and nothing else.

    What takes longer than about `seconds` is undecided.
    """
    begun = time.perf_counter()
    try:
        mark = digest(certificate)
    except (ValueError, OverflowError, RecursionError):
        mark = ""
    try:
        with precision(BITS), limited(seconds):
            found = _check(certificate)
    except NotDescribed as missing:
        found = ("not described", None, None, str(missing), (), ())
    except RecursionError:
        found = ("not described", None, None, "the file is nested too deeply", (), ())
    except (TooLarge, ArithmeticError) as large:
        found = ("undecided", 0.0, 1.0, f"not computed: {large}", (), ())
    return Answer(*found, time.perf_counter() - begun, mark)


def _check(data: Any) -> tuple[str, float | None, float | None, str, tuple[str, ...], tuple[str, ...]]:
    if entry(data, "kind") != "certificate":
        raise NotDescribed("this is no certificate: kind must read 'certificate'")
    schema(data, "the certificate")
    epsilon = number(entry(data, "epsilon"), "epsilon", above=0.0)
    delta = number(entry(data, "delta"), "delta", least=0.0, most=1.0)
    stated = entry(data, "bracket")
    bracket = tuple(number(entry(stated, name), name, least=0.0) for name in ("lower", "upper"))
    if entry(data, "subject") is None:
        raise NotDescribed("the certificate does not describe its mechanism")
    case = read_subject(data["subject"])
    assumed, scope = sentences(data, "assumptions"), data.get("scope", "")
    if premises(data["subject"]) and not assumed:
        raise NotDescribed("the subject rests on premises, but the certificate lists no assumptions")
    if not isinstance(scope, str):
        raise NotDescribed("scope must be a string")
    if adjacency(data) != case.adjacency:
        raise NotDescribed(f"the certificate is about {adjacency(data)!r} neighbours, its subject {case.adjacency!r}")
    low, high = bounds(case, epsilon, delta)
    lower, upper = down(low), min(up(high), 1.0)
    formulas = tuple(dict.fromkeys(pair.formula for pair, _ in case.bounds.above))
    verdict, reason = _verdict(lower, upper, delta, bracket, data.get("verdict"))
    return verdict, lower, upper, reason, formulas, (*case.notes, *(f"assumed, not checked: {one}" for one in assumed))


def _verdict(lower: float, upper: float, delta: float, bracket: tuple[float, ...], label: Any) -> tuple[str, str]:
    """What follows from the interval, for the claim and for the file's own statements."""
    if lower > delta:
        return "refuted", f"delta is at least {lower:.6g}, {delta:.6g} is claimed"
    if bracket[0] > upper or bracket[1] < lower or bracket[0] > bracket[1]:
        return "refuted", f"the stated bracket [{bracket[0]:.6g}, {bracket[1]:.6g}] does not hold delta"
    implied = "certified" if bracket[1] <= delta else "refuted" if bracket[0] > delta else "undecided"
    if label != implied:
        return "refuted", f"the file says {label!r}, its own bracket {implied!r}"
    if upper <= delta:
        return "certified", f"delta is at most {upper:.6g}, {delta:.6g} is claimed"
    return "undecided", f"delta lies in [{lower:.6g}, {upper:.6g}], {delta:.6g} is claimed"


def bounds(case: Case, epsilon: float, delta: float) -> tuple[Ball, Ball]:
    """Ends of delta at epsilon, both directions, refined until `delta` is outside them."""
    x = exact(epsilon)
    apart = ball(case.variation) * (1 + ball(x).exp())
    on_top = ball(case.failure) + apart
    above = _joined(case.bounds.above)
    high = _upper(above, x, delta, on_top)
    low = ball(0)
    for way in case.bounds.below:
        if not low.lower() > delta:
            same = way == case.bounds.above  # reached by neighbours: the lower end is known already
            low = low.max(high[0] if same else _upper(_joined(way), x, delta, ball(0))[0])
    low, top = (low - apart).max(ball(0)), (high[1] + on_top).min(ball(1))
    if low > top:
        raise RuntimeError("the lower end is above the upper end: a fault of this program, please report it")
    return low, top


Ends = tuple[Ball, Ball]


def _joined(items: Sequence[Counted]) -> tuple[Counted, ...]:
    """Equal pairs together, and all Gaussian pairs as one: mu^2 adds up."""
    square = ball(0)
    seen: dict[Pair, int] = {}
    for pair, count in items:
        if isinstance(pair, Gaussian):
            square += pair.mu**2 * count
        else:
            seen[pair] = seen.get(pair, 0) + count
    gaussian: list[Counted] = [(Gaussian(square.sqrt()), 1)] if not square.is_zero() else []
    return (*gaussian, *seen.items())


def _directions(items: Sequence[Counted]) -> list[tuple[Counted, ...]]:
    """(P, Q) and (Q, P)."""
    if all(pair.symmetric for pair, _ in items):
        return [tuple(items)]
    return [tuple(items), tuple((pair.backward(), count) for pair, count in items)]


def _ends(items: tuple[Counted, ...], x: Fraction, delta: float) -> Ends:
    """H(x) of independent pairs in one direction, as closely as it takes to compare it with delta."""
    if not items:
        return ball(0), ball(0)
    if len(items) == 1 and items[0][1] == 1:
        pair = items[0][0]
        if _pure(items) <= ball(x):
            return pair.failure(), pair.failure()
        value = pair.hockey(ball(x)) if pair.wide else sharp(lambda: pair.hockey(ball(x)))
        return value, value
    if _pure(items) <= ball(x):
        kept = ball(1)
        for pair, count in items:
            kept *= (1 - pair.failure()) ** count
        return 1 - kept, 1 - kept
    return _composed(items, x, delta)


def _pure(items: Sequence[Counted]) -> Ball:
    """The sum of the largest finite losses, infinite if one has no bound."""
    total = ball(0)
    for pair, count in items:
        total += ball(pair.top) * count if pair.top is not None else ball(1) / 0
    return total if total.is_finite() else ball(2) ** 1000


def _composed(items: tuple[Counted, ...], x: Fraction, delta: float) -> Ends:
    cut = min(max(60, int(-math.log2(delta)) + 50) if delta > 0 else 120, _MOST_CUT)
    low, high = ball(0), ball(1)
    for pair, _ in items:  # whoever sees all releases sees each
        with contextlib.suppress(TooLarge):
            low = low.max(pair.hockey(ball(x)))
    for power in _GRIDS:
        try:
            new = composed(items, x, 1 << power, cut)
        except TooLarge:
            break
        low, high = low.max(new[0]), high.min(new[1])
        if low.lower() > delta or high.upper() <= delta:
            break
    return low, high


def _upper(items: tuple[Counted, ...], x: Fraction, delta: float, fails: Ball) -> Ends:
    lost = up(fails)
    aim = delta - lost if lost < delta else lost * _NOTHING  # once failures pass delta, what adds nothing will do
    low, high = ball(0), ball(0)
    for way in _directions(items):
        new = _ends(way, x, aim)
        low, high = low.max(new[0]), high.max(new[1])
    return low, high
