"""What the audits show: known answers, false alarms, faults caught. Those not caught: certified.py.

python experiments/audit/known_answers.py           # 1e7 outputs, 1000 repeated audits: some minutes
python experiments/audit/known_answers.py --quick   # a tenth
python experiments/audit/known_answers.py --only known,caught
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.audit.helpers import Gaussian, naive_laplace, product_noise, r1smg

import shapedp as sdp
from shapedp import audit

CLAIM = {"epsilon": 1.0, "delta": 1e-3}


def known(quick: bool) -> list[str]:
    """The lower bound on epsilon at delta = 1e-3, over the true one. Expected: at least 0.9 (0.8 if quick)."""
    mechanisms = {
        "gaussian, dim 1": sdp.calibrate("gaussian", sdp.L2(1.0, 1), **CLAIM),
        "gaussian, dim 100": sdp.calibrate("gaussian", sdp.L2(1.0, 100), **CLAIM),
        "gaussian, box": sdp.calibrate("gaussian", sdp.Box([1.0, 0.3, 0.1]), **CLAIM),
        "laplace, pure": sdp.calibrate("laplace", sdp.L1(1.0, 1), epsilon=1.0, delta=0.0),
        "laplace, box": sdp.calibrate("laplace", sdp.Box([1.0, 0.3, 0.1]), epsilon=1.0, delta=0.0),
    }
    from shapedp.noise import FAMILIES

    if "radial" in FAMILIES:
        mechanisms["radial, dim 3"] = sdp.calibrate("radial", sdp.L2(1.0, 3), **CLAIM)
        mechanisms["radial, dim 14"] = sdp.calibrate("radial", sdp.L2(1.0, 14), **CLAIM)
    lines = []
    for name, m in mechanisms.items():
        samples = 10_000_000 if not quick else 1_000_000
        if m.law.dim >= 100:
            samples //= 10
        result = audit.mechanism(m, **CLAIM, samples=samples, seed=1)
        true = m.loss.epsilon(1e-3)
        share = result.epsilon_lower / true.upper
        lines.append(
            f"known: {name}: {result.samples:.0e} outputs: epsilon >= {result.epsilon_lower:.4f}, "
            f"true {true.upper:.4f}, share {share:.3f}"
        )
    return lines


def alarms(quick: bool) -> list[str]:
    """False alarms in repeated audits of correct mechanisms at 99% confidence. Expected: at most 20 in 1000."""
    correct = {
        "gaussian": sdp.calibrate("gaussian", sdp.L2(1.0, 1), **CLAIM),
        "laplace": sdp.recipes.laplace(dim=1, sensitivity=1.0, epsilon=1.0, delta=0.0),
    }
    audits = 1000 if not quick else 100
    lines = []
    for name, m in correct.items():
        raised = sum(audit.mechanism(m, samples=100_000, seed=i).violation for i in range(audits))
        lines.append(f"alarms: {name}: {raised} in {audits} audits of 1e5 outputs at 99%")
    return lines


def caught(quick: bool) -> list[str]:
    """Faults and the bound that gives them away. Expected: every line says violation, product noise above 0.5."""
    lines = []
    claim = {"epsilon": 1.0, "delta": 1e-5}
    for name, f, dim in (
        ("product noise as published, M = 1000", product_noise(1000, 1.0), 1000),
        ("product noise as published, M = 100", product_noise(100, 1.0), 100),
        ("R1SMG as published, M = 100", r1smg(100, 1.0, 1e-5), 100),
    ):
        pair = (np.zeros(dim), np.full(dim, dim**-0.5))
        call = {**claim, "neighbours": pair, "vectorized": True, "score": f.score(*pair), "seed": 1}
        result = audit.mechanism(f, **call, samples=40_000, early_stop=False)
        lines.append(
            f"caught: {name}: {result.verdict}, delta >= {result.delta_lower:.4f} from {result.samples} outputs"
        )
    m = sdp.calibrate("gaussian", sdp.L2(1.0, 3), **claim)
    weak = Gaussian(0.8 * float(m.law.scales[0]))
    pair = (np.zeros(3), np.asarray(m.sensitivity.extreme()))
    call = {**claim, "neighbours": pair, "vectorized": True, "score": Ratio(m, pair), "seed": 1}
    for name, loss, samples in (("profile", m.loss, 10**6), ("claim alone", None, 10**7 if not quick else 10**6)):
        result = audit.mechanism(weak, **call, loss=loss, samples=samples)
        lines.append(
            f"caught: gaussian at 0.8 scale, by its {name}: {result.verdict}, at epsilon {result.witness.epsilon:g} "
            f"delta >= {result.witness.delta_lower:.3g}, claimed {result.witness.claimed:.3g}, "
            f"from {result.samples} outputs"
        )
    result = audit.bits(naive_laplace, neighbours=(0.0, 1.0), epsilon=1.0, delta=1e-6, vectorized=True, seed=1)
    lines.append(
        f"caught: float-naive Laplace by its bits: {result.verdict}, epsilon >= {result.epsilon_lower:.3f} "
        f"where 1 is claimed, from {result.samples} outputs"
    )
    return lines


class Ratio:
    """The log-likelihood ratio of a mechanism of the library."""

    def __init__(self, mechanism: sdp.Additive, pair: tuple[np.ndarray, np.ndarray]) -> None:
        self.law, self.pair = mechanism.law, pair

    def __call__(self, y: np.ndarray) -> np.ndarray:
        return self.law.log_density(y - self.pair[0]) - self.law.log_density(y - self.pair[1])


STUDIES = {"known": known, "alarms": alarms, "caught": caught}

if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--only", default=",".join(STUDIES))
    chosen = options.parse_args()
    for study in chosen.only.split(","):
        for line in STUDIES[study](chosen.quick):
            print(line, flush=True)
