"""Issue 16, item 6: the first row of a csv file without a header was printed on stderr, or published as a name.

A name leaves only if it was declared: by --columns, --column, --features or --target. --no-header says that the first
row is a record.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import shapedp as sdp
from shapedp.cli import main
from shapedp.learn import LinearRegression
from shapedp.tables import Columns
from shapedp.tables.vectors import read_vector

SECRET = "HIV"
FIRST = [f"{SECRET},$120.50", f"{SECRET},unknown", f"{SECRET},7", f"{SECRET},{SECRET}", f'"{SECRET}', SECRET]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    law, box = sdp.Gaussian(np.array([1e-9, 1e-9])), sdp.Box([90.0, 10.0], adjacency="add-remove")
    (tmp_path / "m.json").write_text(json.dumps(sdp.Additive(law, box, 1.0, 0.5).to_json()))
    return tmp_path


def left(folder, capsys):
    """All that left: printed, or written to other files than the inputs."""
    said = capsys.readouterr()
    written = [path.read_text() for path in folder.iterdir() if path.name not in ("m.json", "d.csv")]
    return "\n".join([said.out, said.err, *written])


@pytest.mark.parametrize("first", FIRST)
def test_no_first_row_leaves(folder, capsys, first):
    (folder / "d.csv").write_text(f"{first}\n51,7\n3,4\n")
    fit = ["--feature-bound", "1", "--target-bound", "1", "--epsilon", "1", "--delta", "1e-6", "-o", "model.json"]
    commands = [
        ["release", "m.json", "d.csv", "--records", "-o", "out.csv", "--unsafe"],
        ["release", "m.json", "d.csv", "--records", "--columns", "age,visits", "-o", "out.csv", "--unsafe"],
        ["release", "m.json", "d.csv", "--records", "--no-header", "-o", "out.csv", "--unsafe"],
        ["release", "m.json", "d.csv", "-o", "out.csv", "--unsafe"],
        ["release", "m.json", "d.csv", "--column", "visits", "-o", "out.csv", "--unsafe"],
        ["release", "m.json", "d.csv", "--no-header", "-o", "out.csv", "--unsafe"],
        ["fit", "linear", "d.csv", "--target", "y", "--features", "a", *fit],
        ["fit", "linear", "d.csv", "--target", "y", *fit],
        ["fit", "linear", "d.csv", "--target", "0", "--features", "1", "--no-header", *fit],
    ]
    for command in commands:
        main(command)
        assert SECRET not in left(folder, capsys)


@pytest.mark.parametrize("first", ["$120.50", "120.50 EUR", "unknown"])
def test_the_first_entry_of_an_answer_is_not_published(folder, capsys, first):
    (folder / "d.csv").write_text(f"{first}\n51\n7\n")
    main(["release", "m.json", "d.csv", "-o", "out.csv", "--unsafe"])
    assert first not in left(folder, capsys)


def test_no_header_makes_the_first_row_a_record(folder, capsys):
    (folder / "d.csv").write_text("34,2,x\n51,7,y\n")
    options = ["--records", "--no-header", "-o", "out.csv", "--unsafe"]
    assert main(["release", "m.json", "d.csv", "--columns", "0,1", *options]) == 0
    names, values = zip(
        *(line.split(",")[:2] for line in (folder / "out.csv").read_text().splitlines()[1:]), strict=True
    )
    assert names == ("0", "1")
    assert [float(value) for value in values] == pytest.approx([85, 9], abs=1e-6)
    (folder / "d.csv").write_text("51\n7\n")
    assert main(["release", "m.json", "d.csv", "--no-header", "-o", "out.csv", "--unsafe"]) == 0
    np.save("d.npy", np.ones((2, 2)))
    assert main(["release", "m.json", "d.npy", *options]) == 2


def test_fit_without_a_header(folder, capsys):
    rows = np.random.default_rng(0).normal(size=(500, 3)) / 4
    np.savetxt("d.csv", rows, delimiter=",")
    claim = ["--feature-bound", "1", "--target-bound", "1", "--epsilon", "1", "--delta", "1e-6", "-o", "model.json"]
    claim += ["--types", "number"]
    assert main(["fit", "linear", "d.csv", "--no-header", "--target", "2", "--features", "0,1", *claim]) == 0
    assert json.loads((folder / "model.json").read_text())["features"] == ["0", "1"]
    table = Columns(folder / "d.csv", ["0", "1"], header=False, types="number")
    model = LinearRegression(epsilon=1.0, delta=1e-6, feature_bound=1.0, target_bound=1.0, random_state=0)
    written = np.loadtxt("d.csv", delimiter=",")
    np.testing.assert_array_equal(model.fit(table, "2").coef_, model.fit(written[:, :2], written[:, 2]).coef_)
    for other in (np.ones((2, 2)), folder / "d.parquet"):
        with pytest.raises((ValueError, FileNotFoundError, TypeError)):
            Columns(other, ["0"], header=False)


def test_an_error_of_the_library_lists_no_cell(folder):
    (folder / "d.csv").write_text(f"a,{SECRET},{SECRET}\n1,2,3\n")
    with pytest.raises(ValueError, match="several columns") as caught:
        Columns(folder / "d.csv", ["a"])
    assert SECRET not in str(caught.value)
    (folder / "d.csv").write_text(f"a,{SECRET}\n1,2\n")
    with pytest.raises(ValueError, match="no column 'z' in its first row") as caught:
        LinearRegression(epsilon=1.0, delta=1e-6, feature_bound=1.0, target_bound=1.0).fit(folder / "d.csv", "z")
    assert SECRET not in str(caught.value)


def test_only_a_declared_name_is_a_vectors_name(folder):
    """A first row of words may be the first record's: it names the column only where somebody says so."""
    (folder / "d.csv").write_text(f"{SECRET}\n51\n7\n")
    assert read_vector(folder / "d.csv").name is None
    assert read_vector(folder / "d.csv", header=True).name is None
    assert read_vector(folder / "d.csv", SECRET).name == SECRET
