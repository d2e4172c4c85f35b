"""Kronecker covariance: against the big matrix where it is small, exact turning, memory, bad calls."""

from __future__ import annotations

import math
import tracemalloc
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest
from scipy import stats

from shapedp.noise import TensorGaussian
from shapedp.noise.rotation import Mode, Rotation
from shapedp.sampling import SecureSource, SimulatedSource

RNG = np.random.default_rng(11)
SQUARE = [RNG.normal(size=(3, 3)), RNG.normal(size=(4, 4)), RNG.normal(size=(2, 2))]
WIDE = [RNG.normal(size=(3, 5)), RNG.normal(size=(2, 2)), np.array([0.5, 2.0])]
MIXED = [3, RNG.normal(size=(4, 4)), np.array([1.0, 0.3])]


def covariance(factors) -> np.ndarray:
    """The big matrix."""

    def one(factor):
        if np.ndim(factor) == 0:
            return np.eye(factor)
        return np.diag(np.square(factor)) if np.ndim(factor) == 1 else factor @ factor.T

    return reduce(np.kron, map(one, factors))


@pytest.mark.parametrize("factors", [SQUARE, WIDE, MIXED], ids=["square", "wide", "mixed"])
def test_the_law_is_that_of_the_big_matrix(factors):
    """Axes are kept to 24 bits: the covariance is the one asked for to about 1e-6."""
    law, big = TensorGaussian(factors, scale=1.7), 1.7**2 * covariance(factors)
    assert law.dim == len(big) == math.prod(law.shape)
    np.testing.assert_allclose(law.variances(), np.diagonal(big), rtol=1e-6)
    assert law.second_moment == pytest.approx(np.trace(big), rel=1e-6)
    weights = RNG.uniform(size=law.dim)
    assert law.weighted_second_moment(weights) == pytest.approx(weights @ np.diagonal(big), rel=1e-6)
    x = RNG.normal(size=(5, law.dim))
    np.testing.assert_allclose(law.log_density(x), stats.multivariate_normal(cov=big).logpdf(x), rtol=1e-4)
    white = law.whiten(x)
    np.testing.assert_allclose(np.square(white).sum(axis=1), (x * np.linalg.solve(big, x.T).T).sum(axis=1), rtol=1e-4)
    np.testing.assert_allclose(law.colorize(white), x, rtol=0, atol=1e-11)
    shaped = law.whiten(x.reshape(5, *law.shape))
    np.testing.assert_array_equal(shaped.reshape(5, -1), white)


def test_samples_have_the_covariance():
    """Every entry within 5.3 standard errors (false alarms below 1e-6 each), releases centred on x."""
    law, draws = TensorGaussian(WIDE), 100_000
    big = covariance(WIDE)
    x = RNG.normal(size=law.dim) * 50
    bound = 5.3 * np.sqrt((np.outer(np.diagonal(big), np.diagonal(big)) + big**2) / draws)
    for noise in (law.sample(draws, SecureSource()), law.add_to(np.tile(x, (draws, 1)), SecureSource()) - x):
        assert (np.abs(noise.T @ noise / draws - big) < bound).all()
        assert (np.abs(noise.mean(axis=0)) < 5.3 * np.sqrt(np.diagonal(big) / draws)).all()
        assert not (np.abs(1.02**2 * noise.T @ noise / draws - big) < bound).all()


@pytest.mark.parametrize("rows", [2, 3, 5])
def test_the_squared_norm_is_the_product_of_frobenius_norms(rows):
    """Theorem B.1, rectangular factors included: the formula, the law, and tensors made by mode products."""
    factors = [RNG.normal(size=(rows, 3)), RNG.normal(size=(4, 6))]
    expected = math.prod(float(np.linalg.norm(u)) ** 2 for u in factors)
    assert TensorGaussian(factors).second_moment == pytest.approx(expected, rel=1e-6)
    draws = 20_000
    noise = RNG.normal(size=(draws, 3, 6))
    made = factors[0] @ noise @ factors[1].T
    squares = np.square(made).sum(axis=(1, 2))
    assert abs(squares.mean() - expected) < 5 * squares.std() / math.sqrt(draws)  # false alarms below 1e-6


def exact_product(whole: np.ndarray, steps: np.ndarray) -> list[Fraction]:
    return [
        sum((Fraction(float(a)) * Fraction(float(b)) for a, b in zip(row, steps, strict=True)), Fraction(0)) / 2**24
        for row in whole
    ]


