"""Curves against published values, against each other, and against sums done by hand."""

from fractions import Fraction
from math import comb, exp

import pytest
from flint import arb, ctx

from shapedp_check.balls import ball, precision, sharp
from shapedp_check.compose import composed
from shapedp_check.pairs import DiscreteLaplace, Gaussian, Laplace, Mixing, Response, Sampled, mirrored
from shapedp_check.radial import Radial
from shapedp_check.staircase import Staircase, staircase


@pytest.fixture(autouse=True)
def _bits():
    with precision(256):
        yield


PAIRS = [
    Gaussian(arb(0.7)),
    Laplace(Fraction(3, 4)),
    Response(Fraction(1, 2), Fraction(1, 1000)),
    DiscreteLaplace(7, 5),
    Staircase(5, 2, Fraction(1, 3), 7),
    Mixing(10, arb(1) / 20),
    Sampled(Gaussian(arb(1)), Fraction(1, 10)),
    Sampled(Gaussian(arb(1)), Fraction(1, 10), both=True),
    Sampled(Mixing(10, arb(1) / 20), Fraction(1, 10)),
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: type(pair).__name__)
def test_curve_is_convex_decreasing_and_mirrors_itself(pair):
    points = [ball(Fraction(i, 7)) for i in range(-20, 21)]
    k, curve = [x.exp() for x in points], [pair.hockey(x) for x in points]
    for i in range(1, len(points) - 1):
        left, right = ((curve[i] - curve[i - 1]) / (k[i] - k[i - 1])), ((curve[i + 1] - curve[i]) / (k[i + 1] - k[i]))
        assert not left > right
        assert not left > 0
        assert not curve[i] < 1 - k[i]
    for x, value in zip(points, curve, strict=True):
        assert pair.backward().hockey(-x).overlaps(mirrored(-x, value))


def test_gaussian_values():
    mu = arb("0.2367043806634")
    assert float(Gaussian(mu).hockey(arb(1))) == pytest.approx(1e-6, rel=1e-10)


def test_mixing_value():
    """gamma = 36.54 meets (1, 1e-6) with 100 rows, to the digits printed."""
    pair = Mixing(100, arb(1) / arb("36.54"))
    largest = max(float(way.hockey(arb(1))) for way in (pair, pair.backward()))
    assert largest == pytest.approx(1e-6, rel=2e-3)


def test_replacement_is_both_directions_at_once():
    """gamma = 44.41 meets (1, 1e-6) with 100 rows under replacement."""
    pair = Mixing(100, arb(1) / arb("44.41"))
    low, high = composed([(pair, 1), (pair.backward(), 1)], Fraction(1), 1 << 11, 60)
    assert float(low) <= 1.002e-6
    assert float(high) >= 0.998e-6
    assert float(high) / float(low) < 1.2


@pytest.mark.parametrize(("steps", "shift"), [(1, 1), (3, 2), (10, 7), (4, 9)])
def test_discrete_laplace_is_the_sum_over_the_integers(steps, shift):
    q = exp(-1 / steps)
    mass = [(1 - q) / (1 + q) * q ** abs(k) for k in range(-400, 401)]
    for x in (-0.5, 0.0, 0.3, 1.0):
        plain = sum(max(mass[i] - exp(x) * mass[i - shift], 0) for i in range(shift, len(mass)))
        assert float(DiscreteLaplace(steps, shift).hockey(arb(x))) == pytest.approx(plain, abs=1e-12)


