"""A guarantee that is only stated shows nothing from below, also where it states a delta and is composed."""

from __future__ import annotations

import shapedp as sdp
from shapedp.accounting import BareLoss, compose


def test_a_failure_that_may_never_happen_shows_nothing() -> None:
    stated = BareLoss(1.0, 1e-3, attained=False)
    whole = compose([(stated, 2)])
    assert whole.delta(3.0).lower == 0
    assert whole.epsilon(1e-4).lower == 0
    assert whole.delta(3.0).upper >= 1 - (1 - 1e-3) ** 2
    assert sdp.certify(whole, epsilon=3.0, delta=1e-4).verdict == "undecided"


def test_where_it_is_the_mechanism_itself_it_does() -> None:
    whole = compose([(BareLoss(1.0, 1e-3), 2)])
    assert whole.delta(3.0).lower > 1e-3
    assert sdp.certify(whole, epsilon=3.0, delta=1e-4).verdict == "refuted"
