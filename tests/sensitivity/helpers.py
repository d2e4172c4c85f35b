"""Sensitivity sets for tests, and membership decided in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from functools import singledispatch

import numpy as np
from scipy import sparse

from shapedp.sensitivity import L1, L2, Blocks, Box, Sensitivity

ADJACENCIES = ("add-remove", "replace", "zero-out")
DIM = 5
SETS = {
    "l2": L2(0.7, DIM),
    "ellipsoid": L2(1.3, DIM, scales=[0.1, 3.0, 1.0, 0.7, 2e-3]),
    "l1": L1(0.9, DIM),
    "box": Box([0.3, 1.0, 0.0, 2.7, 1e-3]),
    "blocks": Blocks([0.3, 0.0, 1.7], [2, 1, 2]),
}
FORMS = {
    "dense": np.array,
    "fortran": np.asfortranarray,
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "csr-matrix": sparse.csr_matrix,
}


def dense(rows) -> np.ndarray:
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows)


def exact(rows) -> list[list[Fraction]]:
    """The entries as fractions."""
    return [[Fraction(float(entry)) for entry in row] for row in dense(rows)]


def total(rows: list[list[Fraction]], dim: int) -> list[Fraction]:
    """The exact sum of the rows."""
    return [sum((row[i] for row in rows), Fraction(0)) for i in range(dim)]


def minus(a: list[Fraction], b: list[Fraction]) -> list[Fraction]:
    return [x - y for x, y in zip(a, b, strict=True)]


@singledispatch
def holds(sensitivity: Sensitivity, v: list[Fraction]) -> bool:
    """Whether v lies in the set, exactly."""
    raise NotImplementedError


@holds.register
def _(sensitivity: L2, v: list[Fraction]) -> bool:
    scales = [1.0] * sensitivity.dim if sensitivity.scales is None else sensitivity.scales.tolist()
    return sum((x / Fraction(s)) ** 2 for x, s in zip(v, scales, strict=True)) <= Fraction(sensitivity.radius) ** 2


@holds.register
def _(sensitivity: L1, v: list[Fraction]) -> bool:
    return sum(abs(x) for x in v) <= Fraction(sensitivity.radius)


@holds.register
def _(sensitivity: Box, v: list[Fraction]) -> bool:
    return all(abs(x) <= Fraction(b) for x, b in zip(v, sensitivity.profile.tolist(), strict=True))


@holds.register
def _(sensitivity: Blocks, v: list[Fraction]) -> bool:
    ends = np.cumsum(sensitivity.sizes)
    return all(
        sum(x * x for x in v[end - size : end]) <= Fraction(radius) ** 2
        for radius, size, end in zip(sensitivity.radii.tolist(), sensitivity.sizes, ends, strict=True)
    )


def bounds(sensitivity: Sensitivity) -> np.ndarray:
    """The largest |v_i| in the set, per coordinate."""
    unit = np.full(sensitivity.dim, np.inf)
    out = np.empty(sensitivity.dim)
    for i in range(sensitivity.dim):
        scales = unit.copy()
        scales[i] = 1.0
        out[i] = sensitivity.l2_reach(scales)[1]
    return out
