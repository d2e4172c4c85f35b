"""Figures 2, 3, 4 and 9 and Corollaries 1 and 2 of the product-noise paper, with what was left out of them.

    shapedp reproduce product-noise/figure-4 [--full]

Each figure has two more curves than the paper's: the exact delta of the published calibration, and the best
spherical law that is certified at the same claim. Expected: the claimed delta stays below 1e-5 while the exact
one is between 1e-5 and 1; the certified law costs 0.2 to 1 times the exact Gaussian.
"""

from __future__ import annotations

import math

import numpy as np

from shapedp import GaussianLoss
from shapedp.noise.radial import Radial, best_shape, chi
from shapedp.numerics.radius import RadiusRule
from shapedp.papers.product_noise.claims import exact_delta
from shapedp.papers.product_noise.proof_claims import best_q
from shapedp.papers.product_noise.recipes import ProductNoise, claim
from shapedp.papers.register.harness import Item, Progress, Table, compared
from shapedp.privacy.losses.radial import RadialLoss
from shapedp.sampling import source


def classic(dim: int, epsilon: float, delta: float) -> float:
    """E |n|^2 of the classic Gaussian mechanism for a unit shift."""
    return dim * 2 * math.log(1.25 / delta) / epsilon**2


def analytic(dim: int, epsilon: float, delta: float) -> float:
    """E |n|^2 of the exactly calibrated Gaussian."""
    return dim / GaussianLoss.calibrate(epsilon, delta).mu ** 2


def certified(dim: int, epsilon: float, delta: float) -> float:
    """E |n|^2 of the best spherical law, on the private side of its root."""
    if dim > 10**5:  # within 1e-4 of the Gaussian there
        return analytic(dim, epsilon, delta)
    a, b = best_shape(dim, epsilon, delta)
    ratio = RadialLoss.calibrate(dim, a, b, epsilon, delta).ratio
    return Radial(dim, a, b, 1.0).mean_squared_radius / ratio**2


def figure_2(full: bool, progress: Progress) -> Table:
    """log10 E|n|^2 over M and epsilon, delta = 1e-5, k = 1e5."""
    dims = (14, 20, 30, 40, 50, 60, 70, 80, 90, 100) if full else (14, 50, 100)
    epsilons = (0.1, 0.25, 0.5, 0.75, 1.0) if full else (0.1, 1.0)
    rows = []
    for dim in dims:
        for epsilon in epsilons:
            noise = ProductNoise(dim, 1.0, epsilon, 1e5)
            exact = exact_delta(dim, noise.sigma, epsilon)
            sizes = (
                noise.sigma**2,
                classic(dim, epsilon, 1e-5),
                analytic(dim, epsilon, 1e-5),
                certified(dim, epsilon, 1e-5),
            )
            rows.append((dim, epsilon, claim(noise), exact, *(math.log10(size) for size in sizes)))
            progress(len(rows), len(dims) * len(epsilons), f"M = {dim}, epsilon = {epsilon:g}")
    last = [row for row in rows if row[1] == epsilons[-1]]
    names = ("product noise (published, refuted)", "classic Gaussian", "exact Gaussian", "best certified radial")
    curves = tuple(
        (name, tuple(float(row[0]) for row in last), tuple(row[4 + i] for row in last)) for i, name in enumerate(names)
    )
    headers = (
        "M",
        "epsilon",
        "claimed delta",
        "exact delta",
        "log10 product",
        "log10 classic",
        "log10 exact",
        "log10 best",
    )
    return Table(headers, tuple(rows), curves, ("M", "log10 E|n|^2 at epsilon = 1"), (False, False))


