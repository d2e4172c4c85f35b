"""Claims of section VI.A-B of the i.n.i.d. noise paper: coordinate descent and principal components."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from shapedp.claims.format import Claim, Values
from shapedp.mechanisms import Additive, calibrate
from shapedp.privacy import loss_of
from shapedp.recipes import inid
from shapedp.sensitivity import L1, L2, Box, Sensitivity
from shapedp.sensitivity.symmetric import symmetric, symmetric_matrix

PAPER = "inid-noise"
Floats = NDArray[np.float64]
# Mean squares of the features of the two data sets, to five digits.
MEAN_SQUARES = {
    "california": (18.591, 978.61, 35.595, 1.4273, 3.3144e6, 117.29, 1274.2, 14301.0),
    "electricity": (0.36489, 20.02, 0.33688, 0.004948, 0.20765, 0.00011632, 0.19349, 0.27405),
}
FEATURES, RECORDS, RANK = 100, 1000, 10


def _descent(p: Values) -> Values:
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
    return np.where(rows == columns, 1.0, math.sqrt(0.5)) / math.sqrt(FEATURES * (FEATURES + 1) / 2)


def _matrix_noise(mechanism: Additive) -> float:
    """The expected squared Frobenius norm of the noise in the whole matrix."""
    rows, columns = np.triu_indices(FEATURES)
    twice = np.where(rows == columns, 1.0, 2.0)
    return float(twice @ np.broadcast_to(mechanism.law.variances(), twice.size))


def _energies(p: Values) -> Values:
    sets: dict[str, Sensitivity] = {
        "iid": L2(1.0, FEATURES * (FEATURES + 1) // 2),
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


def _table_3(p: Values) -> Values:
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


def _table_3_laplace(p: Values) -> Values:
    """The l1 sensitivity is (d + 1)/2 for unit rows, and that of the paper's own profile is as large."""
    widest = (FEATURES + 1) / 2
    entries = FEATURES * (FEATURES + 1) // 2
    iid = calibrate("laplace", L1(widest, entries), epsilon=p["epsilon"], delta=0.0)
    return {
        "l1_profile": float(_profile().sum()),
        "l1_rows": widest,
        "iid": _recovery(iid, False, int(p["trials"])),
        "printed_error": p["printed_error"],
    }


_CLAIM = {"epsilon": 1.0, "delta": 1e-6}

CLAIMS = (
    Claim(
        id=f"{PAPER}/improved-dp-cd",
        statement="Improved DP-CD lowers the error of the objective below that of DP-CD",
        source="section VI.A, figures 5 and 6",
        parameters=_CLAIM,
        printed={},
        found={
            "california_objective": 44.32369,
            "california_parameters": 0.3080175,
            "electricity_objective": 13.07822,
            "electricity_parameters": 0.1937606,
        },
        verdict="false",
        witness="with C_i ~ sqrt(M_i) equal shares are the least noise in units of the objective, and the improved "
        "scales the least in units of the parameters; the published errors are about those of descent without "
        "noise: experiments/inid_learning/descent.py",
        compute=_descent,
        about="other",
        judge=lambda values: values["california_objective"] < 1 and values["electricity_objective"] < 1,
    ),
    Claim(
        id=f"{PAPER}/pca-shaped-noise",
        statement="Clipping the entries of x x^T and shaping the noise leaves less noise than the l2 ball allows",
        source="section VI.B",
        parameters=_CLAIM,
        printed={},
        found={"iid_over_isometric": 1.980198, "clipped_over_isometric": 1.002355},
        verdict="false",
        witness="scaling entries off the diagonal by sqrt 2 leaves as little, and clips nothing",
        compute=_energies,
        about="other",
        judge=lambda values: values["clipped_over_isometric"] < 1,
    ),
    Claim(
        id=f"{PAPER}/table-3-gaussian",
        statement="Clipped to 1/sqrt K and 1/sqrt(2 K) and shaped, Gaussian noise recovers subspaces to 0.3269",
        source="Table III, epsilon = 1",
        parameters={**_CLAIM, "trials": 5.0, "printed_error": 0.3269},
        printed={},
        found={
            "clipped": 0.5501311,
            "not_clipped": 0.2893091,
            "isometric": 0.2889094,
            "delta_not_clipped": 2.04792e-05,
            "claimed_delta": 1e-06,
            "printed_error": 0.3269,
        },
        verdict="false",
        witness="clipping costs more than it saves; the same noise on entries that are not clipped recovers to 0.29, "
        "at 20 times the claimed delta; the isometric release recovers as well and is private",
        compute=_table_3,
        about="other",
        judge=lambda values: values["clipped"] <= 1.1 * values["printed_error"],
    ),
    Claim(
        id=f"{PAPER}/table-3-laplace",
        statement="Pure i.i.d. Laplace noise recovers subspaces to 0.6185",
        source="Table III, epsilon = 1",
        parameters={"epsilon": 1.0, "trials": 5.0, "printed_error": 0.6185},
        printed={},
        found={"l1_profile": 50.66154, "l1_rows": 50.5, "iid": 0.9406853, "printed_error": 0.6185},
        verdict="false",
        witness="the l1 sensitivity of the 5050 entries is about 50, and noise for it hides the subspace",
        compute=_table_3_laplace,
        about="other",
        judge=lambda values: values["iid"] <= 1.1 * values["printed_error"],
    ),
)
