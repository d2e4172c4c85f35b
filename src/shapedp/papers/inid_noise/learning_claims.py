"""Claims of section VI of the i.n.i.d. noise paper: coordinate descent, principal components, training."""

from __future__ import annotations

import math

import numpy as np

from shapedp.accounting import compose, subsample
from shapedp.mechanisms import Additive, calibrate
from shapedp.numerics import first_true
from shapedp.numerics.arrays import Floats
from shapedp.papers.inid_noise import recipes as inid
from shapedp.papers.values import Values
from shapedp.privacy import LaplaceLoss, loss_of
from shapedp.sensitivity import L1, L2, Box, Sensitivity
from shapedp.sensitivity.symmetric import symmetric, symmetric_matrix

# Mean squares of the features of the two data sets, to five digits.
MEAN_SQUARES = {
    "california": (18.591, 978.61, 35.595, 1.4273, 3.3144e6, 117.29, 1274.2, 14301.0),
    "electricity": (0.36489, 20.02, 0.33688, 0.004948, 0.20765, 0.00011632, 0.19349, 0.27405),
}
FEATURES, RECORDS, RANK = 100, 1000, 10
ENTRIES = FEATURES * (FEATURES + 1) // 2  # of a symmetric matrix


def descent(p: Values) -> Values:
    """Noise of improved DP-CD over DP-CD in one pass, in units of the objective (M_i) and of the parameters."""
    values = {}
    for name, squares in MEAN_SQUARES.items():
        smoothness = np.array(squares)
        profile = 1 / np.sqrt(smoothness)  # lambda_i ~ step_i C_i ~ M_i^-1 M_i^(1/2)
        improved, equal = (
            build(profile=profile, epsilon=p["epsilon"], delta=p["delta"]).law.variances()
            for build in (inid.inid_gaussian, inid.spr_gaussian)
        )
        values[f"{name}_objective"] = float(smoothness @ improved / (smoothness @ equal))
        values[f"{name}_parameters"] = float(improved.sum() / equal.sum())
    return values


def _profile() -> Floats:
    rows, columns = np.triu_indices(FEATURES)
    return np.where(rows == columns, 1.0, math.sqrt(0.5)) / math.sqrt(ENTRIES)


def _matrix_noise(mechanism: Additive) -> float:
    """The expected squared Frobenius norm of the noise in the whole matrix."""
    rows, columns = np.triu_indices(FEATURES)
    twice = np.where(rows == columns, 1.0, 2.0)
    return float(twice @ np.broadcast_to(mechanism.law.variances(), twice.size))


def energies(p: Values) -> Values:
    sets: dict[str, Sensitivity] = {
        "iid": L2(1.0, ENTRIES),
        "clipped": Box(_profile()),
        "isometric": symmetric(1.0, FEATURES),
    }
    found = {
        name: _matrix_noise(calibrate("gaussian", one, epsilon=p["epsilon"], delta=p["delta"]))
        for name, one in sets.items()
    }
    return {f"{name}_over_isometric": found[name] / found["isometric"] for name in ("iid", "clipped")}


def _recovery(mechanism: Additive, clip: bool, trials: int) -> float:
    """The mean subspace recovery error of `trials` seeded trials of the fully random model."""
    first, second = np.triu_indices(FEATURES)
    bounds, errors = _profile(), []
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        basis = np.linalg.qr(rng.standard_normal((FEATURES, RANK)))[0]
        rows = rng.standard_normal((RECORDS, RANK))
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True) @ basis.T
        entries = rows[:, first] * rows[:, second]
        total = (np.clip(entries, -bounds, bounds) if clip else entries).sum(axis=0)
        noisy = symmetric_matrix(mechanism.release(total, rng=rng).value)
        found = np.linalg.eigh(noisy)[1][:, -RANK:]
        errors.append(float(np.linalg.norm(basis - found @ (found.T @ basis)) / math.sqrt(RANK)))
    return float(np.mean(errors))


def table_3(p: Values) -> Values:
    box, ball = Box(_profile()), symmetric(1.0, FEATURES)
    shaped = calibrate("gaussian", box, epsilon=p["epsilon"], delta=p["delta"])
    isometric = calibrate("gaussian", ball, epsilon=p["epsilon"], delta=p["delta"])
    trials = int(p["trials"])
    return {
        "clipped": _recovery(shaped, True, trials),
        "not_clipped": _recovery(shaped, False, trials),
        "isometric": _recovery(isometric, False, trials),
        "delta_not_clipped": loss_of(shaped.law, ball).delta(p["epsilon"]).lower,
        "claimed_delta": p["delta"],
        "printed_error": p["printed_error"],
    }


def table_3_laplace(p: Values) -> Values:
    """The l1 sensitivity is (d + 1)/2 for unit rows, and that of the paper's own profile is as large.

    `implied` is the l1 sensitivity whose noise recovers to the printed error.
    """
    widest, trials = (FEATURES + 1) / 2, int(p["trials"])

    def recovery(width: float) -> float:
        made = calibrate("laplace", L1(width, ENTRIES), epsilon=p["epsilon"], delta=0.0)
        return _recovery(made, False, trials)

    return {
        "implied": first_true(lambda width: recovery(width) >= p["printed_error"], 1.0, widest, relative=0.02),
        "l1_profile": float(_profile().sum()),
        "l1_rows": widest,
        "iid": recovery(widest),
        "printed_error": p["printed_error"],
    }


def pure_training(p: Values) -> Values:
    """Poisson-sampled Laplace steps, in units of the l1 clip: pure epsilons add up, and are attained."""
    rate, steps = p["rate"], int(p["steps"])
    spent = compose([(subsample(LaplaceLoss(1 / p["scale"]), rate, adjacency="add-remove"), steps)], accuracy=1e-2)
    return {
        "scale_of_the_claim": 1 / math.log1p(math.expm1(p["epsilon"] / steps) / rate),
        "delta_at_scale": spent.delta(p["epsilon"]).upper,
        "pure_epsilon_at_scale": steps * math.log1p(rate * math.expm1(1 / p["scale"])),
        "claimed": p["epsilon"],
    }