def figure_3(full: bool, progress: Progress) -> Table:
    """The law of |n|^2 at M = 1e7, epsilon 0.1, delta 1e-6, k 1e5: drawn from the radius alone."""
    dim, epsilon, delta = 10**7, 0.1, 1e-6
    draws = 10**6 if full else 10**4
    noise = ProductNoise(dim, 1.0, epsilon, 1e5)
    sigma_classic = math.sqrt(classic(dim, epsilon, delta) / dim)
    sigma_exact = 1 / GaussianLoss.calibrate(epsilon, delta).mu
    laws = {
        "product noise (published, refuted)": chi(1.0, noise.sigma, dim),
        "classic Gaussian": chi(float(dim), sigma_classic, dim),
        "exact Gaussian (best certified radial, to 1e-4)": chi(float(dim), sigma_exact, dim),
    }
    rng, rows, curves = source(np.random.default_rng(7)), [], []
    for done, (name, law) in enumerate(laws.items(), 1):
        squares = np.square(law.draw_radii(draws, rng))
        mean, variance, skewness, kurtosis = law.squared_norm_moments()
        rows.append((name, float(squares.mean()), mean, math.sqrt(variance), skewness, kurtosis))
        density, edges = np.histogram(np.log10(np.maximum(squares, 1e-3)), bins=60, density=True)
        curves.append((name, tuple((10 ** ((edges[1:] + edges[:-1]) / 2)).tolist()), tuple(density.tolist())))
        progress(done, len(laws), name)
    exact = exact_delta(dim, noise.sigma, epsilon)
    note = f"product noise claims delta = {claim(noise):.3g}; its exact delta at epsilon = {epsilon:g} is {exact:.4g}"
    headers = ("noise", "mean of draws", "E|n|^2", "sd", "skewness", "kurtosis")
    orders = zip(("product noise", "classic", "analytic"), rows, (9.0, 10.0, 10.0), strict=True)
    state = compared(((f"log10 |n|^2, {name}", math.log10(row[2]), order) for name, row, order in orders), 0.1)
    return Table(headers, tuple(rows), tuple(curves), ("|n|^2", "density of log10 |n|^2"), (True, False), note, **state)


def figure_4(full: bool, progress: Progress) -> Table:
    """delta and E|n|^2 over M and k at epsilon = 0.1, with the exact delta beside the claimed one."""
    epsilon, delta = 0.1, 1e-5
    dims = (10**4, 10**6, 10**8, 10**10)
    ks = (100.0, 1000.0, 10000.0)
    rows = []
    for dim in dims:
        best = certified(dim, epsilon, delta)
        for k in ks:
            noise = ProductNoise(dim, 1.0, epsilon, k)
            exact = exact_delta(dim, noise.sigma, epsilon)
            rows.append(
                (
                    dim,
                    k,
                    noise.claimed_delta,
                    exact,
                    noise.sigma**2,
                    classic(dim, epsilon, delta),
                    analytic(dim, epsilon, delta),
                    best,
                )
            )
            progress(len(rows), len(dims) * len(ks), f"M = {dim:g}, k = {k:g}")
    x = tuple(float(dim) for dim in dims)
    curves = tuple((f"claimed, k = {k:g}", x, tuple(r[2] for r in rows if r[1] == k)) for k in ks)
    curves += ((f"exact, k = {ks[0]:g} to {ks[-1]:g}", x, tuple(r[3] for r in rows if r[1] == ks[-1])),)
    headers = ("M", "k", "claimed delta", "exact delta", "product", "classic", "exact Gaussian", "best certified")
    return Table(headers, tuple(rows), curves, ("M", "delta at epsilon = 0.1"))


def figure_9(full: bool, progress: Progress) -> Table:
    """Eq. (12) and (19) over q at epsilon = 0.1, k = 1000, with the exact delta of q = M/2."""
    shares = np.linspace(0.01, 0.99, 99 if full else 15)
    rows, curves = [], []
    for done, dim in enumerate((10**6, 10**8), 1):
        noise = ProductNoise(dim, 1.0, 0.1, 1000.0)
        exact = exact_delta(dim, noise.sigma, 0.1)
        moment = tuple(noise.moment_delta(float(share) * dim) for share in shares)
        bound = tuple(noise.bound_delta(float(share) * dim) for share in shares)
        found = best_q({"dim": dim, "epsilon": 0.1, "k": 1000.0})
        grid, least = ((found[f"{name}_13"], found[f"{name}_19"]) for name in ("grid", "q"))
        rows.append((dim, noise.claimed_delta, noise.bound_delta(dim / 2), *grid, *least, noise.best_q, exact))
        curves += [
            (f"(12), M = {dim:g}", tuple(shares.tolist()), moment),
            (f"(19), M = {dim:g}", tuple(shares.tolist()), bound),
        ]
        curves.append((f"exact, M = {dim:g}", tuple(shares.tolist()), (exact,) * len(shares)))
        progress(done, 2, f"M = {dim:g}")
    headers = ("M", "(13)", "(19) at M/2", "best q of 1,000 for (13)", "for (19)", "q* of (13)", "q* of (19)",
               "q* of Proposition 6 at that lambda", "exact delta")  # fmt: skip
    printed = ((1.144e-6, 2.318e-6, 500_500, 499_499), (1.144e-7, 2.318e-7, 50_050_050, 49_949_950))
    pairs = [(headers[i], row[i], cells[i - 1]) for row, cells in zip(rows, printed, strict=True) for i in range(1, 5)]
    axes, note = ("q/M", "delta at epsilon = 0.1"), "the printed q* are the best of 1,000 values from 0 to M"
    return Table(headers, tuple(rows), tuple(curves), axes, (False, True), note, **compared(pairs, 5e-4))


