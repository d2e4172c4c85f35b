"""Losses with slow tails or mass at infinity compose to narrow brackets. The whole grid: experiments/trust."""

from __future__ import annotations

import itertools
import json
import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments" / "trust"))

from product_compositions import Cell, agrees, good

import shapedp as sdp
from shapedp.accounting import compose, subsample
from shapedp.accounting.plan import Plan, Step
from shapedp.noise import radial
from shapedp.privacy.losses import RadialLoss

CELLS = [Cell(14, 10, 1.0), Cell(100, 100, 0.01), Cell(10**4, 2, 0.01), Cell(10**6, 100, 0.01), Cell(10**6, 2, 1.0)]


@pytest.mark.parametrize("cell", CELLS, ids=str)
def test_the_published_calibration_composes_to_a_narrow_bracket(cell: Cell) -> None:
    loss = cell.loss()
    for epsilon in cell.epsilons:
        assert good(loss.delta(epsilon), 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("cell", [Cell(3, 2, 1.0), Cell(3, 10, 0.01), Cell(14, 2, 0.01), Cell(100, 10, 1.0)], ids=str)
def test_more_of_the_grid(cell: Cell) -> None:
    for epsilon in cell.epsilons:
        assert good(cell.loss().delta(epsilon), 0.0)


def test_epsilon_of_a_slow_tail_is_bracketed() -> None:
    found = Cell(10**4, 2, 0.01).loss().epsilon(1e-2)
    assert found.lower > 1
    assert found.relative_gap < 0.01


@pytest.mark.parametrize(("cell", "epsilon"), [(Cell(10**4, 10, 0.01), 0.3), (Cell(10**4, 2, 1.0), 9.5)], ids=str)
def test_draws_with_exact_likelihood_ratios_agree(cell: Cell, epsilon: float) -> None:
    """False-alarm rate: 1e-6 for each interval. A loss whose noise is 10% smaller is rejected."""
    met, said = agrees(cell, epsilon, 200_000)
    assert met, said
    base = RadialLoss(cell.dim, 1.0, 2.0, 1 / (0.9 * cell.sigma * math.sqrt(2)), adjacency="add-remove")
    smaller = compose([(base if cell.rate == 1 else subsample(base, cell.rate), cell.times)]).delta(epsilon)
    assert smaller.lower > cell.drawn(epsilon, 200_000, back=False, seed=1)[1]


@dataclass(frozen=True)
class Pairs(sdp.Loss):
    """A user's own loss: any two laws on a few outcomes, some of which only one of them has."""

    p: tuple[Fraction, ...]
    q: tuple[Fraction, ...]
    symmetric = False

    def profile(self, epsilon, *, reverse=False):
        first, second = (
            np.array(side, dtype=np.float64) for side in ((self.q, self.p) if reverse else (self.p, self.q))
        )
        with np.errstate(over="ignore", invalid="ignore"):
            gap = first - np.where(second > 0, np.exp(epsilon)[..., None] * second, 0.0)
        held = gap > -(2.0**-50) * first  # rounding counts where a term is not lost
        value, slack = np.maximum(gap, 0.0).sum(axis=-1), 2.0**-48 * np.where(held, first, 0.0).sum(axis=-1)
        return np.maximum(value - slack, 0.0), np.minimum(value + slack, 1.0)


def _laws(rng: np.random.Generator) -> tuple[tuple[Fraction, ...], ...]:
    sides = []
    for lone in (0, 1):
        weights = [int(w) for w in rng.integers(1, 1000, 5)]
        weights[lone] = 0  # what only the other law has: infinitely telling
        weights[1 - lone] = int(rng.integers(1, 300)) if rng.random() < 0.5 else 1
        sides.append(tuple(Fraction(w, sum(weights)) for w in weights))
    return tuple(sides)


def _exact(p, q, times: int, epsilon: float) -> float:
    k = Fraction(math.exp(epsilon))
    total = Fraction(0)
    for outcome in itertools.product(range(len(p)), repeat=times):
        total += max(math.prod(p[i] for i in outcome) - k * math.prod(q[i] for i in outcome), 0)
    return float(total)


@pytest.mark.parametrize("seed", range(3))
def test_mass_at_infinity_composes_exactly_in_both_directions(seed: int) -> None:
    rng = np.random.default_rng([19, 6, seed])
    p, q = _laws(rng)
    rate, times = Fraction(int(rng.integers(1, 100)), 100), int(rng.integers(2, 5))
    loss = Pairs(p, q)
    mixed = tuple(rate * a + (1 - rate) * b for a, b in zip(p, q, strict=True))
    whole = compose([(loss, times)], accuracy=1e-3)
    sampled = compose([(subsample(loss, float(rate), adjacency="add-remove", person="P"), times)], accuracy=1e-3)
    for epsilon in (0.0, 0.3, 2.0):
        at = np.array([epsilon])
        for found, first, second in (
            (whole.profile(at), p, q),
            (whole.profile(at, reverse=True), q, p),
            (sampled.profile(at), mixed, q),
            (sampled.profile(at, reverse=True), q, mixed),
        ):
            truth = _exact(first, second, times, epsilon)
            assert found[0][0] * (1 - 1e-9) <= truth <= found[1][0] * (1 + 1e-9)
            assert found[1][0] - found[0][0] <= max(0.01 * truth, 1e-6)


@dataclass(frozen=True)
class Share(sdp.Loss):
    """Uniform noise: delta is the share at every epsilon (docs/adding-a-mechanism.md)."""

    share: float

    def profile(self, epsilon, *, reverse=False):
        return np.full_like(epsilon, self.share), np.full_like(epsilon, self.share)


@pytest.mark.parametrize(
    ("share", "times", "rate"), [(1e-3, 5, 1.0), (0.2, 10, 0.01), (1e-9, 1000, 0.01), (0.9, 9, 1.0)]
)
def test_uniform_noise_composes_to_its_closed_form(share: float, times: int, rate: float) -> None:
    loss = compose([(subsample(Share(share), rate, adjacency="add-remove"), times)])
    exact = -math.expm1(times * math.log1p(-rate * share))
    found = loss.delta(0.1)
    assert found.lower * (1 - 1e-9) <= exact <= found.upper * (1 + 1e-9)
    assert found.relative_gap < 1e-2
    assert loss.epsilon(exact / 2).upper == math.inf


@dataclass(frozen=True)
class CutLaplace(sdp.Loss):
    """Laplace noise of scale 1 on [-end, end], for answers that differ by 1."""

    end: float

    def below(self, x):
        """P(noise < x)."""
        whole, left = -2 * math.expm1(-self.end), math.exp(-self.end)
        return np.where(x < 0, np.exp(np.minimum(x, 0.0)) - left, whole - np.exp(-np.maximum(x, 0.0)) + left) / whole

    def profile(self, epsilon, *, reverse=False):
        near = np.minimum(epsilon, 1.0)
        value = self.below((1 - near) / 2) - np.exp(near) * self.below((1 - near) / 2 - 1)
        value = np.where(epsilon < 1, value, self.below(np.array(1 - self.end)))
        return value * (1 - 1e-12), value * (1 + 1e-12)


def test_a_cut_laplace_law_costs_what_dp_accounting_says() -> None:
    pytest.importorskip("dp_accounting")
    from dp_accounting.pld.privacy_loss_distribution import from_two_probability_mass_functions

    loss, rate, times, delta = CutLaplace(math.log(math.expm1(1.0) / 2e-9 + 1)), 0.01, 1000, 1e-5
    assert loss.delta(5.0).upper == pytest.approx(1e-9)
    edges = np.concatenate([[-loss.end, 1 - loss.end], np.linspace(-0.1, 1.1, 1201), [loss.end, loss.end + 1]])
    p, q = (np.diff(loss.below(np.clip(edges - move, -loss.end, loss.end))) for move in (0.0, 1.0))
    with np.errstate(divide="ignore"):
        logs = [dict(enumerate(np.log(one).tolist())) for one in (q, rate * p + (1 - rate) * q)]
    logs = [{i: value for i, value in one.items() if value > -math.inf} for one in logs]
    peer = from_two_probability_mass_functions(*logs, value_discretization_interval=1e-5).self_compose(times)
    figure = peer.get_epsilon_for_delta(delta)
    found = compose([(subsample(loss, rate, adjacency="add-remove"), times)]).epsilon(delta)
    assert found.upper == pytest.approx(figure, rel=1e-2)
    assert found.relative_gap < 0.01


def test_the_checker_refutes_what_one_release_alone_breaks() -> None:
    from shapedp_check.verdict import check

    law = radial.chi(1.0, Cell(100, 2, 1.0).sigma, 100)
    mechanism = sdp.mechanisms.Additive(law, sdp.L2(1.0, dim=100, adjacency="add-remove"), 1.0, 1e-5)
    plan = Plan((Step(mechanism, 1.0, 2),))
    found = plan.delta(1.0)
    ends = {"lower": found.lower, "upper": found.upper}
    file = {"schema": 1, "kind": "certificate", "verdict": "refuted", "epsilon": 1.0, "delta": 1e-5, "bracket": ends}
    whole = {**file, "adjacency": "add-remove", "subject": plan.to_json()}
    answer = check(json.loads(json.dumps(whole)), seconds=5.0)
    assert answer.verdict == "refuted"
    assert 0.6 < answer.lower <= found.upper
