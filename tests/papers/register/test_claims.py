"""The register of claims: verified as it stands, and no constant can change unnoticed."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest

from shapedp.cli import main
from shapedp.papers.register import CLAIMS, check, verify_all
from shapedp.papers.register.harness import (
    NOTHING,
    STATES,
    Table,
    _judged,
    compared,
    experiments_folder,
    find_item,
    items,
    published,
    reproduce,
)
from shapedp.papers.register.seal import unsealed


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


def _corrupted(claim):
    for part in ("statement", "source", "witness"):
        yield part, dataclasses.replace(claim, **{part: getattr(claim, part) + " "})
    for name, text in claim.readings.items():
        yield name, dataclasses.replace(claim, readings={**claim.readings, name: text + " "})
    yield "verdict", dataclasses.replace(claim, verdict="false" if claim.verdict == "holds" else "holds")
    for part in ("parameters", "found"):
        for key, value in getattr(claim, part).items():
            changed = {**getattr(claim, part), key: math.nextafter(value, math.inf)}
            yield f"{part}/{key}", dataclasses.replace(claim, **{part: changed})
    for key, (value, tolerance) in claim.printed.items():
        for pair in ((math.nextafter(value, math.inf), tolerance), (value, tolerance + 1e-3)):
            yield f"printed/{key}", dataclasses.replace(claim, printed={**claim.printed, key: pair})


def test_every_claim_is_sealed_and_the_last_bit_of_every_constant_counts():
    seen = 0
    for claim in CLAIMS.values():
        assert unsealed(claim) is None, claim.id
        for place, corrupted in _corrupted(claim):
            assert unsealed(corrupted) is not None, f"{claim.id}: {place}"
            seen += 1
    assert seen > 10 * len(CLAIMS)


def test_a_broken_seal_fails_the_command(monkeypatch, capsys):
    name = next(iter(CLAIMS))
    claim = CLAIMS[name]
    key, value = next(iter(claim.parameters.items()))
    corrupted = dataclasses.replace(claim, parameters={**claim.parameters, key: math.nextafter(value, math.inf)})
    assert main(["claims", "--verify", name]) == 0
    monkeypatch.setitem(CLAIMS, name, corrupted)
    assert main(["claims", "--verify", name]) == 3
    assert "seal" in capsys.readouterr().out


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


def test_every_figure_and_table_has_a_state():
    listed = published(experiments_folder())
    assert len({(entry.paper, entry.name) for entry in listed}) == len(listed)
    for entry in listed:
        assert entry.state in (*STATES, NOTHING), f"{entry.paper}/{entry.name}: {entry.state}"
        assert entry.why or entry.state != "differs", entry.name


def test_only_figures_without_printed_numbers_are_merely_computed():
    drawn = {("product-noise", "figure-2"), ("product-noise", "figure-4"), ("inid-noise", "figure-2")}
    found = {(entry.paper, entry.name) for entry in published(experiments_folder()) if entry.state == "computed"}
    own = {
        (paper, name)
        for paper, name in found
        if paper == "gaussian-mixing" or (paper, name[:8]) == ("geodp", "figure-1")
    }
    assert found - own <= drawn
    assert all(name.startswith("figure") for _, name in own)


def test_printed_cells_decide_a_table(tmp_path):
    cells = {"A, ours": {"0.1": [0.5, 0.1], "1": 2.0}, "B, ours": {"0.1": 1.0}}
    data = {"headers": ["data set", "epsilon", "noise", "x", "sd"], "rows": [["A", 0.1, "n", 0.65, 0.05]]}

    def judged(*rows):
        table = {"column": "x", "within": 0.1, "cells": cells}
        return _judged(table, data | {"rows": [*data["rows"], *rows]}, {"ours": "n"}, {"B": "no file"})

    assert judged() == ("reproduced", "1 of 3 cells agree, 1 not run (no file), 1 not run (no such run is stored)")
    state, why = judged(["A", 1.0, "n", 2.3, 0.0])
    assert (state, why.split("; ")[1]) == ("differs", "A, ours, epsilon 1: computed 2.3, printed 2")


def test_numbers_apart_are_a_difference_with_its_reason():
    assert compared([("a", 1.001, 1.0)], 0.01) == {"state": "reproduced", "why": ""}
    assert compared([("a", 1.0, 1.0), ("b", 2.0, 1.0)], 0.01)["why"] == "b: computed 2, printed 1"
    assert compared([("a", float("nan"), 1.0)], 0.01)["state"] == "differs"
    with pytest.raises(ValueError, match="reason"):
        Table(("a",), ((1,),), state="differs")
