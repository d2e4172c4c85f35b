"""The release x + noise on a grid: exact rounding, whatever the shape and type."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from mpmath import mp, mpf
from scipy.special import ndtri
from tests.sampling.helpers import Scripted

from shapedp.sampling import GAUSSIAN, LAPLACE, SecureSource, SimulatedSource, grid_for, rounded_sum
from shapedp.sampling.rounding import _prepare

LAWS = [GAUSSIAN, LAPLACE]
names = pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)


def magnitude(law, numerator: int, bits: int):
    """Return -q((numerator + 1/2) 2^-bits) at the working precision."""
    u = mp.ldexp(mpf(2 * numerator + 1), -bits - 1)
    if law is LAPLACE:
        return -mp.log(2 * u)
    start = mp.sqrt(-2 * mp.log(u)) if u < 0.01 else mpf(1)
    return mp.findroot(lambda x: mp.log(mp.erfc(x / mp.sqrt(2)) / 2) - mp.log(u), start)


def reference(law, x, scale, grid, word: int, *more: int) -> int:
    """Return round((x + scale noise) / grid) with the noise at the middle of the cell the words name."""
    sign, numerator = (1, word) if word >= 0 else (-1, ~word)
    bits = 64
    for extra in more:
        numerator, bits = numerator << 64 | extra, bits + 64
    return int(mp.nint((mpf(x) + sign * mpf(scale) * magnitude(law, numerator, bits)) / mpf(grid)))


@names
@pytest.mark.parametrize("ratio", [2.0**-3, 1.5, 2.0**16.5, 2.0**29])
def test_fast_and_exact_routes_agree_with_mpmath(law, ratio):
    """Ordinary words: all lanes by floats, all lanes by integers, and 60 digits say the same."""
    x = np.random.default_rng(1).normal(size=300) * 10
    scale, grid = ratio * 2.0**-10, 2.0**-10

    def job(**changes):
        source = SimulatedSource(np.random.default_rng(2))
        return replace(_prepare(x, law, scale, grid, source), **changes)

    fast, exact = job().run(), job(margin=0.5).run()
    np.testing.assert_array_equal(fast, exact)
    np.testing.assert_array_equal(job(small_word=2**63).run(), exact)
    words = SimulatedSource(np.random.default_rng(2)).words(x.size).view(np.int64)
    with mp.workdps(60):
        expected = [reference(law, *lane, scale, grid, int(w)) for *lane, w in zip(x, words, strict=True)]
    np.testing.assert_array_equal(exact / grid, expected)


@names
@pytest.mark.parametrize("word", [0, 1, 5, 2**20 + 1, 2**39, 2**40 - 1, -1, -2, -(2**30)])
def test_far_tail_is_not_cut(law, word):
    """Words whose u is below 2^-24, down to 2^-128: further bits decide, with no largest noise."""
    for more in (0, 1, 2**40, 2**63, 2**64 - 1):
        source = Scripted([word, more, 2**63])
        got = rounded_sum(np.array([0.3]), law, 1.5, None, source)[0]
        grid = float(grid_for(1.5))
        drawn = [more, 2**63][: len(source.asked) - 1]
        with mp.workdps(80):
            assert got == grid * reference(law, 0.3, 1.5, grid, word, *drawn)


@names
@pytest.mark.parametrize("sign", [1, -1])
def test_boundary_inside_the_cell_is_decided_by_further_bits(law, sign):
    """x places the rounding boundary inside the cell of the 64-bit word: the next word decides exactly."""
    rng = np.random.default_rng(4)
    outcomes = set()
    for _ in range(60):
        numerator = int(rng.integers(2**50, 2**62))
        word = numerator if sign > 0 else ~numerator
        with mp.workdps(60):
            noise = sign * 2**16 * magnitude(law, numerator, 64)
            x = float(mp.nint(noise) + mpf(0.5) - noise)
            for more in (0, 2**62, 3 * 2**62, 2**64 - 1):
                source = Scripted([word, more, 2**63, 2**63])
                got = rounded_sum(np.array([x]), law, 2.0**16, 1.0, source)[0]
                assert got == reference(law, x, 2.0**16, 1.0, word, more)
                outcomes.add((len(source.asked), got - float(mp.nint(noise))))
    assert {asked for asked, _ in outcomes} >= {2}
    assert {shift for asked, shift in outcomes if asked > 1} == {0.0, 1.0}


@names
def test_exact_route_is_rare_on_the_default_grid(law, monkeypatch):
    """Expected 4e-7 of the lanes; 100 of 2e6 has probability below 1e-100."""
    calls = []
    monkeypatch.setattr("shapedp.sampling.rounding.nearest", lambda *lane: calls.append(lane) or lane[4])
    rounded_sum(np.zeros(2_000_000), law, 1.9, None, SecureSource())
    assert len(calls) < 100


def test_grid_for():
    scale = np.array([1.0, 1.999, 2.0, 3e-300, 1e300, 0.0])
    grid = grid_for(scale)
    np.testing.assert_array_equal(np.frexp(grid)[0], 0.5)
    assert ((scale / grid >= 2**16) & (scale / grid < 2**17))[:-1].all()
    assert grid[-1] == 1.0
    assert grid_for(1.5).shape == ()
    assert float(grid_for(1)) == 2.0**-16
    assert grid_for(np.ones((2, 3))).shape == (2, 3)


@names
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [10, 1_000_000])
def test_values_lie_on_the_grid(law, dtype, size):
    """Also in float32, where large values are coarser than the grid but still multiples of it."""
    x = (np.random.default_rng(0).normal(size=size) * 1000).astype(dtype)
    y = rounded_sum(x, law, 0.7, None, SecureSource())
    assert y.dtype == dtype
    steps = y.astype(np.float64) / float(grid_for(0.7))
    np.testing.assert_array_equal(steps, np.rint(steps))
    assert np.abs(y - x).max() < 40 * 0.7


def test_zero_has_no_sign():
    """Coarse grid: nearly all values round to 0, from either side, and none shows which."""
    x = np.array([-0.3, 0.3, -0.0, 0.0, -1e-300] * 200)
    y = rounded_sum(x, "gaussian", 2.0**-8, 1.0, SecureSource())
    assert (y == 0).all()
    assert not np.signbit(y).any()


def test_zero_scale_returns_x():
    x = np.array([0.1, 1e300, -0.0, 5.0])
    y = rounded_sum(x, "laplace", np.array([0.0, 0.0, 0.0, 1.0]), None, SecureSource())
    np.testing.assert_array_equal(y[:3], x[:3])
    assert np.signbit(y[2])
    assert y[3] != x[3]
    np.testing.assert_array_equal(rounded_sum(x, "laplace", 0.0, None, SecureSource()), x)


def test_scale_and_grid_by_coordinate():
    """A batch uses each column's own scale; false-alarm rate far below 1e-6 (bounds of 8 deviations)."""
    scale = np.array([1e-200, 1e-3, 1.0, 7e5, 1e200])
    x = np.outer(np.ones(40_000), scale) * 3
    for grid in (None, grid_for(scale) * 2.0 ** np.arange(5)):
        y = rounded_sum(x, "gaussian", scale, grid, SecureSource())
        np.testing.assert_allclose((y / scale).std(axis=0), 1.0, atol=8 / np.sqrt(2 * 40_000))
        np.testing.assert_allclose((y / scale).mean(axis=0), 3.0, atol=8 / np.sqrt(40_000))
        steps = y / (grid_for(scale) if grid is None else grid)
        np.testing.assert_array_equal(steps, np.rint(steps))


