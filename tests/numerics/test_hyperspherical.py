"""Hyperspherical coordinates: against 128-bit references, and there and back."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.reference.hyperspherical import worst

from shapedp.numerics import flat, hyperspherical
from shapedp.numerics.compiled import Kernel
from shapedp.numerics.hyperspherical import PIECE, SPAN, from_angles, to_angles


def _there_and_back(x):
    return from_angles(*to_angles(x))


@pytest.fixture(params=["whole", "in spans", "compiled"])
def cut(request, monkeypatch):
    """Vectors in one go, cut into spans, and in pieces that the compiled loops are asked to do."""
    if request.param == "in spans":
        monkeypatch.setattr(hyperspherical, "SPAN", 30_000)
    if request.param == "compiled":
        for name in ("TO_ANGLES", "FROM_ANGLES"):
            monkeypatch.setattr(hyperspherical, name, Kernel(getattr(flat, f"_{name.lower()}"), 0))


@pytest.mark.parametrize("d", [2, 3, 63, 64, 65, 1023, 4096, PIECE, PIECE + 1, PIECE + 2, 3 * PIECE + 17, 10**6])
def test_round_trip(d):
    x = np.random.default_rng(d).normal(size=d)
    assert np.abs(_there_and_back(x) / x - 1).max() < 1e-12


def test_round_trip_in_ten_million_dimensions():
    x = np.random.default_rng(0).normal(size=10**7)
    back = _there_and_back(x)
    back /= x
    back -= 1
    assert np.abs(back, out=back).max() < 1e-12


@pytest.mark.parametrize("kind", ["heavy", "sparse", "graded", "growing", "huge", "tiny", "tail of zeros", "ones"])
def test_round_trip_of_odd_vectors(kind, cut):
    rng, d = np.random.default_rng(1), 200_000
    x = {
        "heavy": lambda: rng.standard_t(2, size=d),
        "sparse": lambda: rng.normal(size=d) * (rng.random(d) < 0.01),
        "graded": lambda: rng.normal(size=d) * np.geomspace(1.0, 1e-200, d),
        "growing": lambda: rng.normal(size=d) * np.geomspace(1e-200, 1.0, d),
        "huge": lambda: rng.normal(size=d) * 1e300,
        "tiny": lambda: rng.normal(size=d) * 1e-300,
        "tail of zeros": lambda: np.concatenate([rng.normal(size=d // 2), np.zeros(d // 2)]),
        "ones": lambda: np.ones(d),
    }[kind]()
    back = _there_and_back(x)
    assert (back[x == 0] == 0).all()
    tail = np.sqrt(np.cumsum(np.square((x / np.abs(x).max())[::-1].astype(np.longdouble)))[::-1])
    assert (np.diff(tail) <= 0).all()
    room = 1e-12 if kind != "sparse" else 1e-10  # a lone last element stands far above what follows it
    assert np.abs(back[x != 0] / x[x != 0] - 1).max() < room


@pytest.mark.parametrize("sd", [0.1, 1.0])
@pytest.mark.parametrize("norm", [1.0, 1e300, 1e-200, -3.0])
def test_noisy_angles_in_a_million_dimensions(sd, norm, cut):
    rng = np.random.default_rng(7)
    _, angles = to_angles(rng.normal(size=10**6))
    angles += rng.normal(size=angles.size) * sd
    relative, absolute, seen = worst(norm, angles, from_angles(norm, angles))
    assert relative < 1e-12
    assert absolute < 1e-319
    assert 100 < seen < 10**6  # a plain product is zero, or a subnormal, long before the end


def test_small_angle_noise_in_a_million_dimensions(cut):
    rng = np.random.default_rng(8)
    norm, angles = to_angles(rng.normal(size=10**6))
    angles += rng.normal(size=angles.size) * 0.01
    x = from_angles(norm, angles)
    wide = angles.astype(np.longdouble)  # 64 bits and a wide exponent: products err by 1e-16 in a million
    radius = np.multiply.accumulate(np.concatenate([[norm], np.cos(wide)]))
    exact = radius * np.append(np.sin(wide), np.longdouble(1))
    assert float(np.abs(x / exact - 1).max()) < 1e-12


def test_the_same_bits_whatever_the_number_of_cores(cut, monkeypatch):
    x = np.random.default_rng(3).normal(size=3 * SPAN + 5)
    found = []
    for n in (1, 3):
        monkeypatch.setattr("shapedp.numerics.threads.cores", lambda n=n: n)
        norm, angles = to_angles(x)
        found.append((norm, angles, from_angles(norm, angles)))
    for one, three in zip(*found, strict=True):
        np.testing.assert_array_equal(one, three)


@pytest.mark.parametrize("norm", [0.0, -2.5, 1e308, 5e-324])
def test_norms_of_any_size_in_spans(norm, monkeypatch):
    angles = np.random.default_rng(4).normal(size=5000) * 0.3
    whole = from_angles(norm, angles)
    monkeypatch.setattr(hyperspherical, "SPAN", 700)
    np.testing.assert_allclose(from_angles(norm, angles), whole, rtol=1e-12, atol=1e-322)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 1500, 4999])
def test_a_number_that_is_none_is_refused_in_any_span(bad, place, monkeypatch):
    monkeypatch.setattr(hyperspherical, "SPAN", 700)
    values = np.ones(5000)
    values[place] = bad
    for call in (lambda: to_angles(values), lambda: from_angles(1.0, values)):
        with pytest.raises(ValueError, match="finite"):
            call()


@pytest.mark.slow
def test_small_angle_noise_against_intervals():
    rng = np.random.default_rng(9)
    norm, angles = to_angles(rng.normal(size=10**6))
    angles += rng.normal(size=angles.size) * 0.01
    relative, _, seen = worst(float(norm), angles, from_angles(norm, angles))
    assert relative < 1e-12
    assert seen == 10**6


def test_a_plain_product_fails_where_this_does_not():
    angles = np.full(3000, 1.2)
    angles[1500:] = 0.01
    radius = 1e300 * np.concatenate([[1.0], np.cumprod(np.cos(angles[:-1]))])
    assert np.log(abs(np.cos(1.2))) * 1500 < -1400
    x = from_angles(1e300, angles)
    relative, _, _ = worst(1e300, angles, x)
    plain = worst(1e300, angles, np.append(radius * np.sin(angles), 0.0))[0]
    assert relative < 6e-12  # 4e-15 |log R|: equal angles round alike
    assert plain > 1e-3


@settings(max_examples=60, deadline=None)
@example((2.225073858507e-311, [5.0, 1.75]))
@given(
    st.integers(2, 40).flatmap(
        lambda d: st.tuples(
            st.floats(-1e3, 1e3), st.lists(st.floats(-7.0, 7.0, width=64), min_size=d - 1, max_size=d - 1)
        )
    )
)
def test_any_angles(case):
    norm, angles = case
    x = from_angles(norm, np.array(angles))
    radius, exact = norm, []
    for angle in angles:
        sine = 0.0 if abs(angle) == math.pi else math.sin(angle)
        exact.append(radius * sine)
        radius *= 0.0 if abs(angle) == math.pi / 2 else math.cos(angle)
    exact.append(radius)
    assert np.allclose(x, exact, rtol=1e-12, atol=1e-14 * abs(norm) + 1e-320)  # subnormal numbers have few digits


def test_the_convention_is_the_published_one():
    x = np.random.default_rng(2).normal(size=6)
    norm, a = to_angles(x)
    theta = np.pi / 2 - a
    assert norm == pytest.approx(math.sqrt(float(x @ x)), rel=1e-15)
    for z in range(4):
        assert theta[z] == pytest.approx(math.atan2(math.sqrt(float(x[z + 1 :] @ x[z + 1 :])), x[z]), rel=1e-14)
    assert math.remainder(theta[4] - math.atan2(x[5], x[4]), 2 * math.pi) == pytest.approx(0.0, abs=1e-14)


@pytest.mark.parametrize(
    "x", [[1.0, 0, 0], [0, 0, 0.0], [0, -2.0, 0], [0, 0, -3.0], [0, -0.0, -1], [5.0, -0.0], [0, 7]]
)
def test_axes_and_zeros_are_exact_zeros(x):
    assert _there_and_back(np.array(x, dtype=np.float32)) == pytest.approx(x, rel=1e-6, abs=0)
    back = _there_and_back(np.array(x, dtype=float))
    assert (back[np.array(x) == 0] == 0).all()
    assert back == pytest.approx(x, rel=1e-14)
    if not np.any(x):
        assert not to_angles(np.array(x, dtype=float))[1].any()


@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 70), (1000, 2), (3, 2 * PIECE + 5), (0, 4)])
def test_batches_are_row_by_row(shape):
    x = np.random.default_rng(3).normal(size=shape)
    norm, angles = to_angles(x)
    assert norm.shape == shape[:-1]
    assert angles.shape == (*shape[:-1], shape[-1] - 1)
    back = from_angles(norm, angles + 0.5)
    for place in np.ndindex(shape[:-1]):
        alone = to_angles(x[place])
        assert norm[place] == pytest.approx(alone[0], rel=1e-14)
        assert np.allclose(angles[place], alone[1], rtol=1e-13, atol=0)
        assert np.allclose(back[place], from_angles(alone[0], alone[1] + 0.5), rtol=1e-11, atol=1e-300)


def test_float32_in_float32_out():
    x = np.random.default_rng(4).normal(size=(2, 5000)).astype(np.float32)
    norm, angles = to_angles(x)
    assert norm.dtype == angles.dtype == from_angles(norm, angles).dtype == np.float32
    assert np.abs(from_angles(norm, angles) / x - 1).max() < 1e-5
    assert np.isinf(to_angles(np.full(4, 3e38, dtype=np.float32))[0])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: to_angles([1.0]), "length >= 2"),
        (lambda: to_angles(3.0), "length >= 2"),
        (lambda: to_angles([1.0, math.nan, 1.0]), "finite"),
        (lambda: to_angles([1.0, math.inf, 1.0]), "finite"),
        (lambda: to_angles([1.7e308, 1.7e308]), "largest float"),
        (lambda: from_angles(1.0, [0.1, math.nan]), "finite"),
        (lambda: from_angles(math.nan, [0.1]), "finite"),
        (lambda: from_angles(1.0, [math.inf, 0.1]), "finite"),
    ],
)
def test_bad_input_is_refused(call, text):
    with pytest.raises(ValueError, match=text):
        call()
