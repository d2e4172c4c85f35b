"""Hand-over to riskcal: it reads the distribution we export, and agrees."""

from __future__ import annotations

import pytest
from scipy import stats

from shapedp.accounting import membership_advantage, to_dp_accounting, trade_off
from shapedp.privacy import GaussianLoss

analysis = pytest.importorskip("riskcal.analysis", reason="riskcal is not installed")
pytest.importorskip("dp_accounting", reason="dp_accounting is not installed")


@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_riskcal_reads_our_losses(mu: float) -> None:
    loss = GaussianLoss(mu)
    theirs = to_dp_accounting(loss)
    assert analysis.get_advantage_from_pld(theirs) == pytest.approx(membership_advantage(loss).upper, abs=1e-4)
    exact = stats.norm.cdf(stats.norm.ppf(0.9) - mu)
    ours = float(trade_off(loss, 0.1)[0])
    assert ours <= exact
    assert ours == pytest.approx(exact, abs=1e-4)
    assert float(analysis.get_beta_from_pld(theirs, 0.1)) == pytest.approx(exact, abs=1e-3)
