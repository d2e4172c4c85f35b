"""One of each thing a page can be about."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shapedp as sdp
from shapedp.accounting import Plan, Step
from shapedp.ledger import Ledger
from shapedp.mechanisms.adaptive_mixing import AdaptiveMixing
from shapedp.mechanisms.angles import AngleWindows
from shapedp.privacy import GaussianLoss

NASTY = '<script>alert(1)</script> & "it\'s" \u202e\x07'
ANSWER = 48151.62342  # a true value that no page may show


@cache
def mechanisms() -> dict[str, Any]:
    """Every family of noise, every set, certified and not."""
    claim = {"epsilon": 1.0, "delta": 1e-6}
    box = sdp.Box([40.0, 300.0, 5000.0, 0.3, 0.15], adjacency="replace")
    return {
        "gaussian": sdp.calibrate("gaussian", box, **claim),
        "gaussian-one": sdp.calibrate("gaussian", sdp.L2(1.0, dim=3, adjacency="add-remove"), **claim),
        "zeros": sdp.calibrate("gaussian", sdp.Box([1.0, 0.0, 0.5]), exact_zeros=True, **claim),
        "blocks": sdp.calibrate("gaussian", sdp.Blocks([1.0, 0.1, 0.01], [3, 20, 9]), **claim),
        "long": sdp.calibrate("gaussian", sdp.Box(np.geomspace(1, 1e-4, 1000)), **claim),
        "tensor": sdp.calibrate("tensor", sdp.Slices([1.0, 0.2], shape=(4, 3, 2), mode=2), **claim),
        "laplace": sdp.calibrate("laplace", sdp.L1(1.0, dim=4), epsilon=0.5, delta=0.0),
        "staircase": sdp.calibrate("staircase", sdp.Box([1.0, 0.5]), epsilon=3.0, delta=0.0),
        "mixed": sdp.calibrate("mixed", sdp.Box([1.0] + [0.01] * 60), **claim),
        "radial": sdp.calibrate("radial", sdp.L2(1.0, dim=8), shape=(8.0, 1.5), **claim),
        "mixing": sdp.Mixing.calibrate(rows=20, row_bound=1.0, records=500, dim=4, **claim),
        "adaptive": AdaptiveMixing.calibrate(rows=20, row_bound=2.0, **claim),
        "angles": AngleWindows.calibrate(dim=5, clip=1.0, batch=100, **claim),
        "refuted": sdp.recipes.product_noise(dim=50, sensitivity=1.0, epsilon=1.0, delta=1e-5),
    }


def plan() -> Plan:
    """Sampled steps and one on everybody."""
    return Plan((Step(GaussianLoss(1.0), 0.02, 60), Step(GaussianLoss(0.2), 1.0, 1)))


def ledger(path: Path, name: str = "patients") -> Ledger:
    """Two data sets; one has entries in two states."""
    made = Ledger.create(path, dataset=name, epsilon=2.0, delta=1e-6, adjacency="replace")
    made.add("empty", epsilon=1.0, delta=0.0, adjacency="add-remove")
    for k, epsilon in enumerate((0.3, 0.2, 0.5, 0.1)):
        mechanism = sdp.calibrate("gaussian", sdp.Box([1.0], adjacency="replace"), epsilon=epsilon, delta=1e-7)
        try:
            with made.spend(name, mechanism) as spend:
                spend.release([ANSWER])
                if k == 2:
                    raise RuntimeError("the block fails")
        except RuntimeError:
            pass
    return made


def estimator(names: list[str] | None = None) -> Any:
    """A fitted linear regression; column names where asked for."""
    import pandas

    rng = np.random.default_rng(4)
    x = rng.uniform(-1, 1, (4000, 3))
    y = x @ [0.5, -0.3, 0.1] + 0.1 * rng.standard_normal(4000)
    x[0, 0] = ANSWER
    model = sdp.learn.LinearRegression(epsilon=1.0, delta=1e-6, feature_bound=2.0, target_bound=1.0)
    return model.fit(x if names is None else pandas.DataFrame(x, columns=names), y)


def model_file(model: Any) -> dict[str, Any]:
    """As `shapedp fit` writes it."""
    return {
        "kind": "linear-regression",
        "target": "price",
        "features": list(model.feature_names_in_),
        "coefficients": model.coef_.tolist(),
        "intercept": model.intercept_,
        "solver": model.solver_,
        "feature_bound": model.feature_bound,
        "epsilon": model.epsilon,
        "delta": model.delta,
        "adjacency": model.adjacency,
        "standard_errors": model.coef_standard_error_.tolist(),
        "intercept_standard_error": model.intercept_standard_error_,
    }


def answers() -> Any:
    """Counts, means, quantiles and the most frequent values by groups with long names."""
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("ibis")
    pytest.importorskip("duckdb")
    labels = ["w" * 70, "two words", NASTY[:60]]
    frame = pandas.DataFrame({"town": labels * 400, "hours": [float(k % 80) for k in range(1200)]})
    frame["cents"] = 1e6 * frame["hours"]  # sums of eleven digits
    t = sdp.table(frame, person=None, bounds={"hours": (0, 80), "cents": (0, 8e7)}, domains={"town": labels})
    asked = t.group_by("town").agg(
        n=sdp.count(), hours=sdp.mean("hours"), middle=sdp.median("hours"), whole=sdp.sum("cents")
    )
    return t.ask(asked, t.top_k("town", 2), epsilon=1.0, delta=1e-6)
