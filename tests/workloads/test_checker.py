"""The checker on hulls and workloads: its own numbers, agreement with the library, and files that were edited."""

from __future__ import annotations

import copy
import json
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import shapedp as sdp
from shapedp.workloads.blocks import contrasted
from shapedp_check import check
from shapedp_check.files import NotDescribed
from shapedp_check.sets import read_set
from shapedp_check.workload import inner_products

sys.path.insert(0, str(Path(__file__).parents[2] / "experiments" / "trust"))
from certificates import NEWEST, Skipped, certificate, kind_of

CLAIM = {"epsilon": 1.0, "delta": 1e-6}


@pytest.mark.parametrize("kind", ["hull", "workload", "answers"])
def test_random_certificates_agree(kind):
    cases = [number for number in range(NEWEST, NEWEST + 1600) if kind_of(number) == kind][:40]
    verdicts = set()
    for number in cases:
        try:
            made = certificate(number)
        except Skipped:
            continue
        answer = check(made)
        assert made["bracket"]["upper"] >= answer.lower, number
        assert made["bracket"]["lower"] <= answer.upper, number
        verdicts.add(answer.verdict)
    assert {"certified", "refuted"} <= verdicts


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
def test_contrasts_are_those_of_the_library(size):
    whole = contrasted(np.eye(size, dtype=np.int64), 0).tolist()
    columns = list(zip(*whole, strict=True)) or [()] * size
    norm, other = inner_products(size)
    products = [
        [sum(Fraction(x * y, k * (k + 1)) for k, (x, y) in enumerate(zip(*pair, strict=True), start=1)) for pair in row]
        for row in ([(one, two) for two in columns] for one in columns)
    ]
    assert all(products[i][j] == (norm if i == j else other) for i in range(size) for j in range(size))


def test_hulls_are_read():
    found = read_set({"set": "hull", "vertices": [3.0, 4.0, 0.0, 1.0], "count": 2, "dim": 2})
    assert float(found.l2_reach([1.0])) == 5.0
    assert float(found.l1_reach([1.0])) == 7.0
    apart = read_set({"set": "hull", "vertices": [3.0, 4.0, 0.0, 1.0], "count": 2, "dim": 2, "differences": True})
    assert float(apart.l2_reach([1.0])) == pytest.approx(18**0.5)
    rows = {"data": [3.0, 4.0, 1.0], "indices": [0, 1, 1], "indptr": [0, 2, 3]}
    assert read_set({"set": "hull", "vertices": rows, "count": 2, "dim": 2}).vertices == found.vertices


@pytest.mark.parametrize(
    "change",
    [
        {"count": 3},
        {"vertices": []},
        {"differences": "yes"},
        {"whole": True, "vertices": [3.0, 4.0, 0.0, 1.5]},
        {"whole": 1},
        {"vertices": {"data": [1.0], "indices": [5], "indptr": [0, 1, 1]}},
        {"vertices": {"data": [1.0, 1.0], "indices": [0, 0], "indptr": [0, 2, 2]}},
        {"vertices": {"data": [1.0], "indices": [0], "indptr": [0, 2, 1]}},
    ],
)
def test_hulls_that_contradict_themselves(change):
    with pytest.raises(NotDescribed):
        read_set({"set": "hull", "vertices": [3.0, 4.0, 0.0, 1.0], "count": 2, "dim": 2, **change})


def written():
    asked = sdp.Workload({"a": 3, "b": ["x", "y"]}, measures={"v": (0, 3)}).marginals(1, 2).ranges("a").sums("v", "b")
    return json.loads(json.dumps(asked.calibrate(**CLAIM, adjacency="replace").certificate.to_json()))


def test_a_workload_is_certified():
    made = written()
    answer = check(made)
    assert answer.verdict == "certified"
    assert answer.upper == pytest.approx(made["bracket"]["upper"], rel=1e-3)


@pytest.mark.parametrize(
    ("path", "times"),
    [
        (("families", 0, "sigma"), 0.99),
        (("families", 0, "parts", 0, "modes", 0, "scales"), 0.9),
        (("workload", "measures", "v"), 3.0),
    ],
)
def test_less_noise_or_more_reach_is_refuted(path, times):
    made = written()
    place = made["subject"]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = [one * times for one in place[path[-1]]]
    assert check(made).verdict == "refuted"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("families",), []),
        (("families", 0, "lengths"), [9.0]),
        (("families", 0, "parts"), []),
        (("families", 0, "more"), 1),
        (("families", 0, "parts", 0, "values"), 1),
        (("families", 0, "parts", 0, "axes"), [7]),
        (("families", 0, "parts", 0, "modes", 0, "scales"), [1.0]),
        (("workload", "attributes"), {}),
        (("workload", "attributes", "a"), {"size": 3, "labels": ["x"]}),
        (("workload", "attributes", "a"), {"edges": [1.0]}),
        (("adjacency",), None),
    ],
)
def test_what_does_not_fit_is_not_described(path, value):
    made = copy.deepcopy(written())
    place = made["subject"]
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert check(made).verdict == "not described"
