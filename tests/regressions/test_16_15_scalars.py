"""Scalars of torch, polars and 0-d arrays failed inside: they are numbers now, or refused in words."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import shapedp as sdp
from shapedp.numerics.checks import count, numeric, real


class Odd:
    """A number whose conversions fail in their own way."""

    ndim = 0

    def item(self) -> Any:
        raise RuntimeError("no data")

    def __float__(self) -> float:
        raise RuntimeError("no")

    def __repr__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize("value", [1, 1.0, np.float32(1), np.array(1.0), np.array(1), np.int8(1), Fraction(1)])
def test_numbers(value: Any) -> None:
    assert real("x", value) == 1.0
    assert type(real("x", value)) is float


@pytest.mark.parametrize(
    "value",
    [True, np.True_, np.array(True), "1", b"1", None, [1.0], np.array([1.0]), 1j, np.array(1j), np.array("1"), Odd(),
     np.datetime64("2020-01-01"), np.timedelta64(1, "s"), np.array(None),
     np.timedelta64(1, "ns"), np.datetime64(1, "ns"), np.array(1, dtype="m8[ns]"),  # their item() is an integer
     np.ma.masked, np.ma.array(1.0, mask=True), np.ma.array(1, mask=True)],
)  # fmt: skip
def test_what_is_no_number(value: Any) -> None:
    with pytest.raises(TypeError, match="x must be a real number"):
        real("x", value)
    with pytest.raises(TypeError, match="x must be an integer"):
        count("x", value)


@pytest.mark.parametrize("value", [3, np.int64(3), np.array(3), np.uint8(3)])
def test_integers(value: Any) -> None:
    assert count("x", value) == 3
    assert type(count("x", value)) is int


def test_arrow() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    assert real("x", pyarrow.scalar(1.5)) == 1.5
    assert count("x", pyarrow.scalar(3)) == 3
    for bad in (pyarrow.scalar("3"), pyarrow.scalar(True), pyarrow.scalar(None, pyarrow.float64())):
        with pytest.raises(TypeError, match="x must be a real number"):
            real("x", bad)


def test_torch() -> None:
    torch = pytest.importorskip("torch")
    assert real("x", torch.tensor(1.5, requires_grad=True)) == 1.5
    assert real("x", torch.tensor(1.5, dtype=torch.bfloat16)) == 1.5
    assert count("x", torch.tensor(3)) == 3
    for bad in (torch.tensor(True), torch.tensor([1.0]), torch.tensor(1j), torch.tensor(1.0, device="meta")):
        with pytest.raises(TypeError, match="x must be a real number"):
            real("x", bad)
        with pytest.raises(TypeError, match="x must be an integer"):
            count("x", bad)
    with pytest.raises(TypeError, match="x must be"):
        numeric("x", torch.ones(3, requires_grad=True))
    assert sdp.L2(torch.tensor(2.0), torch.tensor(3)).dim == 3


def test_polars() -> None:
    polars = pytest.importorskip("polars")
    series = polars.Series([1.0, 2.0])
    assert real("x", series.sum()) == 3.0
    assert sdp.Box(series).dim == 2
    for bad in (series, polars.Series([1.0]), polars.lit(1.0)):
        with pytest.raises(TypeError, match="x must be a real number"):
            real("x", bad)
