"""Claims of the GeoDP paper: privacy of Algorithm 1, and what Theorems 1 to 3, Lemma 1 and the corollaries say."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.claims.format import Claim, Values
from shapedp.mechanisms import AngleWindows, MeanAngles, calibrate
from shapedp.mechanisms.angles import polar
from shapedp.noise import Gaussian
from shapedp.numerics.hyperspherical import to_angles
from shapedp.privacy import GaussianLoss, loss_of
from shapedp.recipes.geodp import direction_mse, efficiency_difference, geodp, model_efficiency, noise_multiplier
from shapedp.sensitivity import L2

PAPER = "geodp"
Floats = NDArray[np.float64]


def _sensitivity(p: Values) -> Values:
    """How far the direction of the mean turns between C e_1 and C e_2, the other gradients cancelling."""
    d = int(p["dim"])
    first, second = (polar(np.eye(1, d, axis)[0] / p["batch"]) for axis in (0, 1))
    claimed = math.sqrt(d + 2) * p["beta"] * math.pi / p["batch"]
    return {"claimed": claimed, "reached": float(np.linalg.norm(first[1:] - second[1:]))}


def _algorithm_1(p: Values) -> Values:
    epsilon = noise_multiplier(1.0, p["delta"]) / p["sigma"]
    m = geodp(
        dim=int(p["dim"]), sensitivity=0.1, batch=int(p["batch"]), beta=p["beta"], epsilon=epsilon, delta=p["delta"]
    )
    found = {"claimed": p["delta"], "exact_at_least": m.certificate.bracket.lower}
    return {"epsilon": epsilon, "angle_noise": m.spread, **found}


def _same_guarantee(p: Values) -> Values:
    """Norm and direction each at mu = 1/sigma, beside DP-SGD at mu = 1/sigma."""
    alone, both = GaussianLoss(1 / p["sigma"]), GaussianLoss(math.sqrt(2) / p["sigma"])
    return {"dp_sgd": alone.epsilon(p["delta"]).upper, "geodp": both.epsilon(p["delta"]).upper}


def _budget_share(p: Values) -> Values:
    """The direction's part of mu^2: its sensitivity over its noise is 1/sigma, as is that of the norm."""
    d, sigma, batch = p["dim"], p["sigma"], p["batch"]
    reach = math.sqrt(d + 2) * math.pi / batch
    norm, direction = (1 / batch) / (sigma / batch), reach / (reach * sigma)
    return {"claimed": (d - 1) / d, "share": direction**2 / (direction**2 + norm**2)}


def _printed_variance(p: Values) -> Values:
    """The exact delta of variance 2 Delta log(1.25/delta)/epsilon^2."""
    law = Gaussian(math.sqrt(2 * p["sensitivity"] * math.log(1.25 / p["delta"])) / p["epsilon"], 1)
    return {"claimed": p["delta"], "exact": loss_of(law, L2(p["sensitivity"], 1)).delta(p["epsilon"]).lower}


def _multiplier(p: Values) -> Values:
    """The exact delta of the Gaussian mechanism where sigma = sqrt(2 log(1.25/delta))/epsilon."""
    epsilon = noise_multiplier(1.0, p["delta"]) / p["sigma"]
    return {"epsilon": epsilon, "claimed": p["delta"], "exact": GaussianLoss(1 / p["sigma"]).delta(epsilon).lower}


def _vectors(p: Values, seed: int, count: int) -> Floats:
    return np.random.default_rng(seed).standard_normal((count, int(p["dim"])))


def _theorem_1(p: Values) -> Values:
    noise, gradient, weights, optimum = _vectors(p, 0, 4)
    rate, clip, batch = p["rate"], p["clip"], int(p["batch"])
    parts = efficiency_difference(
        noise=noise, gradient=gradient, weights=weights, optimum=optimum, rate=rate, clip=clip, batch=batch
    )
    plain = weights - rate * gradient
    left = model_efficiency(plain - rate * clip / batch * noise, optimum) - model_efficiency(plain, optimum)
    return {"left": left, "right": parts.total}


