"""What the noise of a strategy is in every answer of a workload."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from typing import Any

import numpy as np

from shapedp.numerics.arrays import Floats
from shapedp.workloads.blocks import Family, Part, Strategy, moved
from shapedp.workloads.workload import Term, Workload


def cell_variances(plan: Strategy, term: Term, workload: Workload, other: Term | None = None) -> Floats:
    """The variance of each answer of a term, by its special rows: all cells along plain attributes are alike.

    With another term by the same attributes the covariances of their answers.
    """
    family = family_of(plan, term)
    total: Any = np.zeros(1)
    for mode, share in _shares(family, term, workload).items():
        one: Any = np.ones(1)
        for part in family.parts:
            rows = special_rows(term, part, workload)
            root = part.modes[min(mode, len(part.modes) - 1)].root
            turned = rows @ root
            second = turned if other is None else special_rows(other, part, workload) @ root
            one = np.multiply.outer(one, (turned * second).sum(axis=1)).reshape(-1)
        total = total + share * one
    return np.asarray(total)


def _shares(family: Family, term: Term, workload: Workload) -> dict[int, float]:
    """How much of the noise of each mode an answer of the term holds, from all blocks below it."""
    sizes, special = workload.schema.sizes, family.axes
    plain = [k for k in term.attributes if k not in special]
    shares: dict[int, float] = defaultdict(float)
    for order in range(len(plain) + 1):
        for block in itertools.combinations(plain, order):
            place = family.index.get(block)
            if place is not None:  # an attribute of one cell has no contrasts
                rest = math.prod(sizes[k] for k in plain if k not in block)
                shares[int(family.mode[place])] += moved(block, sizes)[1] / rest**2 * float(family.sigma[place]) ** 2
    return shares


def special_rows(term: Term, part: Part, workload: Workload) -> Floats:
    """What a term asks along the attributes of a part, one row per query."""
    asked = dict(term.factors)
    total: Any = np.ones((1, 1))
    for k in part.axes:
        total = np.kron(total, asked[k].matrix if k in asked else np.ones((1, workload.schema.sizes[k])))
    if part.values:
        total = np.kron(total, workload.schema.asked(term.measure)[None, :])
    return np.asarray(total)


def family_of(plan: Strategy, term: Term) -> Family:
    """The family that answers a term: the one of its special attributes, or the only one."""
    if len(plan.families) == 1:
        return plan.families[0]
    special = {axis for family in plan.families for axis in family.axes}
    asked = set(term.attributes) & special
    return next(family for family in plan.families if set(family.axes) == asked)


def weighted_error(plan: Strategy, workload: Workload) -> float:
    """sum w E |noise|^2 over all answers."""
    return sum(term.weight * total_variance(plan, term, workload) for term in workload.terms)


def total_variance(plan: Strategy, term: Term, workload: Workload) -> float:
    """The sum of the variances of a term's answers."""
    family, total = family_of(plan, term), 0.0
    alike = math.prod(factor.count for k, factor in term.factors if k not in family.axes)
    for mode, share in _shares(family, term, workload).items():
        for part in family.parts:
            if part.axes or part.values:
                root = part.modes[min(mode, len(part.modes) - 1)].root
                share *= float(((gram_of(term, part.axes, part.values, workload) @ root) * root).sum())
        total += share
    return alike * total


def gram_of(term: Term, special: tuple[int, ...], values: bool, workload: Workload) -> Floats:
    """V of the special part of a term: what is not asked is summed over."""
    asked = dict(term.factors)
    total: Any = np.ones((1, 1))
    for k in special:
        size = workload.schema.sizes[k]
        total = np.kron(total, asked[k].gram if k in asked else np.ones((size, size)))
    if not values:
        return np.asarray(total)
    row = workload.schema.asked(term.measure)
    return np.kron(total, np.outer(row, row))
