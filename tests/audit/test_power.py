"""The power table: what it predicts is what the audit does."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.audit.helpers import Gaussian

import shapedp as sdp
from shapedp import audit


@pytest.mark.parametrize("factor", [0.5, 0.8])
def test_the_predicted_number_of_outputs_suffices_nine_times_in_ten(factor):
    """At the predicted number 30 audits catch the fault; a tenth of it is not enough."""
    m = sdp.calibrate("gaussian", sdp.L2(1.0, 1), epsilon=1.0, delta=1e-5)
    (row,) = audit.power(epsilon=1.0, delta=1e-5, faults=(factor,))
    pair = (np.zeros(1), np.ones(1))
    noisy = Gaussian(factor * float(m.law.scales[0]))

    def caught(samples: float) -> int:
        call = {"epsilon": 1.0, "delta": 1e-5, "loss": m.loss, "vectorized": True, "neighbours": pair}
        return sum(
            audit.mechanism(noisy, **call, score=lambda y: -y[:, 0], samples=max(int(samples), 2000), seed=i).violation
            for i in range(30)
        )

    assert caught(row.profile) >= 20
    assert caught(row.profile / 10) <= 15 or row.profile < 2e4


def test_smaller_faults_need_more():
    rows = audit.power(epsilon=1.0, delta=1e-6)
    for name in ("claim", "profile", "distribution"):
        needed = [getattr(row, name) for row in rows]
        assert needed == sorted(needed)
    assert all(row.distribution < row.profile <= row.claim for row in rows)
    assert all(row.epsilon > 1 and row.delta > 1e-6 for row in rows)


def test_the_distribution_audit_sees_what_the_table_says():
    (row,) = audit.power(epsilon=1.0, delta=1e-6, faults=(0.95,))
    law = sdp.Gaussian(1.0, 1)
    n = math.ceil(row.distribution)
    caught = sum(not audit.distribution(Gaussian(0.95), law=law, samples=n, seed=i).passed for i in range(30))
    assert caught >= 20


@pytest.mark.parametrize("faults", [(1.0,), (0.0,), (math.nan,)])
def test_bad_faults(faults):
    with pytest.raises(ValueError, match="fault"):
        audit.power(epsilon=1.0, delta=1e-6, faults=faults)
