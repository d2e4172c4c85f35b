"""What a certificate can be about: a mechanism or a plan, turned into worst pairs.

A `Case` is what is left of it: the neighbour relation that the description implies, independent pairs with their
counts, and notes for the reader.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

from shapedp_check.additive import Bounds, Counted, additive
from shapedp_check.allocation import Allocated
from shapedp_check.answers import answers
from shapedp_check.balls import Ball, ball, exact, normal_cdf, up
from shapedp_check.files import NotDescribed, adjacency, entry, known, number, only, premises, schema, whole
from shapedp_check.pairs import Clipped, Gaussian, Hopeless, Laplace, Mixing, Pair, Response, Sampled, Share
from shapedp_check.repeated import ORDERS, Repeated
from shapedp_check.selection import keys, quantiles, selection
from shapedp_check.sets import read_set
from shapedp_check.workload import workload

ANY = "any"  # a bare guarantee holds under the relation that it was proved for, which the file does not name
_BLANKS = "sampled under zero-out: a row of zeros is taken for a row that is not drawn"
_MOST_WAYS = 16
_SCHEMES = {
    "poisson": ("add-remove", "zero-out"),
    "without-replacement": ("replace",),
    "allocation": ("add-remove", "zero-out"),
    "shuffle": ("zero-out",),
}


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
    reader, fields = READERS[known(entry(data, "kind"), READERS, "the kind of subject")]
    only(data, ("schema", "kind", *fields), "the subject")
    schema(data, "the subject")
    return reader(data)


def _additive(data: Any) -> Case:
    region = read_set(entry(data, "sensitivity"))
    bounds = additive(entry(data, "law"), region)
    assumed = premises(data)
    if assumed:
        bounds = replace(bounds, notes=(*bounds.notes, f"assumed of the query, not checked: {', '.join(assumed)}"))
    return Case(region.adjacency, bounds)


def _workload(data: Any) -> Case:
    return Case(*workload(data))


def _answers(data: Any) -> Case:
    return Case(*answers(data))


def _selection(data: Any) -> Case:
    return Case(*selection(data))


def _keys(data: Any) -> Case:
    return Case(*keys(data))


def _quantiles(data: Any) -> Case:
    return Case(*quantiles(data))


def _relation(data: Any) -> str:
    found = adjacency(data)
    if found not in ("zero-out", "replace"):
        raise NotDescribed(f"mixing is defined for zero-out and replace neighbours, not {found!r}")
    return found


def _mixing(data: Any) -> Case:
    """Y = S X + sigma xi with sigma^2 = (gamma - 1) C^2: a record's share is x'(X'X + sigma^2 I)^-1 x <= 1/gamma."""
    gamma = ball(number(entry(data, "gamma"), "gamma", above=1.0))
    return _sketch(data, 1 / gamma)


def _sizes(data: Any) -> tuple[int | None, int | None]:
    """`records` and `dim`, both or neither."""
    if (data.get("records") is None) != (data.get("dim") is None):
        raise NotDescribed("records and dim go together")
    if data.get("dim") is None:
        return None, None
    return whole(data["records"], "records"), whole(data["dim"], "dim")


def _sketch(data: Any, share: Ball, first: tuple[Counted, ...] = ()) -> Case:
    """A Gaussian sketch in which a record's share is at most `share`, after `first`. Its worst case is a lone row."""
    relation, rows = _relation(data), whole(entry(data, "rows"), "rows")
    number(entry(data, "row_bound"), "row_bound", above=0.0)
    dim = _sizes(data)[1]
    notes = () if dim is None else ("the sketch in real numbers: rounding of floats is not part of the file",)
    if not share < 1:
        return Case(relation, Bounds(((Hopeless(), 1),), (), notes))
    one = Mixing(rows, share)
    alone: tuple[Counted, ...] = ((one, 1),)
    if relation == "zero-out":
        return Case(relation, Bounds((*first, *alone), ((*first, *alone),), notes))
    both: tuple[Counted, ...] = ((one, 1), (one.backward(), 1))
    return Case(relation, Bounds((*first, *both), ((*first, *(both if dim != 1 else alone)),), notes))


def _adaptive_mixing(data: Any) -> Case:
    """l = lambda_min(X'X) + eta C^2 (z - tau), then a sketch with noise of variance gamma C^2 - l, which is shown too.

    The variance is kept within [0, (gamma - 1) C^2], and with it a record's share is at most 1/gamma if z <= tau.
    Zeroing or adding a row moves lambda_min by at most C^2, exchanging one too: mu = 1/eta. P(z > tau) is added.
    Reached from below: X'X = level C^2 I with and without a row. What is seen of l/C^2 lies between 1 and gamma.
    """
    eta = ball(number(entry(data, "eta"), "eta", above=0.0))
    tau = ball(number(entry(data, "tau"), "tau"))
    gamma = ball(number(entry(data, "gamma"), "gamma", above=1.0))
    case = _sketch(data, 1 / gamma, ((Gaussian(1 / eta), 1),))
    middle = (1 + gamma) / 2 + 1 + eta * tau  # at this level z = 0 lies in the middle of what is seen
    levels = _fitting(data, [middle - eta * step for step in range(-2, 7, 2)])
    seen = [((1 - level + 1) / eta + tau, (gamma - level + 1) / eta + tau) for level in levels]
    below = tuple(((Clipped(1 / eta, low, high), 1),) for low, high in seen)
    return _reached(case, below, normal_cdf(-tau), "adaptive mixing: reached by the eigenvalue that is shown")


def _reached(case: Case, below: tuple[tuple[Counted, ...], ...], fails: Ball, note: str) -> Case:
    """A case with other pairs that are reached, and a probability of failure (its upper end)."""
    mantissa, exponent = fails.upper().man_exp()
    bounds = Bounds(case.bounds.above, below, (*case.bounds.notes, note))
    return Case(case.adjacency, bounds, Fraction(int(mantissa)) * Fraction(2) ** int(exponent))


def _threshold_mixing(data: Any) -> Case:
    """No noise if l = lambda_min/C^2 passes threshold + slack + z, z ~ Lap(scale); else noise of `variance` C^2.

    l moves by at most 1, so the comparison is a pure release of 1/scale. Without noise l >= threshold unless
    z < -slack, and then a record's share is at most 1/threshold; with noise it is at most 1/(1 + variance). Reached
    from below: X'X = l C^2 I and no noise.
    """
    least, slack, scale, variance = (
        ball(number(entry(data, name), name, above=0.0)) for name in ("threshold", "slack", "scale", "variance")
    )
    share = (1 / least).max(1 / (1 + variance))
    compared = Response(1 / exact(data["scale"]))
    case = _sketch(data, share, ((compared, 1),))

    def silent(level: Ball) -> Ball:
        gap = (level - least - slack) / scale
        return 1 - (-gap).exp() / 2 if gap > 0 else gap.min(ball(0)).exp() / 2

    levels = [least + slack + scale * step for step in range(-12, 5)]
    return _reached(case, _silent(data, levels, silent), (-slack / scale).exp() / 2, _WITHOUT)


def _modified_gauss_mix(data: Any) -> Case:
    """Noise of variance C^2 max(gamma - l, 0), l = lambda_min + eta C^2 (z - tau) or 0, in units that do not match.

    If z <= tau then l <= lambda_min, and lambda_min + C^2 max(gamma - l, 0) >= gamma min(C^2, 1): the share is at most
    max(C^2, 1)/gamma. Where gamma <= tau the noise is gamma^2 C^2 whatever the data.
    Reached from below: X'X = level C^2 I and no noise.
    """
    gamma, eta, tau, c = (
        ball(number(entry(data, name), name, above=0.0)) for name in ("gamma", "eta", "tau", "row_bound")
    )
    if gamma <= tau:
        return _sketch(data, 1 / (1 + gamma**2))
    case = _sketch(data, (c**2).max(ball(1)) / gamma, ((Gaussian(1 / eta), 1),))
    middle = gamma / c**2

    def silent(level: Ball) -> Ball:
        return normal_cdf((level - middle) / eta - tau)

    levels = [middle + eta * tau + eta * step for step in range(-6, 5)]
    return _reached(case, _silent(data, levels, silent), normal_cdf(-tau), _WITHOUT)


_WITHOUT = "reached by data on which no noise is added"


def _silent(data: Any, levels: list[Ball], silent: Callable[[Ball], Ball]) -> tuple[tuple[Counted, ...], ...]:
    """Pairs of X'X = level C^2 I with and without a row, on the event that no noise is added, per level.

    Its probability at the level is not smaller than with the row left out, so H >= probability H_mixing(1/level). A
    column takes a row of norm C and others up to the level: with given sizes, `dim` times that many must fit.
    """
    rows = whole(entry(data, "rows"), "rows")
    return tuple(((Share(Mixing(rows, 1 / level), silent(level)), 1),) for level in _fitting(data, levels))


def _fitting(data: Any, levels: list[Ball]) -> list[Ball]:
    """The levels above 1 that data can have: all of them, or with given sizes those whose rows are not too many."""
    records, dim = _sizes(data)
    fits = [level.mid() for level in levels if level.mid() > 1]
    if records is None or dim is None:
        return fits
    most = ball(records // dim)
    return [level for level in fits if level <= most] or ([most] if most >= 2 else [])


def _repetition(data: Any) -> Case:
    """The best of K runs, P(K = k) ~ (1 - gamma)^k/k, drawn within 2^-100 in total variation."""
    run = entry(data, "run")
    if entry(run, "sampling_rate") != 1 or entry(run, "count") != 1 or "scheme" in run:
        raise NotDescribed("a repetition describes one run, not sampled")
    case = _step(run)
    gamma = number(entry(data, "gamma"), "gamma", least=1e-4)
    if not gamma < 1:
        raise NotDescribed(f"gamma = {gamma!r} is out of range")
    relation = adjacency(data)
    if case.adjacency in (ANY, None):
        case = replace(case, adjacency=relation)
    elif case.adjacency != relation:
        raise NotDescribed(f"the repetition is about {relation!r} neighbours, its run {case.adjacency!r}")
    if case.failure or case.variation or len(case.bounds.above) != 1 or case.bounds.above[0][1] != 1:
        raise NotDescribed("the best of several runs is checked for runs of one release that never fails")
    pair = case.bounds.above[0][0]
    if not isinstance(pair, Gaussian | Laplace | Response) or (isinstance(pair, Response) and pair.delta):
        raise NotDescribed("the best of several runs is checked for gaussian, laplace and pure runs")
    named = data.get("orders", list(ORDERS))
    if not isinstance(named, list) or not named:
        raise NotDescribed("orders must be a list of numbers above 1")
    orders = tuple(number(one, "an order", above=1.0) for one in named)
    missed = exact(number(data.get("missed", 0.0), "missed", least=0.0, most=1.0))
    best = Repeated(pair, ball(gamma), orders)
    below = (((best, 1),),) if case.bounds.below == (case.bounds.above,) else ()
    runs = exact(up((1 / ball(gamma) - 1) / -ball(gamma).log()))  # E K
    off = Fraction(1, 1 << 100) + missed * runs
    return replace(case, bounds=Bounds(((best, 1),), below, case.notes), variation=off)


def _plan(data: Any) -> Case:
    """All steps independently, each as often as counted; the relations of the steps must agree."""
    steps = entry(data, "steps")
    if not isinstance(steps, list) or not steps:
        raise NotDescribed("a plan needs steps")
    cases = [_step(step) for step in steps]
    if any(isinstance(pair, Repeated) for case in cases for pair, _ in case.bounds.above):
        raise NotDescribed("the best of several runs inside a plan is not covered")
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
    only(step, ("subject", "sampling_rate", "count", "scheme", "batches"), "a step")
    count = whole(entry(step, "count"), "count")
    rate = exact(number(entry(step, "sampling_rate"), "sampling_rate", least=0.0, most=1.0))
    case = _step_subject(entry(step, "subject"))
    scheme = known(step.get("scheme", "poisson"), _SCHEMES, "the scheme of sampling")
    relation, sampled = case.adjacency, case.bounds
    if rate != 1 or scheme != "poisson":
        if relation not in (*_SCHEMES[scheme], ANY):
            raise NotDescribed(f"{scheme} sampling is not defined for {relation} neighbours")
        relation = _SCHEMES[scheme][0] if relation == ANY else relation
    batches = whole(step.get("batches", 1), "batches")
    passes = scheme in ("allocation", "shuffle")
    if (passes and rate != 1) or (batches != 1 and not passes):
        raise NotDescribed("batches go with a pass in which everybody takes part, and with nothing else")
    if relation == "zero-out" and scheme in ("poisson", "allocation") and (rate != 1 or batches != 1):
        case = replace(case, bounds=replace(case.bounds, notes=(*case.bounds.notes, _BLANKS)))
    if rate != 1:
        sampled = _sampled(case.bounds, rate, scheme == "poisson")
    if batches != 1:
        sampled = _passed(case.bounds, batches, scheme == "allocation")
        case = replace(case, failure=case.failure * batches, variation=case.variation * batches)
    bounds = Bounds(
        tuple((pair, count * times) for pair, times in sampled.above),
        tuple(tuple((pair, count * times) for pair, times in way) for way in sampled.below),
        sampled.notes,
    )
    return Case(relation, bounds, case.failure * count, case.variation * count)


def _sampled(bounds: Bounds, rate: Fraction, poisson: bool) -> Bounds:
    """One pair is sampled exactly. Of several released together the product would have to be sampled: not known.

    Samples of a fixed size, one record replaced: right of 0 both directions are at most the Poisson curve (Balle,
    Barthe and Gaboardi 2018, Theorem 9, for bases that are alike in both directions). It is reached by a query that
    is v where one record is present and 0 where it is not: its pairs are those of Poisson sampling.
    """
    if rate == 0:
        nothing: tuple[Counted, ...] = ((Response(Fraction(0)), 1),)
        return Bounds(nothing, (nothing,), bounds.notes)

    def one(items: tuple[Counted, ...], both: bool = False) -> tuple[Counted, ...]:
        if len(items) != 1 or items[0][1] != 1:
            raise NotDescribed("sampling of a release with several independent parts is not covered")
        if both and not items[0][0].symmetric:
            raise NotDescribed("samples of a fixed size are covered for releases that are alike in both directions")
        return ((Sampled(items[0][0], rate, both), 1),)

    return Bounds(one(bounds.above, not poisson), tuple(one(way) for way in bounds.below), bounds.notes)


def _passed(bounds: Bounds, batches: int, placed: bool) -> Bounds:
    """A pass of so many runs. Of a shuffle into fixed sizes nothing is proved but what holds for a known order."""
    if not placed:
        return Bounds(bounds.above, (), bounds.notes)
    if len(bounds.above) != 1 or bounds.above[0][1] != 1 or not isinstance(bounds.above[0][0], Gaussian | Laplace):
        raise NotDescribed("records placed at random are covered for Gaussian noise, and for one Laplace ratio")
    return Bounds(((Allocated(bounds.above[0][0], batches), 1),), (), bounds.notes)


def _step_subject(data: Any) -> Case:
    """A mechanism, a Gaussian loss (`least` bounds mu from below) or a guarantee that may be `attained` or not."""
    if not isinstance(data, dict):
        raise NotDescribed("a step must name its subject")
    if data.get("loss") == "gaussian":
        only(data, ("loss", "mu", "least", "adjacency"), "a gaussian loss")
        mu = number(entry(data, "mu"), "mu", least=0.0)
        least = mu if data.get("least") is None else number(data["least"], "least", least=0.0, most=mu)
        pair: Pair = Gaussian(ball(mu))
        bounds = Bounds.tight((pair, 1)) if least == mu else Bounds(((pair, 1),), (((Gaussian(ball(least)), 1),),))
    elif data.get("loss") == "bare":
        only(data, ("loss", "epsilon", "delta", "attained", "adjacency"), "a bare loss")
        epsilon = number(entry(data, "epsilon"), "epsilon", least=0.0)
        pair = Response(exact(epsilon), exact(number(entry(data, "delta"), "delta", least=0.0, most=1.0)))
        attained = data.get("attained", True)
        if not isinstance(attained, bool):
            raise NotDescribed("attained must be true or false")
        bounds = Bounds.tight((pair, 1)) if attained else Bounds(((pair, 1),), ())
    else:
        only(data, ("mechanism",), "a step's subject")
        return read_subject(entry(data, "mechanism"))
    return Case(adjacency(data) or ANY, bounds)


_STATED = ("epsilon", "delta", "recipe")  # of the subject itself: not part of the claim
_SKETCH = ("rows", "row_bound", "adjacency", "records", "dim", *_STATED)
READERS: dict[str, tuple[Callable[[Any], Case], tuple[str, ...]]] = {
    "additive": (_additive, ("law", "sensitivity", "premises", *_STATED)),
    "mixing": (_mixing, ("gamma", *_SKETCH)),
    "adaptive-mixing": (_adaptive_mixing, ("gamma", "eta", "tau", *_SKETCH)),
    "threshold-mixing": (_threshold_mixing, ("threshold", "slack", "scale", "variance", *_SKETCH)),
    "modified-gauss-mix": (_modified_gauss_mix, ("gamma", "eta", "tau", *_SKETCH)),
    "workload": (_workload, ("workload", "families", "adjacency", "least", "records", *_STATED)),
    "workload-answers": (
        _answers,
        ("workload", "law", "whole", "cells", "scales", "bits", "adjacency", "records", *_STATED),
    ),
    "selection": (
        _selection,
        ("candidates", "rate", "sensitivity", "monotone", "method", "times", "adjacency", "epsilon", "delta"),
    ),
    "keys": (_keys, ("key_epsilon", "key_delta", "keys", "adjacency", "epsilon", "delta")),
    "quantiles": (_quantiles, ("cells", "targets", "reach", "records", "adjacency", "epsilon", "delta")),
    "repetition": (_repetition, ("run", "gamma", "adjacency", "orders", "missed")),
    "plan": (_plan, ("steps", "vouched")),
}
