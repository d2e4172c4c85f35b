"""Sizes wrapped: Blocks([1, 2], [2**62, 2**62]).dim was negative, and sizes alone could take all memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import shapedp as sdp
from shapedp.numerics.arrays import block_sizes

BIG = 2**62
CALLS: dict[str, Callable[[], Any]] = {
    "blocks": lambda: sdp.Blocks([1.0, 2.0], [BIG, BIG]),
    "blocks that wrap to nothing": lambda: sdp.Blocks(np.ones(4), [BIG] * 4),
    "blocks each of which is small enough": lambda: sdp.Blocks(np.ones(2048), [2**53] * 2048),
    "unsigned blocks": lambda: sdp.Blocks([1.0], np.array([2**63], dtype=np.uint64)),
    "gaussian blocks": lambda: sdp.Gaussian([1.0, 2.0], sizes=[BIG, BIG]),
    "ball": lambda: sdp.L2(1.0, 10**30),
    "tensor": lambda: sdp.L2(1.0, shape=(2**40, 2**40)),
    "l1": lambda: sdp.L1(1.0, 2**64),
    "scale": lambda: sdp.Gaussian(1.0, 2**63),
    "radial": lambda: sdp.Radial(2**63, 2.0, 2.0, 1.0),
    "recipe": lambda: sdp.recipes.product_noise(dim=10**18, sensitivity=1.0, epsilon=1.0, delta=1e-5),
    "factors": lambda: sdp.TensorGaussian([2**40]),
    "extreme": lambda: sdp.L2(1.0, 2**40).extreme(),
    "laid out": lambda: sdp.Gaussian([1.0, 2.0], sizes=[2**40, 1]).variances(),
}


@pytest.mark.parametrize("name", CALLS)
def test_sizes_are_refused_in_words(name: str) -> None:
    with pytest.raises(ValueError, match=r"2\^53|2\^28"):
        CALLS[name]()


def test_a_sum_of_sizes_is_exact() -> None:
    assert sdp.Blocks([1.0, 2.0], [2**52, 2**52 - 1]).dim == 2**53 - 1
    assert sum(block_sizes("sizes", [2**52, 5]).tolist()) == 2**52 + 5
    assert type(sdp.Blocks([1.0], [3]).dim) is int
