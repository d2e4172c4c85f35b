"""Tensor error against the number of entries, and against the decay of slice bounds.

    shapedp reproduce tensor-noise/error-by-size [--full]

Expected at (1, 1e-5): the recipes' variance grows with the number of entries, 1.38e3 to 7.23e10 times the exact one
from 100 to 1e6 entries; slice bounds k^-1.5 make exact shaped noise 13.8 times better than exact isotropic noise.
"""

from __future__ import annotations

import sys
from pathlib import Path

from shapedp.papers.register.harness import Item, Progress, Table

sys.path.insert(0, str(Path(__file__).parent))

from error_by_size import by_decay, by_size


def error_by_size(full: bool, progress: Progress) -> Table:
    """Variance per entry of a matrix query with L2 sensitivity 1."""
    totals = [100, 400, 1024, 10**4, 100489, 10**6] if full else [100, 10**4, 10**6]
    rows = []
    for done, total in enumerate(totals):
        rows += by_size([total])
        progress(done + 1, len(totals), f"{total} entries")
    names = ("mvg", "tvg", "udn", "exact")
    x = tuple(row["entries"] for row in rows)
    return Table(
        headers=("entries", *names, "tvg over exact"),
        rows=tuple((int(row["entries"]), *(row[name] for name in names), row["tvg over exact"]) for row in rows),
        curves=tuple((name, x, tuple(row[name] for row in rows)) for name in names),
        axes=("entries", "variance per entry"),
        note="every calibration here is certified; the recipes are loose",
    )


def gain_by_decay(full: bool, progress: Progress) -> Table:
    """Exact isotropic over exact shaped squared error, slice k of 64 bounded by k^-a."""
    powers = [0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0] if full else [0.0, 1.0, 1.5]
    rows = by_decay(powers)
    progress(1, 1, "slice bounds")
    pairs = tuple((row["power"], row["isotropic over shaped"]) for row in rows)
    return Table(
        headers=("decay a", "isotropic over shaped"),
        rows=pairs,
        curves=(("isotropic over shaped", tuple(a for a, _ in pairs), tuple(g for _, g in pairs)),),
        axes=("decay a of the slice bounds k^-a", "squared error ratio"),
        log=(False, True),
    )


ITEMS = (
    Item("error-by-size", "Tensor error against the number of entries, (1, 1e-5)", error_by_size),
    Item("gain-by-decay", "What slice bounds are worth, 28 x 28 x 64", gain_by_decay),
)
