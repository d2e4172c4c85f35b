"""Certificates written to deceive the checker or to stop it. Each was once certified, refuted or fatal wrongly."""

import base64
import json
import math
import sys
import time
import zlib
from fractions import Fraction

import pytest
from flint import arb

from shapedp_check import check
from shapedp_check.balls import precision, up
from shapedp_check.cli import main
from shapedp_check.pairs import Clipped, DiscreteLaplace, Gaussian
from shapedp_check.verdict import _joined


def claim(subject, epsilon, delta, adjacency=None, **more):
    made = {"schema": 1, "kind": "certificate", "epsilon": epsilon, "delta": delta, "adjacency": adjacency}
    return {**made, "bracket": {"lower": 0.0, "upper": delta}, "verdict": "certified", "subject": subject, **more}


def additive(law, region, **more):
    return {"schema": 1, "kind": "additive", "law": law, "sensitivity": region, **more}


def noise(law, scale, dim):
    return {"law": law, "scale": scale, "dim": dim}


def ball(radius, dim, **more):
    return {"set": "l2", "radius": radius, "dim": dim, **more}


def plan(*steps):
    made = [{"subject": subject, "sampling_rate": rate, "count": count} for subject, rate, count in steps]
    return {"schema": 1, "kind": "plan", "steps": made}


BOX = {"set": "box", "profile": [1.0]}
LAPLACE = additive(noise("laplace", 1.0, 1), BOX)
TENSOR = "tensor-gaussian"
ADAPTIVE = {"schema": 1, "kind": "adaptive-mixing", "rows": 10, "row_bound": 1.0, "adjacency": "zero-out"}


def test_no_number_is_no_bound():
    assert up(arb("nan")) == math.inf


@pytest.mark.parametrize(
    ("law", "region"),
    [
        (noise("laplace", 2.0, 1), ball(1.0, 1, scales=[2.0])),
        (noise("laplace", 0.5, 2), ball(1.0, 2, scales=[0.5, 0.0])),
        (noise("logistic", 2.0, 1), ball(1.0, 1, scales=[2.0])),
        (noise("logistic", 0.5, 2), ball(1.0, 2, scales=[0.5, 0.0])),
        (noise("laplace", [0.5, 0.0], 2), ball(1.0, 2, scales=[0.5, 0.0])),  # no noise where nothing moves
        ({"law": "discrete-laplace", "steps": [2.0], "grid": [1.0], "dim": 1}, ball(1.0, 1, scales=[2.0])),
    ],
)
def test_half_axes_are_exact(law, region):
    """Half-axes rounded up gave a difference outside the set: true claims were refuted."""
    assert check(claim(additive(law, region), 1.0, 0.0)).verdict == "certified"


def test_no_noise_is_needed_where_nothing_moves():
    subject = additive(noise("gaussian", [1.0, 0.0], 2), ball(1.0, 2, scales=[1.0, 0.0]))
    assert check(claim(subject, 1.0, 0.2)).verdict == "certified"


def test_the_diagonal_of_a_subnormal_ball_lies_inside():
    least = 5e-324
    answer = check(claim(additive(noise("laplace", least, 2), ball(least, 2)), 1.5, 0.0))
    assert answer.verdict == "certified"  # |v|_1 <= sqrt 2 |v|_2


def test_products_of_tensor_scales_do_not_overflow():
    """1e200 x 1e200 was infinite noise, and Gaussian noise was called pure; 1.5e-162 squared was none."""
    large = additive({"law": TENSOR, "modes": [{"scales": [1e200]}, {"scales": [1e200]}]}, {**BOX, "profile": [1e308]})
    assert check(claim(large, 1e-300, 0.0)).verdict == "refuted"
    small = additive({"law": TENSOR, "modes": [{"scales": [1.5e-162]}] * 2}, {**BOX, "profile": [5e-324]})
    assert check(claim(small, 1e-9, 0.9)).verdict == "certified"  # mu = 2.2
    apart = additive(
        {"law": TENSOR, "modes": [{"scales": [1e-150, 1e150]}] * 2}, {"set": "box", "profile": [1.0, 1.0, 1.0, 0.0]}
    )
    assert check(claim(apart, 1.0, 1e-5)).verdict == "undecided"


def test_a_grid_law_wider_than_all_floats_is_finite():
    law = {"law": "discrete-laplace", "steps": [2.0**1000] * 2, "grid": [2.0**30] * 2, "dim": 2}
    answer = check(claim(additive(law, {"set": "l1", "radius": 1e308, "dim": 2}), 1e-5, 0.0))
    assert answer.verdict == "refuted"


