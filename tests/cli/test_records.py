"""shapedp release --records: a table of persons in, noisy totals out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import shapedp as sdp
from shapedp.cli import main

PEOPLE = "name,age,visits\nann,34,2\nbob,51,700\neve,,3\n\ndan,-93,1\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text(PEOPLE)
    return tmp_path


def mechanism(adjacency: str | None, bounds: list[float] | None = None) -> None:
    made = sdp.Additive(
        sdp.Gaussian(np.array([1e-9, 1e-9])),
        sdp.Box(bounds or [90.0, 10.0], adjacency=adjacency),  # type: ignore[arg-type]
        1.0,
        0.5,
    )
    Path("m.json").write_text(json.dumps(made.to_json()))


@pytest.mark.parametrize(
    ("adjacency", "bounds"), [("add-remove", [90.0, 10.0]), ("zero-out", [90.0, 10.0]), ("replace", [180.0, 20.0])]
)
def test_rows_are_clipped_and_summed(
    folder: Path, capsys: pytest.CaptureFixture[str], adjacency: str, bounds: list[float]
) -> None:
    mechanism(adjacency, bounds)  # almost no noise, so that the totals show
    command = ["release", "m.json", "people.csv", "--records", "--columns", "age,visits", "-o", "out.csv", "--unsafe"]
    assert main(command) == 0
    half = " (half the box: an exchanged record changes a total twice)" if adjacency == "replace" else ""
    assert capsys.readouterr().err == f"rows clipped to 90, 10{half}\n"
    header, *lines = (folder / "out.csv").read_text().splitlines()
    assert header == "column,value,standard_error"
    values = {name: float(value) for name, value, _ in (line.split(",") for line in lines)}
    assert values == pytest.approx({"age": 34 + 51 - 90, "visits": 2 + 10 + 1}, abs=1e-6)
    assert (folder / "out.certificate.json").exists()


@pytest.mark.parametrize("ending", ["npy", "parquet"])
def test_other_formats(folder: Path, ending: str) -> None:
    mechanism("add-remove")
    rows = np.array([[34.0, 2.0], [51.0, 7.0], [np.nan, 3.0]])
    if ending == "npy":
        np.save("t.npy", rows)
    else:
        arrow = pytest.importorskip("pyarrow")
        import pyarrow.parquet

        pyarrow.parquet.write_table(arrow.table({"age": rows[:, 0], "visits": rows[:, 1]}), "t.parquet")
    assert main(["release", "m.json", f"t.{ending}", "--records", "-o", f"out.{ending}", "--unsafe"]) == 0
    if ending == "npy":
        assert np.load("out.npy") == pytest.approx([85.0, 9.0], abs=1e-6)
    else:
        table = pyarrow.parquet.read_table("out.parquet").to_pydict()
        assert table["column"] == ["age", "visits"]
        assert table["value"] == pytest.approx([85.0, 9.0], abs=1e-6)


@pytest.mark.parametrize(
    ("adjacency", "options", "said"),
    [
        (None, ["--records", "--columns", "age,visits"], "--adjacency"),
        ("add-remove", ["--records"], "name the columns with --columns a,b,c, or say --no-header"),
        ("add-remove", ["--records", "--no-header"], "the table has 3 columns (0, 1, 2)"),
        ("add-remove", ["--records", "--columns", "age"], "has 1 columns"),
        ("add-remove", ["--records", "--columns", "age,height"], "no column 'height'"),
        ("add-remove", ["--records", "--column", "age"], "--columns"),
        ("add-remove", ["--columns", "age,visits"], "--records"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str], adjacency: str | None, options: list[str], said: str
) -> None:
    mechanism(adjacency)
    assert main(["release", "m.json", "people.csv", *options, "-o", "out.csv", "--unsafe"]) == 2
    assert said in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == ["m.json", "people.csv"]


@pytest.mark.parametrize(
    "first",
    ["34,2", "age,2", " 34 ,visits", "\ufeff34,2", '"34",2', "nan,visits", "2026-11-15,visits", "34;2,", "$34,7"],
)
def test_a_first_row_of_data_is_refused_and_not_repeated(
    folder: Path, capsys: pytest.CaptureFixture[str], first: str
) -> None:
    mechanism("add-remove")
    (folder / "nohead.csv").write_text(f"{first}\n51,7\n")
    for options in (["--columns", "34,2"], ["--columns", "age,visits"]):
        assert main(["release", "m.json", "nohead.csv", "--records", *options, "-o", "out.csv", "--unsafe"]) == 2
        said = capsys.readouterr()
        assert said.err.strip() == (
            "shapedp: error: nohead.csv: the first row looks like data: a header with column names is expected"
        )
        assert not said.out
    assert not (folder / "out.csv").exists()


def test_names_with_digits_are_names(folder: Path) -> None:
    mechanism("add-remove")
    (folder / "named.csv").write_text("q1,2nd\n51,7\n")
    options = ["--columns", "q1,2nd", "-o", "out.csv", "--unsafe"]
    assert main(["release", "m.json", "named.csv", "--records", *options]) == 0
    assert (folder / "out.csv").read_text().splitlines()[2].startswith("2nd,")


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("gaussian", ["--l2", "5", "--dim", "2"], "an L2 norm of 2.5 (half the L2 ball:"),
        ("gaussian", ["--l2", "5", "--dim", "2", "--scales", "1,2"], "an L2 norm of 2.5, each column divided by its"),
        ("laplace", ["--l1", "5", "--dim", "2"], "an L1 norm of 2.5 (half the L1 ball:"),
        ("gaussian", ["--blocks", "8,3", "--sizes", "1,1"], "L2 norms of 4, 1.5 by block (half the bounds of the blo"),
    ],
)
def test_what_rows_are_clipped_to_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str], kind: str, options: list[str], said: str
) -> None:
    claim = ["--adjacency", "replace", "--epsilon", "1", "--delta", "1e-6", "-o", "m.json"]
    assert main(["calibrate", kind, *options, *claim]) == 0
    release = ["release", "m.json", "people.csv", "--records", "--columns", "age,visits", "-o", "out.csv"]
    assert main(release) == 0
    assert f"rows clipped to {said}" in capsys.readouterr().err


def test_records_make_no_tensor(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claim = ["--adjacency", "replace", "--epsilon", "1", "--delta", "1e-6", "-o", "m.json"]
    assert main(["calibrate", "gaussian", "--slice-bounds", "8,3", "--tensor", "1x2", *claim]) == 0
    assert main(["release", "m.json", "people.csv", "--records", "--columns", "age,visits", "-o", "out.npy"]) == 2
    assert "a total per column, the answer is a tensor" in capsys.readouterr().err
    assert not (folder / "out.npy").exists()


def test_help_says_that_replace_halves_the_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("calibrate", "release"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert "changes a total twice" in " ".join(capsys.readouterr().out.split())
