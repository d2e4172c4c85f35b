"""PCA: sensitivities of each release, conventions, audits, odd data."""

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn import decomposition
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import shapedp as sdp
from shapedp import audit
from shapedp.learn import PCA, Lasso, subspace_error
from shapedp.learn.solvers.covariance import SecondMoments, principal
from shapedp.sensitivity.symmetric import upper_triangle

CLAIM = {"epsilon": 1.0, "delta": 1e-5, "feature_bound": 1.0}
RELEASES = ("isometric", "iid", "clipped")


def flat(n=4000, d=5, seed=0):
    """Rows in the unit ball, most of their variance along two axes, away from 0."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, d)) * np.array([0.3, 0.2, *[0.02] * (d - 2)]) + 0.1
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1.0)


@parametrize_with_checks([PCA(epsilon=1e6, delta=1e-5, feature_bound=20.0, random_state=0)])
@pytest.mark.filterwarnings("ignore")
def test_conventions_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_one_record_changes_no_more_than_the_set_says(release, adjacency, noise):
    rng = np.random.default_rng(0)
    moments = SecondMoments(4, 2.0, adjacency, release, noise)
    largest = 0.0
    for k in range(400):
        pair = rng.standard_normal((2, 4)) if k % 2 else np.eye(4)[rng.integers(4, size=2)]
        pair *= 2.0 / np.linalg.norm(pair, axis=1, keepdims=True)
        if adjacency == "zero-out":
            pair[1] = 0
        if release == "clipped":
            first, second = (moments.clipped([row[None]]) for row in pair)
        else:
            first, second = (upper_triangle(np.outer(row, row)) for row in pair)
        reach = audit.gauge(moments.sensitivity(), first - second)
        largest = max(largest, reach)
        assert reach <= 1 + 1e-9
    assert largest > (0.4 if (release, noise) == ("iid", "laplace") else 0.7)


def test_the_isometric_release_halves_the_noise_of_the_matrix():
    order = 100
    ball, isometric = (SecondMoments(order, 1.0, "zero-out", kind).sensitivity() for kind in ("iid", "isometric"))
    twice = np.where(np.equal(*np.triu_indices(order)), 1.0, 2.0)  # entries off the diagonal count twice
    energies = [
        float(twice @ np.broadcast_to(sdp.calibrate("gaussian", one, epsilon=1.0, delta=1e-6).law.variances(), 5050))
        for one in (ball, isometric)
    ]
    assert energies[1] / energies[0] == pytest.approx((order + 1) / (2 * order), rel=1e-9)


@pytest.mark.parametrize(("noise", "delta"), [("gaussian", 1e-5), ("laplace", 0.0)])
@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("center", [True, False])
def test_certificates_are_recomputed(noise, delta, release, center):
    found = PCA(2, **{**CLAIM, "delta": delta}, noise=noise, release=release, center=center, random_state=0).fit(
        flat(300)
    )
    assert found.privacy_.verdict == "certified"
    assert sdp.verify(sdp.Certificate.from_json(found.privacy_.to_json())).verdict == "certified"
    assert (found.mean_ == 0).all() == (not center)


def test_without_noise_the_components_are_those_of_scikit_learn():
    x = flat()
    found = PCA(2, **{**CLAIM, "epsilon": 1e9}, random_state=0).fit(x)
    reference = decomposition.PCA(2).fit(x)
    assert subspace_error(found.components_, reference.components_) < 1e-3
    np.testing.assert_allclose(found.explained_variance_, reference.explained_variance_, rtol=1e-2)
    np.testing.assert_allclose(found.mean_, x.mean(axis=0), atol=1e-4)
    back = found.inverse_transform(found.transform(x))
    np.testing.assert_allclose(back, reference.inverse_transform(reference.transform(x)), atol=1e-2)


def test_components_are_orthonormal_and_a_share_of_the_variance_chooses_their_number():
    x = flat(20000)
    found = PCA(0.8, **{**CLAIM, "epsilon": 50.0}, random_state=0).fit(x)
    assert found.n_components_ == 2
    assert found.explained_variance_ratio_.sum() >= 0.8
    np.testing.assert_allclose(found.components_ @ found.components_.T, np.eye(2), atol=1e-12)


def test_isometric_noise_recovers_more_than_the_others():
    """20 trials each of a 3-dimensional subspace of R^20; means are 5 standard errors apart."""
    rng = np.random.default_rng(0)
    errors = {release: [] for release in RELEASES}
    for _ in range(20):
        basis = np.linalg.qr(rng.standard_normal((20, 3)))[0].T
        inside = rng.standard_normal((300, 3))
        rows = inside / np.linalg.norm(inside, axis=1, keepdims=True) @ basis
        for release, found in errors.items():
            model = PCA(3, **CLAIM, center=False, release=release, random_state=rng).fit(rows)
            found.append(subspace_error(model.components_, basis))
    for other in ("iid", "clipped"):
        gap = np.array(errors[other]) - np.array(errors["isometric"])
        assert gap.mean() > 5 * gap.std() / math.sqrt(20)


def pairs(count, adjacency, seed):
    rng = np.random.default_rng(seed)
    for k in range(count):
        n, d = int(rng.integers(1, 40)), int(rng.integers(1, 5))
        x = rng.uniform(-1, 1, (n, d)) * rng.choice([0.01, 0.5, 20.0])
        at = rng.integers(n)
        x[at] = rng.standard_normal(d) * 10.0 ** rng.choice([-300, 0, 3, 150])
        if k % 5 == 0:
            x[at, rng.integers(d)] = math.nan
        other = x.copy()
        other[at] = 0.0 if adjacency == "zero-out" else -rng.standard_normal(d) * 10.0 ** rng.choice([0, 3, 150])
        yield x, other


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("center", [True, False])
def test_replay_finds_no_leak(release, adjacency, center):
    model = PCA(1, **CLAIM, release=release, adjacency=adjacency, center=center, random_state=0)
    found = audit.replay(model.fit, pairs(25, adjacency, 1), adjacency=adjacency)
    assert found.passed, found.explain()
    assert found.largest > 0.5


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", ["rank one", "constant", "one row", "wide", "zeros", "nan", "out of bounds", "huge"])
def test_odd_data_fit_and_stay_finite(release, name):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (30, 3))
    cases = {
        "rank one": np.outer(x[:, 0], [1.0, 2.0, 3.0]),
        "constant": np.ones((30, 3)),
        "one row": x[:1],
        "wide": rng.uniform(-1, 1, (3, 30)),
        "zeros": np.zeros((30, 3)),
        "nan": np.where(x > 0.9, math.nan, x),
        "out of bounds": 1e3 * x,
        "huge": 1e300 * x,
    }
    found = PCA(2, **CLAIM, release=release, random_state=0).fit(cases[name])
    assert np.isfinite(found.components_).all()
    assert np.isfinite(found.explained_variance_).all()
    np.testing.assert_allclose(found.components_ @ found.components_.T, np.eye(2), atol=1e-9)


def test_sparse_rows_and_pipelines():
    x = flat(500)
    x[np.abs(x) < 0.05] = 0
    dense, thin = (PCA(2, **CLAIM, random_state=0).fit(rows) for rows in (x, sparse.csr_array(x)))
    np.testing.assert_array_equal(dense.components_, thin.components_)
    np.testing.assert_allclose(thin.transform(sparse.csr_array(x)), dense.transform(x), atol=1e-12)
    options = {"epsilon": 5.0, "delta": 1e-5, "feature_bounds": 1.0, "target_bound": 1.0, "alpha": 1e-4}
    line = make_pipeline(PCA(2, **CLAIM, random_state=0), Lasso(**options, random_state=0))
    assert clone(line).fit(x, x[:, 0]).predict(x).shape == (500,)
    assert list(dense.get_feature_names_out()) == ["pca0", "pca1"]


def test_refusals():
    x = flat(20)
    for options, match in [
        ({"n_components": 6}, "n_components"),
        ({"n_components": 1.5}, "share"),
        ({"delta": 0.0}, "laplace"),
        ({"noise": "laplace"}, "delta = 0"),
        ({"feature_bound": math.nan}, "feature_bound"),
        ({"release": "all"}, "release"),
        ({"share": 0.0}, "share"),
    ]:
        with pytest.raises(ValueError, match=match):
            PCA(**{**CLAIM, **options}, random_state=0).fit(x)
    with pytest.raises(TypeError, match="sensitivity"):
        PCA(**CLAIM).fit(x, sample_weight=np.ones(20))
    with pytest.raises(ValueError, match="orthonormal"):
        subspace_error(2 * np.eye(2), np.eye(2))
    with pytest.raises(ValueError, match="columns"):
        subspace_error(np.eye(2), np.eye(3))


def test_signs_of_components_do_not_depend_on_rounding():
    values, rows = principal(np.diag([1.0, 3.0, 2.0]))
    np.testing.assert_allclose(values, [3.0, 2.0, 1.0])
    np.testing.assert_array_equal(rows, [[0, 1, 0], [0, 0, 1], [1, 0, 0]])


def test_more_records_than_clipped_sums_hold_exactly_are_refused():
    """2^23 entries of 2^30 steps fill the 53 bits of a float; nothing is read before the error."""
    rows = np.broadcast_to(np.array([[0.5]]), (2**23 + 1, 1))
    with pytest.raises(ValueError, match=r"at most 2\^23 records"):
        PCA(epsilon=1.0, delta=1e-6, feature_bound=1.0, release="clipped").fit(rows)
