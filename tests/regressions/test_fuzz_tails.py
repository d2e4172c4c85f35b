"""A NaN, or a number outside the stated domain, came back from the public tails as NaN."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shapedp import numerics

ONE = (
    numerics.normal_log_density,
    numerics.normal_log_tail,
    numerics.mills,
    numerics.laplace_log_tail,
    numerics.log1mexp,
)


@pytest.mark.parametrize("function", ONE)
@pytest.mark.parametrize("x", [math.nan, [-1.0, math.nan], np.ma.array([-1.0, -2.0], mask=[0, 1])])
def test_what_is_no_number_is_refused(function: object, x: object) -> None:
    with pytest.raises(ValueError, match="x must"):
        function(x)  # type: ignore[operator]


@pytest.mark.parametrize("x", [1.0, [-1.0, 5e-324], math.inf])
def test_log1mexp_is_refused_above_zero(x: object) -> None:
    with pytest.raises(ValueError, match="at most 0"):
        numerics.log1mexp(x)


@pytest.mark.parametrize(
    ("larger", "smaller"), [(0.0, 1.0), (math.inf, math.inf), (math.nan, 0.0), (1.0, math.nan), ([1.0, 0.0], 0.5)]
)
def test_log_difference_is_refused_outside_its_domain(larger: object, smaller: object) -> None:
    with pytest.raises(ValueError, match=r"larger >= smaller|must hold numbers"):
        numerics.log_difference(larger, smaller)


def test_the_ends_of_the_domain_answer() -> None:
    assert numerics.log_difference(math.inf, 0.0) == math.inf
    assert numerics.normal_log_tail(-math.inf) == 0.0
    assert numerics.normal_log_density(math.inf) == -math.inf
