"""count = k is k copies, for every loss type; and the order of the parts does not matter."""

from __future__ import annotations

import pytest
from tests.accounting.cases import LOSSES

from shapedp.accounting import compose
from shapedp.privacy import GaussianLoss

ACCURACY = 1e-4


@pytest.mark.parametrize("name", LOSSES)
def test_count_equals_copies(name: str) -> None:
    loss = LOSSES[name]
    counted = compose([(loss, 7)], closed_forms=False, accuracy=ACCURACY)
    copies = compose([loss] * 7, closed_forms=False, accuracy=ACCURACY)
    nested = compose([(compose([loss, loss], closed_forms=False), 3), loss], closed_forms=False, accuracy=ACCURACY)
    once = compose([loss], closed_forms=False, accuracy=ACCURACY).delta(0.4)
    for other in (copies, nested):
        assert other.delta(0.4) == counted.delta(0.4)
        assert other.epsilon(1e-3) == counted.epsilon(1e-3)
    assert counted.delta(0.4).upper > once.upper  # a count that is ignored would not show otherwise


@pytest.mark.parametrize("name", LOSSES)
def test_parts_in_any_order(name: str) -> None:
    items = [(LOSSES[name], 3), (GaussianLoss(0.2), 2)]
    there = compose(items, closed_forms=False, accuracy=ACCURACY).delta(0.3)
    back = compose(items[::-1], closed_forms=False, accuracy=ACCURACY).delta(0.3)
    assert there.lower <= back.upper
    assert back.lower <= there.upper
    assert there.upper == pytest.approx(back.upper, rel=10 * ACCURACY)
