"""Above 2,800 dimensions a cap far from the equator was an upper bound, and one cap is subtracted from another.

The upper end of delta was then below the truth: dim 3436, mu 48.34, epsilon 1313.29 gave 0.0012753 for 0.0012789.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb, ctx

from shapedp.numerics.sphere import CAP_ERROR, Cap
from shapedp.privacy.losses.gaussian import GaussianLoss
from shapedp.privacy.losses.radial import RadialLoss


@pytest.mark.parametrize("dim", [2801, 2802, 3152, 3436, 20_000, 10**6])
@pytest.mark.parametrize("deviations", [-2.0, 0.0, 3.0])
def test_the_gaussian_member_holds_the_gaussian_loss_at_large_epsilon(dim, deviations):
    """Level sets where the two spheres meet at c1 = 0, c2^2 > 0.4: epsilon = mu^2/2 of the order of dim/2."""
    mu = math.sqrt(min(dim, 9000) * 1.1)
    epsilon = mu * mu / 2 + deviations * mu
    truth = GaussianLoss(mu).delta(epsilon)
    found = RadialLoss(dim, float(dim), 2.0, mu / math.sqrt(2)).delta(epsilon)
    assert found.lower <= truth.upper * (1 + 1e-12)
    assert truth.lower * (1 - 1e-12) <= found.upper


@pytest.mark.parametrize("dim", [121, 2801, 2802, 3152, 10**6])
def test_far_caps_err_to_neither_side(dim):
    """c^2 > 0.4: the positive series of the incomplete beta function."""
    old, ctx.prec = ctx.prec, 200
    try:
        c = np.sqrt(np.array([0.4000001, 0.45, 0.6, 0.8, 0.99]))
        for at, found in zip(c, Cap(dim).scaled(c), strict=True):
            half, square = arb(dim - 1) / 2, arb(float(at)) ** 2
            norm = ((half + arb(0.5)).lgamma() - half.lgamma() - arb.pi().log() / 2).exp()
            term = total = 1 / half
            for n in range(400):
                term = term * (1 - square) * (half + arb(0.5) + n) / (half + 1 + n)
                total = total + term
            truth = total * norm * square.sqrt() / 2
            assert abs(float(arb(float(found)) / truth - 1)) < CAP_ERROR
    finally:
        ctx.prec = old


@pytest.mark.parametrize("half", [0.5, 5.0, 59.5, 60.0, 1500.0])
def test_the_far_rule_is_met_by_the_rule_of_the_other_side(half):
    """All derivatives of (1 - q B)^(-1/2) are positive: Gauss is below the truth, Radau with a point at B = 1 above."""
    from shapedp.numerics.sphere import _beta_points

    q = 0.6
    x, w = _beta_points(half)
    below = float((1 / np.sqrt(1 - q * x)) @ w)
    # Radau: Gauss points of the law weighted by 1 - B, and the end B = 1
    moments = [half / (half + j) for j in range(60)]
    above = _radau(moments, 12, q)
    assert below <= above * (1 + CAP_ERROR)
    assert above <= below * (1 + CAP_ERROR)


def _radau(moments: list[float], n: int, q: float) -> float:
    """The Gauss-Radau sum of (1 - q B)^(-1/2) with a point at 1, from exact moments in 400 digits."""
    import mpmath as mp

    with mp.workdps(400):
        half = mp.mpf(moments[1]) / (1 - mp.mpf(moments[1]))
        raw = [half / (half + j) for j in range(2 * n + 2)]
        shifted = [raw[j] - raw[j + 1] for j in range(2 * n + 1)]  # weight 1 - B
        hankel = mp.matrix(n, n)
        for i in range(n):
            for j in range(n):
                hankel[i, j] = shifted[i + j]
        coefficients = mp.lu_solve(hankel, -mp.matrix([shifted[n + i] for i in range(n)]))
        nodes = mp.polyroots([1, *[coefficients[n - 1 - i] for i in range(n)]], maxsteps=500, extraprec=2000)
        nodes = [*(mp.re(x) for x in nodes), mp.mpf(1)]
        vander = mp.matrix(n + 1, n + 1)
        for i in range(n + 1):
            for j in range(n + 1):
                vander[i, j] = nodes[j] ** i
        weights = mp.lu_solve(vander, mp.matrix(raw[: n + 1]))
        return float(mp.fsum(w / mp.sqrt(1 - mp.mpf(q) * x) for w, x in zip(weights, nodes, strict=True)))
