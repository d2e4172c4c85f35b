"""Library functions that guarantees lean on: measured against ball arithmetic; the page shows the command's list."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
from scipy import special

ROOT = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location(
    "trust_special_functions", ROOT / "experiments" / "trust" / "special_functions.py"
)
table = importlib.util.module_from_spec(_spec)
sys.modules["trust_special_functions"] = table
_spec.loader.exec_module(table)
LIBRARY = re.compile(r"\bspecial\.(\w+)\(")
# For search, reports, audits' sizes and reproductions of published formulas: no certificate rests on these.
GUIDES = {
    "noise/tensor.py": {"ndtri"},
    "noise/gaussian.py": {"ndtri", "gammaincinv"},
    "noise/mixed.py": {"ndtri"},
    "noise/logistic.py": {"zeta"},
    "noise/radial.py": {"gammaln", "gammaincinv"},
    "numerics/gammatail.py": {"gammaincinv", "gammainccinv", "ndtri"},
    "numerics/tails.py": {"log_ndtr"},
    "mechanisms/adaptive_mixing.py": {"expit", "ndtri"},
    "privacy/losses/gaussian.py": {"ndtri"},
    "papers/gaussian_mixing/recipes.py": {"expit"},
    "papers/inid_noise/recipes.py": {"ndtri", "ndtr"},
    "papers/product_noise/recipes.py": {"hyp1f1", "gammaln"},
    "papers/geodp/recipes.py": {"ndtr"},
    "learn/logistic.py": {"expit"},
    "audit": {"ndtri", "ndtr", "log_ndtr", "logsumexp", "expit", "gammaincinv", "betaincinv"},
    "papers/product_noise/claims.py": {"gammaln"},
    "papers/product_noise/proof_claims.py": {"gammaln", "hyp1f1"},
}
# Measured as part of the function named.
INSIDE = {
    "roots_laguerre": "numerics.sphere.Cap.scaled",
    "roots_jacobi": "numerics.sphere.Cap.scaled",
    "gamma": "numerics.chisquare.log_stirling",
    "betainc": "scipy.special.betaincinv",
    "betaincc": "scipy.special.betaincinv",
    "betainccinv": "scipy.special.betaincinv",
}


def test_every_measured_error_is_within_what_is_assumed(capsys):
    assert table.main(["--quick"]) == 0
    assert "FAILS" not in capsys.readouterr().out


def test_a_wrong_function_fails(monkeypatch, capsys):
    """scipy's gammainc far below the mean, as it was used: the command sees its error."""

    def measure(rng, n):
        z = table.log_radii(1e7, np.array([-5.0]))
        found = special.gammainc(1e7, 1e7 * np.exp(z)) / np.exp(table.log_peak(1e7) - 1e7 * table.deviance(z))
        return table.worst(found.tolist(), [table.gamma_reference.mills(1e7, float(z[0]), upper=False)])

    row = dataclasses.replace(table.ROWS[0], name="scipy.special.gammainc", measure=measure, assumed=2.0**-42)
    monkeypatch.setattr(table, "ROWS", (row,))
    assert table.main(["--quick"]) == 1
    assert "FAILS" in capsys.readouterr().out


def test_the_page_shows_the_commands_rows():
    page = (ROOT / "docs" / "special-functions.md").read_text()
    shown = [line.split(" | ")[:5] for line in page.splitlines() if line.startswith("| ") and "holds" in line]
    listed = [table.cells(row).split(" | ")[:5] for row in table.ROWS]
    assert shown == listed
    assert "FAILS" not in page


def test_every_scipy_function_of_the_library_is_listed():
    """A new scipy.special function in src needs a row, or a reason why nothing rests on it."""
    names = {row.name.removeprefix("scipy.special.") for row in table.ROWS}
    everything = {row.name for row in table.ROWS}
    assert set(INSIDE.values()) <= everything
    src = ROOT / "src" / "shapedp"
    for path in src.rglob("*.py"):
        where = path.relative_to(src).as_posix()
        guides = GUIDES.get(where, GUIDES.get(where.split("/")[0], set()))
        for name in LIBRARY.findall(path.read_text()):
            assert name in names or name in INSIDE or name in guides, f"{where}: scipy.special.{name} has no row"
