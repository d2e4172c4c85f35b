"""Monotone searches return a point at which the condition was seen to hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shapedp.numerics import SearchError, falling_root, first_true, first_true_near, last_true, last_true_near

numbers = st.floats(-1e12, 1e12)


class Watched:
    """A condition that remembers where it held."""

    def __init__(self, condition: object) -> None:
        self.condition, self.held, self.calls = condition, set(), 0

    def __call__(self, x: float) -> bool:
        self.calls += 1
        answer = bool(self.condition(x))  # type: ignore[operator]
        if answer:
            self.held.add(x)
        return answer


@settings(deadline=None, max_examples=300)
@given(numbers, numbers, numbers)
def test_thresholds_are_met_from_the_right_side(root: float, a: float, b: float) -> None:
    low, high = min(a, b, root), max(a, b, root)
    below, above = Watched(lambda x: x <= root), Watched(lambda x: x >= root)
    last, first = last_true(below, low, high), first_true(above, low, high)
    assert last in below.held
    assert first in above.held
    assert last <= root <= first
    tolerance = 2.0**-49 * max(abs(root), abs(last), abs(first)) + 1e-320
    assert root - last <= tolerance
    assert first - root <= tolerance


@pytest.mark.parametrize("root", [5e-324, 1e-300, 1e-17, 1.0, 1e300])
def test_roots_of_every_magnitude(root: float) -> None:
    assert last_true(lambda x: x <= root, 0.0, 1e308) == pytest.approx(root, rel=1e-14)
    assert first_true(lambda x: x >= root, 0.0, 1e308) == pytest.approx(root, rel=1e-14)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30), st.integers(0, 2**32 - 1))
def test_conditions_that_are_not_monotone_still_return_a_true_point(cuts: list[float], salt: int) -> None:
    """Noise around the root, as rounding makes it."""
    condition = Watched(lambda x: sum(x > cut for cut in cuts) % 2 == 0 or hash((x, salt)) % 3 == 0 or x in (0.0,))
    assert last_true(condition, 0.0, 1.0) in condition.held
    flipped = Watched(lambda x: x == 1.0 or hash((x, salt)) % 2 == 0)
    assert first_true(flipped, 0.0, 1.0) in flipped.held


def test_steps_and_plateaus() -> None:
    stairs = lambda x: math.floor(x * 8) / 8  # noqa: E731
    assert last_true(lambda x: stairs(x) <= 0.5, 0.0, 1.0) == pytest.approx(0.625, rel=1e-14)
    assert last_true(lambda x: stairs(x) <= 0.5, 0.0, 1.0) < 0.625


def test_ends() -> None:
    assert last_true(lambda _: True, 1.0, 2.0) == 2.0
    assert first_true(lambda _: True, 1.0, 2.0) == 1.0
    assert last_true(lambda x: x == 1.0, 1.0, 2.0) == 1.0
    with pytest.raises(SearchError, match="lower end"):
        last_true(lambda _: False, 1.0, 2.0)
    with pytest.raises(SearchError, match="upper end"):
        first_true(lambda _: False, 1.0, 2.0)


def test_nan_comparisons_count_as_false() -> None:
    """A function that breaks down beyond 1 is not trusted there."""
    value = lambda x: x if x <= 1 else math.nan  # noqa: E731
    assert last_true(lambda x: value(x) <= 5, 0.0, 100.0) == pytest.approx(1.0, rel=1e-14)
    assert last_true(lambda x: value(x) <= 5, 0.0, 100.0) <= 1.0


def test_searches_are_short() -> None:
    for root in np.random.default_rng(1).uniform(1e-9, 1e6, 50).tolist():
        watched = Watched(lambda x, root=root: x <= root)
        last_true(watched, 1e-12, 1e9)
        assert watched.calls < 75


@pytest.mark.parametrize("slip", [0.0, 2.0**-52, 1e-12, 1e-6, 0.2])
def test_near_a_guess(slip: float) -> None:
    condition = Watched(lambda x: x <= 3.0)
    found = last_true_near(condition, 3.0 * (1 + slip))
    assert found in condition.held
    assert found >= 3.0 * (1 - 4 * slip - 2.0**-46)
    with pytest.raises(SearchError, match="nowhere near"):
        last_true_near(lambda _: False, 3.0)


@pytest.mark.parametrize("root", [1e-12, 0.3, 1.0, 7.5, 9e4])
def test_a_falling_function_is_followed_to_its_root(root: float) -> None:
    asked = []

    def log_value(x: float) -> float:
        asked.append(x)
        return -((x / root) ** 0.7)

    guess = falling_root(log_value, -1.0, 1e6)
    assert guess == pytest.approx(root, rel=1e-12)
    assert len(asked) < 60


def test_a_jump_and_a_plateau() -> None:
    assert falling_root(lambda x: 0.0 if x < 2.5 else -math.inf, -1.0, 1e6) == pytest.approx(2.5, rel=1e-12)
    assert falling_root(lambda x: 0.0, -1.0, 1e6) == 1e6
    assert falling_root(lambda x: -2.0, -1.0, 1e6) == 0.0


def test_the_point_near_a_guess_was_seen_to_hold() -> None:
    for edge in (1.0, 1.0 + 1e-9, 1.5):
        seen = []

        def holds(x: float, edge: float = edge, seen: list[float] = seen) -> bool:
            seen.append(x)
            return x >= edge

        found = first_true_near(holds, 1.0, 10.0)
        assert found in seen
        assert edge <= found <= 1 + 4 * (edge - 1) + 1e-12
    with pytest.raises(SearchError):
        first_true_near(lambda x: False, 1.0, 10.0)
    assert first_true_near(lambda x: x >= 1e-290, 0.0, 10.0) <= 4e-290