@pytest.mark.parametrize("dim", [1, 3, 1 << 15, (1 << 15) + 1, 100_000])
def test_blocks_do_not_show(dim):
    """The same words give the same release, cut into rows, columns or neither."""
    rows = 3
    x = np.random.default_rng(0).normal(size=(rows, dim))
    got = rounded_sum(x, "gaussian", np.full(dim, 1.25), None, SimulatedSource(np.random.default_rng(1)))
    words = SimulatedSource(np.random.default_rng(1)).words(x.size).view(np.int64)
    u = (np.abs(words + 0.5) * 2.0**-64).reshape(x.shape)
    noise = -np.sign(words + 0.5).reshape(x.shape) * ndtri(u)
    np.testing.assert_allclose(got, x + 1.25 * noise, atol=2.0**-16)


@names
def test_simulation_repeats_its_seed_whatever_the_threads(law, monkeypatch):
    x = np.linspace(-5, 5, 600_000)

    def run():
        return rounded_sum(x, law, 2.0, None, SimulatedSource(np.random.default_rng(9)))

    first = run()
    monkeypatch.setattr("shapedp.numerics.threads.cores", lambda: 7)
    np.testing.assert_array_equal(first, run())


def test_threads_release_every_block_once(monkeypatch):
    monkeypatch.setattr("shapedp.numerics.threads.cores", lambda: 5)
    x = np.arange(2_000_003.0)
    y = rounded_sum(x, "gaussian", 1.0, None, SecureSource())
    assert np.abs(y - x).max() < 12
    assert np.unique(y - x).size > 200_000


@pytest.mark.parametrize(
    "x",
    [
        np.float64(2.5),
        np.array(2.5),
        np.zeros(0),
        np.zeros((3, 0)),
        np.zeros((2, 3, 4)),
        np.zeros((6, 8))[::2, ::-2],
        np.zeros((5, 4), order="F"),
        np.zeros(4, dtype=">f8"),
        np.zeros(4, dtype=np.float16),
        np.arange(5),
        np.arange(5, dtype=np.uint8),
        np.array([2**45, -(2**45)]),
        np.array([1e-310, 5e-324]),
        [1.0, 2.0],
    ],
    ids=str,
)
def test_good_inputs(x):
    before = np.array(x)
    if isinstance(x, np.ndarray):
        x.flags.writeable = False
    y = rounded_sum(x, "gaussian", 1.0, None, SecureSource())
    assert y.shape == np.shape(x)
    assert y.dtype == np.float64
    assert np.abs(y - before.astype(float)).max(initial=0.0) < 12
    np.testing.assert_array_equal(before, x)


def test_user_error_settings_do_not_matter():
    with np.errstate(all="raise"):
        rounded_sum(np.array([1e-300, 1.0]), "gaussian", 1e10, None, SecureSource())
