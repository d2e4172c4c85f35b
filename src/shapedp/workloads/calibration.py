"""From a claim to the least-error mechanism for a workload; and every kind of noise for it, ranked by error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from shapedp.mechanisms import Advice, advise
from shapedp.noise.hull import usual_mu
from shapedp.noise.request import DoesNotApplyError, Request
from shapedp.numerics.arrays import Floats, frozen
from shapedp.numerics.checks import count, one_of, positive, probability
from shapedp.numerics.outward import BELOW_WIDER
from shapedp.privacy import NotCertifiedError
from shapedp.sensitivity import ADJACENCIES, Adjacency, Box
from shapedp.workloads.answers import AnswerMechanism, check_sizes, most_of, unit, whole_table
from shapedp.workloads.mechanism import GAP, RECORDS, WorkloadMechanism
from shapedp.workloads.reach import moved
from shapedp.workloads.strategy import strategy
from shapedp.workloads.whole import WholeNoise
from shapedp.workloads.workload import Term, Workload

NOISES = ("gaussian", "laplace", "discrete", "cells", "knorm")
LEAST = "least"
_MOST_CELLS = 1 << 24  # of a whole table
_RANK = 1 << 10  # cells of rows whose rank is computed
_WHY = {
    "gaussian": "Gaussian noise in contrasts, shaped to the hull of what a record changes, is shared by all answers",
    "laplace": "a record moves few answers, and there the sharp peak of Laplace noise pays off",
    "discrete": "a record moves few answers, and whole numbers need noise on whole numbers only",
    "cells": "a record moves one cell of the whole table, and all answers share the noise of the cells",
    "knorm": "noise on the cells is the K-norm noise of the hull of what a record changes, and all answers share it",
}


def calibrate(
    workload: Workload,
    *,
    epsilon: float,
    delta: float,
    noise: str | None = None,
    adjacency: Adjacency = "add-remove",
    error: str = "squared",
    gap: float = GAP,
    records: int = RECORDS,
) -> WorkloadMechanism | AnswerMechanism:
    """The least-error mechanism for a workload that meets (epsilon, delta).

    Parameters
    ----------
    workload: the queries.
    epsilon, delta: the claim; `delta=0.0` asks for pure differential privacy.
    noise: "gaussian", in contrasts, the best of all Gaussian noise (delta > 0); "laplace", on each answer; "discrete",
        on each answer, integers out; "cells", on the cells of the whole table, of which all answers are computed;
        "knorm", the same where it is the K-norm noise of the workload's hull; "least", the kind of least weighted error
        whose answers agree where they overlap. None: "gaussian", and where delta = 0 the kind of least error.
    adjacency: "add-remove" or "zero-out" (a record comes or goes), or "replace".
    error: "squared", the weighted sum of variances, or "max" (marginals only), the largest weighted variance.
    gap: how far from the best Gaussian noise the search may stop, relatively.
    records: a public bound on the number of records; a larger one makes rounding coarser, which the noise pays for.

    Guarantee: the mechanism returned is certified.
    """
    one_of("adjacency", adjacency, ADJACENCIES)
    one_of("error", error, ("squared", "max"))
    claim = (positive("epsilon", epsilon), probability("delta", delta), adjacency, count("records", records))
    if not workload.terms:
        raise ValueError("the workload asks nothing: add marginals, ranges, totals or rows to it")
    if noise == LEAST or (noise is None and delta == 0):
        return _least(workload, claim, error, positive("gap", gap))
    if one_of("noise", "gaussian" if noise is None else noise, NOISES) == "gaussian":
        return _planned(workload, claim, error, positive("gap", gap))
    return _whole(workload, str(noise), claim, error)


def _planned(workload: Workload, claim: tuple[Any, ...], error: str, gap: float) -> WorkloadMechanism:
    """Gaussian noise in contrasts and in the axes of the engine."""
    epsilon, delta, adjacency, records = claim
    if delta == 0:
        raise DoesNotApplyError("Gaussian noise needs delta > 0: ask for noise='laplace', 'discrete' or 'cells'")
    target = usual_mu(Request(Box([1.0]), epsilon, delta))
    exchange = adjacency == "replace" and workload.max_groups is None
    found = strategy(workload, gap=gap / 2, exchange=exchange, worst=error == "max")
    least = found.least if error == "squared" else 0.0
    made = WorkloadMechanism(workload, found.families, epsilon, delta, adjacency, least, records)
    spent = made.loss.mu
    for aim in (1 - 1e-12, 1 - 1e-10, 1 - 1e-8, BELOW_WIDER):
        sigma = [frozen(family.sigma * (spent / (target * aim))) for family in found.families]
        scaled = tuple(replace(family, sigma=one) for family, one in zip(found.families, sigma, strict=True))
        made = replace(made, families=scaled)
        if made.certificate.verdict == "certified":
            break
    made.certificate.require()
    vars(made)["proved"] = least
    return made


def agreeing(workload: Workload) -> bool:
    """Whether no answer is a sum of others, as all are cells of one table: answers with noise of their own agree."""
    plain = all(factor.shape == "cells" for term in workload.terms for _, factor in term.factors)
    return plain and len({term.attributes for term in workload.terms}) == 1


def _least(workload: Workload, claim: tuple[Any, ...], error: str, gap: float) -> WorkloadMechanism | AnswerMechanism:
    """The kind of noise of least weighted error.

    Where some answers are sums of others, noise on each answer makes them disagree: it is tried for a pure claim alone.
    """
    kinds = NOISES[1:4] if not claim[1] else NOISES[:4] if agreeing(workload) else ("gaussian", "cells")
    served, refused = _tried(workload, claim, error, kinds, gap)
    if not served:
        raise DoesNotApplyError("; ".join(dict.fromkeys(refused.values())))
    return min(served.values(), key=lambda made: made.weighted_error)


def _tried(
    workload: Workload, claim: tuple[Any, ...], error: str, noises: Sequence[str], gap: float = GAP
) -> tuple[dict[str, WorkloadMechanism | AnswerMechanism], dict[str, str]]:
    """The mechanism of every kind of noise, and why others do not apply."""
    served: dict[str, WorkloadMechanism | AnswerMechanism] = {}
    refused: dict[str, str] = {}
    for noise in noises:
        try:
            served[noise] = (
                _planned(workload, claim, error, gap) if noise == "gaussian" else _whole(workload, noise, claim, error)
            )
        except (ValueError, NotCertifiedError) as reason:
            refused[noise] = str(reason)
    return served, refused


def advice(workload: Workload, *, epsilon: float, delta: float, adjacency: Adjacency = "add-remove") -> list[Advice]:
    """Every kind of noise for a workload, ranked by weighted error; where it is small, other families on its hull."""
    one_of("adjacency", adjacency, ADJACENCIES)
    claim = (positive("epsilon", epsilon), probability("delta", delta), adjacency, RECORDS)
    served, refused = _tried(workload, claim, "squared", NOISES)
    if "knorm" in served:  # the same
        del served["cells"]
    others: list[Advice] = []
    try:
        weights = np.concatenate([np.full(math.prod(term.shape), term.weight) for term in workload.terms])
        hull = workload.hull(adjacency)
    except ValueError:
        pass
    else:
        others = advise(hull, epsilon=epsilon, delta=delta, weights=weights, exact_zeros=True)
        others = [one for one in others if one.family not in NOISES]
    rows: list[tuple[float, str, Any]] = [(made.weighted_error, noise, made) for noise, made in served.items()]
    rows += [(one.expected_error, one.family, one.mechanism) for one in others if one.mechanism is not None]
    rows.sort(key=lambda row: row[0])
    ranked: list[Advice] = []
    for cost, name, made in rows:
        ratio = cost / rows[0][0]
        reason = "least expected error" if ratio == 1 else f"{ratio:.4g} times the least expected error"
        ranked.append(Advice(name, made, cost, reason, "" if ranked else _why(rows)))
    ranked += [Advice(noise, None, math.inf, reason) for noise, reason in refused.items()]
    return ranked + [one for one in others if one.mechanism is None]


def _why(rows: list[tuple[float, str, Any]]) -> str:
    cost, name, _ = rows[0]
    text = f"{name} noise has the least expected error"
    if name in _WHY:
        text += f": {_WHY[name]}"
    if len(rows) > 1:
        text += f"; {rows[1][1]} noise costs {rows[1][0] / cost:.3g} times as much"
    return text + "."


def _whole(workload: Workload, noise: str, claim: tuple[Any, ...], error: str) -> AnswerMechanism:
    """Noise on whole numbers: "laplace", "discrete" (integers out) or "knorm" (noise on the cells)."""
    check_sizes(workload)
    cells = noise in ("cells", "knorm")
    if cells and math.prod(whole_table(workload).shape) > _MOST_CELLS:
        raise DoesNotApplyError(f"noise on the cells has a draw for every cell of the whole table: over {_MOST_CELLS}")
    if noise == "knorm":
        _cross_polytope(workload, claim[2])
    groups = (whole_table(workload),) if cells else workload.terms
    found = [_fitted(workload, groups, "laplace", noise != "laplace", claim, error)]
    if noise == "discrete" and claim[1] > 0:
        with suppress(DoesNotApplyError):  # a claim beyond what Gaussian noise is computed for
            found.append(_fitted(workload, groups, "gaussian", True, claim, error))
    best = min(found, key=lambda one: one.weighted_error)
    best.certificate.require()
    return best


def _fitted(
    workload: Workload, groups: Sequence[Term], law: str, whole: bool, claim: tuple[Any, ...], error: str
) -> AnswerMechanism:
    """Scales of the best proportions, as large as the claim asks for."""
    epsilon, delta, adjacency, records = claim
    power, cells = 1 if law == "laplace" else 2, groups is not workload.terms
    shares, reach = _best_shares(groups, workload, power, error, adjacency == "replace")
    target = epsilon if law == "laplace" else usual_mu(Request(Box([1.0]), epsilon, delta))
    rooms = [61 - (most_of(term, workload) * records).bit_length() for term in groups]
    for aim in (1 - 1e-12, 1 - 1e-10, 1 - 1e-8):
        scales = shares * (reach / (target * aim))
        pairs = zip(scales.tolist(), rooms, strict=True)
        noise = tuple(WholeNoise.above(law, scale, whole, room) for scale, room in pairs)
        made = AnswerMechanism(workload, noise, cells, epsilon, delta, adjacency, records)
        if made.certificate.verdict == "certified":
            break
    return made


def _best_shares(
    groups: Sequence[Term], workload: Workload, order: int, error: str, exchange: bool
) -> tuple[Floats, float]:
    """Proportions of the scales, and what a person moves under them.

    b^(order + 2) ~ what a record moves over what noise costs, group by group: the best where every group is at its
    largest together. Elsewhere an even share of what a record moves may be better; of both the one of less error.
    """
    costs = np.array([term.weight * unit(term, workload) ** 2 for term in groups])
    widest = np.array([moved([term], np.ones(1), workload.schema, exchange, order).high for term in groups])
    even = np.array([float(most_of(term, workload)) if term.measure else 1.0 for term in groups])
    tried = [1 / np.sqrt(costs)]
    if error != "max":
        costs *= [math.prod(term.shape) for term in groups]
        tried = [(widest / costs) ** (1 / (order + 2)), even]
    found = []
    for shares in tried:
        reach = workload.most * moved(groups, shares**-order, workload.schema, exchange, order).high ** (1 / order)
        found.append((float(costs @ np.square(shares)) * reach**2, shares, reach))
    best = min(found, key=lambda one: one[0])
    return best[1], best[2]


def _cross_polytope(workload: Workload, adjacency: Adjacency) -> None:
    """Refuses hulls of which K-norm noise cannot be drawn exactly: those that are no image of a cross-polytope."""
    table = whole_table(workload)
    if workload.max_groups is not None:
        raise DoesNotApplyError("K-norm noise is drawn for rows in one cell: ask for noise='cells' with max_groups")
    if adjacency == "replace":
        raise DoesNotApplyError("K-norm noise is drawn where a record comes or goes: no exact draw is known for pairs")
    if not any(term.attributes == table.attributes and _independent(term) for term in workload.terms):
        raise DoesNotApplyError(
            "K-norm noise is drawn where what records change is independent, that is where some table of all "
            "attributes is asked: no exact draw is known otherwise (noise='cells' is as private)"
        )


def _independent(term: Term) -> bool:
    """Whether the columns of a group are: those of every factor."""
    for _, factor in term.factors:
        if factor.shape == "rows" and (factor.size > _RANK or np.linalg.matrix_rank(factor.matrix) < factor.size):
            return False
    return True
