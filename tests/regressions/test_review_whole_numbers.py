"""Noise on whole numbers: what rounding hides is not shown, and large tables are planned without their squares."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.special import ndtr

import shapedp as sdp
from shapedp.workloads import AnswerMechanism
from shapedp_check import check


def rounded(scale: float, epsilon: float, shift: int = 1) -> float:
    """The exact delta of one count with Gaussian noise that is rounded to integers."""
    ends = np.arange(-400, 400) + 0.5
    plain, moved = np.diff(ndtr(ends / scale)), np.diff(ndtr((ends - shift) / scale))
    return float(np.maximum(plain - math.exp(epsilon) * moved, 0).sum())


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("scale", [0.25, 0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_rounded_gaussian_noise_shows_less_than_gaussian_noise(scale, epsilon, rows):
    """Lower ends were those of noise that is not rounded: a true claim of 0.36 was refuted, where delta is 0.023."""
    asked = sdp.Workload({"a": 3}, max_rows=rows).marginals(1)
    data = asked.calibrate(epsilon=1.0, delta=1e-6, noise="discrete").to_json()
    truth = rounded(scale, epsilon, rows)
    data |= {"law": "gaussian", "scales": [scale], "bits": [0.0], "epsilon": epsilon}
    loss = AnswerMechanism.from_json({**data, "delta": 0.5}).loss
    assert loss.delta(epsilon).lower <= truth * (1 + 1e-9)
    assert loss.delta(epsilon).upper >= truth * (1 - 1e-9)
    for times, possible in ((1.01, {"certified", "undecided"}), (0.2, {"refuted", "undecided"})):
        claim = AnswerMechanism.from_json({**data, "delta": min(truth * times, 0.999)})
        answer = check(json.loads(json.dumps(claim.certificate.to_json())))
        if claim.delta >= truth or times < 1:
            assert {claim.certificate.verdict, answer.verdict} <= possible
            assert times > 1 or answer.verdict == "refuted"
