"""Grids on which the atoms of a loss lie."""

from __future__ import annotations

import math

import numpy as np

from shapedp.numerics.outward import ROUNDINGS_2, WIDE
from shapedp.privacy.losses.base import Loss
from shapedp.privacy.losses.discrete import coarse_step

_FINER_LATTICE = 16  # a lattice so many times finer than the step asked for is still used
_SECTIONS = 32  # of an interval in which an atom is sought


def lattice_of(loss: Loss, table: Loss) -> float | None:
    """The spacing on which a loss has atoms: declared, or its largest value if there is an atom there."""
    if loss.lattice is not None:
        return float(loss.lattice)
    if table is not loss and _last_atom(table, WIDE) is None:
        return None
    return _last_atom(loss, ROUNDINGS_2)


def _last_atom(loss: Loss, relative: float) -> float | None:
    """The largest finite loss, if there is an atom there; what lies at infinity is seen far out."""
    low, high = 0.0, 1e4
    rest = max(float(loss.profile(np.array([high]))[1][0]) * (1 + WIDE), 1e-290)
    while high - low > relative * high:
        between = np.unique(np.linspace(low, high, _SECTIONS + 1)[1:-1])
        between = between[(low < between) & (between < high)]
        if not between.size:
            break
        held = int(np.count_nonzero(loss.profile(between)[0] > (rest if rest > 1e-290 else 0.0)))
        low, high = float(between[held - 1]) if held else low, float(between[held]) if held < between.size else high
    beside = loss.profile(np.array([high * (1 - 1e-7), high * (1 + max(1e-12, relative))]))
    return high if high < 5e3 and beside[0][0] > rest + 1e-12 and beside[1][1] <= rest else None


def aligned(step: float, lattice: float | None) -> float:
    """A step near the one asked for, on which the atoms of the lattice lie unless that takes many more nodes."""
    if lattice is None or lattice * _FINER_LATTICE < step:
        return coarse_step(step)
    return lattice / math.ceil(lattice / step) if step < lattice else lattice
