"""Pipelines and searches whose certificate did not cover what they held, or whose errors told of a record."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, PolynomialFeatures, StandardScaler

import shapedp as sdp
from shapedp.learn import (
    LinearRegression,
    LogisticRegression,
    PrivateScaler,
    PrivateSearch,
    PublicScaler,
    RepeatedFitsWarning,
    certificate_of,
    fits,
    make_pipeline,
)

pytestmark = pytest.mark.filterwarnings("ignore::shapedp.learn.RepeatedFitsWarning")
CLAIM = {"epsilon": 1.0, "delta": 1e-6}
RNG = np.random.default_rng(5)
X = RNG.uniform(0, 100, size=(2_000, 2))
Y = (X[:, 0] - X[:, 1]) / 100
LABELS = (X[:, 0] > 50).astype(int)


def linear(**options):
    return LinearRegression(**{**CLAIM, "feature_bound": 2.0, "target_bound": 1.0, **options})


def logistic(**options):
    return LogisticRegression(**CLAIM, feature_bound=2.0, classes=[0, 1], solver="cd", **options)


def scaler(**options):
    return PrivateScaler(**{**CLAIM, "low": 0.0, "high": 100.0, **options})


def search(estimator, candidates, **options):
    return PrivateSearch(estimator, candidates, epsilon=2.0, delta=1e-6, **{"repeats": 4.0, **options})


def refitted(pipeline):
    pipeline[0].fit(X / 2)


def with_a_scaler_of_scikit_learn(pipeline):
    pipeline.steps[0] = ("privatescaler", StandardScaler().fit(X))


def with_a_scaler_of_another_fit(pipeline):
    pipeline.steps[0] = ("privatescaler", scaler().fit(X))


def without_its_scaler(pipeline):
    pipeline.steps.pop(0)


def with_another_certificate(pipeline):
    pipeline.privacy_ = sdp.certify(sdp.GaussianLoss(0.01, adjacency="zero-out"), epsilon=0.1, delta=1e-6)


def with_another_certificate_of_a_step(pipeline):
    pipeline[0].privacy_ = sdp.certify(sdp.GaussianLoss(0.01, adjacency="zero-out"), epsilon=0.1, delta=1e-6)


def with_a_function(pipeline):
    mean = X.mean(axis=0)
    pipeline.steps.insert(1, ("less", FunctionTransformer(lambda rows: rows - mean)))


CHANGES = [
    refitted,
    with_a_scaler_of_scikit_learn,
    with_a_scaler_of_another_fit,
    without_its_scaler,
    with_another_certificate,
    with_another_certificate_of_a_step,
    with_a_function,
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("claim", [{}, {"epsilon": 3.0, "delta": 1e-6}])
def test_a_pipeline_that_was_changed_after_its_fit_has_no_certificate(change, claim):
    """The certificate of the fit was given for a pipeline that held a StandardScaler, or a fourth release, by then."""
    pipeline = make_pipeline(scaler(), linear()).fit(X, Y)
    for same in (pipeline, pickle.loads(pickle.dumps(pipeline))):
        assert certificate_of(same, **claim).verdict == "certified"
        change(same)
        with pytest.raises(ValueError, match=r"changed since it was fitted|learns from the data"):
            certificate_of(same, **claim)
    again = make_pipeline(scaler(), linear()).fit(X, Y).fit(X, Y)
    assert certificate_of(again, **claim).verdict == "certified"


def test_a_step_that_saw_releases_before_it_states_the_cost_of_all():
    pipeline = make_pipeline(scaler(), linear()).fit(X, Y)
    assert pipeline[0].privacy_.epsilon == 1.0
    assert pipeline[-1].privacy_ is pipeline.privacy_
    assert certificate_of(pipeline[-1]).epsilon == pipeline.privacy_.epsilon > 1.2
    inside = make_pipeline(make_pipeline(PublicScaler(0, 100), scaler()), linear()).fit(X, Y)
    assert inside.privacy_.epsilon == pytest.approx(pipeline.privacy_.epsilon)  # counted once


def test_steps_among_the_candidates_are_not_shared_between_runs():
    """All runs fitted the user's own objects: what was shown was the last run, and lost runs stayed in them."""
    models = [logistic(), logistic(passes=3)]
    for seed in range(4):
        pipeline = make_pipeline(PublicScaler(0, 100), logistic())
        found = search(pipeline, {"logisticregression": models}, random_state=seed).fit(X, LABELS)
        assert not any(found.best_estimator_[-1] is one for one in models)
        assert not any(hasattr(one, "coef_") for one in models)
        assert [one.epsilon for one in models] == [1.0, 1.0]
        assert any(found.best_params_["logisticregression"] is one for one in models)


def test_what_a_search_found_is_certified_as_the_search_at_every_claim():
    """With a claim of the user's, the certificate of the best pipeline was that of one run."""
    pipeline = make_pipeline(scaler(), logistic())
    found = search(pipeline, {"logisticregression__passes": [2, 5]}, random_state=0).fit(X, LABELS)
    best = found.best_estimator_
    assert certificate_of(best).epsilon == certificate_of(found).epsilon == 2.0
    assert certificate_of(best, epsilon=2.0, delta=1e-6).verdict == "certified"
    assert certificate_of(best, epsilon=1.7, delta=1e-6).verdict != "certified"
    assert {certificate_of(step).epsilon for step in best} == {2.0}


class Remembers(LogisticRegression):
    """Keeps the records."""

    def fit(self, X, y):
        self.records_ = np.array(X)
        return super().fit(X, y)


