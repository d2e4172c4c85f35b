"""What the training studies stored, the pages made from it, and one short training of each kind."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from shapedp.papers.datasets import texts
from shapedp.papers.register import CLAIMS

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


def test_pure_laplace_rows_have_the_scale_of_the_claim_and_keep_it(page):
    rows = [row for row in page.items.stored() if row["method"].startswith("pure Laplace")]
    assert len(rows) == 3
    claim = CLAIMS["inid-noise/table-4-pure"]
    for row in rows:
        assert math.isclose(row["scale"], claim.found["scale_of_the_claim"], rel_tol=1e-6)
        assert 7.99 < row["pure"] <= row["epsilon"] == 8
        assert row["delta"] == 0


def test_laplace_and_radial_rows_are_certified_at_the_scale_they_were_trained_with(page):
    stored = page.items.stored()
    proved = {(*map(row.get, ("data", "net", "method", "epsilon")),): row for row in stored if "delta_upper" in row}
    slow = [row for row in stored if row["study"] in ("equal", "table-iv") and row.get("attack") != "certify"
            and row["method"] in ("Laplace", "radial", "SPR Laplace")]  # fmt: skip
    assert {row["method"] for row in slow} == {"Laplace", "radial", "SPR Laplace"}
    for row in slow:
        proof = proved[row["data"], row["net"], row["method"], row["epsilon"]]
        assert proof["certified"] <= row["epsilon"]
        assert (
            proof["delta_upper"] <= 0.9 * proof["delta"] == 0.9 * row["delta"]
        )  # more than rounding of scales changes
        assert row["scale"] >= proof["scale"] * (1 - 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["Laplace", "radial"])
def test_a_stored_proof_is_computed_again(page, method):
    import dl_studies
    import torch

    (row,) = [row for row in page.items.stored() if row.get("attack") == "certify"
              and (row["data"], row["net"], row["method"]) == ("Adult", "MLP", method)]  # fmt: skip
    names = [field.name for field in dl_studies.fields(dl_studies.Run) if field.name in row]
    run = dl_studies.Run(**{name: row[name] for name in names})
    empty = torch.zeros(row["records"])
    again = dl_studies.certified(run, dl_studies.Data(empty, empty, empty, empty))
    assert math.isclose(again["certified"], row["certified"], rel_tol=1e-4)


def test_stored_results_are_those_of_the_trainings(page):
    for name in ("equal-epsilon", "accounted", "table-4", "table-iv", "windows", "geodp-table-2"):
        (item,) = [one for one in page.items.ITEMS if one.name == name]
        kept = json.loads((ROOT / "experiments" / "results" / f"deep-learning-{name}.json").read_text("utf-8"))
        found = item.run(False, page.quiet)
        assert json.dumps([list(row) for row in found.rows]) == json.dumps(kept["rows"]), name
        assert (kept["state"], kept["why"]) == (found.state, found.why)


def test_mixing_beats_the_papers_baseline_on_trained_features(page):
    path = ROOT / "experiments" / "results" / "erm-figure-3.json"
    stored = json.loads(path.read_text("utf-8"))
    assert stored["full"]
    cells = {tuple(row[1:5]): row for row in stored["rows"]}
    sets = {"Fashion-MNIST": True, "MNIST": True, "CIFAR-10": False, "CIFAR-100": False}
    for name, faster in sets.items():
        for epsilon in (0.1, 0.3, 1.0, 3.0):
            mixing, kifer = (cells[name, "CNN", epsilon, solver] for solver in ("mixing", "kifer"))
            assert mixing[5] > kifer[5]
            assert max(1.0, epsilon) < mixing[8] <= 1 + epsilon
        assert (mixing[7] < kifer[7] / 2) == faster


def test_movielens_is_not_at_hand_without_its_file(page, monkeypatch, tmp_path):
    monkeypatch.setenv("SHAPEDP_DATA", str(tmp_path))
    found = page.items.figure("MovieLens")(False, page.quiet)
    assert found.state == "data not at hand"
    assert "https://grouplens.org" in found.rows[0][0]


def test_movielens_trains_where_a_file_in_the_official_format_is(page, monkeypatch, tmp_path):
    import dl_studies

    rng = np.random.default_rng(0)
    users, movies, stars = rng.integers(1, 6041, 400), rng.integers(1, 3953, 400), rng.integers(1, 6, 400)
    lines = [f"{u}::{m}::{s}::978300760\n" for u, m, s in zip(users, movies, stars, strict=True)]
    content = "".join(lines).encode("latin-1")
    (tmp_path / "ml-1m").mkdir()
    (tmp_path / "ml-1m" / "ratings.dat").write_bytes(content)
    monkeypatch.setenv("SHAPEDP_DATA", str(tmp_path))
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    monkeypatch.setitem(texts.MOVIELENS_MD5, "ratings.dat", md5)
    net, records, _, *others = dl_studies.TABLE_12["MovieLens"]
    monkeypatch.setitem(dl_studies.TABLE_12, "MovieLens", (net, records, 40, *others))
    dl_studies._data.cache_clear()
    try:
        data = dl_studies._data("MovieLens", "cpu")
        assert (len(data.y), len(data.test_y)) == (320, 80)
        assert sorted(np.concatenate([data.y, data.test_y])) == sorted(stars - 1)
        found = page.items.figure("MovieLens")(False, page.quiet)
    finally:
        dl_studies._data.cache_clear()
    (gaussian, product) = found.rows
    assert found.headers[3] == "RMSE"
    assert (gaussian[0], product[0]) == ("DP", "product noise")
    for row in found.rows:
        assert row[1:3] == (320, 2)
        assert 1 < row[3] < 3  # the standard deviation of a uniform rating is 1.41
    assert gaussian[6].startswith("certified, epsilon")
    assert product[6] == "refuted"


def test_rows_of_a_finished_training_replace_those_of_the_same_run(page, tmp_path):
    import dl_studies

    old, other = [row for row in page.items.stored() if row["study"] == "table-iv"][:2]
    path = tmp_path / "runs.json"
    path.write_text("[]", encoding="utf-8")
    dl_studies.store([old, other], path)
    fresh = old | {"accuracy": 0.5, "beta": None, "wall_s": 3.0, "attack": ""}
    dl_studies.store([fresh, other | {"error": "none"}], path)
    assert dl_studies.json.loads(path.read_text(encoding="utf-8")) == [old | {"accuracy": 0.5}, other]
    assert len(dl_studies.stored_keys(path)) == 2


def test_the_pages_show_what_is_stored(page):
    for path in page.PAGES:
        text = path.read_text(encoding="utf-8")
        assert page.rendered(text) == text, f"run {FOLDER.name}/dl_page.py"


@pytest.mark.skipif(not os.environ.get("SHAPEDP_DATA"), reason="needs the MNIST files")
def test_one_short_training_of_each_kind(page):
    found = page.items.quick(False, page.quiet)
    assert found.state == "computed"
    assert len(found.rows) == 15
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


def test_canary_persons_on_imdb_stay_below_the_certificate_and_catch_half_the_noise():
    stored = json.loads((ROOT / "experiments" / "results" / "persons.json").read_text("utf-8"))
    held, caught = stored["audits"]
    assert (held["half the noise"], caught["half the noise"]) == (False, True)
    assert 0 < held["bound"] <= held["certified"] == caught["certified"] < caught["bound"]
    assert stored["training"]["verdict"] == "certified"
    assert "per person" in stored["training"]["scope"]
