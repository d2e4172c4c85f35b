"""shapedp fit: models and certificates from files, and nothing written where something is wrong."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest

from shapedp.cli import main
from shapedp.cli.codes import DONE, REFUSED, WRONG_INPUT
from shapedp.cli.fit import LINEAR as LINEAR_SOLVERS
from shapedp.cli.fit import LOGISTIC as LOGISTIC_SOLVERS
from shapedp.learn import LogisticRegression
from shapedp.learn.solvers import linear
from shapedp.tables.blocks import Columns, UndeclaredTypesWarning

N = 4000
CLAIM = ["--epsilon", "1", "--delta", "1e-6"]
LINEAR = ["--target", "price", "--features", "age,income", "--feature-bound", "2", "--target-bound", "1"]
LOGISTIC = ["--target", "late", "--features", "age,income", "--feature-bound", "2"]


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 2)) / 2
    frame = pd.DataFrame(x, columns=["age", "income"])
    frame["price"] = x @ [0.5, -0.25]
    frame["late"] = np.where(x[:, 0] + rng.normal(size=N) / 8 > 0, "yes", "no")
    frame["flag"] = (x[:, 0] > 0).astype(int)
    frame.loc[3, "age"] = np.nan
    frame.to_parquet(tmp_path / "d.parquet")
    frame.to_csv(tmp_path / "d.csv", index=False)
    return tmp_path


def _fit(folder, *arguments, output="model.json"):
    csv = any(one.endswith(".csv") for one in arguments) and "--types" not in arguments
    return main(["fit", *arguments, *(["--types", "number"] if csv else []), "--output", str(folder / output)])


@pytest.mark.parametrize("name", ["d.parquet", "d.csv"])
@pytest.mark.parametrize("solver", ["auto", "mixing", "adassp-joint"])
def test_linear(folder, capsys, name, solver):
    code = _fit(folder, "linear", str(folder / name), *LINEAR, *CLAIM, "--solver", solver)
    printed = capsys.readouterr()
    assert code == DONE, printed.err
    model = json.loads((folder / "model.json").read_text())
    assert model["kind"] == "linear-regression"
    assert model["features"] == ["age", "income"]
    np.testing.assert_allclose(model["coefficients"], [0.5, -0.25], atol=0.25)
    assert isinstance(model["intercept"], float)
    assert not model["unsafe"]
    certificate = json.loads((folder / "model.certificate.json").read_text())
    assert certificate["verdict"] == "certified"
    assert certificate["unsafe"] is False
    assert "(intercept)" in printed.out
    assert "verdict    certified" in printed.out
    assert main(["verify", str(folder / "model.certificate.json")]) == DONE


@pytest.mark.parametrize(("target", "classes", "found"), [("late", "no,yes", ["no", "yes"]), ("flag", "0,1", [0, 1])])
@pytest.mark.parametrize("solver", ["mixing", "descent", "kifer"])
@pytest.mark.parametrize("name", ["d.parquet", "d.csv"])
def test_logistic(folder, capsys, name, solver, target, classes, found):
    options = ["--target", target, "--classes", classes, "--features", "age,income", "--feature-bound", "2"]
    assert _fit(folder, "logistic", str(folder / name), *options, *CLAIM, "--solver", solver, "--json") == DONE
    printed = json.loads(capsys.readouterr().out)
    model = json.loads((folder / "model.json").read_text())
    assert printed["model"] == model
    assert printed["certificate"]["verdict"] == "certified"
    assert model["classes"] == found
    (weights,) = model["coefficients"]
    assert weights[0] > 3 * abs(weights[1])
    assert len(model["intercept"]) == 1


@pytest.mark.parametrize("solver", ["mixing", "descent", "kifer"])
def test_one_odd_label_of_a_csv_file_changes_no_other(folder, solver):
    """A number among words, or a word among numbers: the other records are read as before."""
    frame = pd.read_csv(folder / "d.csv").astype(object)
    for target, classes, odd in (("late", "no,yes", "7"), ("flag", "0,1", "HIV+")):
        frame.assign(**{target: frame[target].where(frame.index != 5, odd)}).to_csv(folder / "odd.csv", index=False)
        options = ["--target", target, "--classes", classes, "--features", "age,income", "--feature-bound", "2"]
        assert _fit(folder, "logistic", str(folder / "odd.csv"), *options, *CLAIM, "--solver", solver) == DONE
        (weights,) = json.loads((folder / "model.json").read_text())["coefficients"]
        assert weights[0] > 3 * abs(weights[1])


def test_labels_that_occur_are_public_and_said_to_be(folder, capsys):
    for solver in ("mixing", "descent", "kifer"):
        assert _fit(folder, "logistic", str(folder / "d.csv"), *LOGISTIC, *CLAIM, "--solver", solver) == DONE
        printed = capsys.readouterr()
        assert "treated as public" in printed.err
        assert "for yes" in printed.out


def test_folders_options_and_other_places(folder, capsys):
    data = folder / "parts"
    data.mkdir()
    frame = pd.read_parquet(folder / "d.parquet")
    for number in range(3):
        frame[number::3].to_parquet(data / f"{number}.parquet")
    certificate = folder / "c.json"
    options = ["--no-intercept", "--adjacency", "replace", "--sketch-rows", "77", "--certificate", str(certificate)]
    assert _fit(folder, "linear", str(data), *LINEAR, *CLAIM, *options, "--solver", "mixing") == DONE
    model = json.loads((folder / "model.json").read_text())
    assert model["intercept"] == 0
    assert model["adjacency"] == "replace"
    record = json.loads(certificate.read_text())
    assert record["adjacency"] == "replace"
    assert record["subject"]["rows"] == 77


def test_wrong_input_writes_nothing(folder, capsys):
    data = str(folder / "d.parquet")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    cases = [
        (["linear", data, *LINEAR[:-2], *CLAIM], "needs --target-bound"),
        (["linear", data, *LINEAR, *CLAIM, "--classes", "0,1"], "--classes is for"),
        (["logistic", data, *LOGISTIC, *CLAIM, "--target-bound", "1"], "--target-bound is for"),
        (["linear", str(folder / "no.parquet"), *LINEAR, *CLAIM], "no such file"),
        (["linear", data, *LINEAR, *CLAIM, "--target", "prize"], "no column 'prize'"),
        (["linear", data, *LINEAR, *CLAIM, "--features", "age,agee"], "no column 'agee'"),
        (["linear", data, *LINEAR, *CLAIM, "--features", "age,price"], "either the target or a feature"),
        (["linear", data, *LINEAR, *CLAIM, "--features", "age,late"], "these do not: late"),
        (["linear", data, *LINEAR, *CLAIM, "--solver", "magic"], "solver must be one of"),
        (["linear", data, *LINEAR, "--epsilon", "-1", "--delta", "1e-6"], "epsilon must be finite"),
        (["linear", data, *LINEAR, *CLAIM, "--feature-bound", "nan"], "feature_bound must be finite"),
        (["logistic", data, *LOGISTIC, *CLAIM, "--target", "flag", "--classes", "no,yes"], "must be numbers"),
        (["logistic", data, *LOGISTIC, *CLAIM, "--classes", "no,no"], "distinct"),
        (["linear", data, *LINEAR, *CLAIM, "--certificate", str(folder / "model.json")], "another file"),
    ]
    for arguments, message in cases:
        assert _fit(folder, *arguments) == WRONG_INPUT
        assert message in capsys.readouterr().err
    for output, message in (("d.parquet", "is an input"), ("absent/m.json", "no such folder"), (".", "a directory")):
        assert _fit(folder, "linear", data, *LINEAR, *CLAIM, output=output) == WRONG_INPUT
        assert message in capsys.readouterr().err
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


def test_a_refuted_claim_is_refused_unless_unsafe(folder, capsys):
    options = [
        "linear",
        str(folder / "d.parquet"),
        *LINEAR,
        *CLAIM,
        "--solver",
        "mixing-paper",
        "--sketch-rows",
        "1000",
    ]
    options += ["--feature-bound", "10"]
    assert _fit(folder, *options) == REFUSED
    assert not (folder / "model.json").exists()
    assert not (folder / "model.certificate.json").exists()
    assert _fit(folder, *options, "--unsafe") == DONE
    assert "NOT certified" in capsys.readouterr().out
    assert json.loads((folder / "model.json").read_text())["unsafe"]


def test_help_teaches(capsys):
    with pytest.raises(SystemExit):
        main(["fit", "--help"])
    printed = capsys.readouterr().out
    assert "never from the data" in printed
    assert "shapedp fit linear houses.parquet" in printed


@pytest.mark.parametrize("first", ["34,2,120.5", "age,2,price", "\ufeff34,visits,price", '"34","2","price"'])
def test_a_first_row_of_data_is_refused_and_not_repeated(tmp_path, capsys, first):
    (tmp_path / "nohead.csv").write_text(f"{first}\n51,7,80\n", encoding="utf-8")
    for target in ("120.5", "price"):
        options = ["--target", target, "--features", "34,2", "--feature-bound", "2", "--target-bound", "1", *CLAIM]
        assert _fit(tmp_path, "linear", str(tmp_path / "nohead.csv"), *options) == WRONG_INPUT
        said = capsys.readouterr()
        assert said.err.endswith("the first row looks like data: a header with column names is expected\n")
        assert not said.out
    assert not (tmp_path / "model.json").exists()


def test_help_names_every_solver(capsys):
    assert tuple(linear.SOLVERS) == LINEAR_SOLVERS
    assert LogisticRegression.solvers == LOGISTIC_SOLVERS
    with pytest.raises(SystemExit):
        main(["fit", "--help"])
    printed = "".join(capsys.readouterr().out.split())
    for names in (LINEAR_SOLVERS, LOGISTIC_SOLVERS):
        assert ",".join(names) in printed


def test_the_features_of_a_csv_file_must_be_named(folder, capsys):
    """One column of text among the features would make every record count as zeros."""
    for model, others in (("linear", LINEAR), ("logistic", LOGISTIC)):
        options = [*others[:2], *others[4:], *CLAIM]
        assert _fit(folder, model, str(folder / "d.csv"), *options) == WRONG_INPUT
        assert "name the features: --features a,b,c (a csv column has no type" in capsys.readouterr().err
    assert not (folder / "model.json").exists()
    frame = pd.read_parquet(folder / "d.parquet")[["age", "income", "price"]]
    frame.to_parquet(folder / "numbers.parquet")
    assert _fit(folder, "linear", str(folder / "numbers.parquet"), *LINEAR[:2], *LINEAR[4:], *CLAIM) == DONE
    assert "price, 2 features, solver" in capsys.readouterr().out


def test_one_feature_is_one_feature(folder, capsys):
    assert _fit(folder, "linear", str(folder / "d.csv"), *LINEAR, "--features", "age", *CLAIM) == DONE
    assert "price, 1 feature, solver" in capsys.readouterr().out


ADULT = "age,education,hours,income\n39,Bachelors,40,0.2\n50,HS-grad,13,0.4\n"


@pytest.mark.parametrize(
    ("types", "said"),
    [
        (None, "declare the types of the columns: --types age=number,education=text"),
        ("age=number,education=text,income=number", "education: text is no feature of a regression"),
        ("age=number,education=number", "--types must name every column that is used, income too"),
        ("age=number,education=text,income=text", "education, income: text is no feature"),
        ("age=int,education=text", "--types must read number, or name=number"),
        ("age", "--types must read number, or name=number"),
        ("age=number,age=text", "--types must read number, or name=number"),
    ],
)
def test_text_is_refused_by_what_is_declared(tmp_path, capsys, types, said):
    """The file is not even opened: it need not exist, and no cell decides."""
    words = ["fit", "linear", str(tmp_path / "adult.csv"), "--target", "income", "--features", "age,education", *CLAIM]
    words += ["--feature-bound", "1", "--target-bound", "1", "--output", str(tmp_path / "model.json")]
    words += [] if types is None else ["--types", types]
    said_first = None
    for content in (None, ADULT, ADULT.replace("Bachelors", "13").replace("HS-grad", "9")):
        if content is not None:
            (tmp_path / "adult.csv").write_text(content)
        assert main(words) == WRONG_INPUT
        err = capsys.readouterr().err
        assert said in err
        assert said_first in (None, err)
        said_first = err
    assert not (tmp_path / "model.json").exists()


def test_types_of_a_parquet_file_are_its_own(folder, capsys):
    words = ["linear", str(folder / "d.parquet"), *LINEAR, *CLAIM]
    assert _fit(folder, *words, "--types", "number") == WRONG_INPUT
    assert "--types is for csv files" in capsys.readouterr().err
    assert _fit(folder, *words, "--features", "age,late") == WRONG_INPUT
    assert "columns must hold numbers; these do not: late" in capsys.readouterr().err


def test_declared_types_let_numbers_through(folder, capsys):
    words = ["linear", str(folder / "d.csv"), *LINEAR, *CLAIM]
    assert _fit(folder, *words, "--types", "age=number, income=number,late=text,price=number") == DONE
    assert "2 features" in capsys.readouterr().out


def test_undeclared_types_are_not_silent_in_python(folder):
    path = folder / "d.csv"
    with pytest.warns(UndeclaredTypesWarning, match="the fit would be noise"):
        Columns(path, ["age"]).as_table("price", None)
    with pytest.raises(ValueError, match=r"these do not: late \(text\)"):
        Columns(path, ["age", "late"], types={"age": "number", "late": "text", "price": "number"}).as_table(
            "price", None
        )
    with pytest.raises(ValueError, match="every column that is used, price too"):
        Columns(path, ["age"], types={"age": "number"}).as_table("price", None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Columns(path, ["age"], types="number").as_table("price", None).columns == 1
    with pytest.raises(ValueError, match="types are for csv files"):
        Columns(folder / "d.parquet", ["age"], types="number")
