"""Gaussian noise on a hull: what is certified against every difference there is; gaps, releases, files."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from scipy import stats

import shapedp as sdp
from shapedp.noise import TensorGaussian
from shapedp.report.words import set_words
from shapedp_check import check

CLAIM = {"epsilon": 1.0, "delta": 1e-6}
MU = sdp.GaussianLoss.calibrate(1.0, 1e-6).mu


def calibrated(vertices, **options):
    made = {name: options.pop(name) for name in ("adjacency", "differences") if name in options}
    return sdp.calibrate("gaussian", sdp.Hull(vertices, **made), **CLAIM, **options)


def whitening(law: sdp.Law) -> np.ndarray:
    """diag(1/s) R in extended precision; rows without noise are left out."""
    if not isinstance(law, TensorGaussian):
        return np.diag(1 / law.scales.astype(np.longdouble))
    mode = law.modes[0]
    turn = np.eye(mode.size) if mode.rotation is None else mode.rotation.whole.astype(np.longdouble) / 2**24
    noisy = mode.scales > 0
    return turn[noisy] / mode.scales[noisy, None].astype(np.longdouble)


def differences(rows: np.ndarray, relation: str, most: int, distinct: bool) -> np.ndarray:
    """Every difference that neighbours can make, one by one."""
    choose = itertools.combinations if distinct else itertools.combinations_with_replacement
    sizes = range(1, 2) if most == 1 else range(min(most, len(rows)) + 1) if distinct else range(most + 1)
    sums = [
        sum((rows[k] for k in part), np.zeros(rows.shape[1])) for n in sizes for part in choose(range(len(rows)), n)
    ]
    if relation == "replace":
        return np.array([a - b for a, b in itertools.product(sums, repeat=2)])
    return np.array(sums)


def test_every_certificate_by_brute_force():
    """500 random small hulls: mu is never below that of any difference, and above by rounding of the input alone."""
    rng = np.random.default_rng(0)
    for case in range(500):
        relation = ("add-remove", "replace", "zero-out")[case % 3]
        most, distinct = int(rng.integers(1, 4)), bool(rng.integers(2))
        dim, count = int(rng.integers(1, 5)), int(rng.integers(2, 6))
        rows = rng.integers(-4, 5, size=(count, dim)) * 2.0 ** rng.integers(-3, 4, size=dim) + np.eye(count, dim)
        if not distinct:
            rows = rows + rng.normal(size=rows.shape)
        if not np.ptp(rows, axis=0).all():
            rows[0] += 7.0
        hull = sdp.Hull.of_people(rows, adjacency=relation, max_rows=most, distinct=distinct)
        error = "max" if case % 5 == 0 else "squared"
        made = sdp.calibrate("gaussian", hull, **CLAIM, error=error, exact_zeros=True, gap=1e-3)
        listed = differences(rows.astype(np.longdouble), relation, most, distinct)
        truth = float(np.sqrt(np.square(listed @ whitening(made.law).T).sum(axis=1)).max())
        slack = made.law.slack if isinstance(made.law, TensorGaussian) else 0.0
        assert truth <= made.loss.mu, case
        assert made.loss.mu - slack <= truth * (1 + 1e-9), case
        assert made.loss.mu <= MU
        assert made.certificate.verdict == "certified"


def test_optimality_of_random_hulls():
    rng = np.random.default_rng(1)
    for case in range(40):
        dim, count = int(rng.integers(1, 13)), int(rng.integers(1, 41))
        rows = rng.normal(size=(count, dim)) * 10 ** rng.uniform(-1.5, 1.5, dim)
        made = calibrated(rows, differences=bool(case % 2) and count > 1)
        assert made.optimality.lower == 1.0
        assert made.optimality.upper <= 1 + 1e-4, case
    assert calibrated(rows, gap=1e-2).optimality.upper <= 1.01


def test_known_sets():
    """The closed forms of the other sets, from their vertices alone."""
    widths, weights = np.array([1.0, 0.3, 2.0]), np.array([1.0, 4.0, 0.5])
    corners = np.array(list(itertools.product([-1, 1], repeat=3))) * widths
    for error, chosen in (("squared", None), ("squared", weights), ("max", weights)):
        box = sdp.calibrate("gaussian", sdp.Box(widths), **CLAIM, error=error, weights=chosen)
        hull = calibrated(corners, error=error, weights=chosen)
        expected = box.expected_error(error, chosen)
        assert hull.expected_error(error, chosen) == pytest.approx(expected, rel=1e-4)
        assert hull.optimality.upper < 1 + 1e-4
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(5, 5)))[0]
    ball = sdp.calibrate("gaussian", sdp.L2(3.0, dim=5), **CLAIM)
    assert calibrated(3 * turn).expected_squared_error == pytest.approx(ball.expected_squared_error, rel=1e-4)
    axes = np.vstack([np.diag(widths), np.linalg.qr(turn[:3, :3])[0] * widths])
    ellipsoid = sdp.calibrate("gaussian", sdp.L2(1.0, dim=3, scales=widths), **CLAIM)
    assert calibrated(axes).expected_squared_error == pytest.approx(ellipsoid.expected_squared_error, rel=1e-4)
    ends = [np.vstack([np.eye(k), -np.eye(k)]) for k in (2, 3)]
    blocks = sdp.calibrate("gaussian", sdp.Blocks([2.0, 0.5], [2, 3]), **CLAIM)
    hull = calibrated(np.array([np.concatenate([2 * a, 0.5 * b]) for a in ends[0] for b in ends[1]]))
    assert hull.expected_squared_error == pytest.approx(blocks.expected_squared_error, rel=1e-4)
    slices = sdp.calibrate("gaussian", sdp.Slices([2.0, 0.5], (3, 2), 1), **CLAIM)
    corner = [np.kron(a, [2.0, 0.0]) + np.kron(b, [0.0, 0.5]) for a in ends[1] for b in ends[1]]
    assert calibrated(corner).expected_squared_error == pytest.approx(slices.expected_squared_error, rel=1e-4)


def test_targets_are_weights_of_the_worst():
    """Per-query targets: variances in the ratio asked for where they bind, and the largest ratio is the least."""
    rows, targets = np.tril(np.ones((6, 6))).T, np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    made = calibrated(rows, error="max", weights=1 / targets)
    assert made.optimality.upper < 1 + 1e-4
    even = calibrated(rows, weights=1 / targets)
    assert (made.law.variances() / targets).max() < (even.law.variances() / targets).max()


def test_a_hull_of_fewer_dimensions():
    """All ranges of 6 cells lie in 6 dimensions of 21: certified, and within the gap of the best."""
    n = 6
    rows = np.array([[1.0 * (a <= k <= b) for k in range(n)] for a in range(n) for b in range(a, n)]).T
    made = calibrated(rows)
    assert made.law.dim == 21
    assert made.optimality.upper < 1 + 1e-4
    noise = made.law.sample(2000, sdp.sampling.source(np.random.default_rng(0)))
    outside = noise @ (np.eye(21) - rows.T @ np.linalg.pinv(rows.T))
    assert np.square(outside).sum() < 1e-4 * np.square(noise).sum()


def test_coordinates_that_nobody_changes():
    rows = [[1.0, 0.0, 2.0], [1.0, 0.0, 1.0]]
    with pytest.raises(ValueError, match="zero sensitivity"):
        calibrated(rows)
    made = calibrated(rows, exact_zeros=True)
    assert made.law.scales[1] == 0
    assert made.release([1.0, 2.5, 3.0]).value[1] == 2.5
    assert check(json.loads(json.dumps(made.certificate.to_json()))).verdict == "certified"


def test_the_noise_has_the_covariance_and_the_release_its_error_bars():
    """Variances of 4000 draws along fixed directions: within 6 sigma of chi-square, and not for a scale 5% off."""
    rows = np.random.default_rng(3).normal(size=(9, 4)) * [1.0, 10.0, 0.1, 1.0]
    made, count = calibrated(rows), 4000
    truth = np.array([1.0, -2.0, 3.0, 1e4])
    drawn = np.asarray(made.release(np.tile(truth, (count, 1)), batch=count, rng=np.random.default_rng(4))) - truth
    white = drawn @ whitening(made.law).astype(float).T
    for along in (white, drawn / made.release(truth).standard_error):
        squares = np.square(along).sum(axis=0)
        low, high = (stats.chi2(count).ppf(q) for q in (1e-7, 1 - 1e-7))
        assert (low < squares).all()
        assert (squares < high).all()
        assert not ((low < squares * 1.3).all() and (squares * 1.3 < high).all())


def test_files_and_checkers_agree():
    rng = np.random.default_rng(5)
    for relation in ("add-remove", "replace", "zero-out", None):
        made = calibrated(rng.normal(size=(6, 3)), adjacency=relation, differences=relation == "replace")
        data = json.loads(json.dumps(made.certificate.to_json()))
        assert sdp.verify(sdp.Certificate.from_json(data)).verdict == "certified"
        answer = check(data)
        assert answer.verdict == "certified"
        assert answer.lower <= made.certificate.bracket.upper
        assert made.certificate.bracket.lower <= answer.upper
        again = sdp.mechanisms.mechanism_from_json(made.to_json())
        assert again.optimality.upper == pytest.approx(made.optimality.upper, rel=1e-9)
        for edited in (0.9, 1.1):
            subject = json.loads(json.dumps(data))
            rows = subject["subject"]["sensitivity"]["vertices"]
            subject["subject"]["sensitivity"]["vertices"] = [edited * one for one in rows]
            with pytest.raises(ValueError):
                sdp.verify(sdp.Certificate.from_json(subject))
            assert check(subject).verdict == "refuted"


def test_words_and_refusals():
    hull = sdp.Hull([[1.0, 2.0], [0.0, 1.0]])
    assert "2 listed vectors" in set_words(hull)
    with pytest.raises(sdp.DoesNotApplyError, match="'squared' and 'max'"):
        sdp.calibrate("gaussian", hull, **CLAIM, error="absolute")
    for gap in (0.0, -1.0, math.nan):
        with pytest.raises(ValueError, match="gap"):
            sdp.calibrate("gaussian", hull, **CLAIM, gap=gap)
    assert sdp.calibrate("gaussian", sdp.L2(1.0, dim=2), **CLAIM).optimality is None
    ranked = sdp.advise(sdp.Hull(np.tril(np.ones((16, 16))).T), **CLAIM)
    assert ranked[0].family == "gaussian"
    assert "follows the hull" in ranked[0].why


def test_a_direction_without_noise_must_not_move():
    """A rotated law with a scale of 0: worth something only where that direction is one nobody moves."""
    turn, scales = np.eye(3), np.array([5.0, 5.0, 0.0])
    turn[:2, :2] = [[0.6, 0.8], [-0.8, 0.6]]
    factor = turn.T * scales
    still, moved = sdp.Hull([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]), sdp.Hull([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    law = TensorGaussian([factor])
    assert law.loss(still).mu == pytest.approx(2**0.5 / 5, rel=1e-4)
    assert law.loss(moved).mu == math.inf
