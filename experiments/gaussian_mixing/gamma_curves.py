"""Figure 1 of the mixing paper, with the exact profile as a third curve.

The paper's k and delta are not printed with the figure; here k = 100 and 1000, delta = 1e-6. Expected: the exact
epsilon is 0.88 to 0.94 of Lemma 1's, Sheffet's bound 1.7 to 4.5 times Lemma 1's; gamma at (1, 1e-6) is
140.7 / 40.10 / 36.54 for k = 100 and 379.1 / 109.11 / 100.99 for k = 1000.
"""

from __future__ import annotations

import math

from shapedp.papers.gaussian_mixing.recipes import rdp_epsilon, rdp_gamma, sheffet_gamma
from shapedp.privacy.losses.mixing import MixingLoss

DELTA = 1e-6


def epsilons(rows: int, gamma: float) -> tuple[float, float, float]:
    """epsilon at gamma = (lambda_min + sigma^2)/C^2: Sheffet 2019, Lemma 1 with Proposition 1, exact."""
    sheffet = sheffet_gamma(rows, 1.0, DELTA) / gamma
    return sheffet, rdp_epsilon(rows, gamma, DELTA), MixingLoss(rows, 1 / gamma).epsilon(DELTA).upper


def gammas(rows: int) -> tuple[float, float, float]:
    """The gamma that (1, 1e-6) takes, by each of the three."""
    return sheffet_gamma(rows, 1.0, DELTA), rdp_gamma(rows, 1.0, DELTA), MixingLoss.calibrate(rows, 1.0, DELTA).gamma


def grid(points: int) -> list[float]:
    """gamma from 5 to 1000."""
    return [5 * math.exp(math.log(200) * i / (points - 1)) for i in range(points)]
