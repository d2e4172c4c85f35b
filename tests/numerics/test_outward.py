"""Margins for rounding have one home, and hold for the arithmetic that they are about."""

import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from shapedp.numerics import outward

SOURCE = Path(__file__).parents[2] / "src" / "shapedp"
LITERAL = re.compile(r"(?<![\d.])1 [+-] 2\.0\*\*-(\d+)|(?<![\w.])2\.0\*\*-(5[0-3]|4[0-9])\b")
NOT_ROUNDING = {
    "noise/tensor.py",
    "noise/tilted.py",
    "mechanisms/angles.py",
    "mechanisms/calibrate.py",
    "accounting/composed.py",
    "privacy/losses/sums.py",
    "torch/product_kernels.py",  # kernels take no constants from outside
}


def test_no_other_file_writes_a_rounding_margin():
    found = {}
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        lines = [line.strip() for line in path.read_text("utf-8").splitlines() if LITERAL.search(line)]
        if lines and name not in NOT_ROUNDING and name != "numerics/outward.py":
            found[name] = lines
    assert not found, "name the margin in numerics/outward.py"


@pytest.mark.parametrize("n", [8, 16, 32, 128, 512])
def test_products_of_fewer_roundings_stay_within_their_margin(n):
    rng = np.random.default_rng(n)
    above, below = getattr(outward, f"ABOVE_{n}"), getattr(outward, f"BELOW_{n}")
    for _ in range(200):
        factors = rng.uniform(0.5, 2.0, n - 1)
        exact = Fraction(1)
        for factor in factors.tolist():
            exact *= Fraction(factor)
        value = float(np.multiply.reduce(factors))
        assert Fraction(value * below) <= exact <= Fraction(value * above)
    assert above == 1 + n * 2.0**-53
    assert below == 1 - n * 2.0**-53
