"""Every check is NaN-safe, names what it refuses, and lets through what is fine."""

from __future__ import annotations

import decimal
import fractions
import math
from typing import Any

import numpy as np
import pytest

from shapedp.boundary.documents import decode, encode
from shapedp.numerics import checks
from shapedp.numerics.arrays import block_sizes

NOT_NUMBERS: list[Any] = [
    True,
    np.True_,
    np.array(True),
    "1",
    b"1",
    bytearray(b"1"),
    np.array("1"),
    np.str_("1"),
    None,
    1j,
    np.complex128(1),
    [1.0],
    [[1.0], [1.0, 2.0]],
    (1.0,),
    np.array([1.0]),
    np.array([1.0, 2.0]),
    {1.0},
    range,  # its repr has no address: test ids must not differ between processes
    np.timedelta64(1, "s"),
    np.datetime64("2020-01-01"),
    10**400,
]


@pytest.mark.parametrize("value", NOT_NUMBERS, ids=repr)
@pytest.mark.parametrize("check", [checks.real, checks.positive, checks.nonnegative, checks.probability])
def test_what_is_no_number(check: Any, value: Any) -> None:
    with pytest.raises(TypeError, match="knob must be a real number"):
        check("knob", value)


@pytest.mark.parametrize(
    ("check", "values"),
    [
        (checks.positive, [0, 0.0, -0.0, -1, math.nan, math.inf, -math.inf, np.float32("nan")]),
        (checks.nonnegative, [-1, -5e-324, math.nan, math.inf]),
        (checks.probability, [1, 1.0, 1.5, -1e-9, math.nan, math.inf, np.float16(1)]),
    ],
)
def test_numbers_out_of_range(check: Any, values: list[Any]) -> None:
    for value in values:
        with pytest.raises(ValueError, match="knob must"):
            check("knob", value)


@pytest.mark.parametrize(
    "value",
    [
        0.5,
        np.float64(0.5),
        np.float32(0.5),
        np.float16(0.5),
        fractions.Fraction(1, 2),
        decimal.Decimal("0.5"),
        np.array(0.5),
        np.array(0.5, dtype=">f4"),
    ],
    ids=repr,
)
def test_numbers_of_every_kind(value: Any) -> None:
    for check in (checks.real, checks.positive, checks.nonnegative, checks.probability):
        assert check("knob", value) == 0.5
        assert type(check("knob", value)) is float


def test_negative_zero_loses_its_sign() -> None:
    assert math.copysign(1, checks.nonnegative("knob", -0.0)) == 1
    assert math.copysign(1, checks.probability("knob", -0.0)) == 1


def test_counts() -> None:
    assert checks.count("knob", np.int8(3)) == 3
    assert checks.count("knob", 0, least=0) == 0
    for value in (True, 1.0, "1", None, np.float64(1), np.True_):
        with pytest.raises(TypeError, match="knob must be an integer"):
            checks.count("knob", value)
    for value in (0, -1, np.int64(-5)):
        with pytest.raises(ValueError, match="knob must be at least 1"):
            checks.count("knob", value)


@pytest.mark.parametrize(
    "values",
    [
        np.array([1, "a"], dtype=object),
        np.array(["1"]),
        [True],
        [1j],
        [None],
        [[1.0], [1.0, 2.0]],
        np.array([1], dtype="m8[s]"),
        [2**70],
        np.ones(1, dtype=np.longdouble),
    ],
    ids=repr,
)
def test_arrays_that_hold_no_reals(values: Any) -> None:
    with pytest.raises(TypeError, match="knob must"):
        checks.finite("knob", values)


@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1, 2**63])
def test_integers_float64_cannot_hold(value: int) -> None:
    with pytest.raises(ValueError, match=r"knob must be at most 2\^53"):
        checks.finite("knob", [value])
    assert checks.finite("knob", [2**53, -(2**53)]).tolist() == [2.0**53, -(2.0**53)]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f8"])
def test_arrays_that_are_not_finite(bad: float, dtype: str) -> None:
    values = np.ones(5, dtype=dtype)
    values[3] = bad
    with pytest.raises(ValueError, match=r"knob must be finite: it holds a NaN or an infinity$"):
        checks.finite("knob", values)
    with pytest.raises(ValueError, match="knob must be finite"):
        checks.finite("knob", np.array([math.inf, -math.inf], dtype=dtype))


def test_large_finite_arrays_pass() -> None:
    values = np.array([1.7e308, 1.7e308, -1.7e308])
    assert checks.finite("knob", values) is values
    assert checks.finite("knob", np.empty((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("values", [[], 1.0, [[1.0]], np.empty((0,))], ids=repr)
def test_vectors_have_one_axis(values: Any) -> None:
    with pytest.raises(ValueError, match="knob must be a non-empty 1-d array"):
        checks.vector("knob", values)


def test_vector_bounds() -> None:
    assert checks.vector("knob", [0, 1], least=0.0).tolist() == [0, 1]
    with pytest.raises(ValueError, match="knob must be > 0"):
        checks.vector("knob", [0, 1], least=0.0, strict=True)
    with pytest.raises(ValueError, match="knob must be >= 0"):
        checks.vector("knob", [-1e-300, 1], least=0.0)


def test_words() -> None:
    assert checks.one_of("knob", "a", ("a", None)) == "a"
    assert checks.one_of("knob", None, ("a", None)) is None
    for value in ("b", 3, ["a"], np.array([1, 2])):
        with pytest.raises(ValueError, match="knob must be one of 'a', None"):
            checks.one_of("knob", value, ("a", None))


@pytest.mark.parametrize("size", [1, 256, 257, 1000])
def test_arrays_survive_json(size: int) -> None:
    array = np.random.default_rng(size).standard_normal(size)
    array[0] = 5e-324
    assert np.array_equal(decode("knob", encode(array)), array)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"float64": "!!", "size": 1},
        {"float64": "AAAA", "size": 1},
        {**encode(np.zeros(300)), "size": 299},
        {"float64": 3, "size": 1},
        [1.0, math.nan],
    ],
    ids=lambda v: repr(v)[:30],
)
def test_broken_json_arrays(value: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="knob"):
        decode("knob", value)


def test_encoded_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="knob must be finite"):
        decode("knob", encode(np.full(300, math.nan)))


@pytest.mark.parametrize("sizes", [[], [0], [1, -1], [1.0], [True], [[1]], 3, ["a"]], ids=repr)
def test_block_sizes(sizes: Any) -> None:
    with pytest.raises(ValueError, match="knob must be a non-empty 1-d array of integers"):
        block_sizes("knob", sizes)
