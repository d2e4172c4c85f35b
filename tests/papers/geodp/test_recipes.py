"""GeoDP as published is refuted, the attack shows it, and the certified variants stand it."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import special

import shapedp as sdp
from shapedp.cli import main
from shapedp.mechanisms import AngleWindows, MeanAngles, mechanism_from_json, verify
from shapedp.mechanisms.watch import watching
from shapedp.numerics.hyperspherical import from_angles, to_angles
from shapedp.papers.geodp.recipes import (
    TurnedMeanLoss,
    direction_mse,
    efficiency_difference,
    geodp,
    model_efficiency,
    noise_multiplier,
)

PAGE = Path(__file__).parents[3] / "docs" / "geodp.md"
CLAIM = {"epsilon": 4.845, "delta": 1e-5}  # sigma = 1
PAPER = {"dim": 20000, "sensitivity": 0.1, "batch": 16384, **CLAIM}


def test_the_scales_are_the_printed_ones():
    m = geodp(**PAPER, beta=0.1)
    assert m.sigma == noise_multiplier(**CLAIM) == pytest.approx(1.0, rel=1e-4)
    assert m.law.scales[0] == pytest.approx(0.1 / 16384, rel=1e-4)
    assert m.law.scales[1:] == pytest.approx(math.sqrt(20002) * 0.1 * math.pi / 16384, rel=1e-4)
    assert geodp(**PAPER, beta=1.0).spread == pytest.approx(0.027, rel=0.01)


@pytest.mark.parametrize("beta", [1.0, 0.1])
@pytest.mark.parametrize(("dim", "batch", "sigma"), [(20000, 16384, 1.0), (21840, 8192, 10.0), (7850, 256, 1.0)])
def test_the_published_claim_is_refuted(dim, batch, sigma, beta):
    m = geodp(dim=dim, sensitivity=0.1, batch=batch, beta=beta, epsilon=4.8448 / sigma, delta=1e-5)
    assert m.certificate.verdict == "refuted"
    assert m.certificate.bracket.lower > 0.999
    assert "not a mean of angles" in m.certificate.explain()
    with pytest.raises(sdp.RefutedError):
        m.release(np.ones((2, dim)))
    assert verify(m.certificate).verdict == "refuted"
    assert mechanism_from_json(json.loads(json.dumps(m.to_json()))).certificate.bracket == m.certificate.bracket


def test_the_command_line_refutes_it(capsys):
    options = ["--dim", "20000", "--batch", "16384", "--beta", "0.1", "--epsilon", "4.845", "--delta", "1e-5"]
    assert main(["certify", "geodp", *options]) == 3
    assert "refuted" in capsys.readouterr().out
    assert main(["certify", "geodp", *options[:4], *options[6:]]) == 2
    assert "--beta" in capsys.readouterr().err


def test_the_lower_bound_is_below_a_simulation_of_the_counterexample():
    """e_1 against e_2, coarse noise: P(y > c) - e^e Q(y > c) from 3e5 draws, standard deviation below 0.002."""
    rng, spread, epsilon = np.random.default_rng(0), 0.4, 0.5
    noise = spread * rng.normal(size=(300_000, 3))
    best = 0.0
    shown = []
    for axis in (0, 1):
        angles = noise.copy()
        angles[:, axis] += math.pi / 2
        v = from_angles(1.0 + 0.1 * rng.normal(size=len(angles)), angles)
        shown.append(np.abs(np.arctan2(v[:, 0], np.linalg.norm(v[:, 1:], axis=1))))
    for c in np.linspace(0.1, 1.5, 40):
        best = max(best, (shown[0] > c).mean() - math.exp(epsilon) * (shown[1] > c).mean())
    loss = TurnedMeanLoss(spread, 0, sdp.GaussianLoss(100.0))
    lower = loss.delta(epsilon).lower
    assert best - 0.01 < lower < best + 0.01


def test_the_lower_bound_of_all_angles_is_below_a_simulation():
    """y_z > pi/4 counted over 30 angles, wrapped noise of spread 1: delta of the counting test, 2e5 draws."""
    rng, spread, epsilon, angles = np.random.default_rng(1), 1.0, 0.3, 30
    noise = spread * rng.normal(size=(200_000, angles))
    folded = np.abs(np.arcsin(np.sin(noise)))
    along, across = (folded < math.pi / 4).sum(axis=1), (folded > math.pi / 4).sum(axis=1)
    best = max((along >= t).mean() - math.exp(epsilon) * (across >= t).mean() for t in range(angles + 1))
    lower = TurnedMeanLoss(spread, angles, sdp.GaussianLoss(100.0)).delta(epsilon).lower
    assert best - 0.01 < lower < best + 0.01
    assert lower > TurnedMeanLoss(spread, 0, sdp.GaussianLoss(100.0)).delta(epsilon).lower


def test_noise_that_fills_the_sphere_is_not_refuted():
    m = geodp(dim=10, sensitivity=0.1, batch=1, beta=1.0, epsilon=0.1, delta=0.5)
    assert m.certificate.verdict == "certified"  # full range, no division by B: this is MeanAngles
    assert m.release(np.ones((1, 10)), rng=np.random.default_rng(0)).certificate.verdict == "certified"


def _page():
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)


def test_the_attack_on_the_page(capsys):
    """AUC above 0.99 against the published noise, at most what the claim allows against the certified ones."""
    code = _page()[0]
    assert len([line for line in code.split("claim = ")[0].splitlines() if line.strip()]) <= 20
    space: dict = {}
    exec(compile(code, str(PAGE), "exec"), space)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line not in PAGE.read_text()] == []
    found = [float(line.split("AUC ")[1].split()[0]) for line in lines]
    assert min(found[:2]) > 0.99
    for kind, value in zip((MeanAngles, AngleWindows), found[2:], strict=True):
        m = kind.calibrate(dim=20000, clip=0.1, batch=16384, adjacency="replace", **CLAIM)
        most = float(special.ndtr(m.loss.mu / math.sqrt(2)))  # any test of a mu-GDP release
        assert value < most + 4.9 * math.sqrt(1 / (6 * 200))  # false-alarm rate below 1e-6
        assert 0.5 < most < 0.8


def test_every_example_on_the_page_runs():
    for code in _page()[1:]:
        exec(compile(code, str(PAGE), "exec"), {})


@pytest.mark.parametrize("kind", [MeanAngles, AngleWindows])
def test_the_best_attack_on_the_certified_variants_stays_below_the_claim(kind):
    """The likelihood ratio of (norm, angles) itself, worst neighbours of the attack: AUC at most Phi(mu/sqrt 2)."""
    m = kind.calibrate(dim=50, clip=0.1, batch=64, adjacency="replace", **CLAIM)
    one, two = 0.1 * np.eye(2, 50)[:, None]
    first, second = m.query(one), m.query(two)
    direction = (first - second) / m.law.scales**2
    rng = np.random.default_rng(0)
    scores = [
        np.array([np.asarray(m.release(rows, rng=rng).polar.value) @ direction for _ in range(2000)])
        for rows in (one, two)
    ]
    auc = float(np.greater.outer(*scores).mean())
    mu = float(np.linalg.norm((first - second) / m.law.scales))
    assert mu <= m.loss.mu
    assert auc == pytest.approx(float(special.ndtr(mu / math.sqrt(2))), abs=4.9 * math.sqrt(1 / (6 * 2000)))


def test_a_release_is_algorithm_1():
    m = geodp(dim=50, sensitivity=2.0, batch=4, beta=0.5, **CLAIM)
    rows = np.random.default_rng(0).normal(size=(4, 50))
    clipped = rows * np.minimum(1, 2.0 / np.linalg.norm(rows, axis=1, keepdims=True))
    norm, angles = to_angles(clipped.mean(axis=0))
    seen = []

    def watcher(mechanism, x, draw):
        seen.append((mechanism, x))
        return x  # no noise: what is left is the conversion there and back

    with watching(watcher):
        plain = m.release(rows, unsafe=True, rng=np.random.default_rng(1))
    assert seen[0][0] is m
    assert np.allclose(seen[0][1], [norm, *angles], rtol=1e-6)
    assert np.allclose(plain.value, clipped.mean(axis=0), rtol=1e-6)
    rng = np.random.default_rng(2)
    many = np.stack([m.release(rows, unsafe=True, rng=rng).polar.value for _ in range(2000)]) - seen[0][1]
    spread = float(np.square(many / m.law.scales).mean())  # chi-square of 1e5 degrees over 1e5
    room = 4.9 * math.sqrt(2 / 1e5)  # false-alarm rate 1e-6
    assert abs(spread - 1) < room < abs(spread * 1.02**2 - 1)


def test_automatic_clipping():
    m = geodp(dim=8, sensitivity=1.0, batch=2, beta=0.5, automatic=True, **CLAIM)
    rows = np.random.default_rng(0).normal(size=(3, 8)) * [[1e-3], [1.0], [1e3]]
    size = np.linalg.norm(rows, axis=1)
    assert np.linalg.norm(m.clipped(rows), axis=1) == pytest.approx(size / (size + 0.01), rel=1e-12)
    assert (np.linalg.norm(m.clipped(rows), axis=1) < 1).all()


def test_definitions_and_theorem_1():
    rng = np.random.default_rng(3)
    noise, gradient, weights, optimum = rng.normal(size=(4, 30))
    rate, clip, batch = 0.3, 0.7, 5
    plain, noisy = weights - rate * gradient, weights - rate * (gradient + clip / batch * noise)
    parts = efficiency_difference(
        noise=noise, gradient=gradient, weights=weights, optimum=optimum, rate=rate, clip=clip, batch=batch
    )
    assert parts.total == pytest.approx(model_efficiency(noisy, optimum) - model_efficiency(plain, optimum), rel=1e-12)
    assert parts.direction == pytest.approx(2 * rate * clip / batch * float(noise @ (optimum - weights)))
    assert direction_mse([[1.0, 2.0], [0.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]) == 2.5
    with pytest.raises(ValueError, match="shape"):
        direction_mse([1.0], [1.0, 2.0])


@pytest.mark.parametrize(
    "changes", [{"beta": 0.0}, {"beta": 1.1}, {"batch": 0}, {"dim": 1}, {"delta": 0.0}, {"sensitivity": math.nan}]
)
def test_bad_calls(changes):
    with pytest.raises(ValueError):
        geodp(**{**PAPER, "beta": 0.5, **changes})
