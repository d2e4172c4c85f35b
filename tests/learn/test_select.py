"""PrivateSearch: what the best of a random number of runs costs, and the estimator around it."""

import json
import math
import subprocess
import sys
import warnings

import numpy as np
import pandas
import pytest
from scipy import integrate, stats
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline as SklearnPipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.learn.conventions import checked

import shapedp as sdp
import shapedp_check
from shapedp import audit
from shapedp.accounting.repeat import (
    RepeatedLoss,
    Repetition,
    draw_runs,
    expected_runs,
    gamma_for,
    gaussian_run,
)
from shapedp.learn import Lasso, LogisticRegression, PrivateSearch, PublicLabelsWarning, PublicScaler, make_pipeline
from shapedp.mechanisms import mechanism_from_json
from shapedp.privacy import GaussianLoss
from shapedp.privacy.losses.largest import LargestLoss
from shapedp.sampling import source

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
BASE = Lasso(epsilon=1.0, delta=1e-5, feature_bounds=1.0, target_bound=2.0, passes=5)
GRID = {"alpha": [1e-3, 10.0], "clip": [0.5, 1.0]}
EXPECTED_FAILED = {
    "check_supervised_y_no_nan": "a record that is not finite counts as zeros: an error would tell of one person",
}


def made(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (n, 3))
    return x, np.clip(x @ [1.0, -1.0, 0.0] + 0.1 * rng.standard_normal(n), -2, 2)


def search(**options):
    settings = {"epsilon": 2.0, "delta": 1e-5, "score_bound": 2.0, "random_state": 0, **options}
    return PrivateSearch(BASE, GRID, **settings)


@pytest.mark.parametrize("gamma", [0.5, 0.03, 1e-3])
def test_the_number_of_runs_follows_the_logarithmic_law(gamma):
    """Chi-square over k = 1..9 and the rest; false alarm 1e-6."""
    randomness = source(np.random.default_rng(1))
    drawn = np.array([draw_runs(gamma, randomness) for _ in range(6000)])
    law = stats.logser(1 - gamma)
    chances = np.append(law.pmf(np.arange(1, 10)), law.sf(9))
    seen = np.append([(drawn == k).sum() for k in range(1, 10)], (drawn > 9).sum())
    assert stats.chisquare(seen, 6000 * chances).pvalue > 1e-6
    shifted = np.append(stats.logser(1 - gamma * 1.3).pmf(np.arange(1, 10)), stats.logser(1 - gamma * 1.3).sf(9))
    assert stats.chisquare(seen, 6000 * shifted).pvalue < stats.chisquare(seen, 6000 * chances).pvalue
    assert law.mean() == pytest.approx(expected_runs(gamma), rel=1e-9)


def best_of(gamma, mu):
    """The density of the best of K runs that release N(shift, 1) and rank by it: E[K F^(K-1)] f in closed form."""
    norm = -math.log(gamma)

    def density(x, shift):
        below = stats.norm.cdf(x - shift)
        return stats.norm.pdf(x - shift) * (1 - gamma) / (norm * (1 - (1 - gamma) * below))

    return density


@pytest.mark.parametrize("gamma", [0.5, 0.05, 1e-3])
@pytest.mark.parametrize("mu", [0.2, 0.6])
def test_the_bound_covers_an_exactly_known_search(gamma, mu):
    """Runs that release one noisy number and are ranked by it: both directions stay below the bound."""
    density = best_of(gamma, mu)
    assert integrate.quad(density, -12, 14, args=(0.0,), limit=500)[0] == pytest.approx(1.0, rel=1e-6)
    loss = RepeatedLoss(GaussianLoss(mu), gamma)
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        for first, second in ((0.0, mu), (mu, 0.0)):
            exact = integrate.quad(
                lambda x, a=first, b=second, e=epsilon: max(density(x, a) - math.exp(e) * density(x, b), 0.0),
                -12,
                14,
                limit=2000,
            )[0]
            assert exact <= loss.delta(epsilon).upper
        assert loss.delta(epsilon).upper >= GaussianLoss(mu).delta(epsilon).lower


@pytest.mark.parametrize("repeats", [2.0, 10.0, 100.0])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.3, 1e-3), (5.0, 1e-8)])
def test_a_run_meets_the_claim_and_costs_less_than_that_many_runs(repeats, epsilon, delta):
    gamma = gamma_for(repeats)
    run = gaussian_run(gamma, epsilon, delta)
    assert RepeatedLoss(run, gamma).delta(epsilon).upper <= delta
    whole = GaussianLoss.calibrate(epsilon, delta).mu
    assert run.mu < whole
    if repeats >= 10:
        assert run.mu > whole / math.sqrt(repeats)


