"""Every library function that a guarantee leans on: the accuracy assumed, and the worst error against ball arithmetic.

    python experiments/trust/special_functions.py [--quick]

Prints a table (function, where used, range, error assumed, error measured, verdict); exit code 1 if any error exceeds
what the code assumes. Seeded. Quick: about 20 s; otherwise twenty times the points, some minutes.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from flint import acb, arb, ctx
from scipy import fft, special

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.reference import gamma_reference

from shapedp.numerics.chisquare import log_stirling
from shapedp.numerics.gammatail import deviance, log_peak, log_quantile, log_radii, lower_mills, upper_mills
from shapedp.numerics.laplace_sums import LaplaceSum
from shapedp.numerics.quadrature import legendre
from shapedp.numerics.sphere import Cap

Rng = np.random.Generator
SEED = 17
UNIT = 2.0**-53
BITS = 300


@dataclass(frozen=True)
class Row:
    """One function over one range; `measure(rng, n)` is its worst error in the sense of `kind`, at about n points."""

    name: str
    used: str
    over: str
    kind: str
    assumed: float
    measure: Callable[[Rng, int], float]


def power(value: float) -> str:
    """A number as a power of two."""
    return f"2^{math.log2(value):.1f}" if value > 0 else "0"


def worst(found: Sequence[float], truth: Sequence[Any], *, least: float = 0.0) -> float:
    """The largest relative error; `least` > 0 measures smaller truths in that unit, math.inf all in absolute terms."""
    errors = [0.0]
    for value, exact in zip(found, truth, strict=True):
        size = arb(1) if math.isinf(least) else max(abs(exact), arb(least), key=lambda x: float(x))
        error = abs(arb(float(value)) - exact) / size if math.isfinite(value) else arb(math.inf)
        errors.append(float(error.upper()))
    return math.inf if any(math.isnan(e) for e in errors) else max(errors)


def compared(
    function: Callable[[Any], Any], exact: Callable[[arb], arb], points: Callable[[Rng, int], Any], least: float = 0.0
) -> Callable[[Rng, int], float]:
    """The measure of a function of one variable."""

    def measure(rng: Rng, n: int) -> float:
        x = np.asarray(points(rng, n), dtype=np.float64)
        return worst(np.asarray(function(x)).tolist(), [exact(arb(float(v))) for v in x], least=least)

    return measure


def between(low: float, high: float) -> Callable[[Rng, int], Any]:
    """Uniform points, both ends among them."""
    return lambda rng, n: np.concatenate([[low, high], rng.uniform(low, high, n)])


def across(low: float, high: float, sign: float = 1.0) -> Callable[[Rng, int], Any]:
    """Log-uniform points, both ends among them."""
    return lambda rng, n: sign * np.concatenate([[low, high], np.exp(rng.uniform(math.log(low), math.log(high), n))])


def normal_cdf(x: arb) -> arb:
    """Phi(x), relatively accurate on both sides."""
    return (-x / arb(2).sqrt()).erfc() / 2


def scaled_erfc(x: arb) -> arb:
    """e^(x^2) erfc(x); by two terms of its expansion beyond 1e20."""
    if x > 1e20:
        return (1 - 1 / (2 * x * x)) / (x * arb.pi().sqrt())
    return (x * x).exp() * x.erfc()


def ndtri_error(low: float, least: float) -> Callable[[Rng, int], float]:
    """(Phi(x) - u)/phi(x) at x = ndtri(u): the error of x, one Newton step away."""

    def measure(rng: Rng, n: int) -> float:
        u = across(low, 0.5)(rng, n)
        u = np.append(u, rng.uniform(0.4, 0.5, n // 4))
        x = special.ndtri(u)
        truth = []
        for value, at in zip(x.tolist(), u.tolist(), strict=True):
            z = arb(value)
            density = (-z * z / 2).exp() / (2 * arb.pi()).sqrt()
            truth.append(z - (normal_cdf(z) - arb(at)) / density)
        return worst(x.tolist(), truth, least=least)

    return measure


def legendre_error(rng: Rng, n: int) -> float:
    """Nodes and weights of all orders in use."""
    errors = []
    for order in (8, 16, 32):
        exact = sorted((arb.legendre_p_root(order, i, True) for i in range(order)), key=lambda pair: float(pair[0]))
        for found, which in zip(legendre(order), (0, 1), strict=True):
            errors.append(worst(found.tolist(), [pair[which] for pair in exact]))
    return max(errors)


def cap_error(rng: Rng, n: int) -> float:
    """Caps near the equator by Arb's incomplete beta function, far ones by its positive series."""
    errors = []
    for dim in (2, 3, 7, 14, 15, 31, 121, 122, 333, 2801, 2802, 10**4, 10**6, 10**9)[:: 1 if n > 100 else 2]:
        c = np.concatenate(
            [[0.0, 0.63245, 0.63246], rng.uniform(0, 0.99, n // 12), rng.uniform(0, 8, n // 12) / dim**0.5]
        )
        c = c[(c < 1) & ((c * math.sqrt(dim) < 12) | (c * c > 0.4))]
        half = arb(dim - 1) / 2
        norm = ((half + arb(0.5)).lgamma() - half.lgamma() - arb.pi().log() / 2).exp()
        truth = []
        for at in c.tolist():
            square = arb(at) ** 2
            if at * at <= 0.4:
                whole = (1 - square).beta_lower(half, arb(0.5), regularized=True) if at else arb(1)
                truth.append(whole / 2 / (1 - square) ** half)
                continue
            term = total = 1 / half
            for i in range(300):
                term = term * (1 - square) * (half + arb(0.5) + i) / (half + 1 + i)
                total = total + term
            truth.append(total * norm * square.sqrt() / 2)
        errors.append(worst(Cap(dim).scaled(c).tolist(), truth))
    return max(errors)


def shapes(n: int) -> list[float]:
    """Shapes of gamma laws."""
    some = [1e-6, 0.3, 5.0, 49.9, 50.0, 3000.0, 1e6]
    return some if n <= 100 else [*some, 1e-3, 1.0, 12.0, 200.0, 1e5, 1e8]


def mills_error(upper: bool) -> Callable[[Rng, int], float]:
    """Tails of the gamma law out to e^-700."""

    def measure(rng: Rng, n: int) -> float:
        errors = []
        for k in shapes(n):
            levels = np.concatenate([[0.0, 26.0], rng.uniform(0, 26, 4 if k < 1e5 else 2)])
            z = log_radii(k, levels if upper else -levels)
            found = upper_mills(k, z) if upper else lower_mills(k, z)
            errors.append(worst(found.tolist(), [gamma_reference.mills(k, at, upper=upper) for at in z.tolist()]))
        return max(errors)

    return measure


def quantile_error(rng: Rng, n: int) -> float:
    """The error of log(Y/k) at 128-bit uniforms, in units of max(1, 1/k)."""
    errors = [0.0]
    for k in shapes(n):
        small = np.concatenate([[0.5, 2.0**-129], 10.0 ** -rng.uniform(0.4, 38, 3 if k < 1e5 else 1)])
        for below, above in ((small, 1 - small), (1 - small, small)):
            for at, p, q in zip(log_quantile(k, below, above).tolist(), below.tolist(), above.tolist(), strict=True):
                missed = gamma_reference.log_tail(k, at, upper=at > 0) - arb(q if at > 0 else p).log()
                errors.append(abs(float(missed * gamma_reference.mills(k, at, upper=at > 0))) * min(1.0, k))
    return max(errors)


def log_peak_error(rng: Rng, n: int) -> float:
    """Absolute error of log(k^k e^-k/Gamma(k))."""
    k = np.concatenate([across(1e-9, 1e10)(rng, n), [11.999999, 12.0]])
    return worst([log_peak(v) for v in k.tolist()], [gamma_reference.log_peak(v) for v in k.tolist()], least=math.inf)


def atoms_error(rng: Rng, n: int) -> float:
    """Masses of the atoms of a sum of n Laplace losses of value a: C(n, j) 2^-n e^(-a (n - j))."""
    errors = []
    for terms in (1, 20, 700, 8000):
        a = 0.01 / terms
        split = LaplaceSum.of(np.full(terms, a)).split()
        assert split is not None
        masses = split[2]
        chosen = np.unique(np.concatenate([[0, terms], rng.integers(0, terms + 1, max(n // 10, 8))]))
        chosen = chosen[masses[chosen] > 1e-290]
        truth = [arb.bin_uiui(terms, int(j)) * arb(2) ** -terms * (-arb(a) * int(terms - j)).exp() for j in chosen]
        errors.append(worst(masses[chosen].tolist(), truth))
    return max(errors)


def binomial_error(rng: Rng, n: int) -> float:
    """bdtrc at probabilities 1 - p < 1/2, by the incomplete beta function of Arb."""
    found, truth = [], []
    for _ in range(max(n // 6, 12)):
        size = int(10 ** rng.uniform(0.5, 5))
        q = float(rng.uniform(0.05, 0.49))
        k = int(min(size - 1, math.ceil(size / 2 + rng.uniform(0, 6) * math.sqrt(size))))
        value = float(special.bdtrc(k, size, q))
        if value > 1e-250:
            found.append(value)
            truth.append(arb(q).beta_lower(arb(k + 1), arb(size - k), regularized=True))
    return worst(found, truth)


def clopper_error(rng: Rng, n: int) -> float:
    """The tail probability at betaincinv's answer, against the alpha that was asked for."""
    found, truth = [], []
    for _ in range(max(n // 6, 12)):
        size, alpha = int(10 ** rng.uniform(1, 6)), float(10 ** rng.uniform(-9, -1))
        k = int(rng.integers(1, size + 1)) if rng.uniform() < 0.5 else int(rng.integers(1, 1 + min(size, 50)))
        p = float(special.betaincinv(k, size - k + 1, alpha))
        found.append(alpha)
        truth.append(arb(p).beta_lower(arb(k), arb(size - k + 1), regularized=True))
    return worst(found, truth)


def fourier_error(inverse: bool) -> Callable[[Rng, int], float]:
    """The error of a real transform in the L2 norm, per log2(size) and unit norm."""

    def measure(rng: Rng, n: int) -> float:
        errors = []
        for size in (16, 90, 256, 385, 1024) if n <= 100 else (16, 90, 256, 385, 1024, 3000, 4096, 6561, 10000):
            x = rng.uniform(0, 1, size) * np.exp(-rng.uniform(0, 40) * np.arange(size) / size)
            spectrum = fft.rfft(x)
            if inverse:
                half = [acb(arb(float(v.real)), arb(float(v.imag))) for v in spectrum]
                half[0] = acb(half[0].real)
                if size % 2 == 0:
                    half[-1] = acb(half[-1].real)
                full = half + [v.conjugate() for v in half[1 : (size + 1) // 2][::-1]]
                exact = [v.real for v in acb.dft(full, True)]
                gaps = [arb(float(v)) - e for v, e in zip(fft.irfft(spectrum, size), exact, strict=True)]
                norm = math.sqrt(float(np.vdot(spectrum, spectrum).real)) / math.sqrt(size)
                missed = math.sqrt(sum(float(g) ** 2 for g in gaps))
            else:
                exact = acb.dft([acb(arb(float(v))) for v in x])[: size // 2 + 1]
                gaps = [abs(acb(float(v.real), float(v.imag)) - e) for v, e in zip(spectrum, exact, strict=True)]
                missed = math.sqrt(sum(float(g) ** 2 for g in gaps))
                norm = math.sqrt(size) * math.sqrt(float(x @ x))
            errors.append(missed / (math.log2(size) * norm))
        return max(errors)

    return measure


def log_add_error(rng: Rng, n: int) -> float:
    """logaddexp of pairs, in units of max(1, |result|)."""
    a, b = rng.uniform(-700, 700, n), rng.uniform(-40, 40, n)
    truth = [(arb(float(x)).exp() + arb(float(y)).exp()).log() for x, y in zip(a, a + b, strict=True)]
    return worst(np.logaddexp(a, a + b).tolist(), truth, least=1.0)


def hyperbolic_error(rng: Rng, n: int) -> float:
    """math.sinh and math.cosh."""
    x = [float(v) for v in across(1e-8, 20)(rng, n)]
    sines = worst([math.sinh(v) for v in x], [arb(v).sinh() for v in x])
    return max(sines, worst([math.cosh(v) for v in x], [arb(v).cosh() for v in x]))


ROWS: tuple[Row, ...] = (
    Row("scipy.special.ndtri", "sampling.quantile, noise.radial", "u in [2^-118, 1/2]", "absolute", 2.0**-44,
        ndtri_error(2.0**-118, math.inf)),
    Row("scipy.special.ndtri", "ledger.charges", "u in [e^-600, 1/2]", "relative, from 1/32", 2.0**-41,
        ndtri_error(math.exp(-600), 2.0**-5)),
    Row("scipy.special.ndtr", "privacy.losses.gaussian", "x in [0, 40]", "relative", 2.0**-51,
        compared(special.ndtr, normal_cdf, between(0, 40))),
    Row("scipy.special.ndtr", "mechanisms.adaptive_mixing, papers.gaussian_mixing", "x in [-37, 8]", "relative",
        2.0**-41, compared(special.ndtr, normal_cdf, between(-37, 8))),
    Row("scipy.special.ndtr", "numerics.inversion", "x in [-40, 40]", "absolute", 2.0**-52,
        compared(special.ndtr, normal_cdf, between(-40, 40), math.inf)),
    Row("scipy.special.log_ndtr", "papers.geodp", "x in [-1e4, -1e-3]", "relative", 2.0**-50,
        compared(special.log_ndtr, lambda x: normal_cdf(x).log(), across(1e-3, 1e4, -1.0))),
    Row("scipy.special.erfcx", "privacy.losses.gaussian, numerics.sphere, numerics.chisquare", "x in [1e-9, 1e150]",
        "relative", 9 * UNIT, compared(special.erfcx, scaled_erfc, across(1e-9, 1e150))),
    Row("scipy.special.erfcx", "privacy.losses.gaussian, numerics.sphere, numerics.chisquare", "x in [0, 30]",
        "relative", 9 * UNIT, compared(special.erfcx, scaled_erfc, between(0, 30))),
    Row("scipy.special.expit", "learn.losses", "x in [-700, 40]", "relative", 2.0**-50,
        compared(special.expit, lambda x: 1 / (1 + (-x).exp()), between(-700, 40))),
    Row("scipy.special.logit", "noise.logistic", "u in [2^-24, 1/2]", "absolute", 2.0**-44,
        compared(special.logit, lambda u: (u / (1 - u)).log(), across(2.0**-24, 0.5), math.inf)),
    Row("scipy.special.bdtrc", "papers.geodp (lower end)", "n to 1e5, value to 1e-250", "relative", 1e-6,
        binomial_error),
    Row("scipy.special.betaincinv", "audit.bounds", "n to 1e6, alpha to 1e-9", "relative, of alpha", 1e-6,
        clopper_error),
    Row("scipy.fft.rfft", "accounting.fourier", "sizes 16 to 1e4", "L2, per log2(size)", 16 * UNIT,
        fourier_error(False)),
    Row("scipy.fft.irfft", "accounting.fourier, numerics.inversion", "sizes 16 to 1e4", "L2, per log2(size)", 16 * UNIT,
        fourier_error(True)),
    Row("numpy.exp", "everywhere", "x in [-700, 700]", "relative", 2.0**-51, compared(np.exp, arb.exp, between(-700,
        700))),
    Row("numpy.expm1", "everywhere", "x, -x in [1e-12, 700]", "relative", 2.0**-51,
        compared(np.expm1, lambda x: x.exp() - 1, lambda rng, n: np.concatenate(
            [across(1e-12, 700)(rng, n), across(1e-12, 700, -1.0)(rng, n)]))),
    Row("numpy.log", "everywhere", "x in [1e-300, 1e300]", "relative", 2.0**-51,
        compared(np.log, arb.log, lambda rng, n: np.append(across(1e-300, 1e300)(rng, n), 1 + rng.uniform(-0.1, 0.1,
        n)))),
    Row("numpy.log1p", "everywhere", "x in (-1, 1e6]", "relative", 2.0**-51,
        compared(np.log1p, lambda x: (1 + x).log(), lambda rng, n: np.concatenate(
            [across(1e-12, 1e6)(rng, n), across(1e-12, 0.999, -1.0)(rng, n)]))),
    Row("numpy.logaddexp", "privacy.losses.radial, numerics.excess", "x, -x to 700", "relative, from 1", 2.0**-51,
        log_add_error),
    Row("numpy.arctan", "numerics.contour", "x in [1e-12, 1e6]", "relative", 2.0**-51,
        compared(np.arctan, arb.atan, across(1e-12, 1e6))),
    Row("numpy.cos", "accounting.series", "x in [-pi, pi]", "absolute", 2.0**-51,
        compared(np.cos, arb.cos, between(-math.pi, math.pi), math.inf)),
    Row("numpy.sin", "accounting.series", "x in [-pi, pi]", "absolute", 2.0**-51,
        compared(np.sin, arb.sin, between(-math.pi, math.pi), math.inf)),
    Row("math.sinh, math.cosh", "privacy.conversions", "x in [1e-8, 20]", "relative", 2.0**-50, hyperbolic_error),
    Row("math.lgamma", "accounting.accountants, noise.radial", "x in [1, 1e7]", "relative, from 1", 2.0**-48,
        compared(np.vectorize(math.lgamma), arb.lgamma, across(1.0, 1e7), 1.0)),
    Row("math.gamma", "numerics.gammatail, numerics.sphere", "x in [1e-9, 15]", "relative", 2.0**-49,
        compared(np.vectorize(math.gamma), arb.gamma, across(1e-9, 15.0))),
    Row("numerics.chisquare.log_stirling", "privacy.losses.mixing", "j in [0.25, 1e9]", "absolute", 2.0**-48,
        compared(log_stirling, lambda j: (j + 1).lgamma() + j - j * j.log(), across(0.25, 1e9), math.inf)),
    Row("numerics.laplace_sums atoms", "privacy.losses.sums", "1 to 8,000 terms", "relative", 2.0**-38, atoms_error),
    Row("numerics.quadrature.legendre", "numerics.excess, numerics.sphere, numerics.gammatail", "8, 16, 32 points",
        "relative", UNIT, legendre_error),
    Row("numerics.sphere.Cap.scaled", "numerics.excess", "dim 2 to 1e9", "relative", 2.0**-44, cap_error),
    Row("numerics.gammatail.deviance", "numerics.excess, numerics.gammatail", "x, -x in [1e-9, 5]", "relative",
        2.0**-50,
        compared(deviance, lambda x: x.exp() - 1 - x, lambda rng, n: np.concatenate(
            [across(1e-9, 5)(rng, n), across(1e-9, 5, -1.0)(rng, n)]))),
    Row("numerics.gammatail.log_peak", "numerics.excess, numerics.gammatail", "k in [1e-9, 1e10]", "absolute",
        32 * UNIT,
        log_peak_error),
    Row("numerics.gammatail.lower_mills", "numerics.excess, noise.radial", "k in [1e-6, 1e8], to e^-676", "relative",
        2.0**-46, mills_error(False)),
    Row("numerics.gammatail.upper_mills", "numerics.excess, noise.radial", "k in [1e-6, 1e8], to e^-676", "relative",
        2.0**-46, mills_error(True)),
    Row("numerics.gammatail.log_quantile", "noise.radial, mechanisms.objective", "k in [1e-6, 1e8], to 2^-129",
        "absolute, per max(1, 1/k)", 2.0**-41, quantile_error),
)  # fmt: skip

HEAD = ("function", "where used", "range", "error", "assumed", "measured", "verdict")


def cells(row: Row, measured: str = "", verdict: str = "") -> str:
    """A line of the table."""
    return f"| {' | '.join((row.name, row.used, row.over, row.kind, power(row.assumed), measured, verdict))} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure every row, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    points = 60 if parser.parse_args(arguments).quick else 1200
    lines, failed, old = [], 0, ctx.prec
    ctx.prec = BITS
    try:
        for number, row in enumerate(ROWS):
            error = row.measure(np.random.default_rng([SEED, number]), points)
            good = error <= row.assumed
            failed += not good
            lines.append(cells(row, power(error), "holds" if good else "FAILS"))
            print(f"{number + 1}/{len(ROWS)} {row.name}", file=sys.stderr, flush=True)
    finally:
        ctx.prec = old
    print(f"| {' | '.join(HEAD)} |")
    print("|" + "---|" * len(HEAD))
    print("\n".join(lines))
    print(f"\n{len(ROWS)} rows, {failed} fail")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
