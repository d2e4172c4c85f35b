"""The default rule of a ledger against plain addition, against exact composition and against adaptive analysts.

    python experiments/security/ledger_rules.py --sequences 1000 --adaptive 1000

For each of so many random sequences of mixed spends (Laplace, Gaussian, bare claims): whatever plain addition at
(epsilon, delta/2) allows must be granted, and what was granted must hold the cap when it is composed. For each of so
many adaptive analysts every transcript is enumerated: the exact delta must be at most the cap's.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

import numpy as np

import shapedp as sdp

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.ledger.test_either import cap_of, nothing, play, spends


def sequence(seed: int) -> dict[str, int]:
    """Counts of one random sequence."""
    rng = np.random.default_rng([2, seed])
    cap = cap_of(float(rng.choice([0.5, 2.0])), float(rng.choice([1e-6, 1e-3])))
    totals, sums, granted = nothing(cap), (0.0, 0.0), []
    found = dict.fromkeys(("asked", "allowed by addition", "of these refused", "granted", "refused"), 0)
    for _ in range(int(rng.integers(1, 9))):
        mechanism, charge, _ = spends(cap)[int(rng.integers(30))]
        claim = mechanism.certificate
        fits = cap.admits(totals.plus(charge))
        after = (sums[0] + claim.epsilon, sums[1] + claim.delta)
        allowed = after[0] <= cap.epsilon * (1 - 1e-9) and after[1] <= cap.delta / 2 * (1 - 1e-9)
        found["asked"] += 1
        found["allowed by addition"] += allowed
        found["of these refused"] += allowed and not fits
        found["granted" if fits else "refused"] += 1
        if fits:
            totals, sums = totals.plus(charge), after
            granted.append(mechanism.loss)
    if granted:
        found["composed"] = 1
        found["composed above the cap"] = int(sdp.compose(granted).delta(cap.epsilon).lower > cap.delta)
    return found


def analyst(seed: int) -> float:
    """The exact delta of an adaptive analyst, as a share of the cap's."""
    rng = np.random.default_rng([3, seed])
    cap = cap_of(float(rng.choice([0.3, 1.0, 2.0])), float(rng.choice([1e-3, 0.05])))
    leaves = np.array(play(rng, cap, nothing(cap), 1.0, 1.0, int(rng.integers(1, 6)))).T
    return max(float(np.maximum(p - math.exp(cap.epsilon) * q, 0).sum()) for p, q in (leaves, leaves[::-1])) / cap.delta


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=50)
    parser.add_argument("--adaptive", type=int, default=50)
    options = parser.parse_args()
    start, total = time.process_time(), dict[str, int]()
    for seed in range(options.sequences):
        for name, number in sequence(seed).items():
            total[name] = total.get(name, 0) + number
    print(f"{options.sequences} sequences: " + ", ".join(f"{number} {name}" for name, number in total.items()))
    shares = [analyst(seed) for seed in range(options.adaptive)]
    above = sum(share > 1 + 1e-9 for share in shares)
    print(
        f"{options.adaptive} adaptive analysts: {above} above the cap; the largest reached {max(shares):.4f} of delta"
    )
    print(f"{time.process_time() - start:.1f} s of processor time")
    return int(bool(total["of these refused"] or total.get("composed above the cap") or above))


if __name__ == "__main__":
    sys.exit(main())
