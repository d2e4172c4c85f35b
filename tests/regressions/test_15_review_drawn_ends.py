"""Selections from tables: a row cannot change every utility at once, and the lower end supposed that it can."""

import math
from fractions import Fraction

import pytest

from shapedp.mechanisms import Selection, certify
from shapedp.private.drawn import selection


@pytest.mark.parametrize(("a", "b"), [(1, 4), (9, 10)])
def test_a_quartile_under_replace_is_not_refuted(a, b):
    """An exchanged row moves b C(j) by b at most and a n not at all: losses lie in an interval of 2 b rate."""
    made = selection(3, 1.0, max(a, b - a), False, "exponential", "replace")
    most = math.tanh(float(2 * b * Fraction(*made.rate)) / 4)
    assert made.loss.delta(0.0).lower <= most < made.loss.delta(0.0).upper
    assert certify(made.loss, epsilon=0.01, delta=most).verdict != "refuted"


def test_a_stated_sensitivity_still_refutes():
    """Where the user says what one person can change, two candidates show it."""
    made = Selection(3, (1, 1), 1.0, 0.0, 1, True)
    assert certify(made.loss, epsilon=0.5, delta=1e-3).verdict == "refuted"
