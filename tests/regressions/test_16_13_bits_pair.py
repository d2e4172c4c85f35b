"""`audit.bits` with neighbours that are no pair ended in IndexError."""

from __future__ import annotations

from typing import Any

import pytest

import shapedp as sdp
from shapedp import audit


@pytest.mark.parametrize("neighbours", ["1", [[0.0]], (), None, 3])
def test_neighbours_that_are_no_pair_are_refused(neighbours: Any) -> None:
    mechanism = sdp.calibrate("gaussian", sdp.L2(1.0, 1), epsilon=1.0, delta=1e-6)
    with pytest.raises(TypeError):
        audit.bits(mechanism, neighbours=neighbours, samples=1000)
