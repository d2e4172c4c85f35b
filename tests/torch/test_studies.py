"""What the training studies stored, the pages made from it, and one short training of each kind."""

from __future__ import annotations

import math
import os
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "experiments" / "deep_learning"


@pytest.fixture(scope="module")
def page():
    before = {name: sys.modules.pop(name, None) for name in ("items", "dl_page")}
    sys.path.insert(0, str(FOLDER))
    import dl_page

    yield dl_page
    sys.path.remove(str(FOLDER))
    for name, module in before.items():
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module


@pytest.mark.parametrize(("epsilon", "apart"), [(0.5, True), (1.0, True), (2.0, False), (4.0, False)])
def test_optimal_per_layer_noise_beats_spr_noise_on_the_mnist_cnn(page, epsilon, apart):
    mean, half = page.items.gain(epsilon)
    assert mean > 0
    if apart:
        assert mean - half > 0
    rows = [row for row in page.items.stored() if row["study"] == "equal" and row.get("epsilon") == epsilon]
    chosen = [row for row in rows if row["net"] == "CNN" and row["data"] == "MNIST" and row["method"].endswith("layer")]
    assert {row["seed"] for row in chosen} >= {0, 1, 2}
    assert all(0.99 * epsilon < row["certified"] <= epsilon and row["dim"] == 26_010 for row in chosen)


def test_the_energy_ratio_is_the_closed_form(page):
    for net, _, _, ratio, closed in page.items.energy(False, page.quiet).rows:
        assert math.isclose(ratio, closed, rel_tol=1e-9), net


def test_attacks_on_stored_networks(page):
    for row in page.items.stored():
        if row["study"] == "membership" and row["method"] == "no noise":
            assert row["lower"] > 0.52, row
        elif row["study"] == "membership":
            assert row["epsilon"] <= 2
            assert row["lower"] <= 0.5 <= row["upper"], row
            assert 0.48 < row["lower"] < row["upper"] < 0.52, row


def test_every_claim_of_product_noise_is_refuted(page):
    rows = [row for row in page.items.stored() if row["method"] == "product noise" and row["study"] == "product"]
    assert {row["data"] for row in rows} == {"MNIST", "Adult", "IMDb", "CIFAR-10"}
    assert all(row["verdict"] == "refuted" and row["delta_at_least"] > 10 * row["claimed"][1] for row in rows)


def test_the_pages_show_what_is_stored(page):
    for path in page.PAGES:
        text = path.read_text(encoding="utf-8")
        assert page.rendered(text) == text, f"run {FOLDER.name}/dl_page.py"


@pytest.mark.skipif(not os.environ.get("SHAPEDP_DATA"), reason="needs the MNIST files")
def test_one_short_training_of_each_kind(page):
    found = page.items.quick(False, page.quiet)
    assert found.state == "computed"
    assert len(found.rows) == 11
    for method, what, accuracy in found.rows:
        assert isinstance(accuracy, float), (method, what, accuracy)
        assert 0 <= accuracy <= 1


def test_the_examples_of_the_membership_page_run(capsys):
    names = {}
    for code in re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "membership.md").read_text(encoding="utf-8"), re.S):
        exec(compile(code, "membership.md", "exec"), names)
    lines = capsys.readouterr().out.splitlines()
    areas = [tuple(map(float, re.findall(r"[\d.]+(?=[,\]])", line)[:2])) for line in lines[:3]]
    assert areas[0][0] > 0.55
    assert areas[1][0] > 0.55
    assert areas[2][0] <= 0.52
    assert lines[3].startswith("no violation found")
