"""Three pure releases of epsilon 1 were certified at (1.5, 1e-8): a tilt chosen on another grid made every term of the
convolution underflow, and nothing noticed. The wrong answer was kept, so that later questions were answered by it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import shapedp as sdp
from shapedp.accounting import BareLoss, Plan, Step, compose, fourier, pld, subsample
from shapedp.accounting.floor import Floor
from shapedp.numerics import SelfCheckError
from shapedp.numerics.arrays import Floats
from shapedp.privacy import Bracket, GaussianLoss
from shapedp.privacy.losses.base import Loss
from shapedp.privacy.losses.laplace import LaplaceLoss

ONE = LaplaceLoss(1.0, np.array([1.0]), worst=True)


def all_up(loss: LaplaceLoss | BareLoss, times: int, epsilon: float) -> float:
    """With probability p^n every loss is the largest one: delta is at least p^n (1 - e^(eps - n pure))."""
    pure = loss.pure if isinstance(loss, LaplaceLoss) else loss.pure_epsilon
    top = 0.5 if isinstance(loss, LaplaceLoss) else 1 / (1 + math.exp(-pure))
    return top**times * -math.expm1(min(epsilon - times * pure, 0.0))


def test_three_pure_releases() -> None:
    mechanism = sdp.calibrate("laplace", sdp.L1(1, dim=1), epsilon=1, delta=0)
    plan = Plan((Step(mechanism, count=3),))
    assert plan.epsilon(1e-8).upper > 2.9
    certificate = sdp.certify(Plan((Step(mechanism, count=3),)), epsilon=1.5, delta=1e-8)
    assert certificate.verdict != "certified"
    assert certificate.bracket.upper >= 0.5**3 * -math.expm1(-1.4)


@pytest.mark.parametrize("loss", [ONE, BareLoss(1.0), BareLoss(0.03), LaplaceLoss(0.2, np.array([0.2]), worst=True)])
@pytest.mark.parametrize("times", [2, 3, 17, 300])
def test_no_upper_bound_below_the_chance_that_all_losses_are_largest(loss: LaplaceLoss | BareLoss, times: int) -> None:
    pure = loss.pure if isinstance(loss, LaplaceLoss) else loss.pure_epsilon
    for share in (0.1, 0.4, 0.7, 0.95, 0.999):
        composed = compose([(loss, times)])
        epsilon = share * times * pure
        assert composed.delta(epsilon).upper >= all_up(loss, times, epsilon) * (1 - 1e-9)
    for delta in (1e-3, 1e-8, 1e-30, 1e-300):
        found = compose([(loss, times)]).epsilon(delta)
        assert found.lower <= times * pure
        assert all_up(loss, times, found.upper) <= delta * (1 + 1e-9)


QUESTIONS = (("epsilon", 1e-8), ("delta", 1.5), ("epsilon", 1e-2), ("delta", 2.7))


@pytest.mark.parametrize(
    "parts",
    [
        [(ONE, 3)],
        [(BareLoss(0.3), 4), (GaussianLoss(0.4), 3)],
        [(subsample(GaussianLoss(1.0), 0.01, adjacency="add-remove"), 50)],
    ],
)
def test_questions_do_not_change_answers(parts: list[tuple[sdp.Loss, int]]) -> None:
    def ask(loss: sdp.Loss, question: tuple[str, float]) -> Bracket:
        return getattr(loss, question[0])(question[1])

    alone = {question: ask(compose(parts, closed_forms=False), question) for question in QUESTIONS}
    for order in itertools.islice(itertools.permutations(QUESTIONS), 0, 24, 5):
        asked = compose(parts, closed_forms=False)
        for question in order:
            assert ask(asked, question) == alone[question]


def test_any_tilt_gives_valid_bounds() -> None:
    """A convolution proves itself: a tilt that is far off makes bounds loose, never wrong."""
    problem = pld.Direction([(BareLoss(1.0), 3)], [BareLoss(1.0)], reverse=False)
    lower, upper = problem._masses(2.0**-10, [(-1.0, 1.0)])
    exact = [(1.0 / (1 + math.exp(-1.0))) ** 3 * -math.expm1(e - 3.0) for e in (1.5, 2.0, 2.9)]
    for theta in (0.0, 1.0, 30.0, 700.0, 5e4, 1e9):
        for parts, top in ((lower, False), (upper, True)):
            found = fourier.convolve(parts, theta, upper=top, tail=1e-9, node_limit=2**21).delta(
                np.array([1.5, 2.0, 2.9])
            )
            assert all(f >= e * (1 - 1e-9) if top else f <= e * (1 + 1e-9) for f, e in zip(found, exact, strict=True))


def test_an_upper_bound_below_the_floor_is_an_error() -> None:
    floor = Floor(((ONE, 3),), False)
    with pytest.raises(SelfCheckError, match="Please report"):
        floor.checked(np.array([1.5]), np.array([5e-324]))
    assert floor.at(np.array([1.5]))[0] >= 0.125 * -math.expm1(-1.5) * 0.99
    assert floor.at(np.array([3.0]))[0] == 0.0


def test_rare_losses_are_bracketed_closely() -> None:
    """q = 1e-4, sigma = 0.6 gave [0.027, 0.265]; q = 1e-3, sigma = 1 gave [0.033, 0.0573]."""
    for sigma, rate, steps in ((0.6, 1e-4, 1000), (1.0, 1e-3, 100)):
        loss = compose([(subsample(GaussianLoss(1 / sigma), rate, adjacency="add-remove"), steps)])
        assert loss.epsilon(1e-6).relative_gap < 0.01


def test_what_lies_beyond_the_window_counts() -> None:
    """A narrow window leaves mass above it: the upper bound holds it all the same."""
    problem = pld.Direction([(GaussianLoss(1.0), 50)], [GaussianLoss(1.0)], reverse=False)
    upper = problem._masses(2.0**-6, [(-9.0, 9.0)])[1]
    view = fourier.convolve(upper, 0.0, upper=True, tail=1e-2, node_limit=2**21)
    assert view.above > 0
    far = view.right + 1.0
    assert view.delta(np.array([far]))[0] >= GaussianLoss(math.sqrt(50)).delta(far).lower


class _SlowTail(Loss):
    """A user's own loss: delta(e) = 0.2 e^(-1.5 e), and so P(L > t) = delta(t) - delta'(t) = 0.5 e^(-1.5 t)."""

    def profile(self, epsilon: Floats, *, reverse: bool = False) -> tuple[Floats, Floats]:
        value = 0.2 * np.exp(-1.5 * epsilon)
        return value * (1 - 2.0**-40), value * (1 + 2.0**-40) + 5e-324


def test_a_test_whose_size_underflows_shows_nothing() -> None:
    """ "Both losses exceed 185" has P = 1e-245 and Q = 1e-406. That Q is no float; taken as 0 it gave delta >= 1e-245
    at every epsilon below 700.

    Two such losses: delta(e) <= P(L1 + L2 > e) <= e^(-1.5 e) (1 + 0.375 e), by P(L > t) and its density.
    """
    composed = compose([(_SlowTail(), 2)], accuracy=0.3)
    for epsilon in (390.0, 400.0, 450.0, 600.0):
        most = (1 + 0.375 * epsilon) * math.exp(-1.5 * epsilon)
        assert composed.delta(epsilon).lower <= most
    most = (1 + 0.375 * 390.0) * math.exp(-1.5 * 390.0)
    assert composed.epsilon(most).lower <= 390.0
