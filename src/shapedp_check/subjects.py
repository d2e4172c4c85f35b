"""What a certificate can be about: a mechanism or a plan, turned into worst pairs.

A `Case` is what is left of it: the neighbour relation that the description implies, independent pairs with their
counts, and notes for the reader.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from shapedp_check.additive import Bounds, Counted, additive
from shapedp_check.balls import ball, exact
from shapedp_check.files import NotDescribed, adjacency, entry, number, schema, whole
from shapedp_check.pairs import Gaussian, Mixing, Pair, Response, Sampled
from shapedp_check.sets import read_set

ANY = "any"  # a bare guarantee holds under the relation that it was proved for, which the file does not name
_MOST_WAYS = 16


@dataclass(frozen=True)
class Case:
    """The relation (ANY where nothing names one), pairs above and below, and what comes on top.

    With probability `failure` anything may happen: delta grows by it. What is released is within `variation` of what is
    described, in total variation, on each of the two data sets: delta moves by at most (1 + e^epsilon) times it.
    """

    adjacency: str | None
    bounds: Bounds
    failure: Fraction = Fraction(0)
    variation: Fraction = Fraction(0)

    @property
    def notes(self) -> tuple[str, ...]:
        return self.bounds.notes


def read_subject(data: Any) -> Case:
    """The case that a subject describes."""
    kind = entry(data, "kind")
    if kind not in READERS:
        raise NotDescribed(f"subjects of the kind {kind!r} are not covered by this checker")
    schema(data, "the subject")
    return READERS[kind](data)


def _additive(data: Any) -> Case:
    region = read_set(entry(data, "sensitivity"))
    return Case(region.adjacency, additive(entry(data, "law"), region))


def _relation(data: Any) -> str:
    found = adjacency(data)
    if found not in ("zero-out", "replace"):
        raise NotDescribed(f"mixing is defined for zero-out and replace neighbours, not {found!r}")
    return found


def _mixing(data: Any) -> Case:
    """Y = S X + sigma xi with sigma^2 = (gamma - 1) C^2: a record's share is x'(X'X + sigma^2 I)^-1 x <= 1/gamma."""
    return _sketch(data, ())


def _sketch(data: Any, first: tuple[Counted, ...]) -> Case:
    relation, rows = _relation(data), whole(entry(data, "rows"), "rows")
    number(entry(data, "row_bound"), "row_bound", above=0.0)
    gamma = number(entry(data, "gamma"), "gamma", above=1.0)
    dim = None if data.get("dim") is None else whole(data["dim"], "dim")
    if (data.get("records") is None) != (dim is None):
        raise NotDescribed("records and dim go together")
    notes: tuple[str, ...] = ()
    if dim is not None:
        whole(data["records"], "records")
        notes = ("the sketch in real numbers: rounding of floats is not part of the file",)
    one = Mixing(rows, ball(1) / ball(gamma))
    alone: tuple[Counted, ...] = ((one, 1),)
    if relation == "zero-out":
        return Case(relation, Bounds((*first, *alone), ((*first, *alone),), notes))
    both: tuple[Counted, ...] = ((one, 1), (one.backward(), 1))
    return Case(relation, Bounds((*first, *both), ((*first, *(both if dim != 1 else alone)),), notes))


def _adaptive_mixing(data: Any) -> Case:
    """l = lambda_min(X'X) + eta C^2 (z - tau) is released, then a sketch whose share is at most 1/gamma if z <= tau.

    Zeroing or adding a row moves lambda_min by at most C^2, exchanging one too: mu = 1/eta. P(z > tau) is added.
    """
    eta = number(entry(data, "eta"), "eta", above=0.0)
    tau = number(entry(data, "tau"), "tau")
    leading: Counted = (Gaussian(ball(1) / ball(eta)), 1)
    case = _sketch(data, (leading,))
    fails = ((ball(tau) / ball(2).sqrt()).erfc() / 2).upper()
    mantissa, exponent = fails.man_exp()
    bounds = Bounds(
        case.bounds.above, ((leading,),), (*case.bounds.notes, "adaptive mixing: reached by its first step")
    )
    return Case(case.adjacency, bounds, Fraction(int(mantissa)) * Fraction(2) ** int(exponent))


def _plan(data: Any) -> Case:
    """All steps independently, each as often as counted; the relations of the steps must agree."""
    steps = entry(data, "steps")
    if not isinstance(steps, list) or not steps:
        raise NotDescribed("a plan needs steps")
    cases = [_step(step) for step in steps]
    named = {case.adjacency for case in cases} - {ANY}
    if len(named) > 1:
        raise NotDescribed(f"the steps are about different neighbours: {sorted(map(str, named))}")
    above = tuple(item for case in cases for item in case.bounds.above)
    ways = [case.bounds.below or ((),) for case in cases]
    below = tuple(tuple(item for part in way for item in part) for way in _some(ways))
    notes = tuple(dict.fromkeys(note for case in cases for note in case.notes))
    relation = named.pop() if named else None
    failure, variation = (
        sum(parts, Fraction(0)) for parts in zip(*((c.failure, c.variation) for c in cases), strict=True)
    )
    return Case(relation, Bounds(above, below, notes), failure, variation)


def _some(ways: list[tuple[tuple[Counted, ...], ...]]) -> list[tuple[tuple[Counted, ...], ...]]:
    """Some choices of neighbours, the same in every step: each is reached, so any few will do."""
    if len({len(way) for way in ways}) == 1:
        return list(zip(*ways, strict=True))[:_MOST_WAYS]
    return [choice for choice, _ in zip(product(*ways), range(_MOST_WAYS), strict=False)]


def _step(step: Any) -> Case:
    count = whole(entry(step, "count"), "count")
    rate = exact(number(entry(step, "sampling_rate"), "sampling_rate", least=0.0, most=1.0))
    scheme = step.get("scheme", "poisson")
    if scheme not in ("poisson", "without-replacement"):
        raise NotDescribed(f"the sampling scheme {scheme!r} is not known")
    case = _step_subject(entry(step, "subject"))
    failure, variation = (
        exact(number(step.get(name, 0), name, least=0.0, most=1.0)) for name in ("failure", "total_variation")
    )
    relation = case.adjacency
    if rate == 1:
        sampled = case.bounds
    else:
        fits = ("add-remove", "zero-out", ANY) if scheme == "poisson" else ("replace", ANY)
        if case.adjacency not in fits:
            raise NotDescribed(f"{scheme} sampling is not defined for {case.adjacency} neighbours")
        relation = fits[0] if relation == ANY else relation
        sampled = _sampled(case.bounds, rate, scheme)
    bounds = Bounds(
        tuple((pair, count * times) for pair, times in sampled.above),
        tuple(tuple((pair, count * times) for pair, times in way) for way in sampled.below),
        sampled.notes,
    )
    return Case(relation, bounds, (case.failure + failure) * count, (case.variation + variation) * count)


def _sampled(bounds: Bounds, rate: Fraction, scheme: str) -> Bounds:
    """One pair is sampled exactly. Of several released together the product would have to be sampled: not known."""
    if rate == 0:
        nothing: tuple[Counted, ...] = ((Response(Fraction(0)), 1),)
        return Bounds(nothing, (nothing,), bounds.notes)

    def one(items: tuple[Counted, ...], both: bool) -> tuple[Counted, ...]:
        if len(items) != 1 or items[0][1] != 1:
            raise NotDescribed("sampling of a release with several independent parts is not covered")
        return ((Sampled(items[0][0], rate, both), 1),)

    fixed = scheme != "poisson"
    return Bounds(one(bounds.above, fixed), tuple(one(way, False) for way in bounds.below), bounds.notes)


def _step_subject(data: Any) -> Case:
    if not isinstance(data, dict):
        raise NotDescribed("a step must name its subject")
    if data.get("loss") == "gaussian":
        pair: Pair = Gaussian(ball(number(entry(data, "mu"), "mu", least=0.0)))
    elif data.get("loss") == "bare":
        epsilon = number(entry(data, "epsilon"), "epsilon", least=0.0)
        pair = Response(exact(epsilon), exact(number(entry(data, "delta"), "delta", least=0.0, most=1.0)))
    else:
        return read_subject(entry(data, "mechanism"))
    return Case(ANY, Bounds.tight((pair, 1)))


READERS = {
    "additive": _additive,
    "mixing": _mixing,
    "adaptive-mixing": _adaptive_mixing,
    "plan": _plan,
}
