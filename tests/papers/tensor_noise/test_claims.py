"""The register's entries on tensor-valued queries, recomputed; the studies' quick mode."""

from __future__ import annotations

from pathlib import Path

import pytest

from shapedp.papers.register import find_item, reproduce
from shapedp.papers.register.format import read_claims
from shapedp.papers.register.register import check

EXPERIMENTS = Path(__file__).resolve().parents[3] / "experiments"

CLAIMS = tuple(read_claims("tensor_noise"))


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_the_register_says_what_is_computed(claim):
    finding = check(claim)
    assert finding.verified, finding.disagreements


@pytest.mark.parametrize("name", ["tensor-noise/error-by-size", "tensor-noise/gain-by-decay"])
def test_studies_reproduce(name, tmp_path):
    table, written = reproduce(
        name, find_item(name, EXPERIMENTS), tmp_path, full=False, progress=lambda done, total, what: None
    )
    assert len(table.rows) == 3
    assert all(path.exists() for path in written)
