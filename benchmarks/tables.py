"""Tables of people against OpenDP at equal guarantees: the error of counts, totals and quantiles of Adult's hours.

- counts and totals: standard errors at (1, 1e-6); OpenDP's Gaussian noise at the least scale that its zCDP accounting
  allows, on counts and on values clipped to the same bounds;
- the median and the highest tenth together at epsilon 1, delta 0: mean rank error of the drawn values, ours with and
  without intervals; OpenDP's quantile among the same candidates at epsilon 0.5 each.

Needs SHAPEDP_DATA; the files are described in docs.
"""

from __future__ import annotations

import gzip
import math
import os
from pathlib import Path

import numpy as np
import pandas as pd

import shapedp as sdp
from _harness import Peers, Result, measure
from shapedp.private.drawn import group_counts

CLAIM = {"epsilon": 1.0, "delta": 1e-6}
TOP = 100


def adult() -> pd.DataFrame:
    """Education, sex and weekly hours."""
    path = Path(os.environ.get("SHAPEDP_DATA", "shared/data")) / "adult" / "adult.data.gz"
    with gzip.open(path, "rt") as lines:
        found = pd.read_csv(lines, header=None, skipinitialspace=True).iloc[:, [3, 9, 12]]
    return found.set_axis(["education", "sex", "hours"], axis=1)


def rank_error(hours: np.ndarray, value: float, level: float) -> float:
    """How many ranks a value is from the quantile; 0 for every value whose rows hold it."""
    wanted = level * hours.size
    return max((hours < value).sum() - wanted, wanted - (hours <= value).sum(), 0.0)


def run(quick: bool) -> Result:
    frame, draws = adult(), 100 if quick else 1000
    hours, degrees = frame.hours.to_numpy(), sorted(frame.education.unique())
    domains = {"education": degrees, "sex": ["Female", "Male"]}
    t = sdp.table(frame, person=None, bounds={"hours": (0, TOP)}, domains=domains)
    with Peers() as peers:
        result = Result(
            "tables", what="errors of tables of people over ours", peers={"opendp": peers.versions["opendp"]}
        )
        unit = float(peers.value("opendp_sigma", **CLAIM))
        for name, question, reach in (
            ("counts by education and sex", t.group_by("education", "sex").count(), 1.0),
            ("total hours", t.sum("hours"), float(TOP)),
        ):
            made = t.plan(question, **CLAIM).mechanism
            ours = math.sqrt(made.expected_squared_error / len(made.workload))
            result.ratio(f"{name}: OpenDP", unit * reach / ours, at_least=1)
        given = {"values": hours.astype(float).tolist(), "candidates": [float(k) for k in range(TOP + 1)]}
        rng, timings = np.random.default_rng(0), {}
        for level in (0.5, 0.9):
            theirs = {**given, "level": level, "epsilon": 0.5}
            far = [
                rank_error(hours, peers.value("opendp_quantile", **theirs), level) for _ in range(3 if quick else 30)
            ]
            for words, interval in (("", False), (" with an interval", True)):
                asked = t.quantile("hours", level, interval=interval)
                (part,) = t.plan(asked, epsilon=0.5, delta=0.0).drawn
                counts = group_counts(part, t, asked)
                own = [rank_error(hours, part.columns(counts, t, rng)["quantile"][0], level) for _ in range(draws)]
                result.figure(
                    f"q{level:g}{words}: our rank error less OpenDP's", float(np.mean(own) - np.mean(far)), at_most=0
                )
            timings |= measure(
                {
                    f"shapedp q{level:g}": lambda q=asked: q.release(epsilon=0.5, delta=0.0),
                    f"opendp q{level:g}": peers.call("opendp_quantile", **theirs),
                },
                rounds=3 if quick else 10,
            )
        result.timings = timings
    return result