@pytest.mark.parametrize("size", [1, 2, 7, 60])
@pytest.mark.parametrize("top", [1.0, 2.0**20, 2.0**51])
def test_turning_is_exact_up_to_half_a_step_per_piece(size, top):
    """Against fractions, for entries of one bit to 52 bits."""
    rng = np.random.default_rng(size)
    rotation = Rotation.near(np.linalg.qr(rng.normal(size=(size, size)))[0])
    steps = np.rint(rng.uniform(-1, 1, size=(size, 3)) * top / math.sqrt(size))
    turned = rotation.turn(steps[None])[0]
    assert (turned == np.rint(turned)).all()
    for column in range(3):
        exact = exact_product(rotation.whole, steps[:, column])
        errors = [abs(Fraction(float(a)) - b) for a, b in zip(turned[:, column], exact, strict=True)]
        assert max(errors) <= Fraction(rotation.pieces, 2)
    assert rotation.norm >= np.linalg.norm(rotation.matrix, 2)


def test_rounding_moves_neighbours_apart_by_at_most_the_slack():
    """Whatever x: the whitened distance of two turned inputs exceeds that of the inputs by at most `slack`."""
    law = TensorGaussian(SQUARE, scale=0.01)
    for size in (1e-3, 1.0, 1e3):
        x = RNG.normal(size=(200, law.dim)) * size
        v = RNG.normal(size=law.dim) * RNG.choice([1e-9, 1e-3, 1.0], size=(200, 1))
        first, second = x.copy(), x + v
        moved = second - x
        law._rotate(first)
        law._rotate(second)
        scales = reduce(np.multiply.outer, [mode.scales for mode in law.modes]).reshape(-1)
        apart = np.linalg.norm((second - first) / scales, axis=1)
        ideal = np.linalg.norm(law.whiten(moved), axis=1)
        assert (np.abs(apart - ideal) <= law.slack * (1 + 1e-9) + 1e-9 * ideal).all()
    assert 0 < law.slack <= 2.0**-20
    assert TensorGaussian([2, [1.0, 2.0]]).slack == 0


def test_every_bit_of_the_output_comes_from_the_noisy_rotated_query():
    """Two inputs that turn to the same steps release the same value, whatever their low bits."""
    law = TensorGaussian(SQUARE)
    x = np.rint(RNG.normal(size=law.dim) * 1e6) * law.step
    near = x + law.step * RNG.uniform(-0.49, 0.49, size=law.dim)
    assert (x != near).any()
    one, other = (law.add_to(v, SimulatedSource(np.random.default_rng(3))) for v in (x, near))
    assert np.array_equal(one, other)


def test_beyond_the_reach_is_refused():
    law = TensorGaussian(SQUARE)
    with pytest.raises(ValueError, match="clip it first"):
        law.add_to(np.full(law.dim, 2.0**53 * law.step), SecureSource())


def test_single_precision_stays_single():
    law = TensorGaussian(SQUARE)
    assert law.add_to(np.zeros(law.dim, dtype=np.float32), SecureSource()).dtype == np.float32


@pytest.mark.parametrize("turned", [False, True])
def test_memory_stays_below_one_extra_copy(turned):
    """2^22 entries, the peak beyond input and output."""
    shape = (128, 128, 256)
    factors = [RNG.normal(size=(n, n)) if turned and n == 128 else RNG.uniform(1, 2, size=n) for n in shape]
    law, x = TensorGaussian(factors), np.zeros(math.prod(shape))
    tracemalloc.start()
    law.add_to(x, SecureSource())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 2 * x.nbytes


def test_a_tall_factor_leaves_directions_without_noise():
    law = TensorGaussian([RNG.normal(size=(3, 2)), 2])
    assert sorted(law.modes[0].scales == 0) == [False, False, True]
    with pytest.raises(ValueError, match="singular"):
        law.whiten(np.zeros(6))
    noise = law.sample(50, SecureSource()).reshape(50, 3, 2)
    values = np.linalg.svd(noise.transpose(1, 0, 2).reshape(3, -1), compute_uv=False)
    assert values[2] < 1e-3 * values[1]


@pytest.mark.parametrize(
    "factors",
    [
        [],
        [0],
        [2.5],
        [[1.0, -1.0]],
        [[0.0, 0.0]],
        [[1.0, math.nan]],
        [np.zeros((2, 2, 2))],
        [np.full((2, 2), math.inf)],
        [[1e-300, 1.0], [1e-300, 1.0]],
        [["a"]],
        [[]],
    ],
)
def test_bad_factors(factors):
    with pytest.raises((ValueError, TypeError), match=r"factor|scales|singular"):
        TensorGaussian(factors)


def test_bad_shapes_and_rotations():
    law = TensorGaussian([2, 3])
    for x in (np.zeros(5), np.zeros((3, 2))):
        with pytest.raises(ValueError, match="shape"):
            law.whiten(x)
    with pytest.raises(ValueError, match="orthogonal"):
        Rotation.near(np.ones((2, 2)))
    with pytest.raises(ValueError, match="entries"):
        Mode.from_json({"scales": [1.0, 1.0], "rotation": [1.0, 2.0]})
