"""Tables I and II of the i.n.i.d. noise paper.

    python experiments/inid_noise/inid_tables.py

Expected: every cell of Table II to the four decimals printed; Table I's formulas against the computed mechanisms.
"""

from __future__ import annotations

import numpy as np

from shapedp import Box, calibrate
from shapedp.papers.recipes import inid

EPSILONS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
PROFILE = np.array([0.85, 0.15])
PRINTED = {
    "staircase": (3.9962, 1.9862, 1.3050, 0.9546, 0.7366, 0.5856),
    "i.i.d. Laplace": (4.0, 2.0, 1.3333, 1.0, 0.8, 0.6667),
    "i.n.i.d. Laplace": (3.4283, 1.7141, 1.1428, 0.8571, 0.6857, 0.5714),
}


def absolute_errors(epsilon: float) -> tuple[float, float, float]:
    """E |n|_1 of the three rows of Table II, each certified as (epsilon, 0)-DP."""
    mechanisms = (
        inid.staircase(dim=2, sensitivity=1.0, epsilon=epsilon, delta=0.0),
        inid.iid_laplace(profile=PROFILE, epsilon=epsilon, delta=0.0),
        calibrate("laplace", Box(PROFILE), epsilon=epsilon, delta=0.0, error="absolute"),
    )
    assert all(mechanism.certificate.verdict == "certified" for mechanism in mechanisms)
    first, second, third = (mechanism.expected_error("absolute") for mechanism in mechanisms)
    return first, second, third


def table_one() -> dict[str, float]:
    """The expected squared error of each mechanism over the formula of Table I."""
    rng = np.random.default_rng(1)
    bounds, epsilon, delta = rng.exponential(size=12), 0.7, 1e-5
    mu, k = inid.bisection_mu(epsilon, delta), bounds.size
    one, two, cubed = bounds.sum(), (bounds**2).sum(), (bounds ** (2 / 3)).sum() ** 3
    formulas = {
        "iid_gaussian": k * two / mu**2,
        "spr_gaussian": k * two / mu**2,
        "inid_gaussian": one**2 / mu**2,
        "iid_laplace": 2 * k * one**2 / epsilon**2,
        "spr_laplace": 2 * k**2 * two / epsilon**2,
        "inid_laplace": 2 * cubed / epsilon**2,
    }
    return {
        name: getattr(inid, name)(profile=bounds, epsilon=epsilon, delta=delta).expected_squared_error / value
        for name, value in formulas.items()
    }


def main() -> None:
    """Check and print."""
    columns = np.array([absolute_errors(epsilon) for epsilon in EPSILONS]).T
    for row, (name, printed) in zip(columns, PRINTED.items(), strict=True):
        np.testing.assert_allclose(row, printed, atol=6e-5)
        print(f"{name:<18}" + "".join(f"{value:9.4f}" for value in row))
    ratios = table_one()
    np.testing.assert_allclose(list(ratios.values()), 1.0, rtol=1e-9)
    print("Table I: computed over formula", {name: round(ratio, 9) for name, ratio in ratios.items()})


if __name__ == "__main__":
    main()
