"""Claims of the product-noise paper inside its proofs: Lemmas 5 and 6, Propositions 2, 5 and 6, the q* of Figure 9."""

from __future__ import annotations

import math

import numpy as np
from scipy import integrate, optimize, special

from shapedp.papers.product_noise.claims import noise_of
from shapedp.papers.values import Values


def lemma_5(p: Values) -> Values:
    """(15), (16) and (17) on a grid: each side over the other, to be above or below 1 (equal for (16))."""
    n = np.geomspace(0.5, p["most"], 60)
    ratio = np.exp(special.gammaln(n + 1) - special.gammaln(n + 0.5))
    doubled = (
        special.gammaln(n)
        + special.gammaln(n + 0.5)
        + (2 * n - 1) * math.log(2)
        - math.log(math.pi) / 2
        - special.gammaln(2 * n)
    )
    x = 1 + n
    return {
        "least_over_left": float((ratio / np.sqrt(n + 0.25)).min()),
        "most_over_right": float((ratio / np.sqrt(n + 0.5)).max()),
        "duplication": float(np.exp(abs(doubled).max())),
        "gamma_over_bound": float(np.exp(special.gammaln(x) + x - 1 - (x - 0.5) * np.log(x)).max()),
    }


def lemma_6(p: Values) -> Values:
    """1F1((q + 1)/2; 1/2; lambda^2/2) at q = M/2, and the bound; then (12) and its bound (19), which rest on it."""
    noise, a = noise_of(p), (p["dim"] / 2 + 1) / 2
    x = noise.shift**2 / 2
    tail = {"delta_12": noise.claimed_delta, "delta_19": noise.bound_delta(noise.dim / 2)}
    return {"x": x, "exact": float(special.hyp1f1(a, 0.5, x)), "bound": 1 + 4 * x * a, **tail}


def proposition_5(p: Values) -> Values:
    """E[W^q] by quadrature and by Proposition 2, q = M/2; P[WU >= t], the moment bound (7), and (12)."""
    noise = noise_of(p)
    m, q, shift, t = noise.dim, noise.dim / 2, noise.shift, noise.t
    peak = (shift + math.sqrt(shift**2 + 4 * q)) / 2

    def part(w: float) -> float:
        return math.sqrt(2 / math.pi) * math.exp(q * math.log(w / peak) - (w - shift) ** 2 / 2)

    moment = integrate.quad(part, shift, peak + 40, points=[peak], epsabs=0, epsrel=1e-10, limit=200)[0]
    series = special.hyp1f1((q + 1) / 2, 0.5, shift**2 / 2) / special.gamma((q + 2) / 2)
    series += math.sqrt(2) * shift * special.hyp1f1((q + 2) / 2, 1.5, shift**2 / 2) / special.gamma((q + 1) / 2)
    scale = math.exp(special.gammaln(q + 1) - q / 2 * math.log(2) - q * math.log(peak) - shift**2 / 2)
    log_angle = special.gammaln(m / 2) - special.gammaln((m - 1) / 2)

    def beyond(angle: float) -> float:
        inner = special.ndtr(-max(t * math.sin(angle) - shift, 0.0))
        return float(4 / math.sqrt(math.pi) * math.exp(log_angle) * math.sin(angle) ** (m - 2) * inner)

    tail = integrate.quad(beyond, 0, math.pi / 2, epsabs=0, epsrel=1e-9, limit=200)[0]
    log_power = log_angle + special.gammaln((m - q - 1) / 2) - special.gammaln((m - q) / 2) + q * math.log(peak / t)
    found = {"moment": moment, "moment_bound": float(scale * series), "tail": tail}
    return {**found, "tail_by_moments": moment * math.exp(log_power), "delta_12": noise.claimed_delta}


def best_q(p: Values) -> Values:
    """The q that minimise (12) and (19), t following q; the best of 1,000 from 0 to M; and q* of Proposition 6."""
    noise = noise_of(p)
    found: dict[str, float] = {}
    grid = np.linspace(0, noise.dim, 1000)[1:-1].tolist()
    for name, curve in (("13", noise.moment_delta), ("19", noise.bound_delta)):
        least = optimize.minimize_scalar(curve, bounds=(2, noise.dim - 2), method="bounded", options={"xatol": 1e-3})
        found |= {f"q_{name}": float(least.x), f"grid_{name}": min(grid, key=curve)}
    return {**found, "formula": noise.best_q}
