"""Secure release of a vector with Gaussian noise, against numpy's insecure draw and OpenDP's vector Gaussian."""

from __future__ import annotations

import numpy as np

from _harness import Peers, Result, measure, ratio
from shapedp import L2, calibrate


def run(quick: bool) -> Result:
    size = 10**6 if quick else 10**7
    small = 1000 if quick else 10_000
    values = np.zeros(size)
    generator = np.random.default_rng(0)
    mechanism = calibrate("gaussian", L2(1.0, size), epsilon=1.0, delta=1e-5)
    mechanism.release(values)
    with Peers() as peers:
        timings = measure(
            {
                "shapedp": lambda: mechanism.release(values),
                "numpy standard_normal + add (not private)": lambda: values + generator.standard_normal(size),
                "opendp, default grid": peers.call("opendp_release", size=small),
                "opendp, grid 2^-20": peers.call("opendp_release", size=small, k=-20),
            },
            units={
                "shapedp": size,
                "numpy standard_normal + add (not private)": size,
                "opendp, default grid": small,
                "opendp, grid 2^-20": small,
            },
            rounds=3 if quick else 9,
        )
        result = Result(
            "release", what=f"Gaussian release, seconds per coordinate, {size:.0e} coordinates", peers=peers.versions
        )
    result.timings = timings
    numpy_name = "numpy standard_normal + add (not private)"
    result.ratio("shapedp / numpy", ratio(timings, "shapedp", numpy_name), at_most=3)
    result.ratio("opendp, default grid / shapedp", ratio(timings, "opendp, default grid", "shapedp"), at_least=500)
    result.ratio("opendp, grid 2^-20 / shapedp", ratio(timings, "opendp, grid 2^-20", "shapedp"))
    result.notes.append(f"OpenDP is measured on {small} coordinates: its time per coordinate does not fall with size.")
    return result
