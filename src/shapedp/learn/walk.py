"""A walk over the steps of a pipeline: which are allowed, and what is known of the rows between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import special
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer, PolynomialFeatures
from sklearn.utils.validation import check_is_fitted

from shapedp.boundary.refusals import refusal
from shapedp.learn.classifiers import HuberSVC, LogisticRegression
from shapedp.learn.columns import PrivateImputer, PrivateScaler
from shapedp.learn.elastic import ElasticNet
from shapedp.learn.glm import GammaRegressor, PoissonRegressor
from shapedp.learn.naive_bayes import GaussianNB
from shapedp.learn.pca import PCA
from shapedp.learn.public import PublicOneHot, PublicScaler
from shapedp.learn.regressors import Lasso, LinearRegression, Ridge
from shapedp.privacy import Certificate

REGRESSORS: set[type] = {LinearRegression, Lasso, Ridge, ElasticNet, PoissonRegressor, GammaRegressor}
MODELS = REGRESSORS | {LogisticRegression, HuberSVC, GaussianNB}  # the search adds itself
ANY, FINITE, UNIT = 0, 1, 2  # what is known of the cells: nothing, no NaN and no infinity, within [-1, 1] besides


@dataclass(frozen=True)
class Flow:
    """What is known of the rows between two steps, whatever the data.

    `cells` is ANY, FINITE or UNIT. `blank`: a record whose cells are all missing still is one. `raw`: cells are as they
    were given, numbers or not, those of `columns` (None: of all). `dense`: they are no sparse matrix.
    """

    cells: int = ANY
    blank: bool = True
    raw: bool = False
    columns: Any = None
    dense: bool = False


@dataclass
class Walk:
    """A walk over the steps of a pipeline: each is allowed, or refused with the reason and a replacement."""

    fitted: bool
    private: list[tuple[str, Any]] = field(default_factory=list)
    released: list[Certificate] = field(default_factory=list)  # of a fitted pipeline, all that has to be composed
    vouched: list[str] = field(default_factory=list)
    computed: list[tuple[str, Any]] = field(default_factory=list)  # functions of raw columns, and which

    def through(self, name: str, step: Any, flow: Flow) -> Flow:
        """What is known after a step."""
        if step is None or isinstance(step, str):
            return flow
        known = STEPS.get(type(step))
        if known is None:
            raise ValueError(_reason(name, step))
        replaced = [own for own in vars(step) if callable(getattr(type(step), own, None))]
        if replaced:
            raise ValueError(refusal("learn", "step-replaced", name=name, methods=", ".join(replaced)))
        return known(self, name, step, flow)

    def release(self, name: str, step: Any, flow: Flow, *, target: bool = False) -> None:
        """A step that releases. Where a neighbour blanks a record, what reaches the step must be blank as well.

        A model is given the target too, and a record without one is zeros for it whatever its features are.
        """
        if self.private and _open_ended(self.private[-1][1]):
            raise ValueError(refusal("learn", "step-open-ended", name=self.private[-1][0]))
        if not target and step.adjacency != "replace" and not flow.blank:
            raise ValueError(refusal("learn", "step-not-blank", name=name))
        if self.fitted:
            check_is_fitted(step, "privacy_")
            self.released.append(step.privacy_)
        self.private.append((name, step))

    def finite(self, name: str, step: Any, flow: Flow) -> None:
        """A step of scikit-learn that raises an error where a cell is missing."""
        if flow.cells < FINITE:
            raise ValueError(refusal("learn", "step-needs-numbers", name=name, kind=type(step).__name__))


def _public_scaler(walk: Walk, name: str, step: Any, flow: Flow) -> Flow:
    known = step.missing is not None or flow.cells >= FINITE
    return Flow(UNIT if known else ANY, flow.blank and step.missing is None, dense=True)


def _one_hot(walk: Walk, name: str, step: Any, flow: Flow) -> Flow:
    return Flow(UNIT, blank=False, dense=True)


def _private_scaler(walk: Walk, name: str, step: Any, flow: Flow) -> Flow:
    walk.release(name, step, flow)
    return Flow(min(flow.cells, FINITE), flow.blank, dense=True)


def _imputer(walk: Walk, name: str, step: Any, flow: Flow) -> Flow:
    walk.release(name, step, flow)
    return Flow(FINITE, blank=False, dense=True)


def _pca(walk: Walk, name: str, step: Any, flow: Flow) -> Flow:
    walk.release(name, step, flow)
    return Flow(ANY, flow.blank, dense=True)


def _model(walk: Walk, name: str, step: Any, flow: Flow) -> Flow:
    walk.release(name, step, flow, target=True)
    return Flow(ANY, blank=False)


def _by_rows(walk: Walk, name: str, step: Any, flow: Flow) -> Flow:
    """Normalizer and Binarizer: fit keeps the number and names of columns only."""
    walk.finite(name, step, flow)
    return Flow(UNIT, blank=False, dense=flow.dense)


def _products(walk: Walk, name: str, step: Any, flow: Flow) -> Flow:
    """PolynomialFeatures: fit keeps the number of columns, and which products there are follows from it."""
    walk.finite(name, step, flow)
    return Flow(UNIT if flow.cells == UNIT else ANY, blank=False, dense=flow.dense)


def _function(walk: Walk, name: str, step: Any, flow: Flow) -> Flow:
    if step.validate:
        walk.finite(name, step, flow)
    if step.inverse_func is not None and step.check_inverse:
        raise ValueError(f"step {name!r} compares inverse_func with func on records: pass check_inverse=False")
    known = _by_cell(step.func) and not step.kw_args
    for function in (step.func, step.feature_names_out):
        if callable(function) and not (_by_cell(function) and not step.kw_args):
            where = getattr(function, "__module__", None), getattr(function, "__name__", type(function).__name__)
            own = ".".join(str(part) for part in where if part)
            walk.vouched.append(refusal("learn", "vouched", name=name, function=own).strip())
    if step.func is None:
        return flow
    if flow.raw:
        walk.computed.append((name, flow.columns))
    return Flow(ANY, blank=False, dense=flow.dense and known)


def _by_cell(function: Any) -> bool:
    """Whether a function is known to map each cell for itself: a ufunc of numpy or scipy, none that a user made."""
    if not isinstance(function, np.ufunc) or function.nin != 1 or function.signature is not None:
        return False
    return any(getattr(home, function.__name__, None) is function for home in (np, special))


def _columns(walk: Walk, name: str, step: Any, flow: Flow) -> Flow:
    """A ColumnTransformer: columns are named, not found in the data; every part is walked."""
    parts = [*step.transformers, ("remainder", step.remainder, None)]
    if any(callable(columns) for _, _, columns in parts):
        raise ValueError(f"step {name!r} finds its columns by a function of the data: name them")
    if walk.fitted:
        check_is_fitted(step, "transformers_")
        for own, one, _ in parts:  # what was asked for, beside what was fitted
            Walk(fitted=False).through(f"{name}__{own}", one, flow)
        parts = step.transformers_
    after = [
        walk.through(f"{name}__{own}", one, replace(flow, columns=columns if flow.columns is None else flow.columns))
        for own, one, columns in parts
        if not _is(one, "drop") and not _none(columns)
    ]
    if step.sparse_threshold != 0 and not all(one.dense for one in after):
        raise ValueError(refusal("learn", "step-threshold", name=name))
    cells = ANY if step.transformer_weights else min((one.cells for one in after), default=ANY)
    return Flow(cells, all(one.blank for one in after), any(one.raw for one in after), slice(None), dense=True)


def _none(columns: Any) -> bool:
    """Whether a list or a mask names no column; scikit-learn then fits nothing."""
    if isinstance(columns, str) or not hasattr(columns, "__len__"):
        return False
    return not len(columns) or not any(one is not False and one is not np.False_ for one in columns)


def walk_pipeline(walk: Walk, name: str, step: Any, flow: Flow) -> Flow:
    """Every step in turn; only the last one of the outermost pipeline predicts."""
    if step.memory is not None:
        raise ValueError("memory= keeps steps and transformed records in files: leave it out")
    for own, one in step.steps:
        last = one is step.steps[-1][1]
        if type(one) in MODELS and not (last and not name):
            raise ValueError(f"step {own!r} must be the last one: it predicts")
        flow = walk.through(f"{name}__{own}" if name else own, one, flow)
    return flow


def _is(step: Any, word: str) -> bool:
    return isinstance(step, str) and step == word


def _open_ended(step: Any) -> bool:
    """Whether the number of columns that come out of a step follows from what it released."""
    given = getattr(step, "n_components", None)
    return type(step) is PCA and given is not None and not isinstance(given, int | np.integer)


STEPS: dict[type, Callable[[Walk, str, Any, Flow], Flow]] = {
    PublicScaler: _public_scaler,
    PublicOneHot: _one_hot,
    PrivateScaler: _private_scaler,
    PrivateImputer: _imputer,
    PCA: _pca,
    Normalizer: _by_rows,
    Binarizer: _by_rows,
    PolynomialFeatures: _products,
    FunctionTransformer: _function,
    ColumnTransformer: _columns,
    Pipeline: walk_pipeline,
    **dict.fromkeys(MODELS, _model),
}


def checked(pipeline: Any, *, fitted: bool = False) -> Walk:
    """The walk over a pipeline whose steps are all allowed, at least one of which releases."""
    walk = Walk(fitted)
    walk.through("", pipeline, Flow(raw=True))
    if not walk.private:
        raise ValueError("no step of this pipeline releases anything: there is nothing to certify")
    if len({step.adjacency for _, step in walk.private}) > 1:
        raise ValueError("the private steps of a pipeline must share one adjacency")
    return walk


def _reason(name: str, step: Any) -> str:
    """Why a step is refused, and what to use in its place."""
    kind = type(step)
    allowed = [one.__name__ for one in kind.__mro__[1:] if one in STEPS]
    if allowed:
        return refusal("learn", "step-subclass", name=name, kind=kind.__name__, allowed=allowed[0])
    own = kind.__name__ if isinstance(step, BaseEstimator) or hasattr(step, "fit") else ""
    found = [text() for names, text in REMEDIES if own in names.split()]
    remedy = found[0] if found else refusal("learn", "remedy-other")
    return refusal("learn", "step-refused", name=name, kind=kind.__name__, remedy=remedy.strip())


REMEDIES: tuple[tuple[str, Callable[[], str]], ...] = (
    (
        "StandardScaler MinMaxScaler MaxAbsScaler RobustScaler QuantileTransformer PowerTransformer",
        lambda: refusal("learn", "remedy-scaler"),
    ),
    (
        "OneHotEncoder OrdinalEncoder TargetEncoder LabelEncoder LabelBinarizer MultiLabelBinarizer",
        lambda: refusal("learn", "remedy-encoder"),
    ),
    (
        "SimpleImputer KNNImputer IterativeImputer MissingIndicator",
        lambda: refusal("learn", "remedy-imputer"),
    ),
    (
        "PCA IncrementalPCA KernelPCA SparsePCA TruncatedSVD FactorAnalysis FastICA NMF",
        lambda: refusal("learn", "remedy-pca"),
    ),
    (
        "SelectKBest SelectPercentile SelectFpr SelectFdr SelectFwe GenericUnivariateSelect SelectFromModel "
        "VarianceThreshold RFE RFECV SequentialFeatureSelector",
        lambda: refusal("learn", "remedy-selection"),
    ),
    (
        "GridSearchCV RandomizedSearchCV HalvingGridSearchCV HalvingRandomSearchCV",
        lambda: refusal("learn", "remedy-search"),
    ),
    (
        "LinearRegression Ridge RidgeCV Lasso LassoCV ElasticNet LogisticRegression LogisticRegressionCV SVC "
        "LinearSVC SGDClassifier SGDRegressor",
        lambda: refusal("learn", "remedy-model"),
    ),
)
