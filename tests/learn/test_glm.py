"""Poisson and Gamma regression: losses, the bound against exact densities, replays, conventions, odd records."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.learn.conventions import checked

import shapedp as sdp
from shapedp import audit
from shapedp.learn import GammaRegressor, PoissonRegressor, PublicScaler, certificate_of, make_pipeline
from shapedp.learn.losses import BASE, Gamma, Poisson
from shapedp.learn.solvers.erm import objective
from shapedp.learn.solvers.erm.problem import Problem
from shapedp.mechanisms import mechanism_from_json
from shapedp.noise import Gaussian

KINDS = [PoissonRegressor, GammaRegressor]
LOSSES = [Poisson(1.0), Poisson(0.3), Poisson(2.0**-10), Gamma(1.0), Gamma(3.0), Gamma(100.0)]
SCORES = np.linspace(-12, 12, 9601)
CLAIM = {"epsilon": 1.0, "delta": 1e-5, "feature_bound": 1.0, "target_bound": 20.0}

pytestmark = pytest.mark.filterwarnings("ignore::shapedp.learn.RepeatedFitsWarning")


def targets(loss):
    return [1.0, 0.5, 0.04, 2.0**-20, *([0.0] if isinstance(loss, Poisson) else [])]


def made(kind, n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 3)) / math.sqrt(3)
    mean = np.exp(x @ [1.0, -0.5, 0.0] + 0.5)
    return x, rng.poisson(mean) if kind is PoissonRegressor else mean * rng.gamma(2.0, 0.5, n), mean


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_derivatives_bounds_and_convexity(loss):
    h, closest = 1e-6, 0.0
    for target in targets(loss):
        slope = (loss.value_at(SCORES + h, target) - loss.value_at(SCORES - h, target)) / (2 * h)
        found = loss.slope_at(SCORES, target)
        assert np.abs(slope - found).max() < 1e-5 / min(loss.clip, 1)
        assert np.abs(found).max() <= 1
        assert (np.diff(found) >= -1e-12).all()  # convex
        bend = loss.curvature_at(SCORES, target)
        steps = np.diff(found) / np.diff(SCORES)
        assert steps.max() <= loss.curvature_bound * (1 + 1e-9)
        smooth = (bend[1:] > 0) & (bend[:-1] > 0)
        assert steps[smooth] == pytest.approx((bend[1:] + bend[:-1])[smooth] / 2, abs=1e-5 * loss.curvature_bound)
        closest = max(closest, float(bend.max()) / loss.curvature_bound)
    assert 0.9 < closest <= 1


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_slope_error_bounds_the_rounding(loss):
    rng = np.random.default_rng(0)
    with mpmath.workdps(50):
        for target in targets(loss):
            for score in rng.uniform(-16, 8, 300):
                mean, y = mpmath.exp(mpmath.mpf(float(score)) - BASE), mpmath.mpf(target)
                exact = min(mean, 1) - y if isinstance(loss, Poisson) else 1 - y / mean
                exact = min(max(exact / mpmath.mpf(loss.clip), -1), 1)
                moved = loss.curvature_bound * 2**-53 * 18  # of the score itself, which `gradient_error` counts apart
                assert abs(exact - float(loss.slope_at(np.array(score), target))) <= loss.slope_error + moved


def density(loss, records, ridge, sigma, w):
    """Of the minimum of sum loss(s x w, y) + ridge w^2/2 + b w on the line, b normal."""
    x, y = records[:, :1], records[:, 1:]
    slope = (x * loss.slope_at(x * w, y)).sum(0) + ridge * w
    bend = (x**2 * loss.curvature_at(x * w, y)).sum(0) + ridge
    return np.exp(-0.5 * (slope / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi)) * bend


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("loss", [Poisson(1.0), Poisson(0.3), Gamma(1.0), Gamma(3.0)], ids=str)
def test_exact_densities_on_the_line_stay_below_the_bound(loss, adjacency):
    """Every epsilon, both directions, 60 random pairs of data sets, by quadrature over exact densities."""
    rng, closest = np.random.default_rng(0), 0.0
    for _ in range(60):
        n, sigma, ridge = int(rng.integers(1, 5)), float(rng.uniform(0.5, 4)), float(10 ** rng.uniform(-0.5, 2))
        first = np.column_stack([rng.choice([-1.0, 1.0], n) * rng.random(n) ** 0.2, rng.choice([1.0, 0.3, 0.01], n)])
        second = first.copy()
        second[0] = (0.0, 1.0) if adjacency == "zero-out" else (rng.choice([-1.0, 1.0]), rng.choice([1.0, 0.01]))
        one = Problem(loss, n, 1, 1, 1.0, ridge / n, 1.0, 1e-2, adjacency)
        bound = objective.perturbation(one, Gaussian(sigma, 1)).loss
        w = np.linspace(-12 * sigma / ridge - 8, 12 * sigma / ridge + 8, 60_001)
        p, q = (density(loss, data, ridge, sigma, w) for data in (first, second))
        assert abs(integrate.trapezoid(p, w) - 1) < 2e-3
        for epsilon in (0.0, 0.2, 0.5, 1.0, 2.0):
            most = bound.delta(epsilon).upper
            for a, b in ((p, q), (q, p)):
                exact = float(integrate.trapezoid(np.maximum(a - math.exp(epsilon) * b, 0), w))
                assert exact <= most + 1e-3  # the quadrature's error
                closest = max(closest, exact / max(most, 1e-2))
    assert closest > 0.4


@pytest.mark.parametrize(("adjacency", "reach", "corners"), [("zero-out", 1.0, 2), ("replace", 2.0, 4)])
def test_signed_slopes_lose_at_either_end(adjacency, reach, corners):
    """max(0, L_v, L_-v) of one normal draw, by quadrature: more than one end alone, less than the bound."""
    sigma = 3.0
    law, after = Gaussian(sigma, 1), Gaussian(1.0, 1)
    claim = {"epsilon": 1.0, "delta": 1e-5, "adjacency": adjacency}
    signed = sdp.mechanisms.ObjectivePerturbation(law, 1.0, 1, 0.0, after, 0.0, **claim, signed=True)
    assert sum(times for _, times in signed.vertices) == pytest.approx(corners)
    for epsilon in (0.5, 1.0, 1.5):

        def lost(b, epsilon=epsilon):
            most = (2 * reach * abs(b) + reach**2) / (2 * sigma**2)
            return max(1 - math.exp(epsilon - most), 0.0) * stats.norm.pdf(b, scale=sigma)

        exact = 2 * integrate.quad(lost, 0, 12 * sigma, epsabs=1e-13, limit=500)[0]
        one_end = sdp.privacy.GaussianLoss(reach / sigma).delta(epsilon).upper
        assert one_end * 1.5 < exact <= signed.loss.delta(epsilon).upper * (1 + 1e-9)


def test_a_certificate_from_before_signed_losses_is_still_read():
    one = Problem(Poisson(1.0), 500, 3, 1, 1.0, 0.05, 1.0, 1e-5)
    described = json.loads(json.dumps(objective.mechanism(one, "gaussian").to_json()))
    assert described["signed"] is True
    assert mechanism_from_json(described).signed
    del described["signed"]
    assert not mechanism_from_json(described).signed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
def test_learns_and_certifies(kind, adjacency):
    x, y, mean = made(kind)
    found = kind(**CLAIM, adjacency=adjacency).fit(x, y)
    assert found.privacy_.verdict == "certified"
    assert found.privacy_.secure
    assert found.privacy_.adjacency == adjacency
    assert (
        sdp.verify(sdp.Certificate.from_json(json.loads(json.dumps(found.privacy_.to_json())))).verdict == "certified"
    )
    error = np.sqrt(np.mean(np.log(found.predict(x) / mean) ** 2))
    constant = np.std(np.log(mean))
    assert error < 0.6 * constant
    assert (found.predict(100 * x) <= 20 * (1 + 1e-12)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_is_that_of_scikit_learn_where_nothing_is_cut_off(kind):
    """A huge epsilon, hardly any penalty: the weights of scikit-learn's model, within what little noise is left."""
    from sklearn import linear_model

    x, y, _ = made(kind, 5000)
    free = {"clip": 20.0 if kind is PoissonRegressor else 1000.0, "regularization": 1e-6}
    found = kind(**{**CLAIM, "epsilon": 1e4, "delta": 1e-2}, **free, random_state=0).fit(x, y)
    plain = getattr(linear_model, kind.__name__)(alpha=0, max_iter=1000, tol=1e-10).fit(x, y)
    assert found.coef_ == pytest.approx(plain.coef_, abs=0.02)
    assert found.intercept_ == pytest.approx(plain.intercept_, abs=0.02)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, -1.0])
