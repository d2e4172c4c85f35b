"""Workloads: error that rounding took, an optimality that an edited plan stated, attributes of many cells."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest

import shapedp as sdp
from shapedp.workloads import WorkloadMechanism

CLAIM = {"epsilon": 1.0, "delta": 1e-9}
PRINTED = 10.51526951080805  # ResidualPlanner's root mean square error for all 3-way tables of Adult, at mu = 1


def test_no_larger_than_the_closed_form_by_more_than_rounding():
    """Contrasts kept to 24 bits, and rounding of the turned tables, cost 4.2e-5."""
    sizes = (100, 100, 100, 99, 85, 42, 16, 15, 9, 7, 6, 5, 2, 2)
    asked = sdp.Workload({f"x{k}": size for k, size in enumerate(sizes)}).marginals(3)
    error = math.sqrt(asked.calibrate(**CLAIM).expected_squared_error / len(asked))
    assert error * sdp.GaussianLoss.calibrate(**CLAIM).mu <= PRINTED * (1 + 1e-11)


def test_the_optimality_of_an_edited_plan_is_computed_anew():
    """A plan that stated a large `least` said that its error was the least possible, whatever its noise."""
    made = sdp.Workload({"a": 5, "b": 4}).marginals(1, 2).calibrate(**CLAIM)
    data = json.loads(json.dumps(made.to_json()))
    data["least"] *= 100.0
    data["families"][0]["sigma"] = [3.0 * one for one in data["families"][0]["sigma"]]
    edited = WorkloadMechanism.from_json(data)
    assert edited.certificate.verdict == "certified"
    assert edited.optimality.upper == pytest.approx(9.0, rel=1e-3)
    assert made.optimality.upper < 1 + 1e-9
    data["least"] = 0.0
    assert WorkloadMechanism.from_json(data).optimality is None, "none is stated"


def test_large_attributes_are_planned():
    """Contrasts were matrices of n x n entries, so that attributes of more than 4,096 cells were refused."""
    asked = sdp.Workload({"code": 20_000, "sex": ["F", "M"]}).marginals(1, 2)
    made = asked.calibrate(**CLAIM)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"code": rng.integers(0, 20_000, 5000), "sex": rng.choice(["F", "M"], 5000)})
    release = made.release(frame, rng=rng)
    exact = np.bincount(frame.code, minlength=20_000)
    errors = (release["code"] - exact) / release.standard_error("code")
    assert np.square(errors).mean() == pytest.approx(1.0, abs=0.06)
    assert release["code x sex"].sum(axis=1) == pytest.approx(release["code"], abs=1e-6)


def test_products_by_an_attribute_of_one_cell(monkeypatch):
    """Its empty block made every scale NaN, and the workload was refused as an unusual claim."""
    monkeypatch.setattr("shapedp.workloads.strategy.JOINT", 8)
    made = sdp.Workload({"s": 6, "t": 5, "g": 1}).ranges(["s", "t"], by=["g"]).calibrate(**CLAIM)
    without = sdp.Workload({"s": 6, "t": 5}).ranges(["s", "t"]).calibrate(**CLAIM)
    assert len(made.families[0].parts) == 2
    assert made.expected_squared_error == pytest.approx(without.expected_squared_error, rel=1e-6)
    frame = pd.DataFrame({"s": [0, 5], "t": [1, 4], "g": [0, 0]})
    assert made.release(frame)[made.workload.terms[0].name].shape == made.workload.terms[0].shape
