"""Claims of the paper on Gaussian mixing: its analysis holds, its Algorithm 1 does not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shapedp.mechanisms.objective import ObjectivePerturbation
from shapedp.noise import Gaussian
from shapedp.papers.gaussian_mixing import recipes
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
    made = modified_gauss_mix(**_sketch(p, p["row_bound"]))
    least, shown = made.ideal.witness(p["epsilon"])
    at = p["eigenvalue"]
    return {
        "claimed": p["delta"],
        "exact_at_least": shown,
        "no_noise": made.ideal.no_noise(at),
        "delta_without_noise": MixingLoss(made.rows, 1 / at).delta(p["epsilon"]).lower,
        "worst_eigenvalue": least,
    }


def theorem_1(p: Values) -> Values:
    made = recipes.theorem_1(rows=int(p["rows"]), row_bound=1.0, gamma=p["gamma"], eta=p["eta"], delta=p["delta"])
    return {"claimed": p["delta"], "share": made.eigenvalue_share, "exact_at_least": made.certificate.bracket.lower}


def theorem_2(p: Values) -> Values:
    bound = math.hypot(p["feature_bound"], p["target_bound"])
    made = modified_gauss_mix(**_sketch(p, bound))
    return {"claimed": p["delta"], "exact_at_least": made.certificate.bracket.lower}


def _printed(p: Values, analysis: str) -> ThresholdMixing:
    return sheffet(**_sketch(p, p["row_bound"]), analysis=analysis, printed=True)


def algorithm_4(p: Values) -> Values:
    return {"claimed": p["delta"], "exact": _printed(p, "sheffet").certificate.bracket.upper}


def algorithm_5(p: Values) -> Values:
    return {"claimed": p["delta"], "exact_at_least": _printed(p, "renyi").certificate.bracket.lower}


def kifer(p: Values) -> Values:
    """Row bound 1, logistic loss: sigma and the regulariser of Algorithm 6; the exact minimum, in real numbers."""
    epsilon, delta = p["epsilon"], p["delta"]
    spread = math.sqrt(4 * epsilon + 8 * math.log(2 / delta)) / epsilon
    ratio = math.log1p(0.25 / (1 / (2 * epsilon)))
    made = ObjectivePerturbation(Gaussian(spread, 1), 1.0, 1, ratio, Gaussian(1.0, 1), 0.0, epsilon, delta)
    needed = 1 / GaussianLoss.calibrate(epsilon - ratio, delta).mu
    exact = made.certificate.bracket.upper
    return {"claimed": delta, "exact_at_most": exact, "sigma_over_needed": spread / needed}
