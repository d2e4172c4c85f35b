"""Issue 15, item 14: certificates were silent about several rows per person, text columns and steps around a fit.

A certificate of an estimator or of `release --records` states its scope: in its JSON, in `explain`, on the command
line and in the report. The sentence depends on no cell.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import shapedp as sdp
from shapedp.cli import main
from shapedp.learn import PCA, Lasso, LinearRegression, LogisticRegression, PrivateSearch
from shapedp.mechanisms.certify import verify
from shapedp.privacy import Certificate
from shapedp.report import of

CLAIM = {"epsilon": 1.0, "delta": 1e-6}
X = np.random.default_rng(0).normal(size=(60, 2)) / 4
Y = (X[:, 0] > 0).astype(int)
LINEAR = LinearRegression(**CLAIM, feature_bound=1.0, target_bound=1.0)
SEARCHED = LogisticRegression(**CLAIM, feature_bound=1.0, classes=[0, 1], solver="output", noise="gaussian")
SAID = ("One person is one row", "several times as much", "This fit alone is covered", "scalers", "counts as none")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "model",
    [
        LINEAR,
        Lasso(**CLAIM, feature_bounds=1.0, target_bound=1.0, passes=1),
        PCA(**CLAIM, feature_bound=1.0),
        *(LogisticRegression(**CLAIM, feature_bound=1.0, classes=[0, 1], solver=s) for s in LogisticRegression.solvers),
        PrivateSearch(SEARCHED, {"regularization": [0.5, 1.0]}, epsilon=2.0, delta=1e-5, repeats=2.0),
    ],
    ids=lambda model: f"{type(model).__name__}-{getattr(model, 'solver', '')}",
)
def test_every_estimator_states_its_scope(model):
    certificate = model.fit(X, Y).privacy_
    for words in SAID:
        assert words in certificate.scope
    assert certificate.scope in certificate.explain()
    assert Certificate.from_json(json.loads(json.dumps(certificate.to_json()))).scope == certificate.scope
    assert verify(certificate).scope == certificate.scope


def test_the_sentence_depends_on_no_cell():
    text = np.full((60, 2), "x", dtype=object)
    scopes = {LINEAR.fit(x, Y).privacy_.scope for x in (X, X * np.nan, text, np.zeros((60, 2)))}
    assert len(scopes) == 1


def test_steps_around_a_model_are_named():
    search = GridSearchCV(
        make_pipeline(StandardScaler(), LINEAR), {"linearregression__feature_bound": [1.0, 2.0]}, cv=2
    )
    certificate = search.fit(X, Y).best_estimator_[-1].privacy_
    assert "scalers, feature selection, searches" in certificate.explain()


def test_a_mechanism_alone_has_no_scope():
    made = sdp.calibrate("gaussian", sdp.L2(1.0, 2), **CLAIM).certificate
    assert made.scope == ""
    assert "Scope" not in made.explain()
    assert "scope" in made.to_json()


def test_release_of_records_says_that_a_row_is_a_person(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "visits.csv").write_text("person,cost\n1,2\n1,3\n1,4\n2,1\n")
    sets = ["--box", "5", "--adjacency", "add-remove", "--epsilon", "1", "--delta", "1e-6", "-o", "m.json"]
    assert main(["calibrate", "gaussian", *sets]) == 0
    assert main(["release", "m.json", "visits.csv", "--records", "--columns", "cost", "-o", "out.csv"]) == 0
    assert "One person is one row: several rows of one person cost several times as much." in capsys.readouterr().out
    assert "One person is one row" in json.loads((tmp_path / "out.certificate.json").read_text())["scope"]
    assert main(["verify", "out.certificate.json"]) == 0
    assert "One person is one row" in capsys.readouterr().out
    np.save("answer.npy", np.array([10.0]))
    assert main(["release", "m.json", "answer.npy", "-o", "one.npy"]) == 0
    assert json.loads((tmp_path / "one.certificate.json").read_text())["scope"] == ""


def test_the_command_line_and_the_report_print_it(tmp_path, capsys):
    np.savetxt(tmp_path / "d.csv", np.column_stack([X, Y]), delimiter=",", header="a,b,y", comments="")
    bounds = ["--feature-bound", "1", "--target-bound", "1", "--epsilon", "1", "--delta", "1e-6"]
    command = [
        "fit",
        "linear",
        str(tmp_path / "d.csv"),
        "--target",
        "y",
        "--features",
        "a,b",
        "--types",
        "number",
        *bounds,
    ]
    assert main([*command, "-o", str(tmp_path / "m.json")]) == 0
    said = capsys.readouterr().out
    for words in SAID:
        assert words in said
    model = LINEAR.fit(X, Y)
    page = of(model).html
    for words in SAID:
        assert words in page
    page = of(replace(model.privacy_, scope="<b>")).html
    assert "&lt;b&gt;" in page
