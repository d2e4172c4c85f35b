"""The compiled loops of long flat vectors: their series, proved; their values, against wide floats."""

from __future__ import annotations

import math
from importlib.util import find_spec
from itertools import pairwise

import numpy as np
import pytest
from flint import arb, ctx, fmpq, fmpq_series

from shapedp.numerics import flat, hyperspherical
from shapedp.numerics.compiled import Kernel
from shapedp.numerics.flat import BLOCK, FLAT, FROM_ANGLES, LONG, TO_ANGLES
from shapedp.numerics.hyperspherical import PIECE, from_angles, to_angles

numba = pytest.mark.skipif(find_spec("numba") is None, reason="numba is not installed")
ORDER = 40


def rest(series, kept: int, at: float) -> float:
    """The terms of a power series in z from z^kept on, at most: sum |c_k| at^k up to ORDER, then a geometric bound.

    All series here have coefficients that fall: |c_(k+1)| <= |c_k|.
    """
    sizes = [abs(arb(series[k])) for k in range(ORDER)]
    assert all(later <= sooner for sooner, later in pairwise(sizes[1:]))
    total = sum((size * arb(at) ** k for k, size in enumerate(sizes) if k >= kept), arb(0))
    return float((total + arb(at) ** ORDER / (1 - arb(at))).upper())


def coefficients(numbers) -> fmpq_series:
    return fmpq_series([fmpq(*number) if isinstance(number, tuple) else fmpq(number) for number in numbers], prec=ORDER)


def test_what_the_series_leave_out():
    """Each cut below 2^-54 of the result, over all of a flat block: |t|, |a| <= 2^-4.5 and d <= 2^-9."""
    z, one = coefficients([0, 1]), coefficients([1])
    root = (one + z).inv().sqrt()  # (1 + d)^(-1/2), coefficients of z^k
    assert [root[k] for k in range(6)] == [fmpq(*c) for c in ((1, 1), (-1, 2), (3, 8), (-5, 16), (35, 128), (-63, 256))]
    assert rest(root, 6, FLAT) < 2.0**-55
    arctan = coefficients([((-1) ** k, 2 * k + 1) for k in range(ORDER)])
    assert rest(arctan, 6, FLAT) < 2.0**-55
    factorial = math.factorial
    sine = coefficients([((-1) ** k, factorial(2 * k + 1)) for k in range(ORDER)])
    cosine = coefficients([((-1) ** k, factorial(2 * k)) for k in range(ORDER)])
    assert rest(sine, 5, FLAT) < 2.0**-55
    assert rest(coefficients([((-1) ** k, factorial(k)) for k in range(ORDER)]), 7, FLAT / 2) / (FLAT / 2) < 2.0**-55
    log = -(cosine.log())
    wanted = ((1, 2), (1, 12), (1, 45), (17, 2520), (31, 14175), (691, 935550))
    assert [log[k + 1] for k in range(6)] == [fmpq(*c) for c in wanted]
    assert rest(log, 7, FLAT) / (FLAT / 2) < 2.0**-54  # relative to -log cos a >= a^2 / 2


@numba
def test_same_bits_as_the_function_it_was_written_as():
    """What is compiled rounds every operation as it is written: nothing is contracted or put into another order."""
    rng = np.random.default_rng(0)
    x, angles = rng.normal(size=2 * BLOCK), rng.normal(size=2 * BLOCK) * 1e-3
    for kernel, values, start in ((TO_ANGLES, x, 1e3), (FROM_ANGLES, angles, -3.0)):
        for dtype in (np.float64, np.float32):
            given = values.astype(dtype)
            given[::7] = 0.0
            ours, plain = np.empty((2, values.size), dtype=dtype)
            ends = kernel.at_once(LONG)(given, start, ours), kernel._function(given, start, plain)
            assert ours.tobytes() == plain.tobytes()
            assert ends[0] == ends[1] > 0


def watched(monkeypatch) -> dict[str, list[float]]:
    """What the loops answered: each is asked whatever the size."""
    said: dict[str, list[float]] = {}

    def watch(name):
        loop = Kernel(getattr(flat, f"_{name.lower()}"), 0).at_once(1)

        class Watched(Kernel):
            def at_once(self, size):
                return lambda *arguments: said[name].append(loop(*arguments)) or said[name][-1]

        said[name] = []
        monkeypatch.setattr(hyperspherical, name, Watched(abs))

    for name in ("TO_ANGLES", "FROM_ANGLES"):
        watch(name)
    return said


