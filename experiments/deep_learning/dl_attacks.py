"""Membership inference on networks of the studies: black-box shadow models and the likelihood-ratio attack."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from dl_data import Data
from dl_runs import MEASURES, Run, log_probabilities, train

from shapedp.audit.membership import MembershipResult, likelihood_ratio_attack, shadow_attack

ATTACKS = {
    "shadow": lambda t, y, rng: shadow_attack(t, y, shadows=1, rng=rng),
    "likelihood ratio": lambda t, y, rng: likelihood_ratio_attack(t, y, shadows=8, rng=rng),
}


def attacked(run: Run, data: Data, kind: str, pool: int) -> dict[str, Any]:
    """The attack on a training over half of `pool` records; every model, target or shadow, is trained as `run` says."""
    rng = np.random.default_rng(run.seed)
    chosen = torch.from_numpy(rng.permutation(len(data.y))[:pool]).to(data.y.device)
    x, y = data.x[chosen], data.y[chosen]
    measure = MEASURES.get(run.data, "accuracy")
    scores: list[tuple[float, float]] = []

    def outputs(indices: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        at = torch.from_numpy(indices).to(y.device)
        fresh = replace(run, seed=int(rng.integers(2**31)))
        model, row = train(fresh, Data(x[at], y[at], data.test_x, data.test_y))
        scores.append((row[measure], row[f"train_{measure}"]))
        return log_probabilities(model, x)

    found: MembershipResult = ATTACKS[kind](outputs, y.cpu().numpy(), rng)
    return asdict(run) | {
        "attack": kind,
        "pool": pool,
        measure: scores[-1][0],
        f"train_{measure}": scores[-1][1],
        **{name: value for name, value in found.to_json().items() if name not in ("kind", "attack")},
    }