def test_functions_and_classes_of_the_user_are_assumptions_of_a_search():
    pipeline = make_pipeline(FunctionTransformer(np.log1p), logistic())
    tried = {"functiontransformer__func": [np.log1p, np.sqrt]}
    assert len(search(pipeline, tried, random_state=0).fit(X, LABELS).privacy_.assumptions) == 1
    tried = {"functiontransformer__func": [np.log1p, lambda rows: rows - rows.mean()]}
    found = search(pipeline, tried, random_state=0).fit(X, LABELS)
    assert any("<lambda> of step functiontransformer" in one for one in found.privacy_.assumptions)
    assert sdp.verify(sdp.Certificate.from_json(found.privacy_.to_json())).assumptions == found.privacy_.assumptions
    own = Remembers(**CLAIM, feature_bound=2.0, classes=[0, 1], solver="cd")
    found = search(own, {"passes": [2]}, random_state=0).fit(X, LABELS)
    assert any("class Remembers" in one for one in found.privacy_.assumptions)


def test_a_function_made_a_ufunc_is_still_the_users():
    mean = X.mean()
    made = np.frompyfunc(lambda cell: float(cell - mean), 1, 1)
    found = certificate_of(make_pipeline(FunctionTransformer(made), linear()).fit(X, Y))
    assert len(found.assumptions) == 1
    assert "<lambda>" in found.assumptions[0]


@pytest.mark.parametrize("bad", [-1.0, "text", None])
def test_a_function_on_cells_as_given_needs_numeric_types(bad):
    """A cell of text raised an error, a negative one a warning: both told of one record."""
    cells = np.ones((50, 2), dtype=object)
    pipeline, y = make_pipeline(FunctionTransformer(np.abs), linear()), np.zeros(50)
    said = []
    for table in (cells, with_one(cells, bad)):
        for given in (table, table.tolist(), pd.DataFrame(table)):
            with pytest.raises(ValueError, match="numeric type") as raised:
                pipeline.fit(given, y)
            said.append(str(raised.value))
    assert len(set(said)) == 1
    frame = pd.DataFrame({"a": np.ones(50), "b": table[:, 1]})
    parts = [("a", FunctionTransformer(np.abs), ["a"]), ("b", PublicScaler(0, 1), ["b"])]
    make_pipeline(ColumnTransformer(parts, sparse_threshold=0), linear()).fit(frame, y)
    make_pipeline(PublicScaler(0, 1), FunctionTransformer(np.abs), linear()).fit(table, y)


def with_one(cells, bad):
    other = cells.copy()
    other[3, 1] = bad
    return other


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("mode", ["warn", "raise"])
def test_no_warning_or_error_of_arithmetic_tells_of_a_record(mode):
    x = np.ones((50, 2))
    x[3, 1] = -1.0
    with np.errstate(all=mode):
        make_pipeline(FunctionTransformer(np.log), linear()).fit(x, np.zeros(50))


def test_weights_of_columns_leave_no_unit_range():
    """What was taken for [0, 1] overflowed two steps later, for a record at the upper end."""
    weighted = ColumnTransformer([("a", PublicScaler(0, 1, missing=0.0), [0, 1])], transformer_weights={"a": 1e200})
    with pytest.raises(ValueError, match="raises an error where a cell is missing"):
        make_pipeline(weighted, PolynomialFeatures(2), Normalizer(), linear())


def test_a_part_without_columns_releases_nothing():
    """The fit raised, after everything had been released."""
    for none in ([], np.zeros(2, dtype=bool), [False, False]):
        parts = [("a", scaler(), none), ("b", PublicScaler(0, 100), [0, 1])]
        assert make_pipeline(ColumnTransformer(parts), linear()).fit(X, Y).privacy_.epsilon == 1.0


@pytest.mark.parametrize(
    ("model", "y", "said"),
    [
        (linear(), None, "y is None"),
        (linear(), Y[:-1], "as many rows"),
        (linear(feature_bound=-1.0), Y, "feature_bound must be"),
        (linear(epsilon=-1.0), Y, "epsilon must be"),
        (linear(target_bound=0.0), Y, "target_bound must be"),
    ],
)
def test_what_the_model_refuses_is_refused_before_the_scaler_releases(model, y, said):
    pipeline = make_pipeline(scaler(), model)
    with pytest.raises(ValueError, match=said):
        pipeline.fit(X, y)
    assert not hasattr(pipeline[0], "center_")


def test_searches_beside_other_releases_compose():
    """They were sent through a grid of privacy losses, which did not end."""
    own = search(logistic(), {"passes": [2, 5]})
    found = make_pipeline(scaler(), own).fit(X, LABELS).privacy_
    assert found.verdict == "certified"
    assert 2.0 < found.epsilon <= 3.0 * (1 + 1e-6)
    data = X.copy()
    own.fit(data, LABELS)
    with pytest.warns(RepeatedFitsWarning):
        own.fit(data, LABELS)
    both = fits()[-1]
    assert both.estimators == ("PrivateSearch",) * 2
    assert both.certificate.epsilon <= 4.0 * (1 + 1e-6)


def test_a_pipeline_of_scikit_learn_with_a_step_taken_out_says_what_it_assumes():
    own = Pipeline([("a", StandardScaler()), ("b", linear())]).fit(X, Y)
    own.steps.pop(0)
    assert any("scikit-learn does not record them" in one for one in certificate_of(own).assumptions)


def test_a_pickled_certificate_holds_its_description_only():
    """A scaler by quantiles was pickled with the tables of its accounting, 15 MB."""
    own = scaler(by="quantiles").fit(X)
    pickled = pickle.dumps(own)
    assert len(pickled) < 100_000
    assert pickle.loads(pickled).privacy_.to_json() == own.privacy_.to_json()
