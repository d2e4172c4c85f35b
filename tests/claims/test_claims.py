"""The register of claims: verified as it stands, and no constant can change unnoticed."""

from __future__ import annotations

import dataclasses
import json

import pytest

from shapedp.claims import CLAIMS, check, verify_all
from shapedp.claims.harness import experiments_folder, find_item, items, reproduce


def test_the_register_is_verified():
    for finding in verify_all():
        assert finding.verified, finding.disagreements
        json.dumps(finding.to_json())


@pytest.mark.parametrize("name", [name for name in CLAIMS if name.startswith("product-noise/")])
def test_corrupting_any_constant_is_noticed(name):
    claim = CLAIMS[name]
    other = "false" if claim.verdict == "holds" else "holds"
    assert not check(dataclasses.replace(claim, verdict=other)).verified
    for key, value in claim.parameters.items():
        whole = float(value).is_integer()
        changed = max(value + 1, round(value * 1.03)) if whole and value > 1 else value * 1.03
        assert not check(dataclasses.replace(claim, parameters={**claim.parameters, key: changed})).verified, key
    for key, value in claim.found.items():
        assert not check(dataclasses.replace(claim, found={**claim.found, key: value * 1.001})).verified, key
    for key, (value, tolerance) in claim.printed.items():
        changed = {**claim.printed, key: (value * (1 + 3 * tolerance), tolerance)}
        assert not check(dataclasses.replace(claim, printed=changed)).verified, key


def test_claims_name_their_source_and_command():
    for claim in CLAIMS.values():
        assert claim.source
        assert claim.id in claim.command


def test_items_are_found_and_run(tmp_path):
    folder = experiments_folder()
    assert {"product-noise/figure-2", "product-noise/figure-9"} <= {name for name, _ in items(folder)}
    steps = []
    item = find_item("product-noise/figure-9", folder)
    table, written = reproduce(
        "product-noise/figure-9", item, tmp_path, full=False, progress=lambda *step: steps.append(step)
    )
    assert steps[-1][0] == steps[-1][1]
    assert table.rows[0][1] == pytest.approx(1.144e-6, rel=5e-4)
    data = json.loads(written[0].read_text())
    assert data["item"] == "product-noise/figure-9"
    with pytest.raises(ValueError, match="no item"):
        find_item("product-noise/none", folder)
