"""Claims of the paper on Gaussian mixing: its analysis and what its algorithms mean hold, its public code does not.

The code is github.com/omrilev1/GaussMix at 746a96b, read and not copied.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shapedp.mechanisms.objective import ObjectivePerturbation
from shapedp.noise import Gaussian
from shapedp.numerics import first_true
from shapedp.papers.gaussian_mixing import recipes
from shapedp.papers.gaussian_mixing.losses import PublishedMixingLoss, ThresholdLoss
from shapedp.papers.gaussian_mixing.recipes import modified_gauss_mix, rdp_epsilon, rdp_gamma, sheffet_gamma
from shapedp.papers.gaussian_mixing.sheffet import ThresholdMixing, sheffet
from shapedp.papers.values import Values
from shapedp.privacy import GaussianLoss
from shapedp.privacy.losses.mixing import MixingLoss


def gammas(p: Values) -> Values:
    k, epsilon, delta = int(p["rows"]), p["epsilon"], p["delta"]
    return {
        "sheffet": sheffet_gamma(k, epsilon, delta),
        "renyi": rdp_gamma(k, epsilon, delta),
        "exact": MixingLoss.calibrate(k, epsilon, delta).gamma,
        "exact_replace": MixingLoss.calibrate(k, epsilon, delta, neighbours="replace").gamma,
    }


def lemma_1(p: Values) -> Values:
    """The largest ratio of the exact epsilon to that of Lemma 1, over a grid of gamma."""
    k, delta = int(p["rows"]), p["delta"]
    ratios = [
        MixingLoss(k, 1 / gamma).epsilon(delta).upper / rdp_epsilon(k, gamma, delta)
        for gamma in np.geomspace(5, 500, 9).tolist()
    ]
    return {"largest_ratio": max(ratios), "least_ratio": min(ratios)}


def corollary_1(p: Values) -> Values:
    worst = 0.0
    for gamma in np.geomspace(2.51, 1e4, 60).tolist():
        loss = MixingLoss(int(p["rows"]), 1 / gamma)
        rho, w = loss.tcdp
        for alpha in np.linspace(1.0, w, 52)[1:-1].tolist():
            worst = max(worst, loss.renyi(alpha).upper / (rho * alpha) if alpha > 1 else 0.0)
    return {"largest_over_bound": worst}


def _sketch(p: Values, row_bound: float) -> dict[str, Any]:
    return {"rows": int(p["rows"]), "row_bound": row_bound, "epsilon": p["epsilon"], "delta": p["delta"]}


def algorithm_1(p: Values) -> Values:
    """As meant, everything in units of C^2; then as printed, at a row bound above 1."""
    meant, made = (modified_gauss_mix(**_sketch(p, bound)) for bound in (1.0, p["row_bound"]))
    least, shown = made.ideal.witness(p["epsilon"])
    at = p["eigenvalue"]
    return {
        "claimed": p["delta"],
        "exact": meant.certificate.bracket.upper,
        "printed_at_least": shown,
        "no_noise": made.ideal.no_noise(at),
        "delta_without_noise": MixingLoss(made.rows, 1 / at).delta(p["epsilon"]).lower,
        "worst_eigenvalue": least,
    }


def theorem_1(p: Values) -> Values:
    made = recipes.theorem_1(rows=int(p["rows"]), row_bound=1.0, gamma=p["gamma"], eta=p["eta"], delta=p["delta"])
    return {"claimed": p["delta"], "share": made.eigenvalue_share, "exact_at_least": made.certificate.bracket.lower}


def theorem_2(p: Values) -> Values:
    """As meant; then as printed, with the bounds of the experiments and with a longer row."""
    bounds = (1.0, math.hypot(p["feature_bound"], p["target_bound"]), math.hypot(p["longer_row"], p["target_bound"]))
    meant, printed, longer = (modified_gauss_mix(**_sketch(p, bound)).certificate.bracket for bound in bounds)
    found = {"printed_at_most": printed.upper, "printed_longer_at_least": longer.lower}
    return {"claimed": p["delta"], "exact": meant.upper, **found}


def code_gamma(rows: int, epsilon: float, delta: float, square: float = 2.0) -> float:
    """gamma of the public code's LinearMixing: Theorem 1's, but the eigenvalue is priced at sensitivity 1, not C^2."""
    share = math.sqrt(2 * rows * math.log(3.75 / delta)) / square
    return first_true(lambda g: share / g + rdp_epsilon(rows, g, delta / 3) <= epsilon, 1 + 1e-9, 1e12, relative=1e-12)


def code(p: Values) -> Values:
    """The public code, C^2 = 2: the eigenvalue has the deviation sqrt(gamma C^2/sqrt(k)), not gamma C^2/sqrt(k)."""
    k, epsilon, delta = int(p["rows"]), p["epsilon"], p["records"] ** -2.0
    gamma = code_gamma(k, epsilon, delta)
    spreads = math.sqrt(gamma / (2 * math.sqrt(k))), gamma / math.sqrt(k)  # in units of C^2
    tau = math.sqrt(2 * math.log(3 / delta))
    used, mended = (PublishedMixingLoss(k, 1.0, gamma, spread, tau).delta(epsilon) for spread in spreads)
    found = {"claimed": delta, "exact_at_least": used.lower, "mended_at_most": mended.upper}
    return {"gamma": gamma, "deviation": spreads[0], "deviation_meant": spreads[1], **found}


def _tcdp(k: int, gamma: float, delta: float) -> float:
    """Corollary 1 converted by Proposition 2."""
    rho, w, log = k / (2 * gamma**2), 2 * gamma / 5, math.log(1 / delta)
    return rho + 2 * math.sqrt(rho * log) if log <= (w - 1) ** 2 * rho else rho * w + log / (w - 1)


def proposition_2(p: Values) -> Values:
    """Both branches: k decides which."""
    gamma, found = p["gamma"], {"claimed": p["delta"]}
    for name in ("few", "many"):
        k = int(p[f"rows_{name}"])
        found[f"epsilon_{name}"] = _tcdp(k, gamma, p["delta"])
        found[f"exact_{name}"] = MixingLoss(k, 1 / gamma).delta(found[f"epsilon_{name}"]).upper
    return found


def section_4(p: Values) -> Values:
    """k/(2 gamma^2) + sqrt(2 k log(1/delta))/gamma for mixing, at few rows and at many."""
    gamma, found = p["gamma"], {"claimed": p["delta"]}
    for name in ("few", "many"):
        k = int(p[f"rows_{name}"])
        epsilon = k / (2 * gamma**2) + math.sqrt(2 * k * math.log(1 / p["delta"])) / gamma
        found |= {f"epsilon_{name}": epsilon, f"exact_{name}": MixingLoss(k, 1 / gamma).delta(epsilon).lower}
    return found


def section_4_algorithm(p: Values) -> Values:
    """k/(2 gamma^2) + 2 sqrt(2 k log(4/delta))/gamma for Algorithm 1 as meant, eta = gamma/sqrt(k)."""
    k, gamma, delta = int(p["rows"]), p["gamma"], p["delta"]
    epsilon = k / (2 * gamma**2) + 2 * math.sqrt(2 * k * math.log(4 / delta)) / gamma
    loss = PublishedMixingLoss(k, 1.0, gamma, gamma / math.sqrt(k), math.sqrt(2 * math.log(3 / delta)))
    return {"epsilon": epsilon, "claimed": delta, "exact": loss.delta(epsilon).upper}


def theorem_3(p: Values) -> Values:
    """epsilon~ of Theorem 1, the bound of the proof, and gamma over sqrt(k log(1/delta))/epsilon as delta shrinks."""
    gamma, delta, found = p["gamma"], p["delta"], {}
    for k in (int(p["rows"]), 1):
        found[f"epsilon_{k}"] = recipes.theorem_1_epsilon(gamma / math.sqrt(k), gamma, k, delta)
        found[f"bound_{k}"] = 3 * math.sqrt(2 * k * math.log(3.75 / delta)) / gamma
        for name, small in (("", delta), ("_smaller", delta**16)):
            size = math.sqrt(k * math.log(1 / small))
            found[f"gamma_{k}{name}"] = recipes.theorem_1_gamma(k, 1.0, small) / size
    return found


def corollary_2(p: Values) -> Values:
    """The sign mended, no noise: the surrogate's minimum against the least logistic loss, b = (-log 2, 1/2, -1/8)."""
    from scipy import optimize

    rng, reach = np.random.default_rng(0), p["reach"]
    x = rng.uniform(-1, 1, (int(p["records"]), 3)) / math.sqrt(3)
    y = np.where(rng.random(len(x)) < 1 / (1 + np.exp(-x @ [1.0, -1.0, 0.5])), 1.0, -1.0)

    def loss(theta: Any) -> float:
        return float(np.logaddexp(0, -y * (x @ theta)).mean())

    surrogate = 2 * np.linalg.solve(x.T @ x, x.T @ y)
    least = optimize.minimize(loss, surrogate, method="BFGS", options={"gtol": 1e-10}).fun
    error = reach**2 / 8 - math.log(math.cosh(reach / 2))
    return {"reached": float(abs(x @ surrogate).max()), "reach": reach, "excess": loss(surrogate) - least, "q": error}


