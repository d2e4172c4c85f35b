"""Claims about private classification: section 5 and appendices B, C, E of the product-noise paper, and objective
perturbation as the mixing paper runs it."""

from __future__ import annotations

import math

from shapedp.claims.format import Claim, Values
from shapedp.mechanisms.objective import ObjectivePerturbation
from shapedp.noise import Gaussian
from shapedp.privacy.losses import GaussianLoss
from shapedp.privacy.losses.radial import RadialLoss
from shapedp.recipes.product_noise import calibrated

PAPER = "product-noise"

# Table 5 with n of MNIST as its errors need it (70,000, where 65,000 is printed), and Lambda of section 6.1.
DATASETS: dict[str, tuple[int, int, float]] = {
    "Adult": (45_220, 104, 1e-2),
    "KDDCup99": (70_000, 114, 1e-2),
    "MNIST": (70_000, 784, 1e-4),
    "Synthetic-H": (70_000, 20_000, 1e-4),
    "Real-sim": (72_309, 20_958, 1e-4),
    "RCV1": (50_000, 47_236, 1e-4),
}


def output_sensitivity(dataset: str) -> float:
    """2 L/(n_train Lambda), L = 1, n_train = 0.8 n: what the tables used."""
    n, _, strength = DATASETS[dataset]
    return 2 / (0.8 * n * strength)


def output_errors(dataset: str, epsilon: float, delta: float = 1e-5) -> tuple[float, float]:
    """sigma sqrt(M) of output perturbation with classic and with analytic Gaussian noise."""
    root, radius = math.sqrt(DATASETS[dataset][1]), output_sensitivity(dataset)
    classic = radius * math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    return classic * root, radius / GaussianLoss.calibrate(epsilon, delta).mu * root


def _table(p: Values) -> Values:
    """Cells of Tables 6 and 8 printed with two digits or more, over all data sets."""
    found: dict[str, float] = {}
    for dataset in DATASETS:
        classic, analytic = output_errors(dataset, p["epsilon"], p["delta"])
        found[f"{dataset} classic"], found[f"{dataset} analytic"] = classic, analytic
    return found


def _lemma_9(p: Values) -> Values:
    x = p["rank_beta_over_lambda"]
    return {
        "needed": 1 / (1 - x),
        "claimed": math.exp(x),
        "true_bound": 1 + x / p["rank"],
    }


def _lemma_10(p: Values) -> Values:
    """Two approximate minima on opposite sides: twice as far apart as the noise was calibrated for."""
    mu = GaussianLoss.calibrate(p["epsilon"], p["delta"]).mu
    return {"claimed": p["delta"], "exact": GaussianLoss(2 * mu).delta(p["epsilon"]).lower}


def _corollary_3(p: Values) -> Values:
    dim, epsilon = int(p["dim"]), p["epsilon"]
    noise = calibrated(dim=dim, sensitivity=1.0, epsilon=epsilon, delta=p["delta"], k=p["k"])
    loss = RadialLoss(dim, 1.0, 2.0, 1 / (noise.sigma * math.sqrt(2)), 1e-9)
    return {"claimed": p["delta"], "exact": loss.delta(epsilon).lower}


def _corollary_5(p: Values) -> Values:
    """Linear losses, the exact minimum: an affine image of mean(d) + n_1 leaves, and one record moves it by 2 L/n."""
    dim = int(p["dim"])
    noise = calibrated(dim=dim, sensitivity=1.0, epsilon=p["epsilon"] / 2, delta=p["delta"] / 2, k=p["k"])
    loss = RadialLoss(dim, 1.0, 2.0, 1 / (noise.sigma * math.sqrt(2)), 1e-9)
    return {"claimed": p["delta"], "exact_at_least": loss.delta(p["epsilon"]).lower}


def _kifer(p: Values) -> Values:
    """Row bound 1, logistic loss: sigma and the regulariser of Algorithm 6; the exact minimum, in real numbers."""
    epsilon, delta = p["epsilon"], p["delta"]
    spread = math.sqrt(4 * epsilon + 8 * math.log(2 / delta)) / epsilon
    ratio = math.log1p(0.25 / (1 / (2 * epsilon)))
    made = ObjectivePerturbation(Gaussian(spread, 1), 1.0, 1, ratio, Gaussian(1.0, 1), 0.0, epsilon, delta)
    needed = 1 / GaussianLoss.calibrate(epsilon - ratio, delta).mu
    return {
        "claimed": delta,
        "exact_at_most": made.certificate.bracket.upper,
        "sigma_over_needed": spread / needed,
    }