def _corollary_1(p: Values) -> Values:
    """At the optimum with a zero gradient and noise of its mean square norm."""
    d = int(p["dim"])
    zero = np.zeros(d)
    parts = efficiency_difference(
        noise=np.full(d, p["sigma"]),
        gradient=zero,
        weights=zero,
        optimum=zero,
        rate=p["rate"],
        clip=p["clip"],
        batch=int(p["batch"]),
    )
    return {"magnitude": parts.magnitude, "direction": parts.direction}


def _turn(gradients: Floats, noise: Floats) -> float:
    """Definition 4 for noise added to gradients."""
    return direction_mse(to_angles(gradients + noise)[1], to_angles(gradients)[1])


def _corollary_2(p: Values) -> Values:
    """Direction MSE of flat noise on gradients of norm 1, clipped to each C."""
    unit = _vectors(p, 0, 400)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    noise = _vectors(p, 1, 400) * p["sigma"] / p["batch"]
    return {f"clip_{c:g}": _turn(unit * min(1.0, c), noise * c) for c in (10.0, 1.0, 0.1)}


def _example_1(p: Values) -> Values:
    n = np.array([p["n_1"], p["n_2"]])
    g = np.array([1.0, math.sqrt(3)])
    first, second = g + n, g / 2 + n / 2
    return {"theta_1": math.atan2(first[1], first[0]), "theta_2": math.atan2(second[1], second[0])}


def _lemma_1(p: Values) -> Values:
    """DP at C/B sigma per coordinate; GeoDP adds (d - 1) spread^2 to the angles."""
    d, batch = int(p["dim"]), int(p["batch"])
    gradients = _vectors(p, 0, 400)
    gradients /= np.linalg.norm(gradients, axis=1, keepdims=True)
    spread = math.sqrt(d + 2) * p["beta"] * math.pi * p["sigma"] / batch
    return {"dp": _turn(gradients, _vectors(p, 1, 400) * p["sigma"] / batch), "geodp": (d - 1) * spread**2}


def _unbiased(p: Values) -> Values:
    """E v_z = x_z e^(-z s^2/2): how much more the last coordinates shrink than the first."""
    m = geodp(
        dim=int(p["dim"]), sensitivity=0.1, batch=int(p["batch"]), beta=p["beta"], epsilon=1.0, delta=1e-5, sigma=1.0
    )
    return {"last_over_first": math.exp(-(m.dim - 2) * m.spread**2 / 2)}


def _theorem_2(p: Values) -> Values:
    """The integral of sqrt(B/(2 pi v)) exp(-B^2 x^2/(2 v)), v = 1, by the trapezoidal rule."""
    b = p["batch"]
    x = np.linspace(-10 / b, 10 / b, 4001)
    density = math.sqrt(b / (2 * math.pi)) * np.exp(-(b**2) * x**2 / 2)
    return {"integral": float(density.sum() * (x[1] - x[0]))}


def after_step(scales: Floats, norm: float, rate: float, way: float) -> float:
    """E|w - eta v - w*|^2, w - w* = way times g: v has norm and angles of g with noise of these scales, all g_z equal.

    E v_z = g_z exp(-(s_1^2 + ... + s_z^2)/2) and E|v|^2 = |g|^2 + s_0^2.
    """
    d = len(scales)
    shrink = np.exp(-np.cumsum(np.square(scales[1:])) / 2)
    kept = float(shrink.sum() + shrink[-1]) / d
    return norm**2 * (way**2 - 2 * rate * way * kept + rate**2) + rate**2 * float(scales[0]) ** 2


def flat_step(dim: int, sd: float, norm: float, rate: float, way: float) -> float:
    """The same for noise of standard deviation sd on each coordinate."""
    return norm**2 * (way - rate) ** 2 + rate**2 * dim * sd**2


