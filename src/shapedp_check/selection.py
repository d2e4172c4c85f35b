"""Selections: the best of some candidates, keys that nobody listed before, quantiles.

Candidate i has an integer utility; between neighbours all changes of utilities lie in an interval of length D: twice
the sensitivity, or the sensitivity where all go in one direction. A method has a rate r per unit; e = r D.

Exponential mechanism, P(i) ~ e^(r u_i). The loss lies in an interval of length e, say [t - e, t]. H is convex in
k = e^x and meets 1 - k at e^(t - e) and 0 at e^t, so that it is below the chord: (E - T)(1 - k/T)/(E - 1), E = e^e,
T = e^t. Its largest value over T is at T^2 = k E: (1 - e^((x - e)/2))^2/(1 - e^-e). As the largest of convex curves
this is a curve of a pair, which is worse than all of them; it is that of logistic noise. Permute-and-flip and the
maximum with Laplace noise are e-private: given the others' noise, one wins if its noise passes a threshold, which
moves by D.

From below: two candidates, the others far below. The first wins over one that is d behind with probability F(d), and a
neighbour changes d to d - D. In k choices one after the other every second one can show a pair of its own: the loser of
a pair comes next.

Keys: with n persons a key is shown with probability p(n), p(n + 1) = min(e^e p(n) + d, 1 - e^-e (1 - p(n) - d), 1):
each key is (e, d)-private, and a person has so many; those that nobody else has are shown with probability d each.

Quantiles: in each level a record takes part in one choice; its utilities change by amounts in an interval whose length
times the rate is at most `reach`. A person with k records, or who is exchanged, changes k or 2k of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from shapedp_check.additive import Bounds, Counted
from shapedp_check.balls import Ball, ball, exact
from shapedp_check.files import NotDescribed, adjacency, entry, known, number, whole
from shapedp_check.logistic import Logistic
from shapedp_check.pairs import ByEnclosure, Pair, Response, no_less

METHODS = ("exponential", "permute-and-flip", "noisy-max")
_MARGINS = (0, 1, -1, 2, -2, 4, -4, 8, -8, 16, -16, 32, -32)  # in units of D/2 and of 1/rate


@dataclass(frozen=True)
class Ranged(Logistic):
    """The worst of all pairs whose losses lie in an interval of length `ratio`."""

    formula = "bounded range: (1 - e^((x - r)/2))^2/(1 - e^-r) for |x| <= r"


@dataclass(frozen=True, eq=False)
class Two(ByEnclosure):
    """Two outcomes, the first with probability `p` and `q`: H(x) = max(0, p - e^x q, p' - e^x q', 1 - e^x).

    `others` are p' = 1 - p and q' = 1 - q, known on their own so that nothing cancels.
    """

    p: Ball
    q: Ball
    others: tuple[Ball, Ball]
    symmetric = False
    formula = "two candidates: F(d) - e^x F(d - D)"

    def _key(self) -> tuple[Any, ...]:
        return (type(self), *(value.repr() for value in (self.p, self.q, *self.others)))

    @property
    def top(self) -> Ball | Fraction | None:  # type: ignore[override]
        return abs((self.p / self.q).log()).max(abs((self.others[0] / self.others[1]).log()))

    def hockey(self, x: Ball) -> Ball:
        k = x.exp()
        return no_less(x, (self.p - k * self.q).max(self.others[0] - k * self.others[1]))


@dataclass(frozen=True, eq=False)
class Alone(ByEnclosure):
    """An outcome of probability `p` that the other law does not have: H(x) = p + max(0, 1 - p - e^x)."""

    p: Ball
    symmetric = False
    formula = "new keys: 1 - (1 - d)^k"

    def failure(self) -> Ball:
        return self.p

    def hockey(self, x: Ball) -> Ball:
        return no_less(x, self.p + (1 - self.p - x.exp()).max(ball(0)))


def _fraction(value: Any, name: str) -> Fraction:
    if not isinstance(value, list) or len(value) != 2:
        raise NotDescribed(f"{name} must be two whole numbers")
    return Fraction(whole(value[0], name), whole(value[1], name))


def _flag(data: Any, name: str) -> bool:
    if not isinstance(entry(data, name), bool):
        raise NotDescribed(f"{name} must be true or false")
    return bool(data[name])


def _wins(method: str, rate: Ball, margin: int) -> Ball:
    """F(margin); for a noisy maximum Z = n - n' has P(Z = k) = c^2 r^k (k + 1 + 2 r^2/(1 - r^2)), ties shared."""
    if method == "exponential":
        return 1 / (1 + (-rate * margin).exp())
    if margin > 0:
        return 1 - _wins(method, rate, -margin)
    k, r = -margin, (-rate).exp()
    if method == "permute-and-flip":
        return (-rate * k).exp() / 2
    more = 2 * r**2 / (1 - r**2)
    beyond = r * ((k + 2 + more) / (1 - r) + r / (1 - r) ** 2)
    return ((1 - r) / (1 + r)) ** 2 * (-rate * k).exp() * (beyond + (k + 1 + more) / 2)


