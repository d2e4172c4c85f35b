"""Sections II to V of the i.n.i.d. noise paper in the register, computed anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from shapedp.papers.inid_noise import learning_claims
from shapedp.papers.register import CLAIMS, check
from shapedp.papers.register.format import read_claims

INID = [claim for claim in read_claims("inid_noise") if claim.compute.__module__ != learning_claims.__name__]


@pytest.mark.parametrize("claim", INID, ids=lambda claim: claim.id)
def test_the_register_says_what_is_computed(claim):
    assert check(claim).disagreements == ()


def test_the_register_covers_the_paper_and_notices_changes():
    assert len(INID) == 15
    assert {claim.id for claim in INID if claim.verdict == "false"} == {
        "inid-noise/section-3-delta",
        "inid-noise/remark-4",
        "inid-noise/figure-3-saturation",
    }
    table = CLAIMS["inid-noise/table-2"]
    wrong = replace(table, printed={**table.printed, "staircase_1": (1.99, 1e-3)})
    assert check(wrong).disagreements