def _theorem_3(p: Values) -> Values:
    d, batch, sigma, clip = int(p["dim"]), int(p["batch"]), p["sigma"], p["clip"]
    m = geodp(dim=d, sensitivity=clip, batch=batch, beta=p["beta"], epsilon=1.0, delta=1e-5, sigma=sigma)
    geo = after_step(m.law.scales, clip, p["rate"], 1.0)
    return {"geodp": geo, "dp": flat_step(d, clip * sigma / batch, clip, p["rate"], 1.0)}


def _certified(p: Values) -> Values:
    """All records share one gradient of norm C, best for the angle mechanisms; every law meets the claim exactly."""
    d, batch, clip = int(p["dim"]), int(p["batch"]), p["clip"]
    size, claim = {"dim": d, "clip": clip, "batch": batch}, {"epsilon": p["epsilon"], "delta": p["delta"]}
    mean, window = MeanAngles.calibrate(**size, **claim), AngleWindows.calibrate(**size, **claim)  # type: ignore[arg-type]
    flat = calibrate("gaussian", L2(clip, d), epsilon=p["epsilon"], delta=p["delta"]).law.scales[0]
    divided = mean.law.scales.copy()
    divided[0] /= batch
    found = {"mean_angles": divided, "angle_windows": window.law.scales / batch}
    errors = {name: after_step(scales, clip, p["rate"], 1.0) for name, scales in found.items()}
    return {**errors, "flat": flat_step(d, float(flat) / batch, clip, p["rate"], 1.0)}


def _claim(
    name: str,
    statement: str,
    source: str,
    parameters: Values,
    found: Values,
    holds: bool,
    witness: str,
    compute: Callable[[Values], Values],
    judge: Callable[[Values], bool],
    printed: dict[str, tuple[float, float]] | None = None,
    about: Any = "other",
) -> Claim:
    verdict: Any = "holds" if holds else "false"
    return Claim(
        f"{PAPER}/{name}", statement, source, parameters, printed or {}, found, verdict, witness, compute, judge, about
    )


def _private(values: Values) -> bool:
    return values["exact_at_least"] <= values["claimed"]


def _setting(name: str, dim: int, batch: int, beta: float, sigma: float, found: tuple[float, float, float]) -> Claim:
    return _claim(
        name,
        f"GeoDP with sigma = {sigma:g}, B = {batch}, beta = {beta:g}, d = {dim} is ({found[0]:.4g}, 1e-5)-DP per step",
        "Algorithm 1, Table 2" if dim == 21840 else "Algorithm 1, section 5",
        {"dim": dim, "batch": batch, "beta": beta, "sigma": sigma, "delta": 1e-5},
        {"claimed": 1e-5, **dict(zip(("epsilon", "angle_noise", "exact_at_least"), found, strict=True))},
        False,
        f"delta is at least {found[2]:.6g}: with B - 1 gradients that cancel one record turns the mean by pi/2, "
        f"and the noise on an angle has standard deviation {found[1]:.3g}",
        _algorithm_1,
        _private,
        about="privacy",
    )


