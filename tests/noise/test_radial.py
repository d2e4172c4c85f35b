"""The radial law: density, quantiles, moments and the sampler."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from flint import arb, ctx
from scipy import integrate, special, stats

from shapedp.noise.radial import Radial, chi, gaussian, laplace
from shapedp.numerics.radius import RadiusRule
from shapedp.sampling import source

FALSE_ALARM = 1e-6


@pytest.mark.parametrize(
    "law", [Radial(2, 1.5, 1.3, 0.7), Radial(3, 3.0, 1.0, 2.0), chi(2.5, 0.4, 3), gaussian(0.6, 2)], ids=str
)
def test_density_integrates_to_one(law):
    area = 2 * math.pi ** (law.dim / 2) / math.gamma(law.dim / 2)

    def shell(r: float) -> float:
        x = np.zeros(law.dim)
        x[0] = r
        return area * r ** (law.dim - 1) * math.exp(law.log_density(x))

    assert integrate.quad(shell, 0, np.inf, limit=200)[0] == pytest.approx(1, abs=1e-7)


@pytest.mark.parametrize(
    "law", [Radial(3, 2.5, 1.3, 0.7), chi(10.5, 2.0, 14), laplace(0.3, 100), Radial(10**9, 9e8, 2.0, 1.0)], ids=str
)
def test_moments_agree_with_gamma_functions(law):
    k = law.a / law.b
    if k < 1e4:
        raw = [
            law.scale ** (2 * j) * math.exp(special.gammaln(k + 2 * j / law.b) - special.gammaln(k)) for j in range(5)
        ]
        variance = raw[2] - raw[1] ** 2
        third = raw[3] - 3 * raw[1] * raw[2] + 2 * raw[1] ** 3
        fourth = raw[4] - 4 * raw[1] * raw[3] + 6 * raw[1] ** 2 * raw[2] - 3 * raw[1] ** 4
        expected = (raw[1], variance, third / variance**1.5, fourth / variance**2)
    else:
        expected = (k * law.scale**2, k * law.scale**4, 2 / math.sqrt(k), 3 + 6 / k)
    assert law.squared_norm_moments() == pytest.approx(expected, rel=1e-6)
    assert law.second_moment == pytest.approx(expected[0], rel=2e-5)


def test_chi_members_have_the_published_kurtosis_and_skewness():
    for nu in (1.0, 3.0, 40.0):
        _, _, skewness, kurtosis = chi(nu, 1.0, 50).squared_norm_moments()
        assert skewness == pytest.approx(math.sqrt(8 / nu), rel=1e-9)
        assert kurtosis == pytest.approx(3 + 12 / nu, rel=1e-9)


@pytest.mark.parametrize("law", [Radial(2, 1.5, 1.3, 0.7), chi(10.5, 2.0, 14), laplace(0.3, 50)], ids=str)
def test_sampler_follows_the_law_and_a_scale_two_percent_off_is_rejected(law):
    """Kolmogorov-Smirnov on the radius and on one coordinate of the direction; false alarm 1e-6 each."""
    n = 60_000
    x = law.sample(n, source(np.random.default_rng(3)))
    norms = np.sqrt(np.square(x).sum(axis=1))

    def radius_cdf(r, scale=law.scale):
        return special.gammainc(law.a / law.b, (r / scale) ** law.b)

    assert stats.kstest(norms, radius_cdf).pvalue > FALSE_ALARM
    powers, k = (norms / law.scale) ** law.b, law.a / law.b
    limit = stats.norm.isf(FALSE_ALARM / 2) * math.sqrt(k / n)
    assert abs(powers.mean() - k) < limit + 1e-4 * k  # smoothing moves the mean a little
    assert abs(powers.mean() - k * 1.02**law.b) > limit
    cosine = x[:, 0] / norms
    assert stats.kstest(cosine**2, stats.beta(0.5, (law.dim - 1) / 2).cdf).pvalue > FALSE_ALARM
    half = law.half_widths(0.9)[0]
    inside = int((np.abs(x[:, -1]) <= half).sum())
    assert stats.binomtest(inside, n, 0.9).pvalue > FALSE_ALARM


def test_radius_quantiles_invert_the_distribution():
    law = chi(10.5, 2.0, 14)
    p = np.array([1e-12, 0.01, 0.5, 0.99])
    assert special.gammainc(law.a / law.b, (law.radius_quantile(p) / law.scale) ** law.b) == pytest.approx(p, rel=1e-10)


def test_releases_lie_on_the_grid_and_float32_stays_float32():
    law = Radial(1000, 950.0, 2.0, 3.0)
    x = np.linspace(-5, 5, 1000)
    y = law.add_to(x, source(np.random.default_rng(0)))
    assert (y / law.grid == np.rint(y / law.grid)).all()
    single = law.add_to(x.astype(np.float32), source(np.random.default_rng(0)))
    assert single.dtype == np.float32
    assert np.allclose(single, y, atol=1e-4)


def test_a_million_coordinates_in_blocks():
    law = chi(9e5, 2.0, 10**6)
    y = law.add_to(np.zeros(10**6), source(np.random.default_rng(1)))
    assert float(y @ y) == pytest.approx(law.second_moment, rel=0.02)


def test_slip_shrinks_with_precision_and_json_restores_the_law():
    for dim, bound in ((2, 1e-4), (14, 1e-5), (10**4, 1e-5), (10**6, 1e-4)):
        slip, missed = Radial(dim, 0.9 * dim, 2.0, 1.0).slip
        assert 0 < slip < bound
        assert 0 < missed < 1e-13
    law = Radial(3, 2.5, 1.3, 0.7)
    assert Radial.from_json(json.loads(json.dumps(law.to_json()))) == law


@pytest.mark.parametrize(("field", "value"), [("dim", 1), ("a", 0.0), ("b", math.nan), ("scale", -1.0)])
def test_bad_parameters_are_refused(field, value):
    fields = {"dim": 3, "a": 2.0, "b": 2.0, "scale": 1.0} | {field: value}
    with pytest.raises(ValueError, match=field):
        Radial(**fields)


@pytest.mark.parametrize("k", [0.02, 0.5, 7.0, 50.0, 500.0, 5e4])
def test_gamma_quantiles_hold_to_two_to_the_minus_forty(k):
    """The residual in interval arithmetic over the density of log Y: the relative error of the quantile."""
    old, ctx.prec = ctx.prec, 1500
    try:
        below = np.concatenate([np.linspace(0.011, 0.99, 8), 10.0 ** -np.arange(2.5, 30, 6)])
        for u, y in zip(below, RadiusRule(k, 1.0).radii(below, 1 - below), strict=True):
            if y < 1e-280:
                continue
            tail = arb(float(y)).gamma_upper(arb(k), regularized=1)
            density = (arb(k) * arb(float(y)).log() - arb(float(y)) - arb(k).lgamma()).exp()
            error = (1 - tail - arb(float(u))) / density
            assert abs(float(error)) < 2.0**-40
    finally:
        ctx.prec = old
