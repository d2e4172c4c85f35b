"""A composition built by hand took half a count, a negative mass at infinity and parts that are no losses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shapedp.accounting.composed import ComposedLoss
from shapedp.privacy import GaussianLoss, LaplaceLoss
from shapedp.privacy.losses.adjusted import AdjustedLoss
from shapedp.privacy.losses.allocation import AllocatedLoss

ONE = LaplaceLoss(1.0)


@pytest.mark.parametrize(
    "parts", [(), (ONE,), ((ONE, 0.5),), ((ONE, -3),), ((ONE, True),), ((ONE, 1, 2),), ((1.0, 2),), np.zeros((2, 2)), 3]
)
def test_parts_are_losses_with_counts(parts: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        ComposedLoss(parts)


@pytest.mark.parametrize("name", ["certain", "spoilt"])
@pytest.mark.parametrize("value", [-1e-9, 1.1, float("nan"), "0", True])
def test_masses_are_shares(name: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        ComposedLoss(((ONE, 2),), **{name: value})


@pytest.mark.parametrize("make", [AdjustedLoss, lambda base: AllocatedLoss(base, 3)])
def test_no_loss_is_made_of_something_else(make: Any) -> None:
    for base in (1.0, "laplace", None, object()):
        with pytest.raises(TypeError, match="made of losses"):
            make(base)


def test_sound_parts_are_taken() -> None:
    assert ComposedLoss(((ONE, np.int64(2)),)).parts == ((ONE, 2),)
    assert ComposedLoss(((GaussianLoss(1.0), 1),), certain=1.0).delta(1.0).upper == 1.0