def _printed(p: Values, analysis: str) -> ThresholdMixing:
    return sheffet(**_sketch(p, p["row_bound"]), analysis=analysis, printed=True)


def algorithm_4(p: Values) -> Values:
    return {"claimed": p["delta"], "exact": _printed(p, "sheffet").certificate.bracket.upper}


def algorithm_5(p: Values) -> Values:
    """As meant, in units of C^2; as printed, at a row bound above 1; and as in the public code, where C^2 = 2."""
    k, epsilon, delta = int(p["rows"]), p["epsilon"], p["delta"]
    gamma, slack, scale = rdp_gamma(k, epsilon / 2, delta), 4 * math.log(1 / delta) / epsilon, 4 / epsilon
    meant = ThresholdLoss(k, gamma, slack, scale, gamma).delta(epsilon).upper
    code = ThresholdLoss(k, gamma / 2, slack / 2, scale / 2, gamma).delta(epsilon)
    found = {"printed_at_least": _printed(p, "renyi").certificate.bracket.lower, "code_at_most": code.upper}
    return {"claimed": delta, "exact": meant, **found, "code_at_least": code.lower}


def kifer(p: Values) -> Values:
    """Row bound 1, logistic loss: sigma and the regulariser of Algorithm 6; the exact minimum, in real numbers."""
    epsilon, delta = p["epsilon"], p["delta"]
    spread = math.sqrt(4 * epsilon + 8 * math.log(2 / delta)) / epsilon
    ratio = math.log1p(0.25 / (1 / (2 * epsilon)))
    made = ObjectivePerturbation(Gaussian(spread, 1), 1.0, 1, ratio, Gaussian(1.0, 1), 0.0, epsilon, delta)
    needed = 1 / GaussianLoss.calibrate(epsilon - ratio, delta).mu
    exact = made.certificate.bracket.upper
    return {"claimed": delta, "exact_at_most": exact, "sigma_over_needed": spread / needed}
