"""Pipelines and registers that told of a record, or kept silent about a premise.

- A pipeline inside a ColumnTransformer passes sparse columns on. Whether they stayed sparse followed from their
  density: one record decided `sparse_output_`, and with it whether the next step raised.
- A range of one subnormal number has half a width of 0: what a scaler gave for a cell in it was NaN or infinite, and
  the error of the next step said which.
- Beyond 256 fits of the same data, a certificate keeps its claim alone; what a user vouches for was lost with the rest.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer

from shapedp import GaussianLoss, certify
from shapedp.learn import (
    GaussianNB,
    KMeans,
    LinearRegression,
    PrivateImputer,
    PrivateScaler,
    PublicOneHot,
    PublicScaler,
    certificate_of,
    make_pipeline,
)
from shapedp.learn.composed import composed
from shapedp.learn.register import _Register

pytestmark = pytest.mark.filterwarnings("ignore::shapedp.learn.RepeatedFitsWarning")
CLAIM = {"epsilon": 1.0, "delta": 1e-6, "random_state": 0}
INNER = {
    "passthrough": Pipeline([("a", "passthrough")]),
    "none": Pipeline([("a", None)]),
    "identity": Pipeline([("a", FunctionTransformer())]),
    "function": Pipeline([("a", FunctionTransformer(np.sqrt))]),
    "twice": Pipeline([("a", Pipeline([("b", "passthrough")]))]),
}


def linear():
    return LinearRegression(**CLAIM, feature_bound=2.0, target_bound=1.0, solver="suffstats")


def neighbours():
    """Tables that differ in one record, on both sides of the default density of 0.3."""
    plain = np.zeros((20, 3))
    plain[:5] = 1.0
    other = plain.copy()
    other[19] = 1.0
    assert (plain > 0).mean() < 0.3 <= (other > 0).mean()
    return sparse.csr_array(plain), sparse.csr_array(other)


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("rest", [False, True], ids=["named", "remainder"])
def test_density_decides_nothing(inner, rest):
    part = INNER[inner]
    parts = [] if rest else [("a", part, [0, 1, 2])]
    options = {"remainder": part} if rest else {}
    with pytest.raises(ValueError, match="sparse_threshold=0"):
        make_pipeline(ColumnTransformer(parts, **options), linear())
    y = np.zeros(20)
    given = ColumnTransformer(parts, **options, sparse_threshold=0)
    seen = [make_pipeline(given, linear()).fit(x, y).steps[0][1].sparse_output_ for x in neighbours()]
    assert seen == [False, False]
    plain = Pipeline([("columns", ColumnTransformer(parts, **options)), ("model", linear())]).fit(neighbours()[0], y)
    with pytest.raises(ValueError, match="sparse_threshold=0"):
        certificate_of(plain)


def test_the_scaler_behind_raised_or_not():
    """As it was: one record decided between an error and a fit."""
    said = []
    for x in neighbours():
        model = PrivateScaler(**CLAIM, low=0, high=1)
        try:
            Pipeline([("a", ColumnTransformer([("b", INNER["none"], [0, 1, 2])])), ("c", model)]).fit(x)
        except TypeError as error:
            said.append(str(error))
    assert len(said) == 1
    with pytest.raises(ValueError, match="sparse_threshold=0"):
        make_pipeline(ColumnTransformer([("b", INNER["none"], [0, 1, 2])]), PrivateScaler(**CLAIM, low=0, high=1))


def test_dense_columns_need_no_threshold():
    x, y = np.full((50, 3), 0.5), np.zeros(50)
    inside = ColumnTransformer([("a", "passthrough", [0]), ("b", FunctionTransformer(np.sqrt), [1])])
    parts = [("a", PublicScaler(0, 1), [0, 1]), ("b", make_pipeline_of(PublicOneHot([[0.5]])), [2])]
    for steps in ([PublicScaler(0, 1), inside], [ColumnTransformer(parts)], [ColumnTransformer(parts), inside]):
        fitted = make_pipeline(*steps, linear()).fit(x, y)
        assert not any(step.sparse_output_ for step in fitted[:-1] if isinstance(step, ColumnTransformer))
        assert certificate_of(fitted).verdict == "certified"


def make_pipeline_of(step):
    return Pipeline([("only", step)])


def to_sparse(x):
    return sparse.csr_array(x)


def test_a_function_may_make_columns_sparse():
    late = ColumnTransformer([("a", FunctionTransformer(to_sparse), [0, 1])])
    with pytest.raises(ValueError, match="sparse_threshold=0"):
        make_pipeline(PublicScaler(0, 1), late, linear())


@pytest.mark.parametrize(("low", "high"), [(0.0, 5e-324), (-5e-324, 0.0), (0.0, 1e-310), ([0, 0], [1, 1e-151])])
def test_a_range_that_vanishes_is_refused(low, high):
    x, ends = np.zeros((20, 2)), {"low": low, "high": high}
    models = [
        PublicScaler(**ends),
        PrivateScaler(**CLAIM, **ends),
        PrivateScaler(**CLAIM, **ends, by="quantiles"),
        PrivateImputer(**CLAIM, **ends),
        KMeans(2, **CLAIM, **ends),
    ]
    for model in models:
        with pytest.raises(ValueError, match="1e-150 apart"):
            model.fit(x)
    with pytest.raises(ValueError, match="1e-150 apart"):
        GaussianNB(**CLAIM, **ends, classes=[0, 1]).fit(x, np.zeros(20))


@pytest.mark.parametrize("by", ["moments", "quantiles"])
def test_the_narrowest_range_leaves_finite_cells(by):
    options = {**CLAIM, "adjacency": "replace", "low": 0.0, "high": 1e-150}
    for cell in (0.0, 1e-150, 5e-151):
        x = np.zeros((20, 2))
        x[3] = cell
        steps = PrivateImputer(**options), PrivateScaler(**options, by=by), Normalizer()
        make_pipeline(*steps, linear().set_params(adjacency="replace")).fit(x, np.zeros(20))


def claims(number, *assumptions):
    made = certify(GaussianLoss(1e-3, adjacency="replace"), epsilon=0.1, delta=1e-6)
    return [replace(made, assumptions=assumptions, subject=None) for _ in range(number)]


def test_a_bare_claim_keeps_its_premises():
    claim = {"scope": "fits", "epsilon": 1.0, "delta": 1e-5}
    both = composed([*claims(1, "f maps rows."), *claims(1, "g maps rows.")], **claim)
    assert {"f maps rows.", "g maps rows."} <= set(both.assumptions)
    again = composed([replace(both, subject=None)], **claim).assumptions
    assert again == both.assumptions
    assert len(set(again)) == len(again)


def test_fits_beyond_those_kept_whole_keep_their_premises():
    register, x = _Register(), np.zeros((5, 2))
    for one in [*claims(256, "all"), *claims(2, "f maps rows."), *claims(2, "g maps rows.")]:
        register.record(x, "Model", one)
    (found,) = register.listed()
    assert found.count == 260
    assert {"all", "f maps rows.", "g maps rows."} <= set(found.certificate.assumptions)
