"""An interval of non-negative numbers, and nothing else."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shapedp import Bracket, GaussianLoss, LaplaceLoss


@pytest.mark.parametrize(
    ("lower", "upper"),
    [(math.nan, 1.0), (0.0, math.nan), (math.nan, math.nan), (-1e-300, 1.0), (0.5, 0.4), (math.inf, 1.0)],
)
def test_refuses_what_is_no_interval(lower: float, upper: float) -> None:
    with pytest.raises(ValueError, match="lower <= upper"):
        Bracket(lower, upper)


def test_negative_zero_is_normalised() -> None:
    bracket = Bracket(-0.0, -0.0)
    assert math.copysign(1, bracket.lower) == math.copysign(1, bracket.upper) == 1
    for loss in (LaplaceLoss(1.0), LaplaceLoss(1.0, [1.0]), GaussianLoss(0.0)):
        assert math.copysign(1, loss.delta(2.0).lower) == 1


def test_numpy_scalars_become_floats() -> None:
    bracket = Bracket(np.float32(0.25), np.float64(1))
    assert type(bracket.lower) is type(bracket.upper) is float


def test_gaps_and_membership() -> None:
    bracket = Bracket(0.25, 0.5)
    assert bracket.gap == 0.25
    assert bracket.relative_gap == 0.5
    assert 0.25 in bracket
    assert 0.5 in bracket
    assert 0.51 not in bracket
    assert math.nan not in bracket
    assert Bracket(0.0, 0.0).relative_gap == 0
    assert Bracket(math.inf, math.inf).relative_gap == 0
    assert Bracket(1.0, math.inf).relative_gap == math.inf


def test_larger_of_two() -> None:
    assert Bracket(0.1, 0.4).max(Bracket(0.2, 0.3)) == Bracket(0.2, 0.4)
