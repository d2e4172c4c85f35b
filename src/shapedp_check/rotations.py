"""Rotations of noise: matrices of integers over 2^24, their norms, and how far they move a set."""

from __future__ import annotations

from typing import Any

from flint import arb_mat

from shapedp_check.balls import Ball, ball, exact, tick
from shapedp_check.files import NotDescribed, numbers
from shapedp_check.sets import Scales, Set

_TURN = 2**24  # rotations are integers over this


def spectral(scales: Scales, rotation: Any) -> Ball:
    """|diag(1/s) R|_2 between a Rayleigh quotient and a bound that Cholesky's method proves."""
    if min(scales) == 0:
        return ball(1) / 0
    if rotation is None:
        return ball(1) / ball(min(scales))
    n = len(scales)
    rows = rotation_rows(rotation, n)
    matrix = arb_mat([[ball(rows[i][j]) / _TURN / ball(scales[i]) for j in range(n)] for i in range(n)])
    gram = matrix.transpose() * matrix
    vector = [ball(1)] * n
    for _ in range(200):
        tick()
        moved = [sum((gram[i, j] * vector[j] for j in range(n)), ball(0)).mid() for i in range(n)]
        size = sum((one * one for one in moved), ball(0)).sqrt()
        vector = [(one / size).mid() for one in moved]
    top = sum((vector[i] * gram[i, j] * vector[j] for i in range(n) for j in range(n)), ball(0))
    low = top / sum((one * one for one in vector), ball(0))
    for power in range(100, -4, -4):
        high = (low * (1 + ball(2) ** -power)).upper()
        if _positive(gram, high, n):
            return low.union(high).sqrt()
    raise NotDescribed("no bound on the norm of a rotation was found")


def rotation_rows(rotation: Any, n: int) -> list[list[int]]:
    """The rows of a rotation, integers over 2^24."""
    values = numbers(rotation, "rotation")
    if len(values) != n * n or any(value != int(value) for value in values):
        raise NotDescribed("a rotation must be a square matrix of integers")
    rows = [[int(value) for value in values[i * n : (i + 1) * n]] for i in range(n)]
    _orthogonal(rows)
    return rows


def turned_reach(scales: Scales, rows: list[list[int]], region: Set) -> Ball:
    """max |diag(1/s) R v| over the vertices of a hull or an L1 ball; a row without noise must not move at all."""
    n = len(scales)
    if region.l1 is not None:
        columns: list[Any] = [[exact(region.l1) if i == k else 0 for i in range(n)] for k in range(n)]
    else:
        columns = list(region.vertices)
    image = arb_mat(rows) * arb_mat([[ball(column[i]) for column in columns] for i in range(n)])
    pairs = [(j, k) for k in range(len(columns)) for j in range(k)] if region.differences else []
    longest = ball(0)
    for j, k in pairs or [(-1, k) for k in range(len(columns))]:
        tick()
        moved = [image[i, k] - image[i, j] if j >= 0 else image[i, k] for i in range(n)]
        if any(scale == 0 and not one.is_zero() for scale, one in zip(scales, moved, strict=True)):
            return ball(1) / 0
        terms = [(one / _TURN / ball(s)) ** 2 for one, s in zip(moved, scales, strict=True) if s]
        longest = longest.max(sum(terms, ball(0)))
    return longest.sqrt()


def _orthogonal(rows: list[list[int]]) -> None:
    """R R' differs from the identity by at most 2^-12 in every entry, in whole numbers."""
    for i, one in enumerate(rows):
        tick()
        for j, other in enumerate(rows):
            product = sum(left * right for left, right in zip(one, other, strict=True))
            if abs(product - (_TURN**2 if i == j else 0)) >= _TURN**2 >> 12:
                raise NotDescribed("a rotation must be orthogonal up to rounding")


def _positive(gram: Any, shift: Ball, n: int) -> bool:
    """Whether shift I - gram is positive definite, by elimination."""
    rows = [[(shift if i == j else ball(0)) - gram[i, j] for j in range(n)] for i in range(n)]
    for i in range(n):
        tick()
        if not rows[i][i] > 0:
            return False
        for j in range(i + 1, n):
            factor = rows[j][i] / rows[i][i]
            for k in range(i, n):
                rows[j][k] -= factor * rows[i][k]
    return True
