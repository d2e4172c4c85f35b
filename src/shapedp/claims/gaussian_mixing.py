"""Claims of the paper on Gaussian mixing: its analysis holds, its Algorithm 1 does not."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from shapedp.claims.format import Claim, Values
from shapedp.privacy.losses.mixing import MixingLoss
from shapedp.recipes.mixing import modified_gauss_mix, rdp_epsilon, rdp_gamma, sheffet_gamma, theorem_1
from shapedp.recipes.sheffet import ThresholdMixing, sheffet

PAPER = "gaussian-mixing"
_TARGET = {"epsilon": 1.0, "delta": 1e-6}


def _gammas(p: Values) -> Values:
    k, epsilon, delta = int(p["rows"]), p["epsilon"], p["delta"]
    return {
        "sheffet": sheffet_gamma(k, epsilon, delta),
        "renyi": rdp_gamma(k, epsilon, delta),
        "exact": MixingLoss.calibrate(k, epsilon, delta).gamma,
        "exact_replace": MixingLoss.calibrate(k, epsilon, delta, neighbours="replace").gamma,
    }


def _lemma_1(p: Values) -> Values:
    """The largest ratio of the exact epsilon to that of Lemma 1, over a grid of gamma."""
    k, delta = int(p["rows"]), p["delta"]
    ratios = [
        MixingLoss(k, 1 / gamma).epsilon(delta).upper / rdp_epsilon(k, gamma, delta)
        for gamma in np.geomspace(5, 500, 9).tolist()
    ]
    return {"largest_ratio": max(ratios), "least_ratio": min(ratios)}


def _corollary_1(p: Values) -> Values:
    worst = 0.0
    for gamma in np.geomspace(2.51, 1e4, 60).tolist():
        loss = MixingLoss(int(p["rows"]), 1 / gamma)
        rho, w = loss.tcdp
        for alpha in np.linspace(1.0, w, 52)[1:-1].tolist():
            worst = max(worst, loss.renyi(alpha).upper / (rho * alpha) if alpha > 1 else 0.0)
    return {"largest_over_bound": worst}


def _algorithm_1(p: Values) -> Values:
    made = modified_gauss_mix(rows=int(p["rows"]), row_bound=p["row_bound"], epsilon=p["epsilon"], delta=p["delta"])
    least, shown = made.ideal.witness(p["epsilon"])
    at = p["eigenvalue"]
    return {
        "claimed": p["delta"],
        "exact_at_least": shown,
        "no_noise": made.ideal.no_noise(at),
        "delta_without_noise": MixingLoss(made.rows, 1 / at).delta(p["epsilon"]).lower,
        "worst_eigenvalue": least,
    }


def _theorem_1(p: Values) -> Values:
    made = theorem_1(rows=int(p["rows"]), row_bound=1.0, gamma=p["gamma"], eta=p["eta"], delta=p["delta"])
    return {"claimed": p["delta"], "share": made.eigenvalue_share, "exact_at_least": made.certificate.bracket.lower}


def _theorem_2(p: Values) -> Values:
    bound = math.hypot(p["feature_bound"], p["target_bound"])
    made = modified_gauss_mix(rows=int(p["rows"]), row_bound=bound, epsilon=p["epsilon"], delta=p["delta"])
    return {"claimed": p["delta"], "exact_at_least": made.certificate.bracket.lower}


def _printed(p: Values, analysis: str) -> ThresholdMixing:
    return sheffet(
        rows=int(p["rows"]),
        row_bound=p["row_bound"],
        epsilon=p["epsilon"],
        delta=p["delta"],
        analysis=analysis,
        printed=True,
    )


def _algorithm_4(p: Values) -> Values:
    return {"claimed": p["delta"], "exact": _printed(p, "sheffet").certificate.bracket.upper}


def _algorithm_5(p: Values) -> Values:
    return {"claimed": p["delta"], "exact_at_least": _printed(p, "renyi").certificate.bracket.lower}


def _meets(values: Values) -> bool:
    return values["exact_at_least"] <= values["claimed"]


def _false(
    name: str,
    statement: str,
    source: str,
    parameters: Values,
    found: Values,
    witness: str,
    compute: Callable[[Values], Values],
) -> Claim:
    return Claim(f"{PAPER}/{name}", statement, source, parameters, {}, found, "false", witness, compute, _meets)


CLAIMS: tuple[Claim, ...] = (
    *(
        Claim(
            id=f"{PAPER}/lemma-1-{k}",
            statement=f"Lemma 1 needs a smaller gamma than Sheffet's bound at (1, 1e-6), k = {k}",
            source="Lemma 1, Figure 1",
            parameters={"rows": k, **_TARGET},
            printed={},
            found=found,
            verdict="holds",
            witness="true, and the exact chi-square profile needs less again",
            compute=_gammas,
            judge=lambda v: v["exact"] < v["renyi"] < v["sheffet"],
        )
        for k, found in (
            (100, {"sheffet": 140.68255, "renyi": 40.099037, "exact": 36.540172, "exact_replace": 44.411286}),
            (1000, {"sheffet": 379.13623, "renyi": 109.10926, "exact": 100.99146, "exact_replace": 134.65504}),
        )
    ),
    Claim(
        id=f"{PAPER}/proposition-1",
        statement="Lemma 1 converted by Proposition 1 bounds epsilon at delta = 1e-6, k = 100, gamma from 5 to 500",
        source="Section 4, Proposition 1",
        parameters={"rows": 100, "delta": 1e-6},
        printed={},
        found={"largest_ratio": 0.91367373, "least_ratio": 0.88483004},
        verdict="holds",
        witness="valid; the exact epsilon is 9% to 12% lower (the Renyi curve itself is attained)",
        compute=_lemma_1,
        judge=lambda v: v["largest_ratio"] <= 1,
    ),
    Claim(
        id=f"{PAPER}/corollary-1",
        statement="For gamma > 5/2 mixing is (k/(2 gamma^2), 2 gamma/5)-tCDP",
        source="Corollary 1",
        parameters={"rows": 10},
        printed={},
        found={"largest_over_bound": 0.97232446},
        verdict="holds",
        witness="the Renyi curve stays below on a grid of gamma and alpha",
        compute=_corollary_1,
        judge=lambda v: v["largest_over_bound"] <= 1,
    ),
    _false(
        "algorithm-1-units",
        "Algorithm 1 with the gamma of Theorem 1 is (1, 1e-6)-DP for k = 1000 and row bound 10",
        "Theorem 1, Algorithm 1",
        {"rows": 1000, "row_bound": 10.0, "eigenvalue": 69.35, **_TARGET},
        {
            "claimed": 1e-6,
            "exact_at_least": 0.0019717569,
            "no_noise": 0.97727314,
            "delta_without_noise": 0.00025284264,
            "worst_eigenvalue": 47.056245,
        },
        "lambda, in units of C^2, is subtracted from the unit-free gamma: at lambda_min = 69.35 C^2 no noise is added "
        "with probability 0.977, and delta is 2.5e-4 then; the worst eigenvalue shows 2.0e-3",
        _algorithm_1,
    ),
    _false(
        "theorem-1-price",
        "Theorem 1 holds for every eta > 0 (k = 1000, gamma = 1100, eta = 0.3, C = 1)",
        "Theorem 1",
        {"rows": 1000, "gamma": 1100.0, "eta": 0.3, "delta": 1e-6},
        {"claimed": 1e-6, "share": 18.340766, "exact_at_least": 2.4750404e-05},
        "the eigenvalue is priced by the classic Gaussian formula at a share of 18, where it does not hold",
        _theorem_1,
    ),
    _false(
        "theorem-2",
        "LinearMixing (Algorithm 2) is (1, 1e-6)-DP for every k: k = 1000, C_X = 10, C_Y = 1",
        "Theorem 2, Algorithm 2",
        {"rows": 1000, "feature_bound": 10.0, "target_bound": 1.0, **_TARGET},
        {"claimed": 1e-06, "exact_at_least": 0.0019791285},
        "it calls Algorithm 1 with C^2 = C_X^2 + C_Y^2 and inherits its error of units",
        _theorem_2,
    ),
    Claim(
        id=f"{PAPER}/algorithm-4",
        statement="Sheffet's algorithm as printed is (1, 1e-6)-DP for k = 1000 and row bound 10",
        source="Algorithm 4 (Sheffet 2017, Algorithm 1)",
        parameters={"rows": 1000, "row_bound": 10.0, **_TARGET},
        printed={},
        found={"claimed": 1e-06, "exact": 5e-07},
        verdict="holds",
        witness="gamma xi is added where sqrt(gamma) xi would do: far more noise than needed",
        compute=_algorithm_4,
        judge=lambda v: v["exact"] <= v["claimed"],
    ),
    _false(
        "algorithm-5",
        "Sheffet's algorithm with the new analysis is (1, 1e-6)-DP for k = 1000 and row bound 10",
        "Algorithm 5",
        {"rows": 1000, "row_bound": 10.0, **_TARGET},
        {"claimed": 1e-6, "exact_at_least": 0.00080087541},
        "lambda_min is compared with the unit-free gamma: the threshold is 100 times too low",
        _algorithm_5,
    ),
)
