"""The compiled loop that adds Gaussian noise: its quantile, proved; its values, those of numpy."""

from __future__ import annotations

import math
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from flint import arb, ctx
from scipy.special import ndtr
from tests.sampling.helpers import Scripted, band, largest_gap

from shapedp.numerics.compiled import Kernel
from shapedp.sampling import LAPLACE, SecureSource, SimulatedSource, normals, rounded_sum, rounding

numba = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
PLAIN = normals._add_normals
ONE, GRID = np.ones(1), np.full(1, 2.0**-16)


def series(y: arb, order: int) -> list[arb]:
    """Taylor's coefficients of Phi^-1 where its value is y: y' = w = 1/density(y), w' = y w^2."""
    ys, ws = [y], [(2 * arb.pi()).sqrt() * (y * y / 2).exp()]
    for k in range(order):
        ys.append(ws[k] / (k + 1))
        squares = [sum((ws[i] * ws[j - i] for i in range(j + 1)), arb(0)) for j in range(k + 1)]
        ws.append(sum((ys[j] * squares[k - j] for j in range(k + 1)), arb(0)) / (k + 1))
    return ys


def normal_quantile(u: arb) -> arb:
    return arb(2).sqrt() * (2 * u - 1).erfinv()


def on_unit_interval(coefficients: list[arb]) -> arb:
    """A bound of |sum c_k x^k| over [-1, 1]: the sum of its coefficients in Chebyshev's polynomials."""
    waves = [arb(0)] * len(coefficients)
    for k, c in enumerate(coefficients):
        for j in range(k // 2 + 1):
            waves[k - 2 * j] += c * math.comb(k, j) / arb(2) ** (k - (2 * j != k))
    return sum(map(abs, waves), arb(0))


def test_every_cell_is_within_the_stated_error():
    """Ball arithmetic over whole cells: the difference to Taylor's sum, its rest at order 9, Horner's roundings."""
    rows = normals.table()
    before, ctx.prec = ctx.prec, 200
    try:
        worst, order = 0.0, 8
        for cell, row in enumerate(rows):
            octave, part = divmod(cell, 64)
            low = arb(2) ** (octave - 25) * (1 + arb(part) / 64)
            half = arb(2) ** (octave - 25) / 128
            high = low + 2 * half if cell < len(rows) - 1 else low  # u = 1/2 alone
            exact = series(normal_quantile(low + half), order)
            over = series(normal_quantile(low).union(normal_quantile(high if high != low else low + half)), order + 1)
            apart = [(arb(float(row[k])) - exact[k] if k < 6 else -exact[k]) * half**k for k in range(order + 1)]
            gap = on_unit_interval(apart)
            gap += abs(over[order + 1]) * half ** (order + 1)
            gap += arb(2) ** -53 * sum(((2 * k + 2) * abs(arb(float(row[k]))) * half**k for k in range(6)), arb(0))
            worst = max(worst, float(gap.upper()))
    finally:
        ctx.prec = before
    assert 2.0**-52 < worst < 2.0**-46
    assert (rows[:, 6:] == 0).all()


def test_cells_cover_what_floats_decide():
    """The lowest u that is not decided exactly, the ends of octaves and 1/2: each in the cell of its own middle."""
    words = np.array([2**40, 2**40 + 1, 2**62 - 1, 2**62, 2**62 + 1, 2**63 - 1, -(2**40) - 1, -(2**62), -(2**63)])
    out, least = np.empty(words.size), 2.0**-23
    u = np.abs((words + 0.5) * 2.0**-64)
    PLAIN(words, np.zeros(words.size), np.full(1, 2.0**20), np.full(1, 2.0**-20), normals.table(), out, 0.5, 0.0)
    noise = -np.copysign(normals._normal_quantiles(u), words + 0.5)
    np.testing.assert_allclose(out, np.where(words >= 0, 1, -1) * np.abs(noise), atol=2.0**-20)
    assert PLAIN(words[3:6], np.zeros(3), ONE, GRID, normals.table(), out[:3], 0.5, least)


@pytest.mark.parametrize("word", [0, 1, -1, 2**39, 2**40 - 1, -(2**40)])
def test_small_u_is_left_to_exact_arithmetic(word):
    words = np.array([2**61 + 12345, word])
    out = np.empty(2)
    assert not PLAIN(words, np.zeros(2), ONE, GRID, normals.table(), out, 0.5, 2.0**-23)
    assert PLAIN(words[:1], np.zeros(1), ONE, GRID, normals.table(), out[:1], 0.5, 2.0**-23)


def test_sums_near_a_boundary_are_left_to_exact_arithmetic():
    """x puts the sum 1/2 - 2^-24 steps from a whole; the default margin is 2^-23."""
    words, grid = np.array([2**61 + 12345]), 2.0**-16
    noise = float(-normals._normal_quantiles((words + 0.5) * 2.0**-64)[0]) / grid
    for beyond, decided in ((0.5 - 2.0**-24, False), (-0.5 + 2.0**-24, False), (0.5 - 2.0**-20, True), (0.0, True)):
        x = np.array([(np.rint(noise) + beyond - noise) * grid])
        found = PLAIN(words, x, ONE / grid, GRID, normals.table(), np.empty(1), 0.5 - 2.0**-23, 2.0**-23)
        assert found is decided or found == decided


def test_far_values_are_left_to_numpy():
    words = np.array([2**61 + 12345])
    for x, decided in ((2.0**33, True), (2.0**35, False), (-(2.0**35), False)):
        assert decided == PLAIN(words, np.array([x]), ONE * 2.0**16, GRID, normals.table(), np.empty(1), 0.5, 0.0)


def cases():
    rng = np.random.default_rng(0)
    x = rng.normal(size=150_000) * 10.0 ** rng.integers(-3, 6, 150_000)
    scales = rng.uniform(0.01, 3, 3000) * (rng.random(3000) > 0.2)
    yield "one scale", x, 1.0, None
    yield "odd scale", x, 1.37e-5, None
    yield "float32", x.astype(np.float32), 2.9, None
    yield "coarse grid", x, 1.5, 1.0
    yield "grid that leaves no float undecided for long", x, 1.5, 2.0**-19
    yield "scale by column, some zero", x.reshape(50, 3000), scales, None
    yield "scale by column, long rows", x.reshape(2, 75_000), np.resize(scales, 75_000), None
    yield "three columns", x.reshape(-1, 3), np.array([1.0, 0.0, 5e7]), None
    yield "grid by column", x.reshape(-1, 3), 1.0, 2.0 ** np.array([-16.0, -8.0, 1.0])
    yield "scale by column, one grid", x.reshape(-1, 3), np.array([1.0, 3.0, 2.0]), 2.0**-14
    yield "no noise", x, 0.0, None
    yield "far", x * 2.0**25, 1.0, None
    yield "read only", np.broadcast_to(x, (1, x.size)), 1.0, None


def released(x, scale, grid, kernel, monkeypatch, seed=5):
    monkeypatch.setattr(rounding, "ADD_NORMALS", kernel)
    return rounded_sum(x, "gaussian", scale, grid, SimulatedSource(np.random.default_rng(seed)))


@numba
@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case[0])
def test_same_bits_as_numpy(case, monkeypatch):
    """Blocks that the loop leaves undecided included: numpy takes the same words then."""
    compiled, never = Kernel(PLAIN, 0), Kernel(PLAIN, 1 << 62)
    ours, numpys = (released(*case[1:], kernel, monkeypatch) for kernel in (compiled, never))
    assert ours.dtype == numpys.dtype
    assert ours.tobytes() == numpys.tobytes()


