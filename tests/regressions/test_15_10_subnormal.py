"""rdp_to_delta rounded subnormals to nearest, hence also down; pure_to_rdp divided a rounded subnormal by alpha - 1."""

from __future__ import annotations

import numpy as np
from flint import arb, ctx

from shapedp.privacy.conversions import pure_to_rdp, rdp_to_delta


def test_delta_is_never_below_the_formula():
    rng = np.random.default_rng(15)
    old, ctx.prec = ctx.prec, 200
    try:
        for _ in range(3000):
            alpha = 1 + 10 ** rng.uniform(-2, 3)
            renyi = 10 ** rng.uniform(-3, 1)
            epsilon = renyi + rng.uniform(700, 750) / (alpha - 1)
            x = arb(alpha)
            truth = ((x - 1) * (arb(renyi) - arb(epsilon)) + x * (1 - 1 / x).log() - (x - 1).log()).exp()
            assert truth <= arb(rdp_to_delta(alpha, renyi, epsilon))
    finally:
        ctx.prec = old


def test_renyi_of_a_tiny_pure_loss_is_never_below_the_formula():
    rng = np.random.default_rng(16)
    old, ctx.prec = ctx.prec, 1500
    try:
        for _ in range(500):
            alpha, epsilon = 1 + 10 ** rng.uniform(-6, 1), 10 ** rng.uniform(-164, -155)
            x, e = arb(alpha), arb(epsilon)
            truth = (((x - arb(0.5)) * e).cosh() / (e / 2).cosh()).log() / (x - 1)
            assert truth <= arb(pure_to_rdp(alpha=alpha, epsilon=epsilon))
    finally:
        ctx.prec = old
