"""The best noise for a workload: residual blocks along plain attributes, one engine along all others.

Along an attribute of which only whole tables are asked, the counts are turned into their sum and n - 1 contrasts. For
a set B of such attributes the block of B holds the coefficients with contrasts exactly along B: m_B = prod (n_i - 1)
numbers, of which a record moves a vector of squared norm p_B = prod (1 - 1/n_i). Along the other attributes and the
measures (the special ones) a block keeps all its cells, a vector s of which a record moves. With covariance
X_B^-1 in block B the error is sum m_B tr(V_B X_B^-1), the privacy max over s of sum p_B s'X_B s. For weights lam on
the s and S = sum lam s s', t = sum sqrt(m_B p_B) tr (S^(1/2) V_B S^(1/2))^(1/2) gives the lower bound t^2.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from shapedp.noise.request import DoesNotApplyError
from shapedp.noise.rotation import Mode
from shapedp.numerics.arrays import Floats, frozen
from shapedp.numerics.outward import BELOW_512, ROUNDINGS_64
from shapedp.numerics.sums import sum_bounds
from shapedp.workloads.blocks import Block, Family, Part, Strategy, moved
from shapedp.workloads.engine import FLOOR, ROUNDS, STEEPEST, best_for_pairs, best_precisions, mode_of
from shapedp.workloads.schema import Schema
from shapedp.workloads.spent import mu_bounds
from shapedp.workloads.variances import cell_variances, gram_of, special_rows, total_variance, weighted_error
from shapedp.workloads.workload import Term, Workload

JOINT = 2048  # cells of all special attributes together, up to which the engine serves them at once
_ALL = 512  # cells of all attributes together, up to which exchanged records are planned pair by pair
_SHARED = 1 - 1e-12  # blocks share a mode where 13 digits of their weights agree
_MOST_ROWS = 1 << 24  # entries of all rows that are laid out for a lower bound


def special_axes(workload: Workload) -> tuple[int, ...]:
    """The attributes along which something else than whole tables is asked."""
    return tuple(sorted({k for term in workload.terms for k, f in term.factors if f.shape != "cells"}))


def strategy(workload: Workload, *, gap: float, exchange: bool, worst: bool = False) -> Strategy:
    """The strategy of least error; `exchange` where records are replaced, `worst` for the largest variance."""
    if not workload.terms:
        raise ValueError("the workload asks nothing: add marginals, ranges, totals or rows to it")
    special = special_axes(workload)
    values = any(term.measure for term in workload.terms)
    joint = math.prod(workload.schema.sizes[k] for k in special) * (1 + values * len(workload.schema.measures))
    if worst:
        if special or values:
            raise DoesNotApplyError("error='max' is known for marginals only: use a Hull for other workloads")
        return _largest(workload, gap)
    if joint <= JOINT:
        made = _together(workload, workload.terms, special, values, gap, exchange)
        used = tuple(sorted({k for term in workload.terms for k in term.attributes}))
        cells = math.prod(workload.schema.sizes[k] for k in used) * (1 + values * len(workload.schema.measures))
        if exchange and used != special and (special or values) and cells <= _ALL:
            return _better(workload, made, _together(workload, workload.terms, used, values, gap, exchange))
        return made
    groups: dict[tuple[int, ...], list[Term]] = defaultdict(list)
    for term in workload.terms:
        groups[tuple(k for k in term.attributes if k in special)].append(term)
    split: list[tuple[Strategy, Sequence[Term]]] = []
    for axes, terms in groups.items():
        here = values and any(term.measure for term in terms)
        size = math.prod(workload.schema.sizes[k] for k in axes) * (1 + here * len(workload.schema.measures))
        if size <= JOINT:
            split.append((_together(workload, terms, axes, here, gap, exchange), terms))
        elif here:
            raise DoesNotApplyError("measures along ordered attributes of so many cells are not planned: ask for less")
        else:
            split.append((_product(workload, terms, axes, gap), terms))
    return _shared(split, workload)


def _better(workload: Workload, one: Strategy, other: Strategy) -> Strategy:
    """Of two strategies the one of less error at the same mu under exchange; both lower bounds hold."""
    costs = [weighted_error(s, workload) * mu_bounds(s.families, workload.schema, True)[1] ** 2 for s in (one, other)]
    best = one if costs[0] <= costs[1] else other
    return Strategy(best.families, max(one.least, other.least))


def _shared(split: list[tuple[Strategy, Sequence[Term]]], workload: Workload) -> Strategy:
    """Families that share the budget: a family of error E gets the share sqrt(E)/sum sqrt(E) of mu^2.

    The lower bound is the largest of any of them: no noise answers all with less error than some.
    """
    errors = [sum(t.weight * total_variance(one, t, workload) for t in terms) for one, terms in split]
    total = sum(map(math.sqrt, errors))
    families = []
    for (one, _), error in zip(split, errors, strict=True):
        times = math.sqrt(total / math.sqrt(error))
        families += [Family(f.parts, f.blocks, f.sigma * times, f.mode) for f in one.families]
    return Strategy(tuple(families), max(one.least for one, _ in split))


def _blocks(terms: Sequence[Term], special: tuple[int, ...], schema: Schema) -> dict[Block, dict[int, float]]:
    """c_B of every block, by the number of a term's special part: sum over A of w_A prod_{A without B} 1/n_i.

    A weight is that of the answer in the unit of its measure.
    """
    sizes = schema.sizes
    found: dict[Block, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    marks: dict[object, int] = {}
    for term in terms:
        plain = [k for k in term.attributes if k not in special]
        mark = marks.setdefault(_signature(term, special), len(marks))
        for order in range(len(plain) + 1):
            for block in itertools.combinations(plain, order):
                rest = math.prod(sizes[k] for k in plain) / math.prod(sizes[k] for k in block)
                found[block][mark] += term.weight * _unit(term, schema) ** 2 / rest
    return found


def _sorted(shares: Iterable[Block], sizes: Sequence[int]) -> tuple[Block, ...]:
    """The blocks that hold coefficients, small ones first: an attribute of one cell has no contrasts."""
    found = (block for block in shares if all(sizes[k] > 1 for k in block))
    return tuple(sorted(found, key=lambda block: (len(block), block)))


def _unit(term: Term, schema: Schema) -> float:
    return schema.measures[term.measure - 1].unit if term.measure else 1.0


def _signature(term: Term, special: tuple[int, ...]) -> object:
    return (term.measure, tuple((k, factor.key) for k, factor in term.factors if k in special))


def _together(
    workload: Workload, terms: Sequence[Term], special: tuple[int, ...], values: bool, gap: float, exchange: bool
) -> Strategy:
    """All special attributes in one part."""
    sizes = workload.schema.sizes
    shares = _blocks(terms, special, workload.schema)
    blocks = _sorted(shares, sizes)
    both = np.array([moved(block, sizes) for block in blocks])
    if not special and not values:
        weights = np.array([shares[block][0] for block in blocks])
        if exchange:
            return _exchanged(blocks, both, weights, sizes, gap)
        return Strategy((_even(blocks, both, weights),), _least_even(both, weights))
    unique: dict[object, Term] = {}
    for term in terms:
        unique.setdefault(_signature(term, special), term)
    asked = list(unique.values())
    grams = [gram_of(term, special, values, workload) / _unit(term, workload.schema) ** 2 for term in asked]
    classes: dict[tuple[tuple[int, float], ...], int] = {}
    mode, factor = np.zeros(len(blocks), dtype=np.int64), np.zeros(len(blocks))
    for place, block in enumerate(blocks):
        share = shares[block]
        factor[place] = max(share.values())
        key = tuple(sorted((mark, float(f"{part / factor[place]:.13g}")) for mark, part in share.items()))
        mode[place] = classes.setdefault(key, len(classes))
    shapes = [sum((part * grams[mark] for mark, part in key), np.zeros_like(grams[0])) for key in classes]
    kappa = np.sqrt(both[:, 0] * both[:, 1] * factor)
    budgets: Floats = np.bincount(mode, weights=kappa, minlength=len(shapes)).astype(np.float64)
    corners = workload.schema.corners() * workload.schema.units() if values else np.ones((1, 1))
    if exchange and blocks == ((),):
        precisions, least = best_for_pairs(shapes[0], corners, gap)
        least, t = least * float(factor[0]), math.sqrt(float(factor[0]))
    else:
        rows = [_stacked(workload, [(asked[mark], share) for mark, share in key], special, values) for key in classes]
        precisions, t, least = best_precisions(shapes, budgets, corners, gap, rows)
    part = Part(special, values, tuple(mode_of(one, np.abs(corners).max(axis=0)) for one in precisions))
    sigma = np.sqrt(both[:, 1] * t / kappa)
    return Strategy((Family((part,), blocks, sigma, mode),), least * _SHARED)


def _stacked(
    workload: Workload, asked: list[tuple[Term, float]], special: tuple[int, ...], values: bool
) -> Floats | None:
    """A matrix F with F'F = V, row by row as asked; None where it would be too large."""
    sizes = [math.prod(dict(term.factors)[k].count for k in special if k in dict(term.factors)) for term, _ in asked]
    wide = math.prod(workload.schema.sizes[k] for k in special) * (1 + values * len(workload.schema.measures))
    if sum(sizes) * wide > _MOST_ROWS:
        return None
    whole = Part(special, values, ())
    schema = workload.schema
    parts = [special_rows(term, whole, workload) / _unit(term, schema) * math.sqrt(share) for term, share in asked]
    return np.vstack(parts)


