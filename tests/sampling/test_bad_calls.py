"""Bad calls: a clear error that names the argument, before any randomness is drawn."""

from __future__ import annotations

import numpy as np
import pytest
from tests.sampling.helpers import Refusing

from shapedp.sampling import grid_for, rounded_sum

X = np.zeros(3)
LARGE = np.zeros(1_000_000)
LARGE[-1] = np.nan

BAD = [
    ("x", [np.nan, 0, 0], "gaussian", 1.0, None, ValueError),
    ("x", [0, np.inf, 0], "gaussian", 1.0, None, ValueError),
    ("x", [0, -np.inf, 0], "laplace", 1.0, None, ValueError),
    ("x", LARGE, "gaussian", 1.0, None, ValueError),
    ("x", LARGE.astype(np.float32), "gaussian", 1.0, None, ValueError),
    ("x", [1e305, 0, 0], "gaussian", 1e300, None, ValueError),
    ("x", [1e15, 0, 0], "gaussian", 1e-3, None, ValueError),
    ("x", [[0, 0], [0, -1e15]], "gaussian", [1.0, 1e-3], None, ValueError),
    ("x", np.array([3e38], dtype=np.float32), "gaussian", 1e20, None, ValueError),
    ("x", np.array(["a"]), "gaussian", 1.0, None, TypeError),
    ("x", np.array([1 + 1j]), "gaussian", 1.0, None, TypeError),
    ("x", np.array([None]), "gaussian", 1.0, None, TypeError),
    ("x", np.array([True]), "gaussian", 1.0, None, TypeError),
    ("x", np.zeros(3, dtype=np.longdouble), "gaussian", 1.0, None, TypeError),
    ("x", np.array([2**53 + 1]), "gaussian", 1.0, None, ValueError),
    ("x", np.array([2**64 - 1], dtype=np.uint64), "gaussian", 1.0, None, ValueError),
    ("scale", X, "gaussian", np.nan, None, ValueError),
    ("scale", X, "gaussian", np.inf, None, ValueError),
    ("scale", X, "gaussian", -1.0, None, ValueError),
    ("scale", X, "gaussian", [1.0, np.nan, 1.0], None, ValueError),
    ("scale", X, "gaussian", [1.0, -1e-9, 1.0], None, ValueError),
    ("scale", X, "gaussian", 5e-324, None, ValueError),
    ("scale", X, "gaussian", 1e302, None, ValueError),
    ("scale", X.astype(np.float32), "gaussian", 1e35, None, ValueError),
    ("scale", X, "gaussian", [1.0, 1.0], None, ValueError),
    ("scale", X, "gaussian", [[1.0, 1.0, 1.0]], None, ValueError),
    ("scale", X, "gaussian", "1", None, TypeError),
    ("scale", X, "gaussian", None, None, TypeError),
    ("scale", X, "gaussian", True, None, TypeError),
    ("grid", X, "gaussian", 1.0, 0.1, ValueError),
    ("grid", X, "gaussian", 1.0, 0.0, ValueError),
    ("grid", X, "gaussian", 1.0, -0.5, ValueError),
    ("grid", X, "gaussian", 1.0, np.nan, ValueError),
    ("grid", X, "gaussian", 1.0, np.inf, ValueError),
    ("grid", X, "gaussian", 1.0, [0.5, 0.25, 0.3], ValueError),
    ("grid", X, "gaussian", 1.0, [0.5, 0.5], ValueError),
    ("grid", np.zeros((3, 3)), "gaussian", [1.0, 1.0, 1.0], np.full((3, 3), 0.5), ValueError),
    ("grid", X, "gaussian", 1.0, 2.0**-31, ValueError),
    ("grid", X, "gaussian", 1.0, 2.0**21, ValueError),
    ("grid", X, "gaussian", 1.0, "0.5", TypeError),
    ("quantile", X, "cauchy", 1.0, None, ValueError),
    ("quantile", X, None, 1.0, None, ValueError),
]


@pytest.mark.parametrize(("name", "x", "law", "scale", "grid", "error"), BAD)
def test_bad_calls_draw_nothing(name, x, law, scale, grid, error):
    with pytest.raises(error, match=f"^{name} must"):
        rounded_sum(x, law, scale, grid, Refusing())


def test_the_source_is_checked():
    for wrong in (None, 3, np.random.default_rng(0)):
        with pytest.raises(TypeError, match=r"^source must"):
            rounded_sum(X, "gaussian", 1.0, None, wrong)


def test_grid_for_checks_its_scale():
    for wrong in (-1.0, np.nan, np.inf, [1.0, -1.0]):
        with pytest.raises(ValueError, match=r"^scale must"):
            grid_for(wrong)
