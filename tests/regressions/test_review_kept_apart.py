"""What a certificate or a loss says does not change under the user's hands, and says how many releases it is for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from shapedp.accounting.ledger import Ledger, SpendRefusedError

import shapedp as sdp
from shapedp.privacy import LaplaceLoss, Loss
from shapedp.privacy.losses.mixed import MixedLoss


@pytest.mark.parametrize("make", [lambda a: LaplaceLoss(2.0, a, worst=True), lambda a: MixedLoss(a, 0.5)])
def test_a_loss_keeps_its_own_ratios(make) -> None:
    ratios = np.array([1.0, 1.0])
    loss: Loss = make(ratios)
    ratios[:] = 1e-3  # before the first question: the loss was then that of much more noise
    assert loss.delta(0.5).upper >= make(np.array([1.0, 1.0])).delta(0.5).lower
    assert not loss.ratios.flags.writeable


def test_the_certificate_of_a_batch_says_that_it_is_one(tmp_path: Path) -> None:
    ball = sdp.L2(1.0, dim=2, adjacency="add-remove")
    mechanism = sdp.calibrate("gaussian", ball, epsilon=1.0, delta=1e-6)
    assert mechanism.release(np.zeros((1, 2)), batch=1).certificate.scope == ""
    together = mechanism.release(np.zeros((50, 2)), batch=50).certificate
    assert "each of 50 releases" in together.explain()
    assert sdp.verify(together).scope == together.scope
    ledger = Ledger.create(tmp_path / "b.db", dataset="d", epsilon=4.0, delta=1e-5, adjacency="add-remove")
    with ledger.spend("d", mechanism, count=3) as spend:
        assert "each of 2 releases" in spend.release(np.zeros((2, 2)), batch=2).certificate.explain()
        spend.record(mechanism.release(np.zeros((1, 2)), batch=1))
        other = sdp.calibrate("gaussian", ball, epsilon=0.9, delta=1e-6)
        with pytest.raises(SpendRefusedError):
            spend.record(other.release(np.zeros((2, 2)), batch=2))