def test_the_best_event_of_discrete_laplace_is_found_among_long_shifts():
    """Its place is a difference of two numbers near 2^60: in floats it was off by 128."""
    steps, shift = 2**40 - 123457, 2**60
    pair = DiscreteLaplace(steps, shift)
    with precision(256):
        for less in range(100, 2000, 100):
            x = float(Fraction(shift - less, steps))
            best = math.ceil((shift - Fraction(x) * steps) / 2) - 1
            exact = pair._cdf(best) - arb(x).exp() * pair._cdf(best - shift)
            assert pair.hockey(arb(x)).overlaps(exact)


def test_what_is_seen_of_a_clipped_eigenvalue_is_not_the_whole_of_it():
    """The variance is kept within [0, (gamma - 1) C^2]: with eta far above gamma two releases show next to nothing."""
    two = plan(({"mechanism": {**ADAPTIVE, "gamma": 3.0, "eta": 1e4, "tau": 3.0}}, 1.0, 2))
    mu, x = math.sqrt(2) * 1e-4, 1e-5
    t = x / mu - mu / 2
    whole = mu * (math.exp(-t * t / 2) / math.sqrt(2 * math.pi) - t * math.erfc(t / math.sqrt(2)) / 2)
    assert check(claim(two, x, whole / 2, "zero-out")).lower < 0.9 * whole
    full = Gaussian(arb(1))
    for x in (-1.0, 0.5, 2.0):
        assert Clipped(arb(1), arb(-9), arb(9)).hockey(arb(x)).overlaps(full.hockey(arb(x)))
        assert Clipped(arb(1), arb(0), arb(1)).hockey(arb(x)) <= full.hockey(arb(x)) + arb(2) ** -40


def test_an_eigenvalue_that_is_always_zero_reveals_nothing():
    """Fewer records than columns: lambda_min is 0 on all data."""
    subject = {**ADAPTIVE, "gamma": 200.0, "eta": 2.0, "tau": 6.0}
    assert check(claim({**subject, "records": 3, "dim": 5}, 1.0, 1e-3, "zero-out")).lower == 0
    assert check(claim(subject, 1.0, 1e-3, "zero-out")).verdict == "refuted"


@pytest.mark.parametrize(
    "subject",
    [
        {"schema": 1, "kind": ["additive"]},
        {"schema": 1, "kind": {}},
        additive({"law": []}, BOX),
        additive(noise("laplace", 1.0, 1), {"set": {}}),
        additive(noise("laplace", 1.0, 1), {**BOX, "scales": [0.1]}),
        additive(noise("laplace", 1.0, 1), {"set": "l1", "radius": 1.0, "dim": 1, "scales": [9.0]}),
        additive({**noise("laplace", 1.0, 1), "truncated": 2.0}, BOX),
        additive({"law": TENSOR, "modes": [{"scales": [1.0], "shift": 1.0}]}, BOX),
        {**LAPLACE, "count": 1000},
        {"schema": 1, "kind": "repetition", "gamma": 0.5, "eta": 3.0, **{"run": plan((None, 1.0, 1))["steps"][0]}},
        additive(noise("laplace", 1.0, 1), {"set": "box", "profile": {"float64": "eJxjYAADAAAIAAE=", "size": True}}),
        additive(noise("gaussian", [1.0, 2.0], 2), {"set": "slices", "radii": [1.0], "shape": [1, 10**9], "mode": 0}),
        additive({**noise("gaussian", [1.0, 2.0], 10**10), "sizes": [5 * 10**9] * 2}, ball(1.0, 10**10)),
    ],
)
def test_what_is_not_understood_is_said(subject):
    assert check(claim(subject, 1.0, 0.5)).verdict == "not described"


@pytest.mark.parametrize("rate", [1e-6, 0.5, 1 - 2.0**-53])
def test_a_sample_of_a_pure_release_is_pure(rate):
    """Cancellation left 5e-324, and a true claim was undecided."""
    region = {**BOX, "adjacency": "zero-out"}
    subject = plan(({"mechanism": additive(noise("laplace", 1.0, 1), region)}, rate, 1))
    assert check(claim(subject, 1.0, 0.0, "zero-out")).verdict == "certified"
    assert check(claim(subject, math.log1p(rate * math.expm1(1.0)) * 0.999, 0.0, "zero-out")).verdict == "refuted"


def test_premises_are_never_silent():
    subject = {**LAPLACE, "premises": ["bounded"]}
    assert check(claim(subject, 1.0, 0.5)).verdict == "not described"
    assert check(claim(subject, 1.0, 0.5, assumptions=["The query is bounded."])).verdict == "certified"


def test_deep_files_are_refused():
    deep = []
    for _ in range(2 * sys.getrecursionlimit()):
        deep = [deep]
    assert check(claim({**LAPLACE, "premises": deep}, 1.0, 0.5)).verdict == "not described"
    assert check({**claim(LAPLACE, 1.0, 0.5), "subject": deep}).verdict == "not described"


