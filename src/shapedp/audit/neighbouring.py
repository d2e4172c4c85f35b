"""Pairs of neighbouring datasets that stress a query: rows taken away, and rows far outside the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.numerics.checks import count, numeric, one_of, positive, real
from shapedp.sensitivity import ADJACENCIES, Adjacency

Table = tuple[NDArray[Any], ...]


def neighbours(
    data: Any,
    *,
    adjacency: Adjacency,
    pairs: int = 8,
    outlier: float = 1e3,
    at: int | None = None,
    blank: float = 0.0,
    seed: int = 0,
) -> list[tuple[Any, Any]]:
    """Pairs (D, D') that differ in one row of `data`: an array, or a tuple of arrays with one row per person.

    Rows of D' go missing ("add-remove"), turn into zeros ("zero-out") or are exchanged ("replace"); rows with
    entries `outlier` times the largest in the data are put in, along an axis and across all, so that a clip
    that is missing or comes too late shows. Integer and boolean columns keep to values that occur in them.

    Parameters
    ----------
    data : the rows.
    adjacency : "add-remove", "zero-out" or "replace".
    pairs : how many.
    outlier : how far out the rows that are put in lie.
    at : fixes the row: -1, the last, keeps the seeded sampling of the others in step when it goes missing.
    blank : what the floats of a zeroed row become: NaN where a fit counts such a record as none (zeros may still count
        by an intercept).
    seed : of the rows that are chosen.

    Returns
    -------
    The pairs.

    Examples
    --------
    >>> import numpy as np, shapedp as sdp
    >>> pairs = sdp.audit.neighbours(np.ones((4, 2)), adjacency="add-remove", pairs=3)
    >>> [(len(data), len(other)) for data, other in pairs]
    [(4, 3), (4, 3), (4, 3)]
    """
    one_of("adjacency", adjacency, ADJACENCIES)
    single = not isinstance(data, tuple)
    table = tuple(numeric("data", part) for part in ((data,) if single else data))
    lengths = {len(part) if part.ndim else 0 for part in table}
    rows = max(lengths, default=0)
    if rows < 2 or len(lengths) > 1:
        raise ValueError("data must hold at least two rows, as many in each array of a tuple")
    if at is not None and not -rows <= at < rows:
        raise ValueError(f"at must name one of the {rows} rows, got {at}")
    size, rng, blank = positive("outlier", outlier), np.random.default_rng(seed), real("blank", blank)
    found: list[tuple[Table, Table]] = []
    for k in range(count("pairs", pairs, most=1_000_000)):
        where = int(rng.integers(rows)) if at is None else range(rows)[at]
        odd = tuple(_odd(part, k, size, rng) for part in table)
        with_odd = _put(table, where, odd)
        base = table if k % 4 == 0 else with_odd
        if adjacency == "replace":
            found.append((_put(table, where, tuple(-row for row in odd)) if k % 2 else table, with_odd))
        elif adjacency == "zero-out":
            empty = tuple(np.full_like(row, blank if row.dtype.kind == "f" else 0) for row in odd)
            found.append((base, _put(base, where, empty)))
        else:
            found.append((base, tuple(np.delete(part, where, axis=0) for part in base)))
    return [(first[0], second[0]) if single else (first, second) for first, second in found]


def _put(table: Table, at: int, row: Table) -> Table:
    copies = tuple(part.copy() for part in table)
    for part, value in zip(copies, row, strict=True):
        part[at] = value
    return copies


def _odd(part: NDArray[Any], k: int, size: float, rng: np.random.Generator) -> NDArray[Any]:
    """One row far outside the data: along an axis, across all coordinates, or along the mean row."""
    if part.dtype.kind != "f":
        return np.asarray(part.max(axis=0) if k % 2 else part.min(axis=0))
    top = size * max(float(np.abs(part).max()), 1.0)
    shape = part.shape[1:]
    if k % 3 == 0 and shape:
        row = np.zeros(shape, dtype=part.dtype)
        row.flat[int(rng.integers(row.size))] = top
        return row
    if k % 3 == 1 or not shape:
        return np.asarray(np.full(shape, top if k % 2 else -top, dtype=part.dtype))
    mean = part.mean(axis=0)
    return np.asarray((-1.0 if k % 2 else 1.0) * top * np.where(mean >= 0, 1.0, -1.0), dtype=part.dtype)
