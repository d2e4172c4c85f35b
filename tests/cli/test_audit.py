"""shapedp audit."""

from __future__ import annotations

import json

import pytest

import shapedp as sdp
from shapedp.cli import main

CLAIM = ["--epsilon", "1", "--delta", "1e-5"]


@pytest.fixture
def mechanism(tmp_path):
    path = tmp_path / "mechanism.json"
    path.write_text(json.dumps(sdp.calibrate("gaussian", sdp.L2(1.0, 2), epsilon=1.0, delta=1e-5).to_json()))
    return str(path)


def test_a_mechanism_file(mechanism, capsys):
    assert main(["audit", mechanism, "--samples", "2e4", "--seed", "1"]) == 0
    assert capsys.readouterr().out.startswith("no violation found")


def test_json_and_distribution_and_bits(mechanism, capsys):
    assert main(["audit", mechanism, "--distribution", "--json", "--samples", "1e5", "--seed", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["passed"] is True
    assert main(["audit", mechanism, "--bits", "--json", "--samples", "2e4", "--seed", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "no violation found"


def test_a_recipe_that_breaks_its_claim(capsys):
    call = ["audit", "classic-gaussian", "--dim", "1", "--epsilon", "5", "--delta", "0.5", "--samples", "4e5"]
    assert main([*call, "--seed", "1"]) == 3
    assert capsys.readouterr().out.startswith("violation")


def test_a_function_of_ones_own(tmp_path, monkeypatch, capsys):
    (tmp_path / "leaky_module.py").write_text("def f(x, rng):\n    return x + rng.laplace(scale=0.5)\n")
    monkeypatch.chdir(tmp_path)
    call = ["audit", "leaky_module:f", "--neighbours", "0", "1", "--epsilon", "1", "--delta", "0", "--samples", "2e4"]
    assert main([*call, "--seed", "1"]) == 3
    assert "violation" in capsys.readouterr().out


BROKEN = """
def f(x, rng):
    raise KeyError("income")

def g(x, rng, n):
    return rng.normal(size=n) / 0 if x else 1 / 0
"""


@pytest.mark.parametrize("parallel", ["1", "2"])
def test_an_exception_in_ones_own_function_is_named(parallel, tmp_path, monkeypatch, capsys):
    (tmp_path / "broken_module.py").write_text(BROKEN)
    (tmp_path / "worse_module.py").write_text("raise RuntimeError('no database')")
    monkeypatch.chdir(tmp_path)
    call = ["--neighbours", "0", "1", *CLAIM, "--samples", "2000", "--parallel", parallel]
    assert main(["audit", "broken_module:f", *call]) == 2
    assert "broken_module:f, called f(x, rng), raised KeyError: 'income'" in capsys.readouterr().err
    assert main(["audit", "broken_module:g", "--vectorized", *call]) == 2
    assert "broken_module:g, called f(x, rng, n), raised ZeroDivisionError" in capsys.readouterr().err
    assert main(["audit", "worse_module:f", *call]) == 2
    assert "worse_module cannot be imported: RuntimeError: no database" in capsys.readouterr().err


def test_samples_of_a_distribution_audit(mechanism, capsys):
    assert main(["audit", mechanism, "--distribution", "--samples", "5000", "--json", "--seed", "1"]) == 0
    assert json.loads(capsys.readouterr().out)["samples"] == 5000


def test_a_recipe_for_matrices(capsys):
    call = ["audit", "mvg", "--tensor", "3x4", *CLAIM, "--samples", "2e4", "--seed", "1"]
    assert main(call) == 0
    assert capsys.readouterr().out.startswith("no violation found")


def test_a_mixing_file(tmp_path, capsys):
    path = tmp_path / "mixing.json"
    m = sdp.Mixing.calibrate(rows=4, row_bound=1.0, epsilon=1.0, delta=1e-5)
    path.write_text(json.dumps(m.to_json()))
    assert main(["audit", str(path), "--samples", "2e4", "--seed", "1"]) == 0
    assert "likelihood ratio" in capsys.readouterr().out


def test_the_power_table(capsys):
    assert main(["audit", "--power", *CLAIM]) == 0
    assert "x 0.8" in capsys.readouterr().out
    assert main(["audit", "--power", *CLAIM, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["factor"] == 0.5


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ([], "name a mechanism file"),
        (["nothing"], "no MODULE:FUNCTION"),
        (["math:nothing"], "has no function"),
        (["--power"], "--power needs"),
        (["laplace"], "a recipe needs"),
        (["mvg", "--dim", "4", *CLAIM], "got (4,): give --tensor instead of --dim"),
        (["laplace", "--tensor", "2x2", *CLAIM], "laplace releases vectors: give --dim"),
        (["mvg", "--dim", "4", "--tensor", "2x2", *CLAIM], "either --dim or --tensor"),
        (["math:sin", "--neighbours", "1", "1", *CLAIM], "neighbours are equal"),
        (["math:sin", "--neighbours", "0", "1", *CLAIM], "math:sin, called f(x, rng), raised TypeError"),
        (["math:sin", "--distribution"], "no law to compare"),
        (["math:sin", "--bits", *CLAIM], "needs --neighbours"),
    ],
)
def test_wrong_input(call, text, capsys):
    assert main(["audit", *call]) == 2
    assert text in capsys.readouterr().err
