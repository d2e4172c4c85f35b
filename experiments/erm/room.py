"""What 30% less noise could show of fits whose certificate is not attained: exact laws, nothing is sampled.

    python experiments/erm/room.py run       # into room.json
    python experiments/erm/room.py write     # room.json into docs/classification.md

For each: the most by which the exact profile of the worst pair exceeds the certified one somewhere, the most that an
audit of 1e5 fits at 99.9 % confidence is to be expected to show of that (its bounds at the expected counts), and how
many fits show anything. Expected: 1e5 fits show nothing of these four.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.learn.trainers import CLAIM, CUT, lopsided

from shapedp import GaussianLoss
from shapedp.accounting.repeat import gamma_for
from shapedp.audit.bounds import lower_bound, upper_bound
from shapedp.audit.claim import Claim
from shapedp.learn.losses import Logistic
from shapedp.learn.moments import Bounds
from shapedp.learn.runs import budget
from shapedp.learn.solvers.erm import bolt_on, objective
from shapedp.learn.solvers.erm.problem import Problem, Records
from shapedp.learn.solvers.linear import SOLVERS
from shapedp.learn.solvers.linear import Problem as LeastSquares
from shapedp.mechanisms import mechanism_from_json
from shapedp.privacy import Loss

FITS, TESTED, ALPHA = 100_000, 0.8, 1e-3 / 6  # three events, two sides
MOST = 10**9
RESULTS = Path(__file__).with_suffix(".json")
PAGE = Path(__file__).parents[2] / "docs" / "classification.md"
BEGIN, END = "<!-- room: written by experiments/erm/room.py -->", "<!-- end of room -->"
Pair = tuple[Any, Any]  # P and Q of the events {likelihood ratio > e^epsilon}
Law = Callable[[Any], list[Pair]]  # of the epsilons, for each direction


def gaussian(mu: float, at: Any) -> list[Pair]:
    """Normal laws mu apart."""
    return [(special.ndtr(mu / 2 - at / mu), special.ndtr(-mu / 2 - at / mu))]


def of_densities(p: Any, q: Any, step: float, at: Any) -> list[Pair]:
    """Two densities on a grid, in both directions."""
    found = []
    for one, other in ((p, q), (q, p)):
        likely = one > np.exp(at)[:, None] * other
        found.append(((likely * one).sum(1) * step, (likely * other).sum(1) * step))
    return found


def bolt_on_logistic() -> tuple[Loss, list[Law]]:
    """The pair that is audited; the sensitivity is that of a slope of 1 in every step."""
    (x, _), _ = lopsided(270, 0.1)
    full = Problem(Logistic(), len(x), 1, 1, 1.0, 0.0185, **CLAIM, passes=60, batch=len(x))
    ends = [
        bolt_on.descend(full, Records(part, np.ones((len(x), 1))), np.random.default_rng(0))
        for part in (x, np.where(x < 0, 0.0, x))
    ]
    moved = float(abs(ends[0] - ends[1])[0, 0]) / bolt_on.sensitivity(full)
    (mechanism,) = bolt_on.mechanisms(replace(full, noise="gaussian"))
    return mechanism.loss, [partial(gaussian, mechanism.loss.mu * moved / CUT)]


def kifer_logistic() -> tuple[Loss, list[Law]]:
    """One weight, other records that bend nothing and put the one that differs anywhere; and a slope that is a ramp.

    The certificate takes the largest slope and the largest curvature at once, everywhere. A slope between 0 and 1
    cannot rise for long: with curvature 1/4 it does over 4 units of the weight, where noise moves it by 10.
    """
    fixed, made = objective.kifer(Problem(Logistic(), 501, 1, 1, 1.0, 1.0, **CLAIM))
    sharp, spread = fixed.records * fixed.regularization, CUT * float(made.law.scales[0])
    w, step = np.linspace(-150, 150, 30_001, retstep=True)
    ramp = np.clip(w / 4, 0, 1), np.where((w > 0) & (w < 4), 0.25, 0.0)
    logistic = special.expit(w), special.expit(w) * special.expit(-w)
    found = []
    for slope, bend in (logistic, ramp):
        for place in np.arange(-40.0, 41.0, 2.0):
            b = sharp * w - place
            q = sharp * np.exp(-((b / spread) ** 2) / 2)
            p = (sharp + bend) * np.exp(-(((b + slope) / spread) ** 2) / 2)
            unit = spread * math.sqrt(2 * math.pi)
            found.append(partial(of_densities, p / unit, q / unit, float(step)))
    return made.loss, found


def adassp_weights() -> tuple[Loss, list[Law]]:
    """By the weights alone: the ridge takes the noisy eigenvalue, which moves as X^T X does, out of them again."""
    parts = SOLVERS["adassp"].mechanisms(LeastSquares(400, 1, Bounds(1.0, 1.0), **CLAIM))
    shares = [one.loss.mu for one in parts]
    whole = GaussianLoss(math.hypot(*shares))
    return whole, [partial(gaussian, math.hypot(*shares[1:]) / CUT)]


def search_of_two() -> tuple[Loss, list[Law]]:
    """Each run as far apart as its budget allows, ranked by the likelihood ratio, rising or falling."""
    gamma = gamma_for(2.0)
    own = budget(gamma, CLAIM["epsilon"], CLAIM["delta"], "zero-out")
    x, step = np.linspace(-12, 14, 60_001, retstep=True)
    mu, found = own.run.mu / CUT, []
    for side in (1.0, -1.0):
        p, q = (best_of(gamma, side, x - centre) for centre in (mu, 0.0))
        found.append(partial(of_densities, p, q, float(step)))
    assert own.certificate.subject is not None
    return mechanism_from_json(dict(own.certificate.subject)).loss, found


def best_of(gamma: float, side: float, x: Any) -> Any:
    """The density of the largest (side 1) or least of K normal numbers, K of the logarithmic law."""
    below = special.ndtr(side * x)
    each = np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    return each * (1 - gamma) / math.log(1 / gamma) / (1 - (1 - gamma) * below)


FITTED: dict[str, Callable[[], tuple[Loss, list[Law]]]] = {
    "LogisticRegression, bolt-on": bolt_on_logistic,
    "LogisticRegression, kifer": kifer_logistic,
    "LinearRegression, adassp (weights alone)": adassp_weights,
    "PrivateSearch, 2 runs": search_of_two,
}


def row(name: str) -> dict[str, Any]:
    """One fit."""
    loss, laws = FITTED[name]()
    at, promised = Claim(loss.epsilon(CLAIM["delta"]).upper, CLAIM["delta"], loss).points  # as the audits of trainers
    pairs = [pair for law in laws for pair in law(at)]
    excess = max(float(np.max(p - np.exp(at) * q - promised)) for p, q in pairs)

    def shown(fits: int) -> float:
        n = int(TESTED * fits / 2)
        bounds = ((lower_bound(p * n, n, ALPHA), upper_bound(q * n, n, ALPHA)) for p, q in pairs)
        return max(float(np.max(low - np.exp(at) * high - promised)) for low, high in bounds)

    needed: int | None = FITS
    while needed is not None and shown(needed) <= 0:
        needed = None if needed >= MOST else 2 * needed
    return {"fit": name, "excess": excess, "shown": shown(FITS), "needed": needed}


def table(rows: list[dict[str, Any]]) -> str:
    """One line per fit, as Markdown."""
    head = ["fit, 30% less noise", "above the certified profile by", "lower bound of 1e5 fits, expected", "fits needed"]
    lines = [head, ["---"] * len(head)]
    for one in rows:
        excess = f"{one['excess']:.2g}" if one["excess"] > 0 else "nothing"
        needed = "no number" if one["needed"] is None else f"about {one['needed']:,}"
        lines.append([one["fit"], excess, f"{-one['shown']:.2g} below the profile", needed])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def stored() -> list[dict[str, Any]]:
    """What was written."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def main() -> None:
    if sys.argv[1:2] == ["run"]:
        RESULTS.write_text(json.dumps([row(name) for name in FITTED], indent=1) + "\n", encoding="utf-8")
        print(table(stored()))
        return
    text = PAGE.read_text(encoding="utf-8")
    before, after = text[: text.index(BEGIN)], text[text.index(END) :]
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(stored())}\n\n{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