@pytest.mark.parametrize(("width", "inner", "shift"), [(5, 2, 1), (5, 2, 5), (5, 5, 7), (4, 1, 11), (7, 3, 4)])
def test_staircase_is_the_sum_over_the_integers(width, inner, shift):
    height = [exp(-0.4 * ((abs(k) + width - inner) // width)) for k in range(-900, 901)]
    mass = [one / sum(height) for one in height]
    for x in (-0.5, 0.0, 0.3, 0.5):
        plain = sum(max(mass[i] - exp(x) * mass[i + shift], 0) for i in range(len(mass) - shift))
        found = Staircase(width, inner, Fraction(2, 5), shift).hockey(arb(x))
        assert float(found) == pytest.approx(plain, abs=1e-12)


def test_the_worst_shift_of_a_staircase_is_among_those_tried():
    for x in (0.0, 0.2, 0.35, 0.7):
        every = max(float(Staircase(6, 2, Fraction(2, 5), shift).hockey(arb(x))) for shift in range(14))
        assert float(staircase(6, 2, Fraction(2, 5), 13).hockey(arb(x))) == pytest.approx(every, rel=1e-12)


@pytest.mark.parametrize("dim", [1, 2, 3, 100, 10**6])
def test_radial_gaussian_is_gaussian(dim):
    """A radial law with b = 2, a = M is the Gaussian of standard deviation 1/sqrt 2."""
    exact = Gaussian(arb("0.1673") * arb(2).sqrt()).hockey(arb(1))
    found = Radial(dim, float(dim), 2.0, arb("0.1673")).hockey(arb(1))
    assert found.overlaps(exact)
    assert float(found.rad() / found.mid()) < 1e-3


def test_radial_laplace_is_pure():
    """Density ~ exp(-|z|) is (D, 0)-private and not less."""
    law = Radial(3, 3.0, 1.0, arb(1))
    assert law.hockey(arb("1.001")).contains(0)
    assert law.hockey(arb("0.8")) > 1e-4
    assert law.hockey(arb(0)).overlaps(Radial(3, 3.0, 1.0, arb(1)).hockey(arb(0)))


def test_radial_shapes_of_less_mass_in_the_centre():
    """M = 14, nu = 10.5 at (1, 1e-5): 0.82 of the Gaussian's expected squared norm is about enough."""
    mu = arb("0.2679")  # the Gaussian of (1, 1e-5): norm^2 = 14/mu^2
    scale = (2 * arb("0.82") * 14 / mu**2 / arb("10.5")).sqrt()
    assert 0.3e-5 < float(Radial(14, 10.5, 2.0, 1 / scale).hockey(arb(1))) < 3e-5


def test_gaussian_compositions_have_a_closed_form():
    low, high = composed([(Gaussian(arb(0.5)), 10)], Fraction(1), 1 << 12, 70)
    exact = Gaussian(arb(0.5) * arb(10).sqrt()).hockey(arb(1))
    assert low <= exact <= high
    assert float(high) / float(low) < 1.01


@pytest.mark.parametrize("count", [2, 3, 10])
def test_randomised_response_composes_to_a_binomial(count):
    keep = exp(0.5) / (1 + exp(0.5))
    exact = sum(
        comb(count, i) * max(keep ** (count - i) * (1 - keep) ** i - exp(0.6) * (1 - keep) ** (count - i) * keep**i, 0)
        for i in range(count + 1)
    )
    low, high = composed([(Response(Fraction(1, 2)), count)], Fraction(0.6), 1 << 10, 60)
    assert float(low) <= exact * (1 + 1e-12)
    assert float(high) >= exact * (1 - 1e-12)
    assert float(high) == pytest.approx(exact, rel=1e-9)


def test_unequal_pairs_enclose_the_sum_over_a_fine_grid():
    """Two Laplace pairs of different scale, against a plain double sum."""
    first, second, x = 1.0, 0.3, 0.7
    step = 1e-3
    exact = 0.0
    n = round(first / step)
    for i in range(-n, n + 1):  # outer loss: atoms at both ends, density between
        loss = i * step
        mass = 0.5 if i == n else 0.5 * exp(-first) if i == -n else step * 0.25 * exp((loss - first) / 2)
        exact += mass * float(Laplace(Fraction(second)).hockey(arb(x - loss)))
    low, high = composed([(Laplace(Fraction(first)), 1), (Laplace(Fraction(second)), 1)], Fraction(x), 1 << 12, 60)
    assert float(low) == pytest.approx(exact, rel=5e-3)
    assert float(low) <= float(high)


def test_precision_is_put_back():
    before = ctx.prec
    with precision(77):
        assert ctx.prec == 77
    assert ctx.prec == before


def test_precision_is_not_raised_where_the_input_limits_it():
    """A share known to 250 bits made one incomplete gamma function run for minutes at 16,384 bits."""
    asked = []

    def compute():
        asked.append(ctx.prec)
        return arb(1, 2.0**-200) - arb(1, 2.0**-200)

    assert sharp(compute).contains(0)
    assert len(asked) <= 3
    exact = sharp(lambda: (arb(1) + arb(2) ** -900) - 1)  # cancellation is still met with more digits
    assert exact.rel_accuracy_bits() >= 40
