"""Integers beyond 2^53 were refused in an array, but passed in a list beside a float, which made them floats.

Two totals of integers that differ by the bound, 2^20 - 126, were rounded to floats 2^20 apart before the noise was
added: pure epsilon 1.0001 under a certified 1. A masked entry two lists deep lost its mask in the same place.
"""

import numpy as np
import pytest

import shapedp as sdp

FAR = 2**59 + 63


@pytest.fixture(scope="module")
def mechanism():
    return sdp.calibrate("laplace", sdp.Box([2.0**20 - 126, 1.0]), epsilon=1.0, delta=0.0)


@pytest.mark.parametrize(
    "x",
    [
        [FAR, 0.5],
        (np.int64(FAR), 0.5),
        [np.uint64(FAR), np.float32(0.5)],
        [-FAR, 0.5],
        [np.array(FAR), 0.5],
    ],
)
def test_a_float_beside_a_long_integer_hides_nothing(mechanism, x):
    with pytest.raises(ValueError, match="2\\^53"):
        mechanism.release(x, rng=np.random.default_rng(0))


def test_inside_a_nested_list(mechanism):
    with pytest.raises(ValueError, match="2\\^53"):
        mechanism.release([[FAR, 0.5], (1.0, 2.0)], batch=2, rng=np.random.default_rng(0))


def test_what_floats_hold_is_released(mechanism):
    for x in ([2**53, 0.5], [float(2**59), 0.5], [3, 0.5], np.array([2.0**59, 0.5])):
        assert np.isfinite(mechanism.release(x, rng=np.random.default_rng(0)).value).all()


def test_a_mask_two_lists_deep_is_seen():
    m = sdp.calibrate("laplace", sdp.L1(1.0, shape=(1, 1, 2)), epsilon=1.0, delta=0.0)
    hidden = np.ma.masked_array([1e6, 1.0], mask=[True, False])
    with pytest.raises(ValueError, match="masked"):
        m.release([[hidden]], rng=np.random.default_rng(0))