def test_search_finds_a_good_candidate_and_its_certificate_is_recomputed():
    """A run draws a bad alpha with probability 1/2: of 10 searches with 20 expected runs most see a good one."""
    x, y = made()
    searches = [search(repeats=20.0, random_state=seed).fit(x, y) for seed in range(10)]
    good = [one for one in searches if one.best_params_["alpha"] == 1e-3]
    assert len(good) >= 6
    found = good[0]
    assert found.score(x, y) > 0.8
    assert found.privacy_.verdict == "certified"
    assert found.privacy_.adjacency == "zero-out"
    assert sdp.verify(sdp.Certificate.from_json(found.privacy_.to_json())).verdict == "certified"
    assert found.run_epsilon_ < found.epsilon
    assert abs(found.best_score_ - 1) < 0.1
    shown = {name for name in vars(found) if name.endswith("_") and not name.startswith("_")}
    assert shown == {
        "best_estimator_",
        "best_params_",
        "best_score_",
        "n_features_in_",
        "privacy_",
        "run_delta_",
        "run_epsilon_",
    }


def test_a_stored_certificate_is_verified_where_learn_was_never_loaded(tmp_path):
    certificate = sdp.certify(Repetition(GaussianLoss(0.1), 0.05, "zero-out"), epsilon=1.0, delta=1e-5)
    stored = tmp_path / "certificate.json"
    stored.write_text(json.dumps(certificate.to_json()))
    script = (
        "import json, sys, shapedp; assert 'sklearn' not in sys.modules; "
        "print(shapedp.verify(shapedp.Certificate.from_json(json.load(open(sys.argv[1])))).verdict)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(stored)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "certified"


def test_replay_finds_no_leak():
    """Neighbours differ in one record, fitted or held out; the search is fixed by its seed."""
    x, y = made(60)
    pairs = []
    for at in range(0, 60, 15):
        other, target = x.copy(), y.copy()
        other[at], target[at] = 0.0, 0.0
        wild, far = x.copy(), y.copy()
        wild[at], far[at] = 1e6, -1e6
        pairs += [((x, y), (other, target)), ((wild, far), (other, target))]
    found = audit.replay(search(repeats=3.0), pairs, adjacency="zero-out", public=lambda model: model.best_score_)
    assert found.passed, found.explain()


def warned(model, x, y):
    """The categories of the warnings of a fit."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model.fit(x, y)
    return [one.category for one in seen]


def test_warnings_and_bars_of_runs_are_not_shown(capfd):
    """Each of these runs warns that its last pass still moved the weights, and asks for a bar."""
    x, y = made()
    restless = Lasso(epsilon=1.0, delta=1e-5, feature_bounds=1.0, target_bound=2.0, passes=1, step=0.3, progress=True)
    assert warned(Lasso(**{**restless.get_params(), "epsilon": 4.0, "progress": False}), x, y)
    for seed in range(3):
        found = PrivateSearch(
            restless, [{"alpha": 1e-3}], epsilon=8.0, delta=1e-5, score_bound=2.0, repeats=10.0, random_state=seed
        )
        assert warned(found, x.copy(), y) == []
    assert capfd.readouterr().err == ""


def classes_search(seed, **options):
    inner = LogisticRegression(
        epsilon=1.0, delta=1e-5, feature_bound=2.0, solver="bolt-on", noise="gaussian", passes=1, **options
    )
    return PrivateSearch(inner, [{}], epsilon=2.0, delta=1e-5, repeats=5.0, random_state=seed)


def test_labels_that_occur_are_read_once_from_all_records():
    """Whether the only record of a class is held out decides nothing: one warning, no error, the same classes."""
    x, _ = made(100)
    y = np.zeros(100, dtype=int)
    y[7] = 1
    for seed in range(8):
        found = classes_search(seed)
        assert warned(found, x.copy(), y) == [PublicLabelsWarning]
        assert found.classes_.tolist() == [0, 1]
        assert found.best_params_ == {}
    assert warned(classes_search(0, classes=[0, 1]), x.copy(), y) == []


@pytest.mark.parametrize("seed", range(6))
def test_an_odd_target_raises_nothing_wherever_it_falls(seed):
    """None in a regression, what cannot be compared in a classification: held out or not."""
    x, y = made(40)
    target, labels = y.astype(object), (y > 0).astype(object)
    for at, (number, label) in enumerate([(None, None), ("HIV+", "HIV+"), (math.nan, np.array([0, 1]))]):
        target[at], labels[at] = number, label
    search(repeats=2.0, random_state=seed).fit(x, target)
    search(repeats=2.0, random_state=seed).fit(x, target.tolist())
    found = classes_search(seed, classes=[False, True]).fit(x, labels)
    again = classes_search(seed, classes=[False, True]).fit(x, [2, 2, 2, *labels[3:]])
    assert found.best_score_ == again.best_score_


def test_the_best_estimator_carries_the_certificate_of_the_search():
    x, y = made(200)
    found = search(repeats=3.0).fit(x, y)
    assert found.best_estimator_.privacy_ == found.privacy_
    assert found.best_estimator_.privacy_.epsilon == 2.0


def test_noise_without_a_divergence_is_refused_and_the_default_solver_is_not():
    """Objective perturbation spends more than a Gaussian at orders near 1, but not at the two that decide."""
    x, y = made(200)
    labels = (y > 0).astype(int)
    base = LogisticRegression(epsilon=1.0, delta=1e-5, feature_bound=2.0, classes=[0, 1])
    radial = [{"solver": "output", "noise": "radial"}]
    with pytest.raises(ValueError, match="noise='gaussian', or another solver"):
        PrivateSearch(base, radial, epsilon=2.0, delta=1e-5, random_state=0).fit(x, labels)
    found = PrivateSearch(base, [{}], epsilon=2.0, delta=1e-5, repeats=2.0, random_state=0).fit(x, labels)
    assert found.best_estimator_.solver_ == "objective"
    assert found.privacy_.verdict == "certified"
    assert 0.2 * found.run_epsilon_ < found.best_estimator_.epsilon < found.run_epsilon_
    own = found.privacy_.subject
    run, orders = GaussianLoss(own["run"]["subject"]["mu"]), own["orders"]
    loss = objective_loss(found, x)
    assert len(orders) == 2
    for order in orders:
        assert loss.renyi(order).upper <= run.renyi(order).upper
    assert loss.renyi(1.01).upper > run.renyi(1.01).upper
    assert shapedp_check.check(found.privacy_.to_json()).verdict == "certified"
    assert sdp.verify(sdp.Certificate.from_json(found.privacy_.to_json())).verdict == "certified"


def objective_loss(found, x):
    """That of the run that was kept, from its claim and sizes."""
    again = LogisticRegression(**{**found.best_estimator_.get_params(), "random_state": 0})
    held = round(len(x) * found.holdout)
    again.fit(x[held:], np.zeros(len(x) - held, dtype=int))
    ((loss, times),) = mechanism_from_json(dict(again.privacy_.subject)).loss.pieces().parts
    assert times == 1
    return loss


@pytest.mark.parametrize("mu", [0.05, 0.3, 2.0])
@pytest.mark.parametrize("order", [1.1, 4.0, 30.0])
def test_the_divergence_of_the_largest_loss(mu, order):
    """log E max(1, e^L)^(a - 1)/(a - 1) by quadrature, plus the log ratio."""
    law = stats.norm(mu**2 / 2, mu)
    top = mu**2 / 2 + (order - 1) * mu**2
    points, peak = [0.0, top], (order - 1) * top - ((order - 1) * mu) ** 2 / 2
    spread = (min(0.0, top) - 14 * mu, max(0.0, top) + 14 * mu)
    value = integrate.quad(
        lambda u: math.exp((order - 1) * max(u, 0.0) + law.logpdf(u) - peak),
        *spread,
        points=points,
        limit=400,
    )[0]
    exact = 0.25 + (math.log(value) + peak) / (order - 1)
    found = LargestLoss(((GaussianLoss(mu), 1.0),), 0.25).renyi(order).upper
    assert found == pytest.approx(exact, rel=1e-6)
    assert found >= exact * (1 - 1e-9)


def test_what_runs_may_be_off_adds_up():
    plain = RepeatedLoss(GaussianLoss(0.2), 0.1)
    off = RepeatedLoss(GaussianLoss(0.2), 0.1, None, 1e-6)
    extra = off.delta(1.0).upper - plain.delta(1.0).upper
    assert extra == pytest.approx(1e-6 * expected_runs(0.1) * (1 + math.e), rel=1e-6)
    some = RepeatedLoss(GaussianLoss(0.2), 0.1, (3.0, 20.0))
    assert some.delta(1.0).upper >= plain.delta(1.0).upper
    with pytest.raises(ValueError, match="some orders only"):
        some.renyi(5.0)


def test_a_pipeline_is_searched_under_one_claim():
    x, y = made(300)
    pipeline = make_pipeline(
        PublicScaler(-1, 1), Lasso(0.1, epsilon=1.0, delta=1e-5, feature_bounds=1.0, target_bound=2.0)
    )
    options = {"epsilon": 2.0, "delta": 1e-5, "score_bound": 2.0, "random_state": 0, "repeats": 2.0}
    found = PrivateSearch(pipeline, {"lasso__alpha": [1e-3, 1.0]}, **options).fit(
        pandas.DataFrame(x, columns=list("abc")), y
    )
    assert set(found.best_params_) == {"lasso__alpha"}
    assert found.best_estimator_.privacy_.epsilon == 2.0
    assert found.predict(pandas.DataFrame(x, columns=list("abc"))).shape == (300,)
    for candidates, said in (
        ([{"publicscaler": StandardScaler()}], "PublicScaler"),
        ([{"lasso__epsilon": 9.0}], "cannot set epsilon"),
    ):
        with pytest.raises(ValueError, match=said):
            PrivateSearch(pipeline, candidates, **options).fit(x, y)
    with pytest.raises(ValueError, match="StandardScaler"):
        PrivateSearch(SklearnPipeline([("a", StandardScaler()), ("b", BASE)]), [{}], **options).fit(x, y)


def test_bad_calls():
    x, y = made(40)
    for options, match in [
        ({"repeats": 1.0}, "repeats"),
        ({"holdout": 1.0}, "holdout"),
        ({"score_bound": None}, "score_bound"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"delta": 0.0}, "allow a larger delta"),
        ({"delta": 1e-300}, "allow a larger delta"),
    ]:
        with pytest.raises((ValueError, TypeError), match=match):
            search(**options).fit(x, y)
    for candidates, match in [([], "candidates"), ([{"epsilon": 1.0}], "epsilon"), ([{"unknown": 1}], "unknown")]:
        with pytest.raises(ValueError, match=match):
            PrivateSearch(BASE, candidates, epsilon=1.0, delta=1e-5, score_bound=1.0).fit(x, y)
    with pytest.raises(TypeError, match="sensitivity"):
        search().fit(x, y, sample_weight=np.ones(40))
    with pytest.raises(ValueError, match="gamma"):
        RepeatedLoss(GaussianLoss(1.0), 0.0)
    with pytest.raises(ValueError, match="repetition"):
        Repetition.from_json({"kind": "plan"})


@pytest.mark.slow
@parametrize_with_checks(
    [
        PrivateSearch(
            Lasso(alpha=1e-3, epsilon=1.0, delta=1e-5, feature_bounds=4.0, target_bound=3.0, passes=10),
            [{"clip": 1.0}, {"clip": 0.8}],
            epsilon=1e6,
            delta=1e-5,
            score_bound=3.0,
            repeats=2.0,
            random_state=0,
        )
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_conventions_of_scikit_learn(estimator, check):
    checked(estimator, check, EXPECTED_FAILED)


def test_what_is_missing_is_named():
    x, y = made(50)
    with pytest.raises(ValueError, match=r"score_bound is required.*worth nothing"):
        search(score_bound=None).fit(x, y)
    for empty in ({}, [], {"alpha": []}):
        with pytest.raises(ValueError, match="non-empty"):
            PrivateSearch(BASE, empty, epsilon=2.0, delta=1e-5, score_bound=2.0).fit(x, y)
    with pytest.raises(ValueError, match="Ridge is not a private estimator"):
        PrivateSearch(Ridge(), {"alpha": [1.0]}, epsilon=2.0, delta=1e-5, score_bound=2.0).fit(x, y)
    base = LogisticRegression(epsilon=1.0, delta=1e-5, feature_bound=2.0, classes=[0, 1], solver="objective")
    for named in ({"solver": "output", "noise": "gaussian"}, {"solver": "cd"}):
        PrivateSearch(base, [named], epsilon=2.0, delta=1e-5).fit(x, (y > 0).astype(int))


def test_the_best_estimator_knows_the_columns_of_a_frame():
    x, y = made(200)
    frame = pandas.DataFrame(x, columns=["a", "b", "c"])
    found = search().fit(frame, y)
    assert found.best_estimator_.feature_names_in_.tolist() == ["a", "b", "c"]
    assert (found.predict(frame) == found.best_estimator_.predict(frame)).all()
