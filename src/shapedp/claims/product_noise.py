"""Claims of the product-noise paper, section 4."""

from __future__ import annotations

import math

from shapedp.claims.format import Claim, Values
from shapedp.noise import radial
from shapedp.numerics.checks import count
from shapedp.privacy.losses import GaussianLoss
from shapedp.privacy.losses.radial import RadialLoss
from shapedp.recipes.product_noise import ProductNoise, claim, r1smg

PAPER = "product-noise"


def _noise(p: Values) -> ProductNoise:
    return ProductNoise(count("dim", int(p["dim"])), 1.0, p["epsilon"], p["k"])


def exact_delta(dim: int, sigma: float, epsilon: float, nu: float = 1.0) -> float:
    """The middle of the bracket of delta(epsilon) of sigma chi_nu noise against a unit shift."""
    bracket = RadialLoss(dim, nu, 2.0, 1 / (sigma * math.sqrt(2)), 1e-9).delta(epsilon)
    return (bracket.lower + bracket.upper) / 2


def _theorem_1(p: Values) -> Values:
    noise = _noise(p)
    return {"claimed": claim(noise), "exact": exact_delta(noise.dim, noise.sigma, noise.epsilon)}


def _figure_9(p: Values) -> Values:
    noise = _noise(p)
    return {"delta_13": noise.claimed_delta, "delta_19": noise.bound_delta(noise.dim / 2)}


def _corollary_1(p: Values) -> Values:
    def ratio(dim: int) -> float:
        return ProductNoise(dim, 1.0, 1.0, p["k"]).squared_norm_ratio / (2 * math.log(1.25 / p["delta"]))

    first = next(dim for dim in range(3, 1000) if ratio(dim) < 1)
    return {"first_dim_below_1": float(first), "ratio_at_dim": ratio(int(p["dim"]))}


def _corollary_2(p: Values) -> Values:
    limit = 1 / (4 * math.e * math.log(1.25 / p["delta"]))
    far = ProductNoise(int(p["dim"]), 1.0, 1.0, p["k"]).squared_norm_ratio / (2 * math.log(1.25 / p["delta"]))
    return {"inverse_limit": 1 / limit, "ratio_over_limit": far / limit}


def _r1smg(p: Values) -> Values:
    mechanism = r1smg(dim=int(p["dim"]), sensitivity=1.0, epsilon=p["epsilon"], delta=p["delta"])
    sigma = mechanism.law.scales[0] / math.sqrt(2)
    return {"claimed": p["delta"], "exact": exact_delta(int(p["dim"]), float(sigma), p["epsilon"])}


def _calibrated_chi_1(p: Values) -> Values:
    dim = int(p["dim"])
    ratio = RadialLoss.approximate(dim, 1.0, 2.0, p["epsilon"], p["delta"])
    mu = GaussianLoss.calibrate(p["epsilon"], p["delta"]).mu
    size = radial.Radial(dim, 1.0, 2.0, 1.0).mean_squared_radius / ratio**2
    return {"squared_norm_over_gaussian": size * mu**2 / dim}


def _meets(values: Values) -> bool:
    return values["exact"] <= values["claimed"]


def _theorem(dim: int, epsilon: float, claimed: float, exact: float) -> Claim:
    return Claim(
        id=f"{PAPER}/theorem-1-{dim}-{epsilon:g}",
        statement=f"Theorem 1 with k = 1e5 gives ({epsilon:g}, {claimed:.3g})-DP in dimension {dim}",
        source="Theorem 1, eq. (13)",
        parameters={"dim": dim, "epsilon": epsilon, "k": 1e5},
        printed={},
        found={"claimed": claimed, "exact": exact},
        verdict="false",
        witness=f"the exact delta is {exact:.4g}: the proof drops the volume factor r^(M-1)",
        compute=_theorem_1,
        judge=_meets,
    )


CLAIMS: tuple[Claim, ...] = (
    _theorem(14, 0.1, 3.154425e-06, 0.03083049),
    _theorem(100, 1.0, 2.391079e-06, 0.6234708),
    _theorem(1000, 1.0, 9.642916e-07, 0.7309632),
    _theorem(1000000, 1.0, 3.047878e-08, 0.7441002),
    *(
        Claim(
            id=f"{PAPER}/figure-9-{dim}",
            statement=f"At M = {dim:g}, epsilon = 0.1, k = 1000: delta is {a:g} by (13) and {b:g} by (19)",
            source="Appendix A.6, Figure 9",
            parameters={"dim": dim, "epsilon": 0.1, "k": 1000.0},
            printed={"delta_13": (a, 5e-4), "delta_19": (b, 5e-4)},
            found={"delta_13": x, "delta_19": y},
            verdict="holds",
            witness="the formulas give the printed numbers (what they claim about privacy is false)",
            compute=_figure_9,
            judge=lambda values: values["delta_13"] < values["delta_19"],
            about="other",
        )
        for dim, a, b, x, y in (
            (10**6, 1.144e-6, 2.318e-6, 1.144123e-6, 2.318099e-6),
            (10**8, 1.144e-7, 2.318e-7, 1.143788e-7, 2.318103e-7),
        )
    ),
    Claim(
        id=f"{PAPER}/corollary-1",
        statement="With delta = 1e-5 and k = 1e5 the noise is smaller than the classic Gaussian's from M = 14 on",
        source="Corollary 1",
        parameters={"delta": 1e-5, "k": 1e5, "dim": 14},
        printed={},
        found={"first_dim_below_1": 12.0, "ratio_at_dim": 0.4123442},
        verdict="holds",
        witness="true of the sizes, and from an even smaller M (the claimed privacy is false)",
        compute=_corollary_1,
        judge=lambda values: values["first_dim_below_1"] <= 14 and values["ratio_at_dim"] < 1,
        about="other",
    ),
    Claim(
        id=f"{PAPER}/corollary-2",
        statement="As M grows the squared noise tends to 1/127 of the classic Gaussian's at delta = 1e-5",
        source="Corollary 2, Remark 3",
        parameters={"delta": 1e-5, "k": 1e5, "dim": 400},
        printed={"inverse_limit": (127, 8e-3)},
        found={"inverse_limit": 127.6, "ratio_over_limit": 1.186750},
        verdict="holds",
        witness="true of the sizes: 1/(4 e log(1.25/delta)) = 1/127.6",
        compute=_corollary_2,
        judge=lambda values: 1 < values["ratio_over_limit"] < 1.2,
        about="other",
    ),
    Claim(
        id=f"{PAPER}/r1smg-100",
        statement="R1SMG gives (1, 1e-5)-DP in dimension 100",
        source="Ji and Li 2024, cited as [32]",
        parameters={"dim": 100, "epsilon": 1.0, "delta": 1e-5},
        printed={},
        found={"claimed": 1e-5, "exact": 0.9709913},
        verdict="false",
        witness="the exact delta is 0.97: the same volume factor is missing",
        compute=_r1smg,
        judge=_meets,
    ),
    Claim(
        id=f"{PAPER}/chi-1-calibrated",
        statement="A chi_1 radius makes spherical noise smaller than Gaussian noise at the same privacy",
        source="Section 4.1",
        parameters={"dim": 14, "epsilon": 1.0, "delta": 1e-5},
        printed={},
        found={"squared_norm_over_gaussian": 131570600.0},
        verdict="false",
        witness="calibrated exactly it needs 1.3e8 times the Gaussian's squared norm",
        compute=_calibrated_chi_1,
        judge=lambda values: values["squared_norm_over_gaussian"] < 1,
        about="other",
    ),
)
