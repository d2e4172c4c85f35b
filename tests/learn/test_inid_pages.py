"""docs/coordinate-descent.md and docs/pca.md print what is stored, and what is stored shows what they say."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from shapedp.papers.datasets import MissingDataError
from shapedp.papers.recipes import inid

ROOT = Path(__file__).resolve().parents[2]
FOLDER, RESULTS = ROOT / "experiments" / "inid_learning", ROOT / "experiments" / "results"
PAGES = ("coordinate-descent.md", "pca.md")


@pytest.fixture(scope="module")
def pages():
    names = ("pages", "descent", "components")
    before = {name: sys.modules.pop(name, None) for name in names}
    sys.path.insert(0, str(FOLDER))
    import pages

    yield pages
    sys.path.remove(str(FOLDER))
    for name, module in before.items():
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module


def stored(name):
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", PAGES)
def test_every_table_of_the_page_is_what_is_stored(pages, name):
    text = (pages.DOCS / name).read_text(encoding="utf-8")
    assert pages.filled(text, pages.pages()[name]) == text
    assert len(re.findall(r"^\| ---", text, re.M)) == len(pages.pages()[name])  # no table without its mark


@pytest.mark.parametrize("name", PAGES)
def test_a_changed_number_in_the_page_is_found(pages, name):
    """Any digit of any table's last line."""
    text = (pages.DOCS / name).read_text(encoding="utf-8")
    for part in pages.pages()[name].values():
        line = part.splitlines()[-1]
        for found in re.finditer(r"\d", line):
            misprint = line[: found.start()] + str((int(found[0]) + 1) % 10) + line[found.end() :]
            changed = text.replace(line, misprint)
            assert changed != text
            assert pages.filled(changed, pages.pages()[name]) != changed


def test_a_changed_result_is_found(pages, monkeypatch, tmp_path):
    """Each stored mean, a hundredth larger."""
    for i, name in enumerate(("descent", "components")):
        texts = {page: (pages.DOCS / page).read_text(encoding="utf-8") for page in PAGES}
        data = stored(name)
        for owner, key in list(means(data)):
            old = owner[key]
            owner[key] = [one + 0.01 for one in old] if isinstance(old, list) else old + 0.01
            path = tmp_path / f"{name}.json"
            path.write_text(json.dumps(data), encoding="utf-8")
            files = list(pages.STORED)
            files[i] = path
            with monkeypatch.context() as patched:
                patched.setattr(pages, "STORED", files)
                parts = pages.pages()
            assert any(pages.filled(texts[page], parts[page]) != texts[page] for page in PAGES)
            owner[key] = old


def means(data):
    """Every (dictionary, key) under which a mean is stored."""
    if isinstance(data, dict):
        if "mean" in data:
            yield data, "mean"
        for value in data.values():
            yield from means(value)
    elif isinstance(data, list):
        for value in data:
            yield from means(value)


@pytest.mark.parametrize(("figure", "name"), [("figure-5", "California"), ("figure-6", "Electricity")])
def test_the_reproduced_figures_are_what_is_stored(figure, name):
    found = json.loads((RESULTS / f"inid-learning-{figure}.json").read_text(encoding="utf-8"))
    assert found["full"]
    own = stored("descent")[name]["figure"]
    rows = [[arm, one["passes"], one["mean"], one["deviation"]] for arm, part in own.items() for one in part]
    assert found["rows"] == rows


def test_the_reproduced_tables_are_what_is_stored():
    third, fifth = (json.loads((RESULTS / f"inid-learning-table-{n}.json").read_text(encoding="utf-8")) for n in (3, 5))
    assert third["full"]
    assert fifth["full"]
    assert [row[2:5] for row in third["rows"]] == [row["mean"] for row in stored("components")["table"]]
    own = [one["mean"] for found in stored("descent").values() for part in found["table"].values() for one in part]
    assert [row[3] for row in fifth["rows"]] == own


def test_improved_descent_is_behind_in_every_reading(pages):
    """No reading brings improved DP-CD below DP-CD; the published errors of it are those of descent without noise."""
    for name, found in stored("descent").items():
        by = {reading: one["mean"] for reading, one in found["readings"].items()}
        assert set(by) == set(pages.descent.READINGS)
        published = pages.descent.PUBLISHED[name]
        for clips in ("published clips", "equal clips", "centred data"):
            equal = by[f"DP-CD, {clips}"]
            assert all(value > equal for key, value in by.items() if key.startswith("improved") and clips in key)
        assert by["DP-CD, published clips"] == pytest.approx(published["DP-CD"][0], rel=0.3)
        assert by["no noise"] == pytest.approx(published["improved DP-CD"][0], rel=0.07)
        assert found["figure"]["DP-CD"][-1]["mean"] == by["DP-CD, published clips"]
        assert (
            found["figure"]["improved DP-CD"][-1]["mean"] == by["improved for the update, published clips (as printed)"]
        )


@pytest.mark.parametrize(("power", "sign"), [(-0.5, -1), (0.0, 0), (0.5, 1), (0.9, 1), (1.0, 0), (1.5, -1)])
def test_when_improved_scales_leave_less_noise_in_the_objective(power, sign):
    """Clips C_i ~ M_i^power, steps ~ 1/M_i: improved over DP-CD is below 1 for power > 1 and < 0, above in between."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        smoothness = np.exp(3 * rng.normal(size=8))
        profile = smoothness ** (power - 1)
        improved, equal = (
            build(profile=profile, epsilon=1.0, delta=1e-6).law.variances()
            for build in (inid.inid_gaussian, inid.spr_gaussian)
        )
        ratio = float(smoothness @ improved / (smoothness @ equal))
        if sign == 0:
            assert ratio == pytest.approx(1.0, rel=1e-9)
        else:
            assert np.sign(ratio - 1) == sign


def test_the_isometric_release_has_the_least_error_at_every_epsilon(pages):
    """Below both published Gaussian rows and the paper's two releases."""
    rows = {(row["noise"], row["release"]): row["mean"] for row in stored("components")["table"]}
    best = np.array(rows["gaussian", "isometric"])
    for key in (("gaussian", "iid"), ("gaussian", "clipped")):
        assert (best < np.array(rows[key])).all()
        assert (best < np.array(pages.components.PUBLISHED[key])).all()


@pytest.mark.data
def test_a_reading_spends_the_same_and_is_computed_again(pages):
    """DP-CD read from its schedule is DP-CD; every reading's pass spends the mu of the claim."""
    descent = pages.descent
    try:
        problem = descent.california()
    except MissingDataError:
        pytest.skip("California is not at hand")
    settings = descent.descent(problem, passes=50, step=1.0, clip=1.5, noise="equal")
    plain = settings.schedule(problem.means, problem.columns.records, 1.0, intercept=False)
    for reading in descent.READINGS.values():
        found = descent.read(plain, reading)
        spent = np.sqrt(np.square(found.reach / found.scales).sum())
        assert spent == pytest.approx(settings.per_pass, rel=1e-10)
        assert spent <= settings.per_pass
    same = descent.read(plain, descent.READINGS["DP-CD, published clips"])
    assert same.scales == pytest.approx(plain.scales, rel=1e-12)
    known = stored("descent")["California"]["readings"]["no noise"]
    again = descent.tuned(problem, 50, (known["clip"],), (known["step"],), reading=descent.READINGS["no noise"])
    assert again.mean == pytest.approx(known["mean"], rel=1e-9)