CLAIMS: tuple[Claim, ...] = (
    _claim(
        "sensitivity",
        "Replacing a record turns the direction of the mean by at most sqrt(d + 2) beta pi/B",
        "Section 4.2, step 3, and Algorithm 1, line 6",
        {"dim": 20000, "batch": 16384, "beta": 1.0},
        {"claimed": 0.02711856, "reached": 2.221441},
        False,
        "from C e_1 to C e_2 two angles change by pi/2 each, whatever B is",
        _sensitivity,
        lambda values: values["reached"] <= values["claimed"],
        about="privacy",
    ),
    _setting("algorithm-1-beta-1", 20000, 16384, 1.0, 1.0, (4.844805, 0.02711856, 1.0)),
    _setting("algorithm-1-beta-0.1", 20000, 16384, 0.1, 1.0, (4.844805, 0.002711856, 1.0)),
    _setting("table-2-8192-0.1-10", 21840, 8192, 0.1, 10.0, (0.4844805, 0.05667691, 1.0)),
    _setting("table-2-8192-0.1-1", 21840, 8192, 0.1, 1.0, (4.844805, 0.005667691, 1.0)),
    _setting("table-2-16384-0.1-10", 21840, 16384, 0.1, 10.0, (0.4844805, 0.02833845, 1.0)),
    _setting("table-2-16384-0.1-1", 21840, 16384, 0.1, 1.0, (4.844805, 0.002833845, 1.0)),
    _setting("table-2-8192-0.5-10", 21840, 8192, 0.5, 10.0, (0.4844805, 0.2833845, 0.999999)),
    _setting("table-2-8192-0.5-1", 21840, 8192, 0.5, 1.0, (4.844805, 0.02833845, 1.0)),
    _claim(
        "same-guarantee",
        "With its own sensitivities GeoDP at sigma = 1 spends what DP-SGD at sigma = 1 spends",
        "Section 4.2, step 3; abstract",
        {"sigma": 1.0, "delta": 1e-5},
        {"dp_sgd": 4.377178, "geodp": 6.57297},
        False,
        "norm and direction each spend mu = 1/sigma, together sqrt(2)/sigma: epsilon 6.57, not 4.38, at delta 1e-5",
        _same_guarantee,
        lambda values: values["geodp"] <= values["dp_sgd"],
        about="privacy",
    ),
    _claim(
        "budget-share",
        "(d - 1)/d of the privacy budget goes to the direction",
        "Section 4.2",
        {"dim": 20000, "sigma": 1.0, "batch": 16384},
        {"claimed": 0.99995, "share": 0.5},
        False,
        "norm and direction have the same ratio of sensitivity to noise: one half of mu^2 each",
        _budget_share,
        lambda values: abs(values["share"] / values["claimed"] - 1) < 0.01,
    ),
    _claim(
        "gaussian-variance",
        "Variance 2 Delta log(1.25/delta)/epsilon^2 gives (epsilon, delta)-DP",
        "Section 2.1",
        {"sensitivity": 10.0, "epsilon": 1.0, "delta": 1e-5},
        {"claimed": 1e-5, "exact": 0.02819109},
        False,
        "Delta is printed for Delta^2: at Delta = 10 the exact delta is 0.028",
        _printed_variance,
        lambda values: values["exact"] <= values["claimed"],
        about="privacy",
    ),
    _claim(
        "noise-multiplier",
        "The Gaussian mechanism at sigma = sqrt(2 log(1.25/delta))/epsilon is (epsilon, delta)-DP, also at sigma = 0.1",
        "Section 2.1, Figure 1(c)",
        {"sigma": 0.1, "delta": 1e-5},
        {"epsilon": 48.44805, "claimed": 1e-5, "exact": 0.5220289},
        False,
        "the formula is proved for epsilon < 1; at sigma = 0.1 it claims (48.4, 1e-5) and the exact delta is 0.52",
        _multiplier,
        lambda values: values["exact"] <= values["claimed"],
        about="privacy",
    ),
    _claim(
        "theorem-1",
        "The cost of noise in a step is eta^2 (2 C/B <n, g> + C^2 |n|^2/B^2) + 2 eta C/B <n, w* - w>",
        "Theorem 1",
        {"dim": 100, "rate": 0.1, "clip": 0.1, "batch": 256},
        {"left": -0.0002160728, "right": -0.0002160728},
        True,
        "an identity: both sides agree to rounding",
        _theorem_1,
        lambda values: math.isclose(values["left"], values["right"], rel_tol=1e-9),
    ),
    _claim(
        "corollary-1",
        "DP-SGD cannot stably stay at the optimum",
        "Corollary 1",
        {"dim": 7850, "sigma": 1.0, "rate": 0.1, "clip": 0.1, "batch": 256},
        {"magnitude": 1.197815e-05, "direction": 0.0},
        True,
        "at the optimum a step costs eta^2 C^2 sigma^2 d/B^2 on average, for any unbiased noise",
        _corollary_1,
        lambda values: values["magnitude"] + values["direction"] > 0,
    ),
    _claim(
        "corollary-2",
        "Tuning the clip cannot reduce the impact of noise on the direction",
        "Corollary 2",
        {"dim": 1000, "sigma": 1.0, "batch": 256},
        {"clip_10": 9.771674, "clip_1": 0.8386536, "clip_0.1": 0.8386536},
        False,
        "for gradients of norm 1 lowering C from 10 to 1 divides the direction MSE by 11.7; below the norms, where all "
        "gradients are clipped, C no longer matters (Example 1)",
        _corollary_2,
        lambda values: values["clip_1"] > 0.9 * values["clip_10"],
    ),
    _claim(
        "example-1",
        "Clipping to 2 or to 1 leaves the perturbed direction at 0.97",
        "Example 1",
        {"n_1": 0.3, "n_2": 0.15},
        {"theta_1": 0.966315, "theta_2": 0.966315},
        True,
        "gradient and noise shrink alike",
        _example_1,
        lambda values: math.isclose(values["theta_1"], values["theta_2"], rel_tol=1e-12),
        {"theta_1": (0.97, 5e-3), "theta_2": (0.97, 5e-3)},
    ),
    _claim(
        "lemma-1",
        "Some beta gives GeoDP a smaller direction MSE than DP at the same sigma",
        "Lemma 1",
        {"dim": 1000, "sigma": 1.0, "batch": 256, "beta": 0.01},
        {"dp": 0.8386536, "geodp": 0.01507485},
        True,
        "the noise on the angles is proportional to beta, which nothing bounds from below: it vanishes with beta, and "
        "with it the privacy",
        _lemma_1,
        lambda values: values["geodp"] < values["dp"],
    ),
    _claim(
        "unbiased",
        "GeoDP adds unbiased noise to the direction, DP does not",
        "Section 4.2",
        {"dim": 20000, "batch": 16384, "beta": 1.0},
        {"last_over_first": 0.0006403932},
        False,
        "each angle is unbiased, the vector is not: E v_z = x_z e^(-z s^2/2), so that at d = 20000 the last ones "
        "shrink to 6.4e-4 of the first; the mean of a vector under DP is the vector itself",
        _unbiased,
        lambda values: values["last_over_first"] > 0.99,
    ),
    _claim(
        "theorem-2",
        "The mean of B gradients has density sqrt(B/(2 pi v)) exp(-B^2 (x - m)^2/(2 v)) as B grows",
        "Theorem 2",
        {"batch": 16384},
        {"integral": 0.0078125},
        False,
        "B^2 is printed for B: the integral is 1/sqrt(B), 0.0078 at B = 16384",
        _theorem_2,
        lambda values: abs(values["integral"] - 1) < 1e-6,
    ),
    _claim(
        "theorem-3",
        "A step of GeoDP always ends closer to the optimum than one of DP, on average",
        "Theorem 3",
        {"dim": 7850, "batch": 256, "sigma": 1.0, "clip": 0.1, "beta": 1.0, "rate": 0.5},
        {"geodp": 0.01249846, "dp": 0.002799454},
        False,
        "with beta = 1 the noise turns the gradient anywhere: the expected squared distance is 0.0125 against 0.0028 "
        "of DP at the same sigma",
        _theorem_3,
        lambda values: values["geodp"] < values["dp"],
    ),
    _claim(
        "theorem-3-certified",
        "At the same certified (1, 1e-5) noise on norm and angles ends closer to the optimum than flat noise",
        "Theorem 3, its premise taken at its word",
        {"dim": 7850, "batch": 4096, "clip": 0.1, "epsilon": 1.0, "delta": 1e-5, "rate": 0.5},
        {"mean_angles": 0.01250002, "angle_windows": 0.002815605, "flat": 0.00251628},
        False,
        "full-range angles turn the gradient anywhere; windowed angles, where all records agree, cost 19 times the "
        "excess of flat noise over 0.0025",
        _certified,
        lambda values: min(values["mean_angles"], values["angle_windows"]) < values["flat"],
    ),
)
