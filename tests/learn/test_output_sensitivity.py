"""What one record moves: the exact minimum and the last iterate, by brute force."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from shapedp.learn.losses import HuberHinge, Logistic
from shapedp.learn.solvers.erm import bolt_on, output
from shapedp.learn.solvers.erm.output import additive
from shapedp.learn.solvers.erm.problem import Problem, Records

LOSSES = {"logistic": Logistic(), "huber": HuberHinge()}


def random_case(rng, adjacency, loss):
    n, d, problems = int(rng.integers(1, 9)), int(rng.integers(1, 5)), int(rng.choice([1, 1, 3]))
    bound, strength = float(rng.uniform(0.5, 3)), float(10 ** rng.uniform(-2.5, 1))
    problem = Problem(loss, n, d, problems, bound, strength, 1.0, 1e-5, adjacency)

    def rows(count):
        x = rng.normal(size=(count, d))
        return x * (bound * rng.random(count) ** 0.1 / np.linalg.norm(x, axis=1))[:, None]

    def labels(count):
        if problems == 1:
            return rng.choice([-1.0, 1.0], size=(count, 1))
        return np.where(rng.integers(0, problems, size=count)[:, None] == np.arange(problems), 1.0, -1.0)

    records = Records(rows(n), labels(n))
    other = Records(records.x.copy(), records.signs.copy())
    at = int(rng.integers(n))
    if adjacency == "zero-out":
        other.x[at], other.signs[at] = 0.0, 0.0
    elif rng.random() < 0.5:
        other.x[at] = -records.x[at]
    else:
        other.x[at], other.signs[at] = rows(1)[0], labels(1)[0]
    return problem, records, other


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("name", LOSSES)
def test_one_record_moves_the_minimum_by_at_most_the_stated_bound(name, adjacency):
    """500 random data sets for each loss and neighbour relation."""
    rng = np.random.default_rng(7)
    worst = 0.0
    for _ in range(500):
        problem, records, other = random_case(rng, adjacency, LOSSES[name])
        moved = np.linalg.norm(output.optimum(problem, records) - output.optimum(problem, other))
        worst = max(worst, moved / output.sensitivity(problem))
    assert worst <= 1
    if name == "huber":
        assert worst > 0.5


def lopsided(problem, push=0.02):
    """Short records drag the weights to where one long record's slope is steepest, without bending the objective."""
    x = np.zeros((problem.records, problem.order))
    x[:, 0] = push * problem.row_bound
    x[0, 0] = -problem.row_bound
    other = x.copy()
    other[0] = 0.0
    signs = np.ones((problem.records, 1))
    return Records(x, signs), Records(other, np.where(np.arange(problem.records)[:, None] == 0, 0.0, signs))


def test_the_bound_is_attained_within_a_factor_two_by_the_logistic_loss():
    problem = Problem(Logistic(), 400, 2, 1, 1.0, 3e-3, 1.0, 1e-5)
    first, second = (output.optimum(problem, part) for part in lopsided(problem))
    assert 0.5 < np.linalg.norm(first - second) / output.sensitivity(problem) <= 1


def test_the_tolerance_enters_the_sensitivity():
    problem = Problem(Logistic(), 50, 3, 4, 2.0, 0.1, 1.0, 1e-5)
    exact = problem.gradient_change / (50 * 0.1)
    assert output.sensitivity(problem) >= 2 * (exact + 2 * output.tolerance(problem))
    assert output.sensitivity(problem) < 2 * exact * 1.01


def test_replace_costs_twice_zero_out():
    one, two = (Problem(HuberHinge(), 10, 3, 1, 1.0, 0.1, 1.0, 1e-5, a) for a in ("zero-out", "replace"))
    assert math.isclose(output.sensitivity(two), 2 * output.sensitivity(one), rel_tol=1e-9)


def test_a_regularization_lost_in_rounding_is_refused():
    with pytest.raises(ValueError, match="too small"):
        output.sensitivity(Problem(Logistic(), 10**6, 1000, 1, 1.0, 1e-10, 1.0, 1e-5))


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("name", LOSSES)
def test_one_record_moves_the_last_iterate_by_at_most_the_stated_bound(name, adjacency):
    """Under one permutation for both neighbours, over batch sizes that do and do not divide the records."""
    rng = np.random.default_rng(11)
    worst = 0.0
    for _ in range(500):
        problem, records, other = random_case(rng, adjacency, LOSSES[name])
        problem = replace(problem, passes=int(rng.integers(1, 6)), batch=int(rng.integers(1, 5)))
        seed = int(rng.integers(2**31))
        ends = [bolt_on.descend(problem, part, np.random.default_rng(seed)) for part in (records, other)]
        worst = max(worst, np.linalg.norm(ends[0] - ends[1]) / bolt_on.sensitivity(problem))
    assert worst <= 1
    if name == "huber":
        assert worst > 0.5


def test_many_steps_reach_the_minimum():
    rng = np.random.default_rng(0)
    problem = Problem(Logistic(), 40, 3, 1, 1.0, 0.1, 1.0, 1e-5)
    x = rng.normal(size=(40, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    records = Records(x, rng.choice([-1.0, 1.0], size=(40, 1)))
    end = bolt_on.descend(replace(problem, passes=400, batch=5), records, rng)
    assert np.linalg.norm(end - output.optimum(problem, records)) < 0.02


@pytest.mark.parametrize(("dim", "epsilon"), [(1, 1.0), (8, 1.0), (100, 1e-4)])
def test_the_best_radial_law_is_never_worse_than_the_gaussian(dim, epsilon):
    best, gaussian = (additive(noise, 1.0, dim, epsilon, 1e-5) for noise in ("radial", "gaussian"))
    assert best.certificate.verdict == "certified"
    assert best.expected_squared_error <= gaussian.expected_squared_error
    assert (best.expected_squared_error < 0.7 * gaussian.expected_squared_error) == (dim == 8)
