"""A score learned from samples, for mechanisms whose density is not known."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import optimize, special

from shapedp.audit.subjects import Score
from shapedp.numerics.arrays import Floats

_BINS, _PER_BIN = 256, 60
_DISTINCT = 2048
_ATOM = 6
_SQUARES, _PRODUCTS = 256, 12
_WORK = 4e9  # rows times columns^2 of one fit
_RIDGE = 1e-4
_WIDE = 8.0


def learn(first: Floats, second: Floats, inputs: tuple[Any, Any], classifier: Any = None) -> Score:
    """A score that is large where outputs at the first input are likelier.

    `classifier` is any object with fit(X, y) and decision_function or predict_proba.
    """
    if first.shape[1:] != second.shape[1:]:
        raise ValueError(f"outputs at the two inputs have different shapes: {first.shape[1:]}, {second.shape[1:]}")
    if classifier is not None:
        labels = np.concatenate([np.ones(len(first)), np.zeros(len(second))])
        classifier.fit(np.concatenate([first, second]), labels)
        return partial(_classified, classifier)
    if first.shape[1] == 1:
        return _table(first[:, 0], second[:, 0])
    return _logistic(first, second, _vectors(inputs, first.shape[1]))


def _table(first: Floats, second: Floats) -> Score:
    """The log ratio of counts per value or per quantile bin: near-optimal for one-dimensional outputs."""
    first, second = np.nan_to_num(first, nan=np.inf), np.nan_to_num(second, nan=np.inf)
    values, seen = np.unique(np.concatenate([first, second]), return_counts=True)
    if values.size > _DISTINCT:
        bins = min(_BINS, max(8, min(first.size, second.size) // _PER_BIN))
        both = [np.quantile(side, np.linspace(0, 1, bins)) for side in (first, second)]
        atoms = values[seen >= _ATOM][:_DISTINCT]  # values that repeat get a bin of their own
        both += [atoms, np.nextafter(atoms, np.inf)]
        values = np.unique(np.concatenate(both))
    counts = [np.bincount(np.searchsorted(values, s, side="right"), minlength=values.size + 1) for s in (first, second)]
    ratio = np.log((counts[0] + 0.5) / len(first)) - np.log((counts[1] + 0.5) / len(second))
    return partial(_looked_up, values, ratio)


def _looked_up(edges: Floats, ratios: Floats, outputs: Floats) -> Floats:
    return ratios[np.searchsorted(edges, np.nan_to_num(outputs[:, 0], nan=np.inf), side="right")]


def _classified(classifier: Any, outputs: Floats) -> Floats:
    if hasattr(classifier, "decision_function"):
        return np.ravel(classifier.decision_function(outputs))
    return np.asarray(classifier.predict_proba(outputs)[:, 1])


def _vectors(inputs: tuple[Any, Any], dim: int) -> tuple[Floats, Floats] | None:
    """The inputs as vectors where they have the outputs' shape, so that distances mean something."""
    try:
        first, second = (np.ravel(np.asarray(side, dtype=np.float64)) for side in inputs)
    except (TypeError, ValueError):
        return None
    return (first, second) if first.size == second.size == dim else None


def features(outputs: Floats, inputs: tuple[Floats, Floats] | None) -> Floats:
    """Columns a linear rule can use."""
    y = np.nan_to_num(outputs, nan=0.0, posinf=1e300, neginf=-1e300)
    dim = y.shape[1]
    columns = [y, np.abs(y)]
    if dim <= _SQUARES:
        columns.append(np.square(np.clip(y, -1e150, 1e150)))
    if dim <= _PRODUCTS:
        i, j = np.triu_indices(dim, 1)
        columns.append(y[:, i] * y[:, j])
    if inputs is not None:
        near = [y - side for side in inputs]
        l2 = [np.sqrt(np.square(d).sum(1)) for d in near]
        l1 = [np.abs(d).sum(1) for d in near]
        logs = [np.log(np.maximum(r, 1e-300)) for r in l2]
        pairs = (l2, l1, logs, [np.square(r) for r in l2])
        columns.append(np.stack([a - b for a, b in pairs] + [a for a, _ in pairs], axis=1))
    if np.isnan(outputs).any():
        columns.append(np.isnan(outputs).astype(np.float64))
    return np.concatenate(columns, axis=1)


def logistic(x: Floats, y: Floats, ridge: Floats) -> Floats:
    """Weights of a logistic regression of y (0 or 1) on the columns of x, each with its own ridge."""
    sign = 2 * y - 1

    def objective(w: Floats) -> tuple[float, Floats]:
        margin = sign * (x @ w)
        value = np.logaddexp(0.0, -margin).mean() + 0.5 * float(ridge @ np.square(w))
        return float(value), ridge * w - (sign * special.expit(-margin)) @ x / len(x)

    return np.asarray(optimize.minimize(objective, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B").x)


def _logistic(first: Floats, second: Floats, inputs: tuple[Floats, Floats] | None) -> Score:
    """Ridge logistic regression on standardised, clipped features."""
    width = features(first[:1], inputs).shape[1]
    rows = int(min(len(first), len(second), max(_WORK / width**2, 4 * width)))
    x = np.concatenate([features(first[:rows], inputs), features(second[:rows], inputs)])
    y = np.concatenate([np.ones(rows), np.zeros(rows)])
    centre = np.median(x, axis=0)
    spread = 1.4826 * np.median(np.abs(x - centre), axis=0)
    spread = np.where(spread > 0, spread, np.where(x.std(0) > 0, x.std(0), 1.0))
    design = _design(x, centre, spread)
    weights = logistic(design, y, _RIDGE * np.r_[0.0, np.ones(width)])
    return partial(_weighed, inputs, centre, spread, weights)


def _design(x: Floats, centre: Floats, spread: Floats) -> Floats:
    return np.column_stack([np.ones(len(x)), np.clip((x - centre) / spread, -_WIDE, _WIDE)])


def _weighed(inputs: Any, centre: Floats, spread: Floats, weights: Floats, outputs: Floats) -> Floats:
    return _design(features(outputs, inputs), centre, spread) @ weights