@numba
@pytest.mark.parametrize(
    ("dtype", "scale", "room"),
    [
        (np.float64, 1.0, 3e-15),
        (np.float64, 1e140, 3e-15),
        (np.float64, 1e-120, 3e-15),
        (np.float64, 1e300, 1e-13),  # no piece: squares overflow, and numpy's hypot errs by more
        (np.float32, 1.0, 1.3e-7),
        (np.float32, 1e30, 1.3e-7),
    ],
)
def test_long_vectors_against_wide_floats(dtype, scale, room, monkeypatch):
    """Both ways to a few units in the last place, by the loops where squares are floats."""
    said = watched(monkeypatch)
    d = 8 * PIECE + 701  # eight whole pieces and one of 700
    x = (np.random.default_rng(1).normal(size=d) * scale).astype(dtype)
    norm, angles = to_angles(x)
    done = [end > 0 for end in said["TO_ANGLES"]]
    assert done == ([False] * 5 + [True] * 3 if scale < 1e144 else [])  # flat once 2^18 numbers follow
    wide = x.astype(np.longdouble)
    tails = np.sqrt(np.cumsum(np.square(wide / scale)[::-1])[::-1]) * scale
    keep = slice(0, d - 2)  # the last angle is of another kind
    assert np.abs(angles[keep] / np.arctan(wide[:-1] / tails[1:])[keep] - 1).max() < room
    assert abs(norm / tails[0] - 1) < room
    back = from_angles(norm, angles)
    assert sum(end >= 0 for end in said["FROM_ANGLES"]) == (3 if scale < 1e200 else 0)
    front = slice(0, 3 * PIECE)
    assert np.abs(back[front] / x[front] - 1).max() < 2 * room


@numba
def test_cosines_of_equal_angles_are_multiplied_without_drift(monkeypatch):
    """A million equal angles round alike: what one rounding of each would leave shows."""
    said = watched(monkeypatch)
    angles = np.full(16 * PIECE, 1.1e-3)
    x = from_angles(2.0, angles)
    assert all(end > 0 for end in said["FROM_ANGLES"])
    before, ctx.prec = ctx.prec, 200
    try:
        exact = float(arb(2) * arb(1.1e-3).cos() ** (16 * PIECE))
    finally:
        ctx.prec = before
    assert abs(x[-1] / exact - 1) < 4e-15 * (1 + 0.64)
    product = 2.0 * np.multiply.reduce(np.full(16 * PIECE, math.cos(1.1e-3)))
    assert abs(product / exact - 1) > 1e-13


@numba
@pytest.mark.parametrize("place", [0, PIECE + 17, 3 * PIECE - 1])
@pytest.mark.parametrize("size", [0.3, 40.0, 1e200])
def test_a_piece_where_one_element_stands_out_is_done_by_numpy(place, size, monkeypatch):
    said = watched(monkeypatch)
    x = np.random.default_rng(2).normal(size=12 * PIECE + 1)
    x[place] = size * np.linalg.norm(x)
    norm, angles = to_angles(x)
    piece = 11 - place // PIECE  # the loop goes from the last to the first
    assert said["TO_ANGLES"][piece] == -1 if size < 1e144 else len(said["TO_ANGLES"]) == piece + 1
    back = from_angles(norm, angles)
    assert -1 in said["FROM_ANGLES"]
    small = np.arange(x.size) != place
    assert abs(back[place] / x[place] - 1) < 1e-12
    tolerance = 1e-12 if size < 10 else 1e-9 if size < 1e144 else np.inf
    assert np.abs(back[small][place:] / x[small][place:] - 1).max() < tolerance


@numba
def test_the_answer_depends_on_one_call_alone():
    """Whatever was asked before: a short vector never takes the loop, a long one always does."""
    x = np.random.default_rng(3).normal(size=3 * PIECE)
    first = to_angles(x)[1]
    assert TO_ANGLES.at_once(LONG) is not None
    np.testing.assert_array_equal(to_angles(x)[1], first)
    assert TO_ANGLES.at_once(LONG - 1) is None


@numba
def test_other_vectors_do_not_decide_who_converts(monkeypatch):
    """Two vectors together are longer than what the loop is for, neither is alone."""
    for name in ("TO_ANGLES", "FROM_ANGLES"):
        monkeypatch.setattr(hyperspherical, name, Kernel(getattr(flat, f"_{name.lower()}"), 8 * PIECE))
    rows = np.random.default_rng(5).normal(size=(2, 7 * PIECE))
    for together, alone in zip(to_angles(rows)[1], rows, strict=True):
        np.testing.assert_array_equal(together, to_angles(alone)[1])


def test_without_numba_numpy_does_all(monkeypatch):
    from shapedp.numerics import compiled

    monkeypatch.setattr(compiled, "_numba", lambda: None)
    x = np.random.default_rng(4).normal(size=LONG)
    assert np.abs(from_angles(*to_angles(x)) / x - 1).max() < 1e-12