@numba
def test_most_blocks_are_decided_by_the_loop(monkeypatch):
    """Without this the loop could refuse everything and the comparison above would compare numpy with itself."""
    said = []

    class Watched(Kernel):
        def here(self, size):
            loop = super().here(size)
            return lambda *arguments: said.append(loop(*arguments)) or said[-1]

    released(np.zeros(1 << 20), 1.0, None, Watched(PLAIN, 0), monkeypatch)
    assert len(said) == 32
    assert sum(said) > 20  # each is left to numpy with probability 0.012: 12 of 32 below 1e-15


@numba
def test_distribution(monkeypatch):
    """As tests/sampling/test_law.py, through the loop: false-alarm rate 1e-6, scales 2% off rejected."""
    monkeypatch.setattr(rounding, "ADD_NORMALS", Kernel(PLAIN, 0))
    y = rounded_sum(np.full(3_000_000, 0.37), "gaussian", 3.7, None, SecureSource())
    grid = 2.0**-15

    def gap(factor):
        return largest_gap(y, lambda v: ndtr((v + grid / 2 - 0.37) / (3.7 * factor)))

    assert gap(1.0) < band(y.size) < min(gap(1.02), gap(0.98))


def test_a_loop_waits_until_it_pays(monkeypatch):
    kernel = Kernel(PLAIN, 100)
    monkeypatch.setattr(Kernel, "_load", lambda self: PLAIN)
    assert kernel.at_once(99) is None
    assert kernel.at_once(100) is PLAIN
    assert kernel.here(99) is None
    assert kernel.here(1) is PLAIN


def test_other_laws_and_fine_grids_take_no_loop(monkeypatch):
    kernel = Kernel(PLAIN, 0)
    monkeypatch.setattr(rounding, "ADD_NORMALS", kernel)
    monkeypatch.setattr(Kernel, "here", lambda self, size: pytest.fail("the loop was asked for"))
    rounded_sum(np.zeros(3), LAPLACE, 1.0, None, SecureSource())
    rounded_sum(np.zeros(3), "gaussian", 1.0, 2.0**-29, SecureSource())
    with pytest.raises(pytest.fail.Exception):
        rounded_sum(np.zeros(3), "gaussian", 1.0, None, SecureSource())


@numba
def test_a_folder_that_cannot_be_written_costs_the_cache_only(monkeypatch):
    from numba.core import caching

    def full(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr(caching.IndexDataCacheFile, "save", full)
    monkeypatch.setattr(caching.IndexDataCacheFile, "load", lambda *_: None)
    x = np.linspace(-1, 1, 40_000)
    got = released(x, 1.0, None, Kernel(PLAIN, 0), monkeypatch)
    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    np.testing.assert_array_equal(got, released(x, 1.0, None, Kernel(PLAIN, 0), monkeypatch))
    np.testing.assert_array_equal(got, released(x, 1.0, None, Kernel(PLAIN, 1 << 62), monkeypatch))


def test_numba_is_loaded_for_much_work_only():
    code = (
        "import sys, numpy as np, shapedp; from shapedp.sampling import rounded_sum, SecureSource\n"
        "rounded_sum(np.zeros(10**6), 'gaussian', 1.0, None, SecureSource())\n"
        "assert 'numba' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_numba_numpy_does_all(monkeypatch):
    from shapedp.numerics import compiled

    monkeypatch.setattr(compiled, "_numba", lambda: None)
    assert Kernel(PLAIN, 0).here(1) is None
    source = Scripted([2**61], secure=True)
    assert rounded_sum(np.zeros(1), "gaussian", 1.0, None, source)[0] != 0