def test_a_record_that_is_no_record_counts_as_none(kind, odd):
    x, y, _ = made(kind, 300)
    x, y = x.copy(), y.astype(float)
    blank = x.copy()
    blank[7], y[7] = math.nan, 3.0
    spoilt = y.copy()
    spoilt[7] = odd
    model = kind(**CLAIM, random_state=0)
    np.testing.assert_array_equal(clone(model).fit(x, spoilt).coef_, clone(model).fit(blank, y).coef_)
    y[7] = 0.0
    same = np.array_equal(clone(model).fit(x, y).coef_, clone(model).fit(blank, y).coef_)
    assert same is (kind is GammaRegressor)  # a count of 0 is a count


@pytest.mark.parametrize("kind", KINDS)
def test_targets_beyond_the_bound_are_clipped_and_units_do_not_matter(kind):
    x, y, _ = made(kind, 300)
    far = y.astype(float)
    far[4], edge = 1e300, far.copy()
    edge[4] = 20.0
    model = kind(**CLAIM, random_state=0)
    np.testing.assert_array_equal(clone(model).fit(x, far).coef_, clone(model).fit(x, edge).coef_)
    scaled = kind(
        **{**CLAIM, "target_bound": 20.0 * 64}, clip=64.0 if kind is PoissonRegressor else 3.0, random_state=0
    )
    plain = kind(**CLAIM, clip=1.0 if kind is PoissonRegressor else 3.0, random_state=0).fit(x, edge)
    np.testing.assert_allclose(scaled.fit(x, edge * 64).coef_, plain.coef_, rtol=1e-9)
    assert scaled.intercept_ - plain.intercept_ == pytest.approx(math.log(64))


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        (PoissonRegressor, {"clip": 0.0}, "clip"),
        (PoissonRegressor, {"clip": math.nan}, "clip"),
        (PoissonRegressor, {"clip": 1e-9}, "clip must lie between"),
        (GammaRegressor, {"clip": 0.5}, "clip must lie between 1"),
        (GammaRegressor, {"target_bound": math.inf}, "target_bound"),
        (GammaRegressor, {"regularization": -1.0}, "regularization"),
        (PoissonRegressor, {"delta": 0.0}, "delta|noise"),
    ],
)
def test_odd_parameters_are_refused(kind, given, message):
    x, y, _ = made(kind, 50)
    with pytest.raises(ValueError, match=message):
        kind(**{**CLAIM, **given}).fit(x, y)


