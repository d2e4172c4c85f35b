"""Time and memory against dimension, steps and rows: every point in a process of its own, none extrapolated.

A curve ends before the point that would take more than 20 seconds or six gigabytes, and where a call is refused. The
exponent is the slope of log time over its last decades, where a call takes three times what the smallest one takes.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys

import numpy as np

from _harness import Curve, Point, Result

SECONDS, MEGABYTES = 20.0, 6000.0
_CHILD = """
import json, resource, time
import numpy as np
import shapedp as sdp
n = {n}
{prepare}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
times = []
while not times or (len(times) < 5 and sum(times) < 1):
    start = time.process_time()
    {call}
    times.append(time.process_time() - start)
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([min(times), after / 1024, (after - before) / 1024]))
"""
_CLAIM = "epsilon=1.0, delta=1e-5"
CURVES = {
    "calibrate an L2 ball": ("dimension", 2, 9, "", f"sdp.calibrate('gaussian', sdp.L2(1.0, n), {_CLAIM})"),
    "calibrate a box": (
        "dimension",
        2,
        8,
        "bounds = np.random.default_rng(0).uniform(0.01, 1.0, n)",
        f"sdp.calibrate('gaussian', sdp.Box(bounds), {_CLAIM})",
    ),
    "release of Gaussian noise": (
        "dimension",
        2,
        8,
        f"x, made = np.zeros(n), sdp.calibrate('gaussian', sdp.L2(1.0, n), {_CLAIM})",
        "made.release(x)",
    ),
    "release of radial noise": (
        "dimension",
        2,
        7,
        f"x, made = np.zeros(n), sdp.calibrate('radial', sdp.L2(1.0, n), {_CLAIM})",
        "made.release(x)",
    ),
    "angles of a vector, there and back": (
        "dimension",
        2,
        8,
        "from shapedp.numerics.hyperspherical import from_angles, to_angles\n"
        "x = np.random.default_rng(0).standard_normal(n)",
        "from_angles(*to_angles(x))",
    ),
    "epsilon of equal sampled steps": (
        "steps",
        0,
        7,
        "",
        "sdp.compose([(sdp.subsample(sdp.GaussianLoss(1 / (1 + 0.02 * n**0.5)), 0.01), n)]).epsilon(1e-5)",
    ),
    "epsilon of 20 kinds of sampled steps": (
        "steps",
        2,
        7,
        "scale = 1 + 0.02 * n**0.5\n"
        "kinds = [sdp.subsample(sdp.GaussianLoss(1 / ((1 + 0.05 * i) * scale)), 0.01) for i in range(20)]",
        "sdp.compose([(kind, n // 20) for kind in kinds]).epsilon(1e-5)",
    ),
    "linear regression, 20 columns": (
        "rows",
        4,
        7,
        "from shapedp.learn import LinearRegression\n"
        "rng = np.random.default_rng(0)\n"
        "X = rng.uniform(-0.2, 0.2, (n, 20))\n"
        "y = X.sum(axis=1) / 4\n"
        "fit = LinearRegression(epsilon=1.0, delta=1e-6, feature_bound=1.0, target_bound=1.0)",
        "fit.fit(X, y)",
    ),
    "clip, 20 columns": (
        "rows",
        4,
        7,
        "X, ball = np.random.default_rng(0).standard_normal((n, 20)), sdp.L2(1.0, 20)",
        "ball.clip(X, adjacency='add-remove')",
    ),
}


def _measured(n: int, prepare: str, call: str) -> Point | str:
    """One point in a process of its own, or why there is none."""
    code = _CHILD.format(n=n, prepare=prepare, call=call)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=30 * SECONDS
        )
    except subprocess.TimeoutExpired:
        return "too slow"
    if done.returncode:
        error = done.stderr.strip().splitlines()[-1]
        if error.startswith("ArithmeticError"):  # a refusal in words; anything else is a fault
            return error
        raise RuntimeError(f"{call} at {n}: {error}")
    seconds, peak, beyond = json.loads(done.stdout)
    return Point(n, seconds, peak, beyond)


def _exponent(points: list[Point]) -> float | None:
    """The slope of log time in log size where time has left the floor; None where it never does."""
    floor = min(point.seconds for point in points)
    kept = [point for point in points if point.seconds >= 3 * floor]
    if len(kept) < 2:
        return None
    return float(np.polyfit([math.log(p.size) for p in kept], [math.log(p.seconds) for p in kept], 1)[0])


def _curve(name: str, most: int, notes: list[str]) -> Curve:
    axis, first, last, prepare, call = CURVES[name]
    points: list[Point] = []
    for power in range(first, min(last, most) + 1):
        found = _measured(10**power, prepare, call)
        if isinstance(found, str):
            notes.append(f"{name} ends before {10**power:.0e}: {found}.")
            break
        points.append(found)
        grown = 10 if len(points) < 2 else max(found.seconds / points[-2].seconds, 1.0)
        if found.seconds * grown > SECONDS or found.megabytes * 9 > MEGABYTES:
            if power < last:
                limit = "seconds" if found.seconds * grown > SECONDS else "megabytes"
                notes.append(f"{name} ends at {10**power:.0e}: ten times as much would take too many {limit}.")
            break
    return Curve(name, axis, points, _exponent(points) if points else None)


def run(quick: bool) -> Result:
    result = Result("scale", what="time and memory against size, one thread, every point in a process of its own")
    for name in CURVES:
        curve = _curve(name, 4 if quick else 9, result.notes)
        if not curve.points:
            continue
        result.curves.append(curve)
        if curve.exponent is not None:
            result.figure(f"{name}: exponent of time in {curve.axis}", curve.exponent, at_most=1.15)
        last = curve.points[-1]
        result.figure(f"{name}: seconds at {last.size:.0e}", last.seconds)
        result.figure(f"{name}: peak memory at {last.size:.0e}, MB", last.megabytes)
    result.notes.append("Processor time, the best of up to five calls; peak memory is that of the whole process.")
    result.notes.append("A curve without an exponent does not leave three times its smallest time.")
    return result
