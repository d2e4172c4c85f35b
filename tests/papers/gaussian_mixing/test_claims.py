"""The register's entries on Gaussian mixing, recomputed."""

from __future__ import annotations

import pytest

from shapedp.papers.register.format import read_claims
from shapedp.papers.register.register import check

CLAIMS = tuple(read_claims("gaussian_mixing"))


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_the_register_says_what_is_computed(claim):
    finding = check(claim)
    assert finding.verified, finding.disagreements
