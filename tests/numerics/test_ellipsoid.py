"""The best ellipsoid around a hull: golden values, known sets as special cases, and bounds of another making."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from mpmath import mp
from scipy import optimize

from shapedp.numerics.ellipsoid import Points, best_ellipsoid, nuclear_below


def prefixes(n: int) -> np.ndarray:
    return np.tril(np.ones((n, n))).T


def ranges(n: int) -> np.ndarray:
    return np.array([[1.0 * (a <= k <= b) for k in range(n)] for a in range(n) for b in range(a, n)]).T


def least(vertices, weights=None, **options) -> float:
    rows = np.asarray(vertices, dtype=float)
    weights = np.ones(rows.shape[1]) if weights is None else np.asarray(weights, dtype=float)
    gap = options.pop("gap", 1e-7)
    found = best_ellipsoid(Points(rows, options.pop("pairs", False)), weights, gap=gap, rounds=20_000, **options)
    assert found.gap <= gap
    return found.least


@pytest.mark.parametrize(
    ("vertices", "golden"),
    [
        (prefixes(8), 17.866177),
        (prefixes(64), 282.20142),
        (ranges(64), 11024.3815),
        (np.kron(np.eye(4), [[1.0, 0.0], [1.0, 1.0]]), 10.47),
        (np.kron(np.eye(4), [[1.0, -1.0], [1.0, 1.0]]), 16.0),
    ],
    ids=["prefixes-8", "prefixes-64", "ranges-64", "measure-0-1", "measure-1-1"],
)
def test_golden_values(vertices, golden):
    """Theory, section 1 and 2; 10.47 is 4 times the square of the golden ratio."""
    golden = (3 + 5**0.5) * 2 if golden == 10.47 else golden
    assert least(vertices) == pytest.approx(golden, rel=1e-6)


def test_known_sets_are_special_cases():
    widths, weights = np.array([1.0, 0.3, 2.0, 0.1]), np.array([1.0, 4.0, 0.5, 2.0])
    corners = np.array(list(itertools.product([-1, 1], repeat=4))) * widths
    assert least(corners) == pytest.approx(widths.sum() ** 2, rel=1e-6)
    assert least(corners, weights) == pytest.approx((widths * np.sqrt(weights)).sum() ** 2, rel=1e-6)
    assert least(corners, weights, worst=True) == pytest.approx((widths**2 * weights).sum(), rel=1e-6)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    assert least(3.0 * turn) == pytest.approx(4 * 9.0, rel=1e-6), "a cross-polytope of any orientation: its ball"
    on_sphere = np.vstack([np.diag(widths), turn * widths, -turn.T * widths])
    found = least(on_sphere, gap=1e-4)  # slow: all points touch, few carry weight
    assert found == pytest.approx(np.square(widths).sum(), rel=1e-6), "the ellipsoid with these axes"
    ends = [np.vstack([np.eye(k), -np.eye(k)]) for k in (2, 3)]
    blocks = np.array([np.concatenate([2 * a, 0.5 * b]) for a in ends[0] for b in ends[1]])
    assert least(blocks) == pytest.approx((2 * 2**0.5 + 0.5 * 3**0.5) ** 2, rel=1e-6)


def test_differences_are_those_of_all_pairs():
    rng = np.random.default_rng(2)
    for _ in range(5):
        rows = rng.normal(size=(7, 4))
        listed = np.array([a - b for a, b in itertools.combinations(rows, 2)])
        assert least(rows, pairs=True) == pytest.approx(least(listed), rel=1e-6)
        worst = {"worst": True, "gap": 1e-4}  # a query that carries no weight keeps a little of it
        assert least(rows, pairs=True, **worst) == pytest.approx(least(listed, **worst), rel=1e-4)


TIGHT = {"maxiter": 10_000, "maxfun": 20_000, "ftol": 1e-16, "gtol": 1e-10, "maxcor": 40}


def dual(rows: np.ndarray, aim: float) -> float:
    """A lower bound by another road: the nuclear norm maximised by BFGS, then by plain rounds where that missed."""

    def negative(z: np.ndarray) -> tuple[float, np.ndarray]:
        lam = np.exp(z - z.max())
        lam /= lam.sum()
        u, s, vt = np.linalg.svd(rows.T * np.sqrt(lam), full_matrices=False)
        slope = ((rows @ u) * vt.T).sum(axis=1) * 0.5 * np.sqrt(lam)
        return -s.sum(), -(slope - lam * slope.sum())

    size = np.linalg.svd(rows, compute_uv=False).sum()
    rows = rows / size
    best = optimize.minimize(negative, np.zeros(len(rows)), jac=True, method="L-BFGS-B", options=TIGHT)
    lam, top = np.exp(np.maximum(best.x - best.x.max(), -12.0)), -best.fun
    for _ in range(2000 if (top * size) ** 2 < aim else 0):
        u, s, _vt = np.linalg.svd(rows.T * np.sqrt(lam / lam.sum()), full_matrices=False)
        top = max(top, s.sum())
        kept = s > 1e-9 * s[0]
        lam = lam / lam.sum() * (np.square(rows @ u[:, kept]) @ (1 / s[kept])) / s.sum()
    return (top * size) ** 2


def test_gaps_of_random_hulls_hold_against_another_bound():
    """200 hulls: what was asked for is reached, and neither end contradicts a maximiser that shares no code."""
    rng = np.random.default_rng(3)
    for case in range(200):
        dim, count = int(rng.integers(1, 13)), int(rng.integers(1, 41))
        rows = rng.normal(size=(count, dim)) * 10 ** rng.uniform(-1.5, 1.5, dim)
        found = best_ellipsoid(Points(rows), np.ones(dim), gap=1e-4, rounds=20_000)
        reach = np.einsum("ki,ij,kj->k", rows, np.linalg.pinv(found.inverse, rcond=1e-10), rows).max()
        error = np.trace(found.inverse) * reach
        other = dual(rows, error / (1 + 1e-4))
        assert found.least <= error <= found.least * (1 + 1.01e-4), case
        assert other <= error * (1 + 1e-9), case
        assert error <= other * (1 + 1.01e-4), case


def test_nuclear_norm_is_bounded_from_below():
    """Against singular values to 60 digits, also where they span many decades or vanish."""
    rng = np.random.default_rng(4)
    with mp.workdps(60):
        for case in range(40):
            rows, columns = (int(n) for n in rng.integers(1, 7, size=2))
            matrix = rng.normal(size=(rows, columns)) * 10 ** rng.uniform(-4, 4, columns)
            if case % 4 == 0:
                matrix[:, -1] = matrix[:, 0]
            truth = mp.fsum(mp.svd_r(mp.matrix(matrix.tolist()), compute_uv=False))
            found = nuclear_below(matrix)
            assert found <= truth
            assert found >= truth * (1 - 1e-5)
