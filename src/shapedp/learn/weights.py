"""Sample weights: records scaled so that a weighted fit is a plain one, within the same bounds."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from scipy import sparse

from shapedp.boundary.arrays import floats
from shapedp.boundary.refusals import refusal
from shapedp.learn.base import checked_rows
from shapedp.learn.moments import Bounds
from shapedp.numerics.arrays import Floats
from shapedp.numerics.checks import positive
from shapedp.tables.blocks import InMemory, same_length, target_of


def weight_bound(given: Any) -> float:
    """The declared bound on weights, checked."""
    if given is None:
        raise ValueError(refusal("learn", "weights-unbounded"))
    return positive("weight_bound", given)


def checked_in_memory(estimator: Any, x: Any, *, weighted: bool) -> Floats:
    """Rows of numbers; refused by type where they are not dense and in memory, as weights or several targets ask."""
    first = x[0] if isinstance(x, list | tuple) and x else x
    stream = hasattr(x, "as_table") or (hasattr(x, "__arrow_c_stream__") and not hasattr(x, "columns"))
    if stream or sparse.issparse(x) or isinstance(first, str | os.PathLike):
        kind = type(x).__name__
        if weighted:
            raise TypeError(refusal("learn", "weights-in-memory", kind=kind))
        raise TypeError(refusal("learn", "targets-in-memory", kind=kind))
    return np.asarray(checked_rows(estimator, x), dtype=np.float64)


def weighted(rows: Floats, y: Any, weights: Any, bound: float, bounds: Bounds) -> InMemory:
    """The records [x, c, y] within their bounds, times the square root of weight/bound.

    Guarantee: a row follows from its record and its weight alone; it is within `bounds.design` and `bounds.target`,
    since the factor is at most 1, and `moments` clips it to them again. A negative weight, or one that is no number,
    makes the row NaN, which counts as none.
    """
    target = target_of(y, len(rows))
    factor = factors(weights, len(rows), bound)
    with np.errstate(all="ignore"):
        finite = np.isfinite(rows).all(axis=1) & np.isfinite(target)
        y_within = np.where(finite, np.clip(target, -bounds.target, bounds.target) * factor, np.nan)
    return InMemory(scaled(rows, bounds, factor), y_within)


def factors(weights: Any, records: int, bound: float) -> Floats:
    """sqrt(weight/bound) of every record, at most 1; NaN where a weight is negative or no number."""
    given = floats(weights)
    if given.ndim != 1:
        raise ValueError(f"sample_weight must be one number per record, got shape {given.shape}")
    same_length(records, len(given))
    with np.errstate(all="ignore"):
        factor = np.sqrt(np.clip(given, 0.0, bound) / bound)
        return np.where((given >= 0) & np.isfinite(given), factor, np.nan)


def scaled(rows: Floats, bounds: Bounds, factor: Floats) -> Floats:
    """[x, c] times the factor of each record, with x pulled within its bound."""
    with np.errstate(all="ignore"):
        largest = np.abs(rows).max(axis=1, initial=np.finfo(float).tiny)
        unit = np.divide(rows, largest[:, None], order="C")  # numpy adds along rows pairwise, not one by one
        unit *= (np.minimum(largest, bounds.feature / np.linalg.norm(unit, axis=1)) * factor)[:, None]
        beside = [] if not bounds.constant else [bounds.constant * factor[:, None]]
        return np.concatenate([unit, *beside], axis=1)
