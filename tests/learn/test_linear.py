"""LinearRegression as an estimator: conventions, odd data, defined behaviour."""

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.learn.conventions import checked

import shapedp as sdp
from shapedp.learn import LinearRegression
from shapedp.learn.solvers.linear import SOLVERS

CLAIM = {"epsilon": 1.0, "delta": 1e-5, "feature_bound": 1.0, "target_bound": 1.0}
STEPPED = ("refined", "hessian-mixing", "hessian-mixing-paper", "boosted", "descent")
CERTIFIED = ("auto", "suffstats", "mixing", "adassp", "adassp-joint", "sheffet", "sheffet-rdp", *STEPPED)
EXPECTED_FAILED = {
    "check_supervised_y_no_nan": "a record with a NaN or an infinity counts as zeros: an error tells of one person",
    "check_all_zero_sample_weights_error": "weights are private as their records are: an error tells of them",
    "check_sample_weight_equivalence_on_dense_data": "the number of records is public, and noise follows from it",
    "check_sample_weight_equivalence_on_sparse_data": "weights are for dense records",
}


def made(n=2000, d=4, noise=0.05, seed=0):
    """Rows within the unit ball, |y| <= 1, and the true weights."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, d)) / math.sqrt(d)
    theta = rng.uniform(-1, 1, d) * 0.6
    return x, np.clip(x @ theta + 0.2 + noise * rng.standard_normal(n), -1, 1), theta


def fitted(x, y, **options):
    return LinearRegression(**{**CLAIM, "random_state": 0, **options}).fit(x, y)


@parametrize_with_checks(
    [
        LinearRegression(
            epsilon=5.0,
            delta=1e-5,
            feature_bound=100.0,
            target_bound=100.0,
            weight_bound=4.0,
            random_state=0,
            solver=solver,
        )
        for solver in ("auto", "mixing", "adassp-joint")
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_conventions_of_scikit_learn(estimator, check):
    checked(estimator, check, EXPECTED_FAILED)


@pytest.mark.parametrize("solver", CERTIFIED)
@pytest.mark.parametrize("intercept", [True, False])
def test_every_certified_solver_fits_and_its_certificate_is_recomputed(solver, intercept):
    x, y, _ = made()
    found = fitted(x, y, solver=solver, fit_intercept=intercept)
    assert found.coef_.shape == (4,)
    assert np.isfinite(found.coef_).all()
    assert math.isfinite(found.intercept_)
    assert (found.intercept_ == 0) == (not intercept)
    assert found.privacy_.verdict == "certified"
    assert found.privacy_.adjacency == "zero-out"
    assert found.privacy_.secure is False  # random_state
    assert sdp.verify(found.privacy_).verdict == "certified"
    again = sdp.Certificate.from_json(found.privacy_.to_json())
    assert sdp.verify(again).verdict == "certified"


@pytest.mark.parametrize("solver", ["auto", "mixing", "adassp", "adassp-joint"])
def test_replacement_costs_noise(solver):
    x, y, _ = made()
    replace = fitted(x, y, solver=solver, adjacency="replace")
    assert replace.privacy_.adjacency == "replace"
    assert replace.privacy_.verdict in ("certified", "refuted")
    assert sdp.verify(replace.privacy_).adjacency == "replace"


@pytest.mark.parametrize("solver", ["mixing-paper", "sheffet", "sheffet-rdp"])
def test_published_sketches_know_zero_out_only(solver):
    x, y, _ = made(n=50)
    with pytest.raises(ValueError, match="is for adjacency zero-out"):
        fitted(x, y, solver=solver, adjacency="replace", unsafe=True)


def test_the_published_mixing_is_refused_where_it_is_refuted_and_reproduced_with_unsafe():
    x, y, _ = made()
    options = {"solver": "mixing-paper", "feature_bound": 10.0, "target_bound": 10.0, "sketch_rows": 1000}
    with pytest.raises(sdp.RefutedError):
        fitted(10 * x, 10 * y, **options)
    found = fitted(10 * x, 10 * y, unsafe=True, **options)
    assert found.privacy_.verdict == "refuted"
    assert np.isfinite(found.coef_).all()
    assert sdp.verify(found.privacy_).verdict == "refuted"


def test_nothing_is_set_where_the_claim_is_refused():
    x, y, _ = made()
    estimator = LinearRegression(**{**CLAIM, "feature_bound": 10.0}, solver="mixing-paper", sketch_rows=1000)
    with pytest.raises(sdp.NotCertifiedError):
        estimator.fit(x, y)
    assert not hasattr(estimator, "coef_")
    assert not hasattr(estimator, "privacy_")


@pytest.mark.parametrize("solver", ["auto", "mixing", "adassp-joint"])
def test_many_records_give_the_weights_and_their_standard_errors(solver):
    x, y, theta = made(n=200_000)
    found = fitted(x, y, solver=solver, epsilon=3.0)
    assert found.score(x, y) > 0.9
    np.testing.assert_allclose(found.coef_, theta, atol=0.02)
    assert abs(found.intercept_ - 0.2) < 0.01
    assert hasattr(found, "coef_standard_error_") == (solver != "adassp-joint")


def test_a_seed_repeats_a_simulation_and_secure_randomness_does_not():
    x, y, _ = made(n=100)
    assert np.array_equal(fitted(x, y).coef_, fitted(x, y).coef_)
    one, two = (LinearRegression(**CLAIM).fit(x, y) for _ in range(2))
    assert not np.array_equal(one.coef_, two.coef_)
    assert one.privacy_.secure is True


def test_pipelines_clones_and_cross_validation():
    x, y, _ = made(n=600)
    estimator = LinearRegression(**CLAIM, random_state=1)
    assert clone(estimator).get_params() == estimator.get_params()
    pipeline = make_pipeline(FunctionTransformer(lambda rows: rows / 2), clone(estimator))
    assert pipeline.fit(x, y).predict(x).shape == (600,)
    assert len(cross_val_score(estimator, x, y, cv=3)) == 3


def test_dense_sparse_and_single_precision_agree():
    x, y, _ = made(n=500)
    x32 = x.astype(np.float32)
    dense, single = fitted(x32.astype(np.float64), y), fitted(x32, y)
    assert np.array_equal(dense.coef_, single.coef_)
    assert np.array_equal(fitted(sparse.csr_array(x), y).coef_, fitted(x, y).coef_)
    assert fitted(sparse.csr_array(x), y).predict(sparse.csr_array(x)).shape == (500,)


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("epsilon", 0.0, ValueError),
        ("epsilon", math.nan, ValueError),
        ("delta", 1.0, ValueError),
        ("delta", 0.0, ValueError),
        ("feature_bound", -1.0, ValueError),
        ("feature_bound", math.inf, ValueError),
        ("feature_bound", 1e80, ValueError),
        ("target_bound", 0.0, ValueError),
        ("target_bound", None, TypeError),
        ("solver", "ols", ValueError),
        ("adjacency", "add-remove", ValueError),
        ("sketch_rows", 0, ValueError),
        ("sketch_rows", 10.0, TypeError),
    ],
)
def test_parameters_are_checked_by_name(name, value, error):
    x, y, _ = made(n=20)
    with pytest.raises(error, match=name):
        fitted(x, y, **{name: value})


def odd_data():
    x, y, _ = made(n=200)
    spoilt, target = x.copy(), y.copy()
    spoilt[3, 1], spoilt[5, 0], target[7], target[8] = np.nan, np.inf, -np.inf, np.nan
    return {
        "rank-deficient": (np.column_stack([x, x[:, 0], x[:, :2].sum(1)]) / 4, y),
        "constant columns": (np.column_stack([x, np.ones(200), np.zeros(200)]) / 4, y),
        "constant target": (x, np.full(200, 0.5)),
        "duplicated": (np.repeat(x[:1], 200, axis=0), np.repeat(y[:1], 200)),
        "one row": (x[:1], y[:1]),
        "fewer rows than columns": (np.tile(x[:3], 10) / 4, y[:3]),
        "all zero": (np.zeros((200, 4)), np.zeros(200)),
        "not finite": (spoilt, target),
        "nothing finite": (np.full((200, 4), np.nan), y),
        "out of bound": (1e6 * x, 1e6 * y),
        "huge": (np.sign(x) * 1e300, np.sign(y) * 1e300),
        "tiny": (x * 1e-300, y * 1e-300),
        "one column": (x[:, :1], y),
        "huge integers": (np.sign(x).astype(np.int64) * 2**62, np.sign(y).astype(np.int64) * (2**62 + 1)),
        "objects": (x, np.array([*y[:-2], None, 10**400], dtype=object)),
    }


@pytest.mark.parametrize("solver", [*CERTIFIED, "mixing-paper"])
@pytest.mark.parametrize("kind", odd_data())
def test_odd_data_have_defined_answers(kind, solver):
    x, y = odd_data()[kind]
    found = fitted(x, y, solver=solver, unsafe=solver == "mixing-paper")
    assert np.isfinite(found.coef_).all()
    assert math.isfinite(found.intercept_)
    assert np.isfinite(found.predict(np.zeros((2, x.shape[1])))).all()
    errors = getattr(found, "coef_standard_error_", np.zeros(1))
    assert np.isfinite(errors).all()
    assert (errors >= 0).all()


def test_a_record_that_is_not_finite_counts_as_none():
    x, y, _ = made(n=300)
    spoilt, target = x.copy(), y.copy()
    spoilt[17, 2], target[17] = np.nan, 0.3
    other = x.copy()
    other[17] = np.inf
    assert np.array_equal(fitted(spoilt, target).coef_, fitted(other, y).coef_)


def test_data_beyond_the_bounds_are_clipped_to_them():
    x, y, _ = made(n=300)
    far, high = x.copy(), y.copy()
    far[4] = np.array([30.0, 0.0, 0.0, 0.0])
    high[4] = -7.0
    edge, low = x.copy(), y.copy()
    edge[4], low[4] = np.array([1.0, 0.0, 0.0, 0.0]), -1.0
    np.testing.assert_allclose(fitted(far, high).coef_, fitted(edge, low).coef_, rtol=1e-6)


def test_units_do_not_matter():
    """Powers of two scale everything exactly."""
    x, y, _ = made(n=500)
    plain = fitted(x, y)
    other = fitted(8 * x, y / 4, feature_bound=8.0, target_bound=0.25)
    np.testing.assert_allclose(other.coef_ * 32, plain.coef_, rtol=1e-6)
    np.testing.assert_allclose(other.intercept_ * 4, plain.intercept_, rtol=1e-6)


@pytest.mark.parametrize("solver", [*CERTIFIED, "mixing-paper"])
@pytest.mark.parametrize("bounds", [(1e39, 1e-39), (1e-39, 1e39), (1e39, 1e39), (1e-39, 1e-39)])
def test_extreme_bounds_and_few_sketch_rows(solver, bounds):
    x, y, _ = made(n=30)
    options = {"feature_bound": bounds[0], "target_bound": bounds[1], "sketch_rows": 2, "solver": solver}
    assert np.isfinite(fitted(x * bounds[0], y * bounds[1], **options, unsafe=True).coef_).all()


@pytest.mark.parametrize("solver", [*CERTIFIED, "mixing-paper"])
def test_pure_privacy_is_refused_before_data_are_read(solver):
    x, y, _ = made(n=20)
    with pytest.raises(ValueError, match="delta"):
        fitted(x, y, delta=0.0, solver=solver, unsafe=True)


def test_published_adassp_is_refuted_for_large_epsilon():
    """Its Gaussian formula is proved for small epsilon only; the joint accounting holds for any."""
    x, y, _ = made(n=50)
    with pytest.raises(sdp.RefutedError):
        fitted(x, y, epsilon=50.0, solver="adassp")
    assert fitted(x, y, epsilon=50.0, solver="adassp-joint").privacy_.verdict == "certified"


def test_all_solvers_are_reached_by_name():
    assert {*CERTIFIED, "mixing-paper"} == {"auto", *SOLVERS}