def test_weights_are_refused_and_sparse_rows_give_the_same_model():
    from scipy import sparse

    x, y, _ = made(PoissonRegressor, 400)
    with pytest.raises(TypeError, match="sample_weight"):
        PoissonRegressor(**CLAIM).fit(x, y, sample_weight=np.ones(400))
    dense = PoissonRegressor(**CLAIM, random_state=0).fit(x, y)
    thin = PoissonRegressor(**CLAIM, random_state=0).fit(sparse.csr_array(x), y)
    assert thin.coef_ == pytest.approx(dense.coef_, abs=0.2)


def test_in_a_pipeline():
    x, y, _ = made(PoissonRegressor, 2000)
    pipeline = make_pipeline(PublicScaler(-1, 1), PoissonRegressor(**{**CLAIM, "feature_bound": 1.8})).fit(x, y)
    assert certificate_of(pipeline).verdict == "certified"


CANNOT_HOLD = {
    "check_supervised_y_no_nan": "a record with a NaN or an infinity counts as none: an error tells of one person",
}


@parametrize_with_checks(
    [kind(epsilon=300.0, delta=1e-2, feature_bound=20.0, target_bound=100.0, random_state=0) for kind in KINDS],
)
@pytest.mark.filterwarnings("ignore")
def test_conventions_of_scikit_learn(estimator, check):
    checked(estimator, check, CANNOT_HOLD)


def pairs(kind, count, adjacency, seed):
    """Random tables of 1 to 40 records, one of which is dropped or exchanged, odd ones among them."""
    rng = np.random.default_rng(seed)

    def record(d):
        x = rng.standard_normal(d) * 10.0 ** rng.choice([-300, -3, 0, 0, 3, 150])
        if rng.random() < 0.1:
            x[rng.integers(d)] = rng.choice([math.nan, math.inf, -math.inf])
        return x, rng.choice([0.0, 1.0, 20.0, 1e-300, 1e300, -3.0, math.nan, math.inf, 20.0, 20.0])

    for _ in range(count):
        n, d = int(rng.integers(1, 41)), int(rng.integers(1, 5))
        x, y = rng.uniform(-1, 1, (n, d)) * rng.choice([0.01, 0.5, 20.0]), rng.poisson(3.0, n).astype(float)
        at = rng.integers(n)
        x[at], y[at] = record(d)
        y[at] = 1.0 if not np.isfinite(x[at]).any() else y[at]  # or nothing would differ
        other, target = x.copy(), y.copy()
        other[at], target[at] = (math.nan, math.nan) if adjacency == "zero-out" else record(d)
        yield (x, y), (other, target)


def replayed(kind, adjacency, count, seed):
    model = kind(**{**CLAIM, "delta": 1e-3}, adjacency=adjacency, regularization=0.5, random_state=0)
    result = audit.replay(model, pairs(kind, count, adjacency, seed), adjacency=adjacency)
    assert result.passed, result.explain()
    assert result.pairs == count
    return result


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
def test_a_few_neighbours(kind, adjacency):
    assert 0.3 < replayed(kind, adjacency, 20, seed=1).largest <= 1 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
def test_a_thousand_neighbours(kind, adjacency):
    assert 0.4 < replayed(kind, adjacency, 1000, seed=2).largest <= 1 + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_a_bound_on_the_slope_that_is_half_of_the_truth_is_caught(kind):
    """The replay sees what a wrong reach would hide."""
    made_right = objective.perturbation

    def halved(problem, law, recipe=None):
        return replace(made_right(problem, law, recipe), reach=problem.lipschitz / 2)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(objective, "perturbation", halved)
        objective.mechanism.cache_clear()
        x, y = np.array([[1.0], [0.0]]), [20.0, 1.0]
        model = kind(**CLAIM, fit_intercept=False, clip=1.0, regularization=400.0, random_state=0)
        found = audit.replay(model, [((x, y), (np.where(x > 0, math.nan, x), y))], adjacency="zero-out")
    objective.mechanism.cache_clear()
    assert found.releases == 1
    assert "sensitivity" in {finding.what for finding in found.findings}
