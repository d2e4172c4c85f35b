"""Noise on a 512 x 512 x 64 tensor with three dense factors, against the matrix products it needs."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from _harness import Result, measure, ratio
from shapedp import L2, Slices, calibrate
from shapedp.noise import TensorGaussian
from shapedp.sampling import SecureSource

SHAPE = (512, 512, 64)
SAMPLE, RELEASE, PRODUCTS = "shapedp, secure sample", "shapedp, secure release", "the three products"


def _products(shape: tuple[int, ...], factors: list[NDArray[np.float64]]) -> Callable[[], object]:
    """One dense product per mode on laid-out arrays, nothing else."""
    first, second = np.ones(shape), np.empty(shape)
    flat, rows = (shape[0], -1), (-1, shape[2])

    def run() -> object:
        np.matmul(factors[0], first.reshape(flat), out=second.reshape(flat))
        np.matmul(factors[1], second, out=first)
        return np.matmul(first.reshape(rows), factors[2].T, out=second.reshape(rows))

    return run


def _copies(function: Callable[[], object], kept: int, size: int) -> float:
    """Peak memory of a call beyond what it returns, in copies of the tensor."""
    tracemalloc.start()
    result = function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    del result
    return peak / (8 * size) - kept


def run(quick: bool) -> Result:
    shape = (128, 128, 64) if quick else SHAPE
    rng = np.random.default_rng(0)
    factors = [rng.normal(size=(n, n)) / np.sqrt(n) + np.eye(n) for n in shape]
    size = int(np.prod(shape))
    law, source = TensorGaussian(factors), SecureSource()
    mechanism = calibrate("tensor", L2(1.0, shape=shape), epsilon=1.0, delta=1e-5, factors=factors)
    x = rng.normal(size=shape)
    cases: dict[str, Callable[[], object]] = {
        SAMPLE: lambda: law.sample(1, source),
        RELEASE: lambda: mechanism.release(x),
        PRODUCTS: _products(shape, factors),
    }
    result = Result("tensor", what=f"noise on a tensor of shape {shape}, a dense factor per mode")
    result.timings = measure(cases, rounds=3 if quick else 7)
    slower, copies = (None, None) if quick else (4.0, 1.0)  # a small tensor is no larger than the scratch
    result.ratio("sample / its three products", ratio(result.timings, SAMPLE, PRODUCTS), at_most=slower)
    result.ratio("release / its six products", ratio(result.timings, RELEASE, PRODUCTS) / 2)
    result.figure("sample: extra memory, copies of the tensor", _copies(cases[SAMPLE], 1, size), at_most=copies)
    result.figure("release: extra memory, copies of the tensor", _copies(cases[RELEASE], 1, size), at_most=copies)
    sliced = calibrate("tensor", Slices(1 / np.arange(1.0, shape[2] + 1), shape, 2), epsilon=1.0, delta=1e-5)
    result.figure(
        "release with slice bounds: extra memory", _copies(lambda: sliced.release(x), 1, size), at_most=copies
    )
    result.notes.append("A release turns the query, adds noise, turns it back: twice the products of a sample.")
    return result
