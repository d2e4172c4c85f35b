"""Pipelines whose certificate covers every step that was fitted to the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline
from sklearn.pipeline import make_pipeline as sklearn_pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer, PolynomialFeatures
from sklearn.utils.validation import check_is_fitted

from shapedp.boundary.refusals import refusal
from shapedp.learn.classifiers import HuberSVC, LogisticRegression
from shapedp.learn.columns import PrivateImputer, PrivateScaler
from shapedp.learn.composed import composed
from shapedp.learn.pca import PCA
from shapedp.learn.public import PublicOneHot, PublicScaler
from shapedp.learn.register import counted
from shapedp.learn.regressors import Lasso, LinearRegression, Ridge
from shapedp.privacy import ROWS, Certificate

SCOPE = (
    f"{ROWS} This fit of the pipeline is covered, every step of it; other fits to the same data, searches around it, "
    "and what was done to the data before are not. A record with a missing cell counts as zeros, or as its steps say."
)
MODELS: set[type] = {LinearRegression, Lasso, Ridge, LogisticRegression, HuberSVC}  # the search adds itself
ANY, FINITE, UNIT = 0, 1, 2  # what is known of the cells: nothing, no NaN and no infinity, within [-1, 1] besides


@dataclass(frozen=True)
class Flow:
    """What is known of the rows between two steps, whatever the data.

    `cells` is ANY, FINITE or UNIT. `blank`: a record whose cells are all missing still is one.
    """

    cells: int = ANY
    blank: bool = True


@dataclass
class Walk:
    """A walk over the steps of a pipeline: each is allowed, or refused with the reason and a replacement."""

    fitted: bool
    private: list[tuple[str, Any]] = field(default_factory=list)
    vouched: list[str] = field(default_factory=list)

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
        self.private.append((name, step))

    def finite(self, name: str, step: Any, flow: Flow) -> None:
        """A step of scikit-learn that raises an error where a cell is missing."""
        if flow.cells < FINITE:
            raise ValueError(refusal("learn", "step-needs-numbers", name=name, kind=type(step).__name__))


def _public_scaler(walk: Walk, name: str, step: Any, flow: Flow) -> Flow:
    known = step.missing is not None or flow.cells >= FINITE
    return Flow(UNIT if known else ANY, flow.blank and step.missing is None)


def _one_hot(walk: Walk, name: str, step: Any, flow: Flow) -> Flow:
    return Flow(UNIT, blank=False)


def _private_scaler(walk: Walk, name: str, step: Any, flow: Flow) -> Flow:
    walk.release(name, step, flow)
    return Flow(min(flow.cells, FINITE), flow.blank)


def _imputer(walk: Walk, name: str, step: Any, flow: Flow) -> Flow:
    walk.release(name, step, flow)
    return Flow(FINITE, blank=False)


def _pca(walk: Walk, name: str, step: Any, flow: Flow) -> Flow:
    walk.release(name, step, flow)
    return Flow(ANY, flow.blank)


def _model(walk: Walk, name: str, step: Any, flow: Flow) -> Flow:
    walk.release(name, step, flow, target=True)
    return Flow(ANY, blank=False)


def _by_rows(walk: Walk, name: str, step: Any, flow: Flow) -> Flow:
    """Normalizer and Binarizer: fit keeps the number and names of columns only."""
    walk.finite(name, step, flow)
    return Flow(UNIT, blank=False)


def _products(walk: Walk, name: str, step: Any, flow: Flow) -> Flow:
    """PolynomialFeatures: fit keeps the number of columns, and which products there are follows from it."""
    walk.finite(name, step, flow)
    return Flow(UNIT if flow.cells == UNIT else ANY, blank=False)


def _function(walk: Walk, name: str, step: Any, flow: Flow) -> Flow:
    if step.validate:
        walk.finite(name, step, flow)
    if step.inverse_func is not None and step.check_inverse:
        raise ValueError(f"step {name!r} compares inverse_func with func on records: pass check_inverse=False")
    if step.func is None:
        return flow
    by_cell = isinstance(step.func, np.ufunc) and step.func.nin == 1 and not step.kw_args
    if not (by_cell and step.func.signature is None):
        where = getattr(step.func, "__module__", None), getattr(step.func, "__qualname__", type(step.func).__name__)
        own = ".".join(str(part) for part in where if part)
        walk.vouched.append(refusal("learn", "vouched", name=name, function=own).strip())
    return Flow(ANY, blank=False)


def _columns(walk: Walk, name: str, step: Any, flow: Flow) -> Flow:
    """A ColumnTransformer: columns are named, not found in the data; every part is walked."""
    parts = [*step.transformers, ("remainder", step.remainder, ())]
    if any(callable(columns) for _, _, columns in parts):
        raise ValueError(f"step {name!r} finds its columns by a function of the data: name them")
    loose = any(one == "passthrough" or type(one) is FunctionTransformer for _, one, _ in parts)
    if loose and step.sparse_threshold != 0:
        raise ValueError(refusal("learn", "step-threshold", name=name))
    if walk.fitted:
        check_is_fitted(step, "transformers_")
        for own, one, _ in parts:  # what was asked for, beside what was fitted
            Walk(fitted=False).through(f"{name}__{own}", one, flow)
        parts = step.transformers_
    after = [walk.through(f"{name}__{own}", one, flow) for own, one, _ in parts if not _is(one, "drop")]
    return Flow(min((one.cells for one in after), default=ANY), all(one.blank for one in after))


def _pipeline(walk: Walk, name: str, step: Any, flow: Flow) -> Flow:
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


class PrivatePipeline(Pipeline):  # type: ignore[misc]
    """A scikit-learn pipeline of steps that are all accounted for; `make_pipeline` makes one.

    Parameters
    ----------
    steps: pairs (name, step). Steps that learn nothing: `PublicScaler`, `PublicOneHot`, and of scikit-learn Normalizer,
        Binarizer, PolynomialFeatures, FunctionTransformer, ColumnTransformer, Pipeline, "passthrough". Steps that
        release: `PrivateScaler`, `PrivateImputer`, `PCA`, and last a model of `shapedp.learn`.
    transform_input, memory, verbose: as in scikit-learn; memory is refused.

    Fitted: what the steps hold, and `privacy_`, the certificate of all of them together.

    Guarantee: any other step is refused before a record is read, also a subclass of an allowed class: it could learn
    anything. Every step maps each row for itself, given what was released before, so that neighbours stay neighbours;
    the model clips rows to its own bound, whatever the steps before it did.

    Examples
    --------
    >>> import numpy as np
    >>> from shapedp.learn import LinearRegression, PublicScaler
    >>> model = LinearRegression(epsilon=1.0, delta=1e-6, feature_bound=1.0, target_bound=1.0, random_state=0)
    >>> x = np.linspace(0, 100, 10_000)[:, None]
    >>> fitted = PrivatePipeline([("scale", PublicScaler(0, 100)), ("fit", model)]).fit(x, x[:, 0] / 200)
    >>> fitted.predict([[80.0]]).round(1), fitted.privacy_.verdict
    (array([0.4]), 'certified')
    """

    @counted
    def fit(self, X: Any, y: Any = None, **params: Any) -> PrivatePipeline:
        """Check every step, then fit them in turn."""
        self.__dict__.pop("privacy_", None)
        checked(self)
        super().fit(X, y, **params)
        self.privacy_ = _certified(self)
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """`fit`, then `transform`."""
        return self.fit(X, y, **params).transform(X)


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
    Pipeline: _pipeline,
    PrivatePipeline: _pipeline,
    **dict.fromkeys(MODELS, _model),
}


def checked(pipeline: Any, *, fitted: bool = False) -> Walk:
    """The walk over a pipeline whose steps are all allowed, at least one of which releases."""
    walk = Walk(fitted)
    walk.through("", pipeline, Flow())
    if not walk.private:
        raise ValueError("no step of this pipeline releases anything: there is nothing to certify")
    if len({step.adjacency for _, step in walk.private}) > 1:
        raise ValueError("the private steps of a pipeline must share one adjacency")
    return walk


def make_pipeline(*steps: Any) -> PrivatePipeline:
    """A pipeline of steps that are all accounted for, checked before any data are seen.

    Parameters
    ----------
    steps: as in `PrivatePipeline`, without names: they are named after their classes.

    Returns
    -------
    A `PrivatePipeline`. Raises ValueError for a step that learns from data without a certificate, with a replacement.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from shapedp.learn import LogisticRegression, PublicScaler
    >>> model = LogisticRegression(epsilon=1.0, delta=1e-6, feature_bound=1.0, classes=[0, 1])
    >>> [name for name, _ in make_pipeline(PublicScaler(0, 100), model).steps]
    ['publicscaler', 'logisticregression']
    >>> try:
    ...     make_pipeline(StandardScaler(), model)
    ... except ValueError as refused:
    ...     print(str(refused)[:45])
    step 'standardscaler' (StandardScaler) learns
    """
    made = PrivatePipeline(sklearn_pipeline(*steps).steps)
    checked(made)
    return made


def certificate_of(fitted: Any, *, epsilon: float | None = None, delta: float | None = None) -> Certificate:
    """The certificate of a fitted pipeline or estimator: all that it released, composed exactly.

    Parameters
    ----------
    fitted: a fitted pipeline (`PrivatePipeline`, or scikit-learn's own), or an estimator of `shapedp.learn`.
    epsilon, delta: the claim to certify. Left out, delta is the sum of what the steps claim and epsilon the least that
        is certified at it; of a single private step both are its own.

    Returns
    -------
    The certificate. `assumptions` names the functions that a user vouches for. Raises ValueError for a step that was
    fitted to the data without a certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from shapedp.learn import LinearRegression, PrivateScaler
    >>> x = np.linspace(0, 100, 10_000)[:, None]
    >>> scaler = PrivateScaler(epsilon=0.5, delta=1e-6, low=0, high=100)
    >>> model = LinearRegression(epsilon=1.0, delta=1e-6, feature_bound=2.0, target_bound=1.0)
    >>> found = certificate_of(make_pipeline(scaler, model).fit(x, x[:, 0] / 200))
    >>> found.verdict, round(found.epsilon, 2), found.delta
    ('certified', 1.1, 2e-06)
    """
    whole = fitted if type(fitted) in (Pipeline, PrivatePipeline) else Pipeline([("the estimator", fitted)])
    if isinstance(whole, PrivatePipeline):
        check_is_fitted(whole, "privacy_")
    given = {"epsilon": epsilon, "delta": delta}
    if isinstance(whole, PrivatePipeline) and given == {"epsilon": None, "delta": None}:
        found: Certificate = whole.privacy_
        return found
    own = () if whole is not fitted or isinstance(whole, PrivatePipeline) else (refusal("learn", "assembled").strip(),)
    return _certified(whole, own, **given)


def _certified(pipeline: Any, vouched: tuple[str, ...] = (), **claim: float | None) -> Certificate:
    """The certificate of a fitted pipeline, from its steps."""
    walk = checked(pipeline, fitted=True)
    released = [step.privacy_ for _, step in walk.private]
    vouched = (*walk.vouched, *vouched)
    if len(released) == 1 and not vouched and not any(claim.values()):
        certificate: Certificate = released[0]
        return replace(certificate, scope=SCOPE)
    return composed(released, scope=SCOPE, vouched=vouched, **claim)


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