CLAIMS: tuple[Claim, ...] = (
    Claim(
        id=f"{PAPER}/table-6-errors",
        statement="The l2 errors of output perturbation at epsilon = 0.1, Gaussian noise (Tables 6 and 8)",
        source="Tables 6 and 8, appendix E.2",
        parameters={"epsilon": 0.1, "delta": 1e-5},
        printed={
            "Adult classic": (2.7, 0.05),
            "Adult analytic": (1.8, 0.05),
            "KDDCup99 classic": (1.9, 0.05),
            "KDDCup99 analytic": (1.2, 0.05),
            "MNIST classic": (4.8e2, 0.05),
            "MNIST analytic": (3.1e2, 0.05),
            "Synthetic-H classic": (2.4e3, 0.05),
            "Synthetic-H analytic": (1.5e3, 0.05),
            "Real-sim classic": (2.4e3, 0.05),
            "Real-sim analytic": (1.5e3, 0.05),
            "RCV1 classic": (5.3e3, 0.05),
            "RCV1 analytic": (3.3e3, 0.05),
        },
        found={
            "Adult classic": 2.7315078,
            "Adult analytic": 1.7336647,
            "KDDCup99 classic": 1.8474416,
            "KDDCup99 analytic": 1.1725554,
            "MNIST classic": 484.48053,
            "MNIST analytic": 307.49566,
            "Synthetic-H classic": 2446.9962,
            "Synthetic-H analytic": 1553.0876,
            "Real-sim classic": 2424.9283,
            "Real-sim analytic": 1539.0813,
            "RCV1 classic": 5264.8122,
            "RCV1 analytic": 3341.5315,
        },
        verdict="holds",
        witness="sigma sqrt(M) with sensitivity 2 L/(0.8 n Lambda) and delta = 1e-5, not the 1/n^2 that is stated; for "
        "MNIST n = 70,000 and one class's weights",
        compute=_table,
        judge=lambda v: all(value > 0 for value in v.values()),
        about="other",
    ),
    Claim(
        id=f"{PAPER}/lemma-9",
        statement="The determinant's ratio Lambda/(Lambda - r beta) is at most e^(r beta/Lambda) (r beta/Lambda = 0.5)",
        source="Lemma 9, Algorithm 3",
        parameters={"rank_beta_over_lambda": 0.5, "rank": 2.0},
        printed={},
        found={"needed": 2.0, "claimed": 1.6487213, "true_bound": 1.25},
        verdict="false",
        witness="1/(1 - x) exceeds e^x for every 0 < x < 1; one record changes the determinant by 1 + beta/Lambda only",
        compute=_lemma_9,
        judge=lambda v: v["needed"] <= v["claimed"],
    ),
    Claim(
        id=f"{PAPER}/lemma-10",
        statement="Noise calibrated for n gamma/Lambda hides which of two approximate minima was reached (1, 1e-5)",
        source="Lemma 10",
        parameters={"epsilon": 1.0, "delta": 1e-5},
        printed={},
        found={"claimed": 1e-05, "exact": 0.010394912},
        verdict="false",
        witness="each lies within n gamma/Lambda of its minimum, so their offsets differ by up to twice that; shown "
        "for exactly calibrated Gaussian noise",
        compute=_lemma_10,
        judge=lambda v: v["exact"] <= v["claimed"],
    ),
    *(
        Claim(
            id=f"{PAPER}/corollary-3-{name.lower()}",
            statement=f"Output perturbation with product noise (k from 1000 on) is (0.1, 1e-5)-DP on {name}",
            source="Corollary 3, section 6.1",
            parameters={"dim": DATASETS[name][1], "epsilon": 0.1, "delta": 1e-5, "k": 1000.0},
            printed={},
            found={"claimed": 1e-05, "exact": exact},
            verdict="false",
            witness=f"the exact delta is {exact:.4g}: Theorem 1 drops the volume factor r^(M-1)",
            compute=_corollary_3,
            judge=lambda v: v["exact"] <= v["claimed"],
        )
        for name, exact in (("Adult", 0.16641085), ("MNIST", 0.20290334), ("RCV1", 0.20951615))
    ),
    Claim(
        id=f"{PAPER}/corollary-5",
        statement="AMP with product noise (k from 1000 on, epsilon_3 = epsilon/2) is (1, 1e-5)-DP in dimension 784",
        source="Corollary 5, Algorithm 3",
        parameters={"dim": 784, "epsilon": 1.0, "delta": 1e-5, "k": 1000.0},
        printed={},
        found={"claimed": 1e-05, "exact_at_least": 0.46874168},
        verdict="false",
        witness="for linear losses solved exactly the release is product noise added to a mean, at twice the scale "
        "that epsilon itself would ask for, and still reveals it",
        compute=_corollary_5,
        judge=lambda v: v["exact_at_least"] <= v["claimed"],
    ),
    Claim(
        id="gaussian-mixing/algorithm-6",
        statement="Objective perturbation as in Algorithm 6 is (1, 1e-5)-DP for zero-out neighbours (logistic loss)",
        source="Algorithm 6 (Kifer, Smith and Thakurta 2012)",
        parameters={"epsilon": 1.0, "delta": 1e-5},
        printed={},
        found={"claimed": 1e-05, "exact_at_most": 2.1635551e-11, "sigma_over_needed": 1.6804432},
        verdict="holds",
        witness="true, with 1.7 times the noise that the exact profile asks for at the same regulariser",
        compute=_kifer,
        judge=lambda v: v["exact_at_most"] <= v["claimed"],
    ),
)