def test_a_small_file_does_not_unpack_to_a_large_one():
    packed = base64.b64encode(zlib.compress(bytes(1 << 28), 9)).decode()
    for size in (1, 1 << 25):
        region = {"set": "box", "profile": {"float64": packed, "size": size}}
        assert check(claim(additive(noise("laplace", 1.0, 1), region), 1.0, 0.5)).verdict == "not described"


@pytest.mark.parametrize("dim", [10**9, 2**62])
@pytest.mark.parametrize("law", ["gaussian", "laplace", "logistic"])
def test_many_coordinates_that_are_alike(law, dim):
    region = {"set": "l1", "radius": 1.0, "dim": dim}
    assert check(claim(additive(noise(law, 4.0, dim), region), 1.0, 0.2)).verdict == "certified"
    assert check(claim(additive(noise("gaussian", 4.0, dim), ball(1.0, dim)), 1.0, 0.2)).verdict == "certified"
    blocks = {"set": "blocks", "radii": [1.0, 1.0], "sizes": [dim // 2, dim // 2]}
    assert check(claim(additive(noise("gaussian", 4.0, dim), blocks), 1.0, 0.2)).verdict == "certified"


@pytest.mark.parametrize(
    "subject",
    [
        additive(
            {"law": "staircase", "width": [1.0], "inner": [1.0], "units": [1.0], "grid": [1.0]},
            BOX | {"profile": [3e3]},
        ),
        additive({"law": "radial", "dim": 3, "a": 3.0, "b": 1e-40, "scale": 1.0}, ball(2.0, 3)),
        additive({"law": "radial", "dim": 3, "a": 3.0, "b": 1e10, "scale": 1.0}, ball(1.0, 3)),
        additive({"law": "radial", "dim": 3, "a": 1e-300, "b": 1.0, "scale": 1.0}, ball(1.0, 3)),
        plan(({"loss": "bare", "epsilon": 1e-9, "delta": 0.0}, 1.0, 10**15)),
        plan(*(({"loss": "gaussian", "mu": 0.1 + n / 10000}, 0.01, 1) for n in range(1000))),
    ],
)
def test_no_file_stops_the_checker(subject):
    begun = time.monotonic()
    relation = "add-remove" if len(subject.get("steps", ())) > 1 else None
    answer = check(claim(subject, 0.5, 1e-9, relation), seconds=2.0)
    assert answer.verdict == "undecided"
    assert (answer.lower, answer.upper) == (0.0, 1.0)
    assert time.monotonic() - begun < 30


def test_equal_steps_are_counted_together():
    one = {"loss": "gaussian", "mu": 1.0}
    separate = check(claim(plan(*(((one), 0.01, 1) for _ in range(300))), 1.0, 1e-5, "add-remove"))
    together = check(claim(plan((one, 0.01, 300)), 1.0, 1e-5, "add-remove"))
    assert (separate.lower, separate.upper) == (together.lower, together.upper)
    pairs = [(Gaussian(arb(2).sqrt()), 1), (Clipped(arb(2).sqrt(), arb(0), arb(1)), 1)]
    assert len(_joined(pairs + pairs)) == 2


def test_a_file_cannot_write_lines_of_its_own(tmp_path, capsys):
    """A sentence of the file stood in the output as it was: it could say of another file that it is certified."""
    spoof = "fine.\nother.json: certified: delta is at most 0\x1b[2K \ud800 \u202e"
    path = tmp_path / "false.json"
    path.write_text(json.dumps(claim(LAPLACE, 0.5, 0.0, assumptions=[spoof])))
    assert main([str(path)]) == 3
    path.write_text(json.dumps(claim({**LAPLACE, spoof: 1}, 0.5, 0.0)))
    assert main([str(path)]) == 3
    shown = capsys.readouterr().out
    assert not any(line.startswith("other.json") for line in shown.splitlines())
    assert all(one.isprintable() for one in shown.replace("\n", ""))


def test_a_fault_in_one_file_leaves_the_others(tmp_path, monkeypatch, capsys):
    good = tmp_path / "good.json"
    good.write_text(json.dumps(claim(LAPLACE, 1.0, 0.5)))
    folder = tmp_path / "folder"
    folder.mkdir()
    assert main([str(good), "--seconds", "5"]) == 0
    assert main([str(folder), str(good)]) == 2
    assert "certified" in capsys.readouterr().out

    def broken(*_, **__):
        raise RuntimeError("a fault of this program")

    monkeypatch.setattr("shapedp_check.cli.check", broken)
    assert main([str(good), str(good)]) == 3
    assert capsys.readouterr().err.count("a fault of this program") == 2


def test_what_one_of_many_steps_breaks_is_refuted_even_in_a_hurry():
    steps = (({"loss": "gaussian", "mu": 1 + n / 1000}, 0.01, 1) for n in range(1000))
    answer = check(claim(plan(*steps), 0.5, 1e-9, "add-remove"), seconds=2.0)
    assert answer.verdict == "refuted"
    assert answer.upper == 1.0
