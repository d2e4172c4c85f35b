"""The register's entries on Gaussian mixing, recomputed."""

from __future__ import annotations

import pytest

from shapedp.claims.gaussian_mixing import CLAIMS
from shapedp.claims.register import check


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_the_register_says_what_is_computed(claim):
    finding = check(claim)
    assert finding.verified, finding.disagreements
