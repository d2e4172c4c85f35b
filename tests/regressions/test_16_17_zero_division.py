"""plan(sampling_rate=0) and a Renyi ledger at epsilon 1e300 divided by zero."""

from __future__ import annotations

import pytest

import shapedp as sdp
from shapedp.cli import main


def test_a_plan_without_records() -> None:
    with pytest.raises(ValueError, match="sampling_rate must be > 0"):
        sdp.plan(epsilon=1.0, delta=1e-5, sampling_rate=0.0, steps=10)
    assert main(["plan", "--epsilon", "1", "--delta", "1e-5", "--rate", "0", "--steps", "10"]) == 2


@pytest.mark.parametrize("epsilon", [1e300, 1e17, 5e-324])
def test_a_renyi_cap_beyond_its_orders(epsilon: float) -> None:
    pytest.importorskip("sqlalchemy")
    from shapedp.ledger.filters import make_filter

    with pytest.raises(ValueError, match="epsilon"):
        make_filter(epsilon=epsilon, delta=1e-5, rule="renyi")
