"""Gaussian mixing: the sampler against the explicit sketch, floats against their bounds, refusals."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
import scipy.linalg
from scipy import sparse, special, stats

import shapedp as sdp
from shapedp.mechanisms import AdaptiveMixing, Mechanism, Mixing
from shapedp.mechanisms.mixing import draw_sketch, normals, rounding
from shapedp.numerics.gram import eigenvalue_error, factor, factor_error, gram, gram_error, least_eigenvalue
from shapedp.privacy import RefutedError
from shapedp.privacy.losses import MixingLoss
from shapedp.sampling import SimulatedSource, grid_for

CLAIM = {"rows": 100, "row_bound": 1.0, "epsilon": 1.0, "delta": 1e-6}
ALARM = 1e-6


def _rows(n, d, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d)) * np.linspace(1, 0.05, d) * scale
    return x / np.maximum(np.linalg.norm(x, axis=1), 1)[:, None]


def _smallest_p(a, b, covariance):
    """The least p-value, times the number of tests, of two samples of rows that should both be N(0, covariance).

    F tests of projections on the axes, the eigenvectors and random directions (exact), KS tests of some of them, and
    z tests of every entry of the whitened Gram matrices: off-diagonal k^-1/2 N(0, 1), diagonal sqrt(2/k).
    """
    d = a.shape[1]
    rng = np.random.default_rng(99)
    values, vectors = np.linalg.eigh(covariance)
    directions = np.vstack([np.eye(d), vectors.T, rng.normal(size=(10, d))])
    found = []
    for w in directions:
        one, two = a @ w, b @ w
        ratio = (one @ one / len(a)) / (two @ two / len(b))
        found.append(2 * min(stats.f.sf(ratio, len(a), len(b)), stats.f.cdf(ratio, len(a), len(b))))
    for w in directions[-4:]:
        found.append(stats.ks_2samp(a @ w, b @ w, method="asymp").pvalue)
    whiten = vectors / np.sqrt(values)
    for sample in (a, b):
        z = sample @ whiten
        scores = (z.T @ z / len(z) - np.eye(d)) * math.sqrt(len(z)) / np.sqrt(1 + np.eye(d))
        found.extend(2 * special.ndtr(-np.abs(scores[np.triu_indices(d)])))
    return min(found) * len(found)


def explicit_sketch(x, rows, noise_variance, rng):
    """S X + sigma xi as written, n k normals and all."""
    n, d = x.shape
    return rng.standard_normal((rows, n)) @ x + math.sqrt(noise_variance) * rng.standard_normal((rows, d))


@pytest.fixture(scope="module")
def samples():
    x = _rows(40, 4)
    k, variance = 150_000, 3.0
    rng = np.random.default_rng(7)
    moments = gram(x)
    exact = draw_sketch(moments, k, variance, variance / 2, SimulatedSource(rng))
    return x, k, variance, exact, explicit_sketch(x, k, variance, rng), moments + variance * np.eye(4)


def test_sampler_and_explicit_sketch_are_indistinguishable(samples):
    *_, exact, explicit, covariance = samples
    assert _smallest_p(exact, explicit, covariance) > ALARM


def test_the_comparison_rejects_a_sigma_two_percent_off(samples):
    x, k, variance, exact, _, covariance = samples
    wrong = explicit_sketch(x, k, variance * 1.02**2, np.random.default_rng(8))
    assert _smallest_p(exact, wrong, covariance) < ALARM


def test_calibrated_sketch_has_its_covariance():
    m = Mixing.calibrate(**{**CLAIM, "rows": 4000})
    x = _rows(300, 3)
    y = m.release(x, rng=np.random.default_rng(3))
    covariance = gram(x) + m.noise_variance * np.eye(3)
    z = y.value @ np.linalg.inv(np.linalg.cholesky(covariance)).T
    assert stats.chi2.sf(float((z * z).sum()), z.size) > ALARM
    assert stats.chi2.cdf(float((z * z).sum()), z.size) > ALARM
    spread = math.sqrt(2 / 4000) * np.linalg.norm(covariance)
    assert np.abs(y.gram() - gram(x)).max() < 6 * spread


@pytest.mark.parametrize(
    ("rows", "adjacency", "gamma"), [(100, "zero-out", 36.54), (1000, "zero-out", 100.99), (100, "replace", 44.41)]
)
def test_calibrated_gamma(rows, adjacency, gamma):
    m = Mixing.calibrate(rows=rows, row_bound=2.0, epsilon=1.0, delta=1e-6, adjacency=adjacency)
    assert m.gamma == pytest.approx(gamma, abs=0.01)
    assert m.certificate.verdict == "certified"
    assert m.noise_variance == pytest.approx(4 * (m.gamma - 1))
    assert isinstance(m, Mechanism)


def test_the_lone_row_attains_the_loss():
    """d = 1, one record: N(0, C^2 + sigma^2) against N(0, sigma^2) is exactly the pair of the loss."""
    m = Mixing(rows=20, row_bound=3.0, gamma=9.0, epsilon=1.0, delta=1e-3)
    share = 9 / (9 + m.noise_variance)
    assert share == pytest.approx(m.loss.t, rel=1e-12)
    assert MixingLoss(20, share).delta(1.0).upper == pytest.approx(m.loss.delta(1.0).upper, rel=1e-9)


def test_measured_delta_of_released_floats():
    """The likelihood-ratio event on n sketches: its frequencies lie within the bracket, at false-alarm rate 1e-6."""
    m = Mixing(rows=6, row_bound=1.0, gamma=4.0, epsilon=0.5, delta=0.5)
    source, n = SimulatedSource(np.random.default_rng(1)), 200_000
    t = 1 / m.gamma
    threshold = (2 * 0.5 - 6 * math.log1p(-t)) * (1 - t) / t * m.gamma
    hits = []
    for square in (1.0, 0.0):
        rows = draw_sketch(np.array([[square]]), 6 * n, m.noise_variance, m.noise_variance / 2, source)
        hits.append(int((np.square(rows).reshape(n, 6).sum(axis=1) > threshold).sum()))
    measured = (hits[0] - math.exp(0.5) * hits[1]) / n
    slack = (1 + math.exp(0.5)) * math.sqrt(math.log(4 / ALARM) / (2 * n))
    bracket = m.loss.delta(0.5)
    assert bracket.lower - slack < measured < bracket.upper + slack


def test_released_on_the_grid():
    m = Mixing.calibrate(**CLAIM)
    value = m.release(_rows(50, 3)).value
    grid = float(grid_for(math.sqrt(m.noise_variance / 2)))
    assert (value / grid == np.rint(value / grid)).all()


def test_rows_are_clipped_and_sparse_is_accepted():
    m = Mixing.calibrate(**CLAIM)
    x = _rows(60, 4)
    far = x.copy()
    far[0] = [1e8, 0, 0, 0]
    near = x.copy()
    near[0] = [1.0, 0, 0, 0]
    one = m.release(far, rng=np.random.default_rng(0)).value
    two = m.release(near, rng=np.random.default_rng(0)).value
    np.testing.assert_allclose(one, two, atol=1e-3)
    three = m.release(sparse.csr_array(near), rng=np.random.default_rng(0)).value
    np.testing.assert_array_equal(two, three)


@pytest.mark.parametrize(
    "x",
    [
        np.zeros((5, 3)),
        np.ones((1, 1)),
        np.ones((3, 10)),
        np.full((4, 2), 1e300),
        np.full((4, 2), 1e-310),
        np.tile([[0.3, 0.4]], (1000, 1)),
        np.arange(6).reshape(3, 2),
        _rows(20, 3).astype(np.float32),
    ],
    ids=["zero", "single", "wide", "huge", "tiny", "duplicated", "integer", "float32"],
)
def test_odd_data_is_sketched(x):
    for m in (Mixing.calibrate(**CLAIM), _adaptive()):
        value = m.release(x).value
        assert value.shape == (100, x.shape[1])
        assert np.isfinite(value).all()


_KEPT = {}


def _adaptive(**options):
    key = tuple(sorted(options.items()))
    if key not in _KEPT:
        _KEPT[key] = AdaptiveMixing.calibrate(**{**CLAIM, **options})
    return _KEPT[key]


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
def test_adaptive_mixing(adjacency):
    m = _adaptive(adjacency=adjacency)
    assert m.certificate.verdict == "certified"
    base = m.loss.base
    assert base.mu == pytest.approx(1 / m.eta, rel=1e-9)
    assert m.failure < 0.5 * m.delta
    assert m.reach < 92
    poor, rich = _rows(50, 3), np.tile(np.eye(3), (200, 1))
    assert m.release(poor).noise_variance == pytest.approx(m.gamma - 1)
    assert m.release(rich).noise_variance == 0
    middle = np.tile(np.eye(3), (60, 1))
    seen = [m.release(middle, rng=np.random.default_rng(i)).noise_variance for i in range(200)]
    assert min(seen) + 60 >= m.gamma  # fails with probability 200 P(z > tau) < 1e-4 at most
    assert np.mean(seen) == pytest.approx(m.reach - 60, abs=6 * m.eta / math.sqrt(200))


def test_adaptive_scales_with_the_row_bound():
    """In units of C^2 nothing depends on C: the erratum of the published algorithm."""
    small, large = _adaptive(), _adaptive(row_bound=10.0)
    assert large.gamma == pytest.approx(small.gamma, rel=1e-6)
    x = np.tile(np.eye(3), (60, 1))
    one = small.release(x, rng=np.random.default_rng(0)).noise_variance
    ten = large.release(10 * x, rng=np.random.default_rng(0)).noise_variance
    assert ten == pytest.approx(100 * one, rel=1e-5)


def test_adaptive_choice_is_near_the_best():
    """No eta or share on a grid does 1% better."""
    m = _adaptive()
    for mu in (0.12, 0.15, 0.18):
        for share in (0.1, 0.25, 0.4):
            tau = -float(special.ndtri(share * 1e-6))
            gamma = MixingLoss.calibrate(100, 1.0, (1 - share) * 1e-6, mu=mu, tolerance=1e-5).gamma
            assert m.reach < 1.01 * (gamma + tau / mu)


def test_normals_are_accurate_in_the_tails():
    """Words chosen by hand: the float normal is within 2^-43 of the real one."""

    class Fixed:
        secure = False

        def __init__(self, *words):
            self.left = list(words)

        def words(self, n):
            return np.array([self.left.pop(0) for _ in range(n)], dtype=np.uint64)

    for word, more in ((2**62, 0), (3, 12345), (2**30 + 7, 2**63), (2**43, 99), (2**45, 0)):
        found = float(normals(1, Fixed(word, more))[0])
        with mp.workdps(40):
            u = (mp.mpf(word) + (mp.mpf(more) + 0.5) / 2**64) / 2**64 if word < 2**44 else (mp.mpf(word) + 0.5) / 2**64
            truth = mp.sqrt(2) * mp.erfinv(1 - 2 * u)
            assert abs(abs(found) - truth) < mp.mpf(2) ** -43


def test_gram_factor_and_eigenvalue_errors_are_within_their_bounds():
    rng = np.random.default_rng(2)
    for n, d, spread in ((700, 3, 1.0), (300, 6, 1e-6), (20, 4, 1e-12)):
        x = rng.normal(size=(n, d)) @ np.diag(np.geomspace(1, spread, d)) @ rng.normal(size=(d, d))
        exact = [
            [sum(Fraction(a) * Fraction(b) for a, b in zip(x[:, i], x[:, j], strict=True)) for j in range(d)]
            for i in range(d)
        ]
        found = gram(x)
        trace = float(sum(exact[i][i] for i in range(d)))
        error = math.sqrt(sum(float(Fraction(found[i, j]) - exact[i][j]) ** 2 for i in range(d) for j in range(d)))
        widest = float(np.square(x).max(axis=0).sum())
        assert error <= gram_error(n, d) * widest
        with mp.workdps(60):
            precise = mp.matrix(d, d)
            for i in range(d):
                for j in range(d):
                    precise[i, j] = mp.mpf(found[i, j])
            least = min(mp.eigsy(precise, eigvals_only=True))
            assert abs(least_eigenvalue(found) - max(least, 0)) <= eigenvalue_error(d) * trace
        shifted = found + 1e-3 * trace * np.eye(d)
        root = factor(shifted)
        back = [
            [sum(Fraction(root[m, i]) * Fraction(root[m, j]) for m in range(d)) for j in range(d)] for i in range(d)
        ]
        wrong = math.sqrt(sum(float(back[i][j] - Fraction(shifted[i, j])) ** 2 for i in range(d) for j in range(d)))
        assert wrong <= factor_error(d) * float(np.trace(shifted))


def test_a_covariance_that_is_not_positive_is_factored_all_the_same():
    """Only where the released eigenvalue was too large: nothing is promised then, and nothing crashes."""
    root = factor(np.diag([1.0, -1e-3]))
    np.testing.assert_allclose(root.T @ root, np.diag([1.0, 0.0]), atol=1e-12)


def test_sizes_enter_the_certificate():
    plain = Mixing.calibrate(**CLAIM)
    sized = Mixing.calibrate(**CLAIM, records=10**6, dim=100)
    assert sized.gamma > plain.gamma
    assert sized.certificate.verdict == "certified"
    assert rounding(100, 36.5, 1000, 5) < 2e-10 < rounding(100, 36.5, 10**6, 100) < 1e-7
    with pytest.raises(ValueError, match="rounding of float64"):
        Mixing.calibrate(**{**CLAIM, "delta": 1e-12}, records=10**8, dim=500)
    tight = Mixing.calibrate(**{**CLAIM, "delta": 1e-13})
    with pytest.raises(ValueError, match="records= and dim="):
        tight.release(_rows(500, 5))
    released = plain.release(_rows(200, 4))
    assert released.certificate.secure
    assert released.certificate.bracket.upper > plain.certificate.bracket.upper
    with pytest.raises(ValueError, match="at most 10 rows"):
        Mixing.calibrate(**CLAIM, records=10, dim=2).release(np.ones((11, 2)))


def test_adaptive_with_sizes_is_certified():
    assert AdaptiveMixing.calibrate(**CLAIM, records=10**5, dim=20).certificate.verdict == "certified"


def test_a_false_claim_is_not_released():
    m = Mixing(rows=100, row_bound=1.0, gamma=20.0, epsilon=1.0, delta=1e-6)
    assert m.certificate.verdict == "refuted"
    with pytest.raises(RefutedError):
        m.release(_rows(10, 2))
    assert m.release(_rows(10, 2), unsafe=True).unsafe


def test_what_is_only_known_from_above_is_never_refuted():
    m = AdaptiveMixing(rows=100, row_bound=1.0, gamma=30.0, eta=6.0, tau=5.0, epsilon=1.0, delta=1e-6)
    assert m.certificate.verdict == "undecided"
    single = Mixing(rows=100, row_bound=1.0, gamma=30.0, epsilon=1.0, delta=1e-6, adjacency="replace", records=9, dim=1)
    assert single.certificate.bracket.lower == 0
    assert single.loss.base.renyi(2.0).lower == 0


def test_json_and_certify():
    m = Mixing.calibrate(**CLAIM)
    again = Mixing.from_json(json.loads(json.dumps(m.to_json())))
    assert again == m
    assert sdp.certify(m, epsilon=1.0, delta=1e-6).verdict == "certified"
    assert m.certificate.adjacency == "zero-out"
    for one in (m, _adaptive(adjacency="replace")):
        stored = sdp.Certificate.from_json(json.loads(json.dumps(one.release(np.eye(3)).certificate.to_json())))
        assert sdp.verify(stored).verdict == "certified"
        assert sdp.certify(one, epsilon=1.0, delta=1e-6).adjacency == one.adjacency
    for broken in ({}, {"kind": "mixing"}, {**m.to_json(), "schema": 9}, None):
        with pytest.raises(ValueError, match=r"mechanism|mixing"):
            Mixing.from_json(broken)


@pytest.mark.parametrize(
    ("change", "error", "word"),
    [
        ({"rows": 0}, ValueError, "rows"),
        ({"rows": 2.5}, TypeError, "rows"),
        ({"row_bound": 0.0}, ValueError, "row_bound"),
        ({"row_bound": math.nan}, ValueError, "row_bound"),
        ({"row_bound": 1e200}, ValueError, "row_bound"),
        ({"epsilon": 0.0}, ValueError, "epsilon"),
        ({"epsilon": math.inf}, ValueError, "epsilon"),
        ({"delta": 0.0}, ValueError, "delta"),
        ({"delta": 1.0}, ValueError, "delta"),
        ({"adjacency": "add-remove"}, ValueError, "adjacency"),
        ({"adjacency": None}, ValueError, "adjacency"),
        ({"records": 10}, ValueError, "records"),
        ({"records": 0, "dim": 3}, ValueError, "records"),
    ],
)
@pytest.mark.parametrize("kind", [Mixing, AdaptiveMixing])
def test_bad_calibrations(kind, change, error, word):
    with pytest.raises(error, match=word):
        kind.calibrate(**{**CLAIM, **change})


@pytest.mark.parametrize(
    ("x", "error"),
    [
        (np.ones(3), ValueError),
        (np.ones((0, 3)), ValueError),
        (np.ones((3, 0)), ValueError),
        (np.ones((2, 2, 2)), ValueError),
        ([[1.0, math.nan]], ValueError),
        ([[math.inf, 1.0]], ValueError),
        ([["a", "b"]], TypeError),
        (np.ones((2, 2), dtype=complex), TypeError),
        (np.ones((2, 2), dtype=bool), TypeError),
    ],
)
def test_bad_data(x, error):
    for m in (Mixing.calibrate(**CLAIM), _adaptive()):
        with pytest.raises(error):
            m.release(x)


@pytest.mark.parametrize("gamma", [1.0, 0.5, math.nan, -3.0, 1e95])
def test_bad_gamma(gamma):
    with pytest.raises(ValueError, match="gamma"):
        Mixing(rows=10, row_bound=1.0, gamma=gamma, epsilon=1.0, delta=1e-6)
    with pytest.raises(ValueError, match="gamma"):
        AdaptiveMixing(rows=10, row_bound=1.0, gamma=gamma, eta=1.0, tau=5.0, epsilon=1.0, delta=1e-6)


def test_seeds_are_refused():
    with pytest.raises(TypeError, match="rng"):
        Mixing.calibrate(**CLAIM).release(np.ones((2, 2)), rng=3)


@pytest.mark.parametrize("off", [0.0, 1e-3, -1e-3, 0.5], ids=["right", "too large", "too small", "far off"])
def test_a_wrong_eigenvalue_is_noticed_and_found_by_bisection(off, monkeypatch):
    rng = np.random.default_rng(5)
    basis = np.linalg.qr(rng.normal(size=(30, 30)))[0]
    matrix = basis @ np.diag(np.linspace(0.25, 3.0, 30)) @ basis.T
    real = scipy.linalg.eigvalsh
    monkeypatch.setattr(scipy.linalg, "eigvalsh", lambda *a, **k: real(*a, **k) + off)
    assert abs(least_eigenvalue(matrix) - 0.25) <= eigenvalue_error(30) * np.trace(matrix)