def corollaries(full: bool, progress: Progress) -> Table:
    """f(M) of eq. (21) at delta = 1e-5, k = 1e5, and its limit 1/127.6."""
    dims = (11, 12, 13, 14, 100, 10**3, 10**4, 10**6, 10**8)
    rows = []
    for done, dim in enumerate(dims, 1):
        noise = ProductNoise(dim, 1.0, 1.0, 1e5)
        rows.append(
            (dim, noise.squared_norm_ratio / (2 * math.log(1.25e5)), claim(noise), exact_delta(dim, noise.sigma, 1.0))
        )
        progress(done, len(dims), f"M = {dim:g}")
    curves = (("f(M)", tuple(float(row[0]) for row in rows), tuple(row[1] for row in rows)),)
    limit = 4 * math.e * math.log(1.25e5)
    note = f"limit 1/(4 e log(1.25/delta)) = 1/{limit:.1f}; f < 1 from M = 12 on"
    headers, state = ("M", "f(M)", "claimed delta", "exact delta"), compared([("inverse limit", limit, 127.0)], 8e-3)
    return Table(headers, tuple(rows), curves, ("M", "f(M)"), (True, True), note, **state)


def sceptic(full: bool, progress: Progress) -> Table:
    """Claimed against exact delta over M at epsilon = 1, k = 1e5: the picture of the docs page."""
    dims = sorted({round(10**p) for p in np.linspace(math.log10(4), 9, 60 if full else 19)})
    rows = []
    for done, dim in enumerate(dims, 1):
        noise = ProductNoise(dim, 1.0, 1.0, 1e5)
        rows.append((dim, claim(noise), exact_delta(dim, noise.sigma, 1.0)))
        progress(done, len(dims), f"M = {dim:g}")
    x = tuple(float(row[0]) for row in rows)
    curves = (("claimed by Theorem 1", x, tuple(r[1] for r in rows)), ("exact", x, tuple(r[2] for r in rows)))
    return Table(("M", "claimed delta", "exact delta"), tuple(rows), curves, ("dimension M", "delta at epsilon = 1"))


def family(full: bool, progress: Progress) -> Table:
    """E|n|^2 of the best certified radial law over the exact Gaussian's."""
    claims = [(1.0, 1e-5)] + ([(e, d) for e in (0.1, 1.0, 5.0) for d in (1e-3, 1e-6, 1e-10)] if full else [])
    dims = (2, 3, 5, 14, 50, 100, 500) if full else (5, 14, 50, 100)
    rows = []
    for epsilon, delta in claims:
        for dim in dims:
            a, b = best_shape(dim, epsilon, delta)
            ratio = RadialLoss.calibrate(dim, a, b, epsilon, delta).ratio
            size = math.exp(2 / b * math.log(a / b)) * (1 + RadiusRule(a, b).mean_excess(2.0)) / ratio**2
            rows.append((dim, epsilon, delta, a, b, size / analytic(dim, epsilon, delta)))
            progress(len(rows), len(claims) * len(dims), f"M = {dim}, epsilon = {epsilon:g}, delta = {delta:g}")
    first = [row for row in rows if row[1:3] == (1.0, 1e-5)]
    curves = (("best radial/exact Gaussian", tuple(float(r[0]) for r in first), tuple(r[5] for r in first)),)
    return Table(
        ("M", "epsilon", "delta", "a", "b", "over exact Gaussian"),
        tuple(rows),
        curves,
        ("M", "ratio of E|n|^2"),
        (True, False),
    )


ITEMS = (
    Item("figure-2", "Figure 2: squared noise over M and epsilon", figure_2),
    Item("figure-3", "Figure 3: the law of |n|^2 at M = 1e7", figure_3),
    Item("figure-4", "Figure 4: claimed and exact delta, and sizes", figure_4),
    Item("figure-9", "Figure 9: delta over q", figure_9),
    Item("corollaries", "Corollaries 1 and 2: f(M)", corollaries),
    Item("claimed-against-exact", "Product noise: claimed against exact delta", sceptic),
    Item("best-radial", "The best certified radial law against the exact Gaussian", family),
)