def _even(blocks: tuple[Block, ...], both: Floats, weights: Floats) -> Family:
    """sigma_B^2 = t sqrt(p_B/(m_B v_B)), t = sum sqrt(m_B p_B v_B).

    Reference: Xiao et al. 2023 (ResidualPlanner) for the optimum, by another road.
    """
    t = float(np.sqrt(both[:, 0] * both[:, 1] * weights).sum())
    sigma = np.sqrt(t * np.sqrt(both[:, 1] / (both[:, 0] * weights)))
    return Family((_trivial(),), blocks, sigma, np.zeros(len(blocks), dtype=np.int64))


def _least_even(both: Floats, weights: Floats) -> float:
    low = sum_bounds(np.sqrt(both[:, 0] * both[:, 1] * weights), ROUNDINGS_64)[0]
    return low * low * BELOW_512


def _trivial() -> Part:
    return Part((), False, (Mode(frozen(np.ones(1))),))


def _exchanged(blocks: tuple[Block, ...], both: Floats, weights: Floats, sizes: Sequence[int], gap: float) -> Strategy:
    """Replaced records: the worst pattern of agreement decides, and the scales of the blocks are best for it."""
    table = patterns(blocks, sizes)
    lam, floor = np.full(len(table), 1 / len(table)), FLOOR * gap / len(table)
    price, power, best = both[:, 0] * weights, 1.0, -math.inf
    for _ in range(ROUNDS):
        costs = lam @ table
        t = float(np.sqrt(price * costs).sum())
        forms = table @ np.sqrt(price / costs) / t
        power = min(power * 1.3, STEEPEST) if t >= best else max(power / 4, 1.0)
        best = max(best, t)
        if forms.max() <= 1 + gap:
            break
        lam = np.maximum(lam * forms**power, floor)
        lam /= lam.sum()
    family = _even(blocks, np.stack([both[:, 0], costs], axis=1), weights)
    low = sum_bounds(np.sqrt(price * costs), ROUNDINGS_64 * len(lam))[0] ** 2 / sum_bounds(lam)[1]
    return Strategy((family,), low * BELOW_512)


