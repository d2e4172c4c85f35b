"""The studies of private classification: the page prints what is stored, and what is stored shows what is claimed."""

from __future__ import annotations

import json
import math
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shapedp.learn.losses import HuberHinge, Logistic
from shapedp.learn.solvers.erm import objective, output
from shapedp.learn.solvers.erm.problem import Problem, Records, Risk
from shapedp.learn.solvers.linear.problem import Draws
from shapedp.mechanisms.objective import farthest, fine_draw
from shapedp.papers.register.harness import find_item
from shapedp.sampling import source

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "experiments" / "erm"
SETS = {"Adult", "KDDCup99", "MNIST", "Synthetic-H", "RCV1 sample"}
LOSSES = {"logistic", "huber"}


@pytest.fixture(autouse=True)
def on_path(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    for name in ("items", "page"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(str(FOLDER)):
            del sys.modules[name]


@pytest.fixture
def page(on_path):
    import page

    return page


def test_every_table_of_the_page_is_what_is_stored(page):
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.filled(text) == text


def test_a_changed_number_in_the_page_is_found(page):
    """The first number of every table's last line, raised in its last digit."""
    text = page.PAGE.read_text(encoding="utf-8")
    for part in page.parts().values():
        line = part.splitlines()[-1]
        number = re.search(r"\d+\.?\d*", line)
        assert number is not None
        digit = number.end() - 1
        misprint = line[:digit] + str((int(line[digit]) + 1) % 10) + line[digit + 1 :]
        assert text.count(line) >= 1
        changed = text.replace(line, misprint)
        assert page.filled(changed) != changed


def test_a_changed_result_is_found(page, monkeypatch, tmp_path):
    """A hundredth of accuracy more in any one row that the tables show."""
    text = page.PAGE.read_text(encoding="utf-8")
    rows = page.stored()
    rng = np.random.default_rng(0)
    shown = [i for i, row in enumerate(rows) if row.get("epsilon") in (0.1, 1.0)]
    for i in rng.choice(shown, 12, replace=False):
        changed = [dict(row) for row in rows]
        changed[i]["accuracy"] += 0.01
        (tmp_path / "results.json").write_text(json.dumps(changed), encoding="utf-8")
        monkeypatch.setattr(page, "RESULTS", tmp_path / "results.json")
        assert page.filled(text) != text


def test_the_reproduced_items_are_what_is_stored(page):
    """experiments/results holds the rows of the full studies, in the same digits."""
    for name, (_, made) in page.tables().items():
        kept = json.loads((page.KEPT / f"erm-{name}.json").read_text(encoding="utf-8"))
        assert kept["full"]
        assert json.dumps(kept["rows"]) == json.dumps(made.rows)  # as text: there are NaNs
        assert "Real-sim: data not at hand" in kept["note"]


def test_every_set_was_run_with_ten_splits(page):
    """The issue's cells: sets, losses, noises and ten 80/20 splits; Real-sim is said to be missing."""
    import erm_objective
    import erm_output

    rows = page.stored()
    for study, noises, epsilons in (
        ("output", erm_output.NOISES, erm_output.DECADES),
        ("objective", erm_objective.VARIANTS, erm_objective.EPSILONS),
    ):
        mine = [row for row in rows if row["study"] == study]
        assert {(row["loss"], row["dataset"]) for row in mine if row.get("absent")} == {
            (loss, "Real-sim") for loss in LOSSES
        }
        for loss in LOSSES:
            for dataset in SETS:
                cells = [row for row in mine if (row["loss"], row["dataset"]) == (loss, dataset)]
                for noise in noises:
                    for epsilon in epsilons:
                        row = page.at(cells, dataset, noise, epsilon)
                        assert row is not None, (study, loss, dataset, noise, epsilon)
                        assert row["splits"] == 10
                        assert row["runs"] >= row["splits"]
    assert not any("not run yet" in part for part in page.parts().values())


def test_certified_radial_noise_is_nowhere_below_the_analytic_gaussian(page):
    """Every cell of every set, loss and study: none below beyond both 99% intervals, none with more noise."""
    found = [(row, other) for kind, row, other in page.comparisons() if kind == "noise"]
    cells = {(row["study"], row["loss"], row["dataset"], row["epsilon"]) for row, _ in found}
    assert len(found) == len(cells) == len(LOSSES) * len(SETS) * (5 + 4)
    assert [row for row, other in found if page.apart(row, other) < 0] == []
    assert all(row["expected_error"] <= other["expected_error"] for row, other in found if row["study"] == "output")
    assert {row["verdict"] for pair in found for row in pair} == {"certified"}
    assert all(row["exact_delta"] <= 1e-5 for pair in found for row in pair)


def test_the_comparison_sees_a_row_that_lies_below(page):
    low, high = ({"accuracy": a, "accuracy_sd": 0.01, "runs": 100} for a in (0.70, 0.71))
    assert (page.apart(low, high), page.apart(high, low)) == (-1, 1)
    assert page.apart(low, {**high, "accuracy": 0.705}) == 0


def test_product_noise_is_refuted_and_marked_in_every_cell(page):
    import erm_objective
    import erm_output

    rows = [row for row in page.stored() if row.get("noise") in ("product-noise", "product")]
    assert len(rows) == len(LOSSES) * len(SETS) * (len(erm_output.EPSILONS) + len(erm_objective.EPSILONS))
    assert {row["verdict"] for row in rows} == {"refuted"}
    assert "REFUTED" in erm_output.LABELS["product-noise"]
    assert "REFUTED" in erm_objective.LABELS["product"]


def test_mean_errors_of_the_draws_are_within_sampling_error(page):
    """Gaussian |n|: its mean is sigma sqrt(M) within 1/(4 M), its deviation below sigma/sqrt(2); 6 standard errors."""
    dims = {"Adult": 104, "KDDCup99": 122, "MNIST": 7840, "Synthetic-H": 20_000, "RCV1 sample": 47_236}
    checked = 0
    for row in page.stored():
        if row["study"] == "output" and row.get("noise") in ("gaussian", "classic-gaussian"):
            dim = dims[row["dataset"]]
            slack = 6 / math.sqrt(2 * dim * row["runs"]) + 1 / (4 * dim)
            assert abs(row["error"] / row["expected_error"] - 1) <= slack, row
            checked += 1
    assert checked == 2 * len(LOSSES) * len(SETS) * 8


@pytest.mark.parametrize("loss", [Logistic(), HuberHinge(0.1)], ids=lambda one: one.name)
@pytest.mark.parametrize("problems", [1, 3])
def test_models_minimised_together_are_the_library_s_own(loss, problems):
    """The runner's weights are those of `objective.solve` up to the second noise; without a term, the optimum."""
    import erm_objective

    rng = np.random.default_rng(3)
    x = rng.normal(size=(300, 6))
    x /= np.linalg.norm(x, axis=1, keepdims=True) * 1.01
    records = Records(x, np.where(rng.random((300, problems)) < 0.5, 1.0, -1.0))
    problem = Problem(loss, 300, 6, problems, 1.0, 1e-2, 5.0, 1e-5, "replace")
    fixed = replace(problem, regularization=objective.default_regularization(problem))
    law = objective.mechanism(fixed, "gaussian")
    expected = objective.solve(Risk(fixed, records), (law,), Draws(np.random.default_rng(4))).weights
    randomness = source(np.random.default_rng(4))
    term = fine_draw(law.law, randomness) / 300
    near = objective.tolerance(fixed, law.law)
    draw = (fixed, {"one": (term, law.output_law), "two": (-term, law.output_law)}, farthest(law.law) / 300, near)
    plain, models = erm_objective.solved(draw, records, np.random.default_rng(5))
    spread = 12 * float(law.output_law.scales[0]) * math.sqrt(expected.size)
    assert np.linalg.norm(models["one"] - expected) <= spread
    assert np.linalg.norm(models["two"] - expected) > 10 * spread
    best = output.optimum(fixed, records)
    assert np.linalg.norm(plain - best) <= 2 * math.sqrt(problems) * output.tolerance(fixed)


def test_an_item_runs_quickly_and_names_what_is_missing(monkeypatch, tmp_path):
    """Without data files: Synthetic-H is drawn, the others are said to be missing."""
    monkeypatch.setenv("SHAPEDP_DATA", str(tmp_path))
    found = find_item("erm/objective-huber", FOLDER.parent).run(False, lambda *_: None)
    assert {row[0] for row in found.rows} == {"Synthetic-H"}
    assert all(len(row) == len(found.headers) for row in found.rows)
    assert found.note == "RCV1 sample: data not at hand; Real-sim: data not at hand"


def test_rows_are_kept_after_every_split(page, monkeypatch, tmp_path):
    """A run on 2,000 rows of Synthetic-H replaces its own rows and no others; one split, then two."""
    import erm_output
    import erm_sets

    monkeypatch.setattr(page, "RESULTS", tmp_path / "results.json")
    other = {"study": "output", "loss": "huber", "dataset": "Adult", "absent": True}
    (tmp_path / "results.json").write_text(json.dumps([other]), encoding="utf-8")
    seen = []
    save = page.save

    def watched(path, text):
        seen.append(json.loads(text))
        save(path, text)

    monkeypatch.setattr(page, "save", watched)
    small = {"epsilons": (0.1,), "noises": ("gaussian",), "repeats": 2, "draws": 3}
    data = erm_sets.load("Synthetic-H", 1000)
    monkeypatch.setattr(erm_output, "run", lambda losses, *_: erm_output.study(data, losses, **small))
    page.run("output", ("logistic", "huber"), "Synthetic-H", 2)
    assert [len(rows) for rows in seen] == [5, 5]
    assert [{row.get("splits") for row in rows} for rows in seen] == [{None, 1}, {None, 2}]
    assert page.stored()[0] == other
    assert {row["runs"] for row in page.stored()[1:] if row["noise"] == "gaussian"} == {6}
