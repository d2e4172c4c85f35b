"""Gaussian calibration: the smallest sigma for (epsilon, delta), against the peers in one run."""

from __future__ import annotations

import random
import statistics
import time

import numpy as np

from _harness import Peers, Result, measure, ratio
from shapedp import Box, GaussianLoss, calibrate
from shapedp.privacy.losses import largest_mus

EPSILON, DELTA = 1.0, 1e-5


def _median_over_claims(cases: int) -> float:
    """Median seconds of one calibration over random claims, epsilon 1e-3..50, delta 1e-30..0.5."""
    draw = random.Random(1)
    claims = [(10 ** draw.uniform(-3, 1.69), 10 ** draw.uniform(-30, -0.302)) for _ in range(cases)]
    times = []
    for epsilon, delta in claims:
        start = time.process_time()
        GaussianLoss.calibrate(epsilon, delta)
        times.append(time.process_time() - start)
    return statistics.median(times)


def _microseconds_each(rounds: int) -> float:
    """Median time of one of 1e5 random claims that are calibrated as one array."""
    rng = np.random.default_rng(2)
    epsilon, delta = 10 ** rng.uniform(-3, 1.69, 10**5), 10 ** rng.uniform(-30, -0.302, 10**5)
    timings = measure({"many": lambda: largest_mus(epsilon, delta)}, rounds=rounds, processor=True)
    return 1e6 * timings["many"].median / 10**5


def _profile_ratio(size: int, rounds: int) -> float:
    """Calibration of a box of that many different bounds over the time of copying the bounds."""
    profile = np.random.default_rng(0).uniform(0.01, 1.0, size)
    shaped = measure(
        {
            "calibrate": lambda: calibrate("gaussian", Box(profile), epsilon=EPSILON, delta=DELTA),
            "copy": lambda: profile.copy(),
        },
        rounds=rounds,
        processor=True,
    )
    return ratio(shaped, "calibrate", "copy")


def run(quick: bool) -> Result:
    with Peers() as peers:
        timings = measure(
            {
                "shapedp": lambda: GaussianLoss.calibrate(EPSILON, DELTA),
                "dp_accounting": peers.call("dp_accounting_sigma", epsilon=EPSILON, delta=DELTA),
                "autodp": peers.call("autodp_sigma", epsilon=EPSILON, delta=DELTA),
                "opendp": peers.call("opendp_sigma", epsilon=EPSILON, delta=DELTA),
            },
            rounds=5 if quick else 30,
            processor=True,
        )
        answers = {
            name: peers.value(f"{name}_sigma", epsilon=EPSILON, delta=DELTA)
            for name in ("dp_accounting", "autodp", "opendp")
        }
        result = Result(
            "calibration", what="smallest sigma of the Gaussian mechanism at (1, 1e-5)", peers=peers.versions
        )
    result.timings = timings
    for peer in ("dp_accounting", "opendp"):
        result.ratio(f"{peer} / shapedp, time", ratio(timings, peer, "shapedp"))
    result.ratio("shapedp / autodp, time", ratio(timings, "shapedp", "autodp"), at_most=0.9)
    sigma = 1 / GaussianLoss.calibrate(EPSILON, DELTA).mu
    for peer, value in answers.items():
        exact = GaussianLoss(1 / float(value)).delta(EPSILON)
        result.figure(f"sigma of {peer} over ours", float(value) / sigma)
        result.notes.append(f"{peer}: sigma {float(value)!r}, exact delta in [{exact.lower:.10g}, {exact.upper:.10g}]")
    result.figure(
        "median calibration over random claims, ms", 1e3 * _median_over_claims(200 if quick else 2000), at_most=0.3
    )
    result.figure("1e5 claims as one array, microseconds each", _microseconds_each(3 if quick else 15), at_most=2.0)
    size = 10**6 if quick else 10**7
    result.ratio(f"box of {size:.0e} bounds: calibrate / copy", _profile_ratio(size, 3 if quick else 7), at_most=20)
    return result