def patterns(blocks: tuple[Block, ...], sizes: Sequence[int]) -> Floats:
    """The squared norm of a difference in every block, by pattern: which attributes agree; and a record that leaves."""
    used = sorted({k for block in blocks for k in block})
    if len(used) > 12:
        used = []
    rows = [[moved(block, sizes)[1] for block in blocks]]
    for agree in itertools.product((True, False), repeat=len(used)):
        same = dict(zip(used, agree, strict=True))
        row = []
        for block in blocks:
            norm = moved(block, sizes)[1]
            if not used:
                sign = -1 / (min((sizes[k] for k in block), default=math.inf) - 1)
                row.append(2 * norm * (1 - min(sign, 0.0)) if block else 0.0)
                continue
            cross = math.prod((sizes[k] - 1) / sizes[k] if same[k] else -1 / sizes[k] for k in block)
            row.append(2 * (norm - cross))
        rows.append(row)
    return np.array(rows)


def _product(workload: Workload, terms: Sequence[Term], axes: tuple[int, ...], gap: float) -> Strategy:
    """One mode per special attribute: the best of each alone, so the best of all where the queries are a product."""
    sizes = workload.schema.sizes
    parts, traces, bound = [], [], 1.0
    for axis in axes:
        if sizes[axis] > 4 * JOINT:
            raise DoesNotApplyError(f"an ordered attribute of {sizes[axis]} cells is beyond what is planned")
        grams = [dict(term.factors)[axis].gram for term in terms]
        shape = sum(grams, np.zeros_like(grams[0]))
        rows = np.vstack([dict(term.factors)[axis].matrix for term in terms])
        precisions, t, least = best_precisions([shape], np.ones(1), np.ones((1, 1)), gap / len(axes), [rows])
        mode = mode_of(precisions[0] / t, np.ones(1))
        parts.append(Part((axis,), False, (mode,)))
        covariance = mode.root @ mode.root.T
        traces.append([float((gram * covariance).sum()) for gram in grams])
        bound *= least / len(terms) if len(terms) > 1 else least
    shares = _blocks(terms, axes, workload.schema)
    blocks = _sorted(shares, sizes)
    both = np.array([moved(block, sizes) for block in blocks])
    marks: dict[object, int] = {}
    cost = [0.0] * len(terms)
    for place, term in enumerate(terms):
        cost[marks.setdefault(_signature(term, axes), len(marks))] = math.prod(trace[place] for trace in traces)
    weights = np.array([sum(part * cost[mark] for mark, part in shares[block].items()) for block in blocks])
    family = _even(blocks, both, weights)
    least = 0.0
    if len(terms) == 1:
        plain = np.array([shares[block][0] for block in blocks])
        least = _least_even(both, plain) * bound * BELOW_512
    return Strategy((Family(tuple(parts), blocks, family.sigma, family.mode),), least)


def _largest(workload: Workload, gap: float) -> Strategy:
    """The least largest weighted variance of a cell of any marginal: weights on the marginals, by a fixed point."""
    terms, _sizes = workload.terms, workload.schema.sizes
    share, power = np.full(len(terms), 1 / len(terms)), 1.0
    cells = np.array([math.prod(term.shape) for term in terms], dtype=np.float64)
    before, kept = -math.inf, share
    for _ in range(ROUNDS):
        asked = [
            Term(term.name, term.factors, 0, term.weight * part / number)
            for term, part, number in zip(terms, share, cells, strict=True)
        ]
        found = _together(workload, asked, (), False, gap, False)
        if found.least < before and power > 1:
            power, share, before = max(power / 4, 1.0), kept, -math.inf
            continue
        before, kept = found.least, share
        variances = np.array([cell_variances(found, term, workload)[0] * term.weight for term in terms])
        if variances.max() <= found.least * (1 + gap):
            break
        share = np.maximum(share * (variances / found.least) ** power, 1e-6 / len(terms))
        share /= share.sum()
        power = min(1.2 * power, 8.0)
    return Strategy(found.families, found.least / sum_bounds(kept)[1])