def selection(data: Any) -> tuple[str | None, Bounds]:
    """The neighbour relation and the pairs of a selection."""
    method = known(entry(data, "method"), METHODS, "the method of selection")
    rate, times = _fraction(entry(data, "rate"), "rate"), whole(entry(data, "times"), "times")
    candidates, moved = (whole(entry(data, name), name) for name in ("candidates", "sensitivity"))
    distance = moved if _flag(data, "monotone") else 2 * moved
    if distance == moved and adjacency(data) == "replace":
        raise NotDescribed("where a person is exchanged utilities do not all change in one direction")
    if not times < candidates:
        raise NotDescribed("more candidates are chosen than can be")
    worst: Pair = Ranged(rate * distance) if method == "exponential" else Response(rate * distance)
    if adjacency(data) is not None:  # that a person can change every utility at once is said by nobody
        return adjacency(data), Bounds(((worst, times),), ())
    shown = min((times + 1) // 2, candidates // 2)
    steps = {distance // 2 + side * size // 2 for side in _MARGINS for size in (distance, int(1 / rate) + 1)}
    below: list[tuple[Counted, ...]] = []
    for margin in sorted(steps, key=abs)[: 32 if shown == 1 else 3]:
        wins = [_wins(method, ball(rate), one) for one in (margin, margin - distance, -margin, distance - margin)]
        below.append(((Two(wins[0], wins[1], (wins[2], wins[3])), shown),))
    return adjacency(data), Bounds(((worst, times),), tuple(below))


def keys(data: Any) -> tuple[str | None, Bounds]:
    """The neighbour relation and the pairs of published keys."""
    own = exact(number(entry(data, "key_epsilon"), "key_epsilon", above=0.0))
    fails = exact(number(entry(data, "key_delta"), "key_delta", above=0.0, most=1.0))
    each, relation = whole(entry(data, "keys"), "keys"), adjacency(data)
    if relation is None:
        raise NotDescribed("keys need a neighbour relation")
    changed = 2 * each if relation == "replace" else each
    new = Alone(1 - (1 - ball(fails)) ** each)
    return relation, Bounds(((Response(own, fails), changed),), (((new, 1),),))


def quantiles(data: Any) -> tuple[str | None, Bounds]:
    """The neighbour relation and the pairs of quantiles by recursion."""
    reach, relation = _fraction(entry(data, "reach"), "reach"), adjacency(data)
    targets, each = entry(data, "targets"), whole(entry(data, "records"), "records")
    whole(entry(data, "cells"), "cells", least=2)
    if not isinstance(targets, list) or not targets or relation is None:
        raise NotDescribed("quantiles need targets, and a neighbour relation")
    levels = [_fraction(one, "a target") for one in targets]
    if any(one >= other for one, other in zip([Fraction(0), *levels], [*levels, Fraction(1)], strict=True)):
        raise NotDescribed("targets must rise between 0 and 1")
    changed = 2 * each if relation == "replace" else each
    return relation, Bounds(((Ranged(reach * changed), len(levels).bit_length()),), ())
