"""How far neighbours lie apart, in units of what a mechanism declares."""

from __future__ import annotations

import math
from functools import singledispatch
from typing import Any

import numpy as np
from scipy import optimize

from shapedp.mechanisms.mixing import Sketching
from shapedp.mechanisms.selection.recursion import Quantiles, entries_of
from shapedp.numerics.arrays import Floats
from shapedp.numerics.outward import ROUNDINGS_2048
from shapedp.sensitivity import L1, L2, Blocks, Box, Hull, Sensitivity, Slices

_SOLVED = 1 - 1e-7  # what a linear programme is solved to
_ROUNDING = ROUNDINGS_2048  # of a trace: sums of products, as `numerics.gram` makes them


@singledispatch
def gauge(sensitivity: Sensitivity, difference: Floats) -> float:
    """The least t with difference in t times the set: at most 1 inside, infinite where a fixed coordinate moves.

    A new set registers its own rule.

    Parameters
    ----------
    sensitivity : the set.
    difference : of two queries.

    Returns
    -------
    t.

    Examples
    --------
    >>> import numpy as np, shapedp as sdp
    >>> sdp.audit.gauge(sdp.L2(2.0, dim=2), np.array([3.0, 4.0]))
    2.5
    """
    raise TypeError(f"no gauge is registered for the set {type(sensitivity).__name__}")


def _over(part: Floats, bound: Floats) -> Floats:
    """part/bound with 0/0 = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(part == 0, 0.0, np.divide(part, bound))


@gauge.register
def _(sensitivity: L2, difference: Floats) -> float:
    scales = np.ones(1) if sensitivity.scales is None else sensitivity.scales
    return float(np.linalg.norm(_over(np.ravel(difference), scales)) / sensitivity.radius)


@gauge.register
def _(sensitivity: L1, difference: Floats) -> float:
    return float(np.abs(difference).sum() / sensitivity.radius)


@gauge.register
def _(sensitivity: Box, difference: Floats) -> float:
    return float(_over(np.abs(np.ravel(difference)), sensitivity.profile).max())


@gauge.register
def _(sensitivity: Blocks, difference: Floats) -> float:
    norms = np.sqrt(np.add.reduceat(np.square(np.ravel(difference)), sensitivity.starts))
    return float(_over(norms, sensitivity.radii).max())


@gauge.register
def _(sensitivity: Slices, difference: Floats) -> float:
    norms = np.sqrt(np.square(difference).reshape(sensitivity.panels).sum(axis=(0, 2)))
    return float(_over(norms, sensitivity.radii).max())


@gauge.register
def _(sensitivity: Hull, difference: Floats) -> float:
    """The least sum |c_k| with sum c_k v_k = difference; of differences half of it, with sum c_k = 0. To about 1e-7."""
    rows, target = sensitivity.dense(), np.ravel(difference)
    if not target.any():
        return 0.0
    top = np.abs(rows).max()
    columns, wanted = rows.T / top, target / top
    if sensitivity.differences:
        columns, wanted = np.vstack([columns, np.ones(len(rows))]), np.append(wanted, 0.0)
    costs = np.full(2 * len(rows), 0.5 if sensitivity.differences else 1.0)
    found: Any = optimize.linprog(costs, A_eq=np.hstack([columns, -columns]), b_eq=wanted)
    return float(found.fun) * _SOLVED if found.success else math.inf


@singledispatch
def moved(mechanism: Any, first: Floats, second: Floats) -> float:
    """How far what reached a release differs between neighbours, in units of what the mechanism declares.

    A vector, or each of a batch of them (with a spend of its own), is measured by `gauge` of the sensitivity. A
    mechanism that declares otherwise registers its own rule.

    Parameters
    ----------
    mechanism : what declares how far neighbours may lie apart.
    first, second : what reached its release.

    Returns
    -------
    At most 1 if the declaration holds.

    Examples
    --------
    >>> import numpy as np, shapedp as sdp
    >>> m = sdp.calibrate("gaussian", sdp.Box([1.0, 0.5]), epsilon=1.0, delta=1e-5)
    >>> sdp.audit.moved(m, np.array([1.0, 1.0]), np.array([0.5, 0.0]))
    2.0
    """
    if not hasattr(mechanism, "sensitivity"):
        raise TypeError(f"{type(mechanism).__name__} has no sensitivity: register what it allows with audit.moved")
    difference = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    sensitivity = mechanism.sensitivity
    return max((gauge(sensitivity, row) for row in difference.reshape(-1, sensitivity.dim)), default=0.0)


@moved.register
def _(mechanism: Sketching, first: Floats, second: Floats) -> float:
    """Gram matrices differ by +-x x^T, |x| <= C, where a row is zeroed out; by x x^T - y y^T where it is replaced.

    Of the latter form are the matrices with at most one eigenvalue of either sign; |x|^2 and |y|^2 are at least their
    sizes, and no more if x and y are eigenvectors. Other eigenvalues may only be rounding.
    """
    values = np.linalg.eigvalsh(np.asarray(first) - np.asarray(second))
    if mechanism.adjacency == "replace" and values.size > 1:
        beyond, most = values[1:-1], max(-float(values[0]), float(values[-1]))
    else:
        ranked = values[np.argsort(np.abs(values))]
        beyond, most = ranked[:-1], float(np.abs(ranked[-1]))
    slack = _ROUNDING * (np.trace(first) + np.trace(second) + mechanism.row_bound**2)
    return math.inf if np.abs(beyond).max(initial=0.0) > slack else max(most - slack, 0.0) / mechanism.row_bound**2


@moved.register
def _(mechanism: Quantiles, first: Floats, second: Floats) -> float:
    """Counts by cell differ by the records that leave or enter; of an exchanged person half of them leave."""
    difference = np.asarray(first, dtype=np.int64) - np.asarray(second, dtype=np.int64)
    entered, one_way = int(np.abs(difference).sum()), abs(int(difference.sum()))
    allowed = entries_of(mechanism.adjacency, mechanism.records)
    return max(entered / allowed, one_way / mechanism.records)
