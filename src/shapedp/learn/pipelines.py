"""Pipelines whose certificate covers every step that was fitted to the data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.pipeline import make_pipeline as sklearn_pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from shapedp.boundary.arrays import cells
from shapedp.boundary.refusals import refusal
from shapedp.learn.composed import composed
from shapedp.learn.register import counted
from shapedp.learn.walk import MODELS, STEPS, Flow, Walk, checked, walk_pipeline
from shapedp.numerics.checks import positive, probability
from shapedp.privacy import BLANK, ROWS, Certificate
from shapedp.tables.blocks import same_length

SCOPE = (
    f"{ROWS} {BLANK} This fit of the pipeline is covered, every step of it; other fits to the same data, searches "
    "around it, and what was done to the data before are not. A record with a missing cell counts as none, or as its "
    "steps say."
)


@dataclass(frozen=True, eq=False)
class Seal:
    """What a pipeline was fitted with, so that a change is seen: its certificate and what that is composed of.

    `held`: the certificates that its private steps hold since, in order; another object is another fit.
    """

    whole: Certificate
    released: tuple[Certificate, ...]
    vouched: tuple[str, ...]
    held: tuple[Certificate, ...]

    def holds(self, pipeline: Any, walk: Walk) -> bool:
        """Whether the pipeline still has the certificate, the private steps and the functions that it was given."""
        held = [step.privacy_ for _, step in walk.private]
        same = len(held) == len(self.held) and all(map(_identical, held, self.held))
        return same and pipeline.privacy_ is self.whole and tuple(walk.vouched) == self.vouched


class PrivatePipeline(Pipeline):  # type: ignore[misc]
    """A scikit-learn pipeline of steps that are all accounted for; `make_pipeline` makes one.

    Parameters
    ----------
    steps: pairs (name, step). Steps that learn nothing: `PublicScaler`, `PublicOneHot`, and of scikit-learn Normalizer,
        Binarizer, PolynomialFeatures, FunctionTransformer, ColumnTransformer, Pipeline, "passthrough". Steps that
        release: `PrivateScaler`, `PrivateImputer`, `PCA`, and last a model of `shapedp.learn`.
    transform_input, memory, verbose: as in scikit-learn; memory is refused.

    Fitted: what the steps hold, and `privacy_`, the certificate of all of them together. What a private step learned
    depends on the releases before it, so all but the first hold that certificate too.

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
        """Check every step, the target and the types of the columns; then fit the steps in turn."""
        walk = self.fit_steps(X, y, **params)
        return self.seal(_certified(walk), walk)

    def fit_steps(self, X: Any, y: Any = None, **params: Any) -> Walk:
        """`fit`, without a certificate of all steps together. Returns the walk over the fitted steps."""
        for name in ("privacy_", "_sealed"):
            self.__dict__.pop(name, None)
        X = np.stack(cells(X), axis=1) if isinstance(X, list | tuple) else X
        _ready(checked(self), X, y)
        with np.errstate(all="ignore"):  # a warning would tell of a record
            super().fit(X, y, **params)
        return checked(self, fitted=True)

    def seal(self, whole: Certificate, walk: Walk, released: tuple[Certificate, ...] = ()) -> PrivatePipeline:
        """Keep the certificate of the whole, and give it to the steps that saw what others had released.

        `released`: what it is composed of, where that is not what the steps released (a search: all runs).
        """
        for _, step in walk.private[0 if released else 1 :]:
            step.privacy_ = whole
        self.privacy_ = whole
        held = tuple(step.privacy_ for _, step in walk.private)
        self._sealed = Seal(whole, released or tuple(walk.released), tuple(walk.vouched), held)
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """`fit`, then `transform`."""
        with np.errstate(all="ignore"):
            return self.fit(X, y, **params).transform(X)


def _private_pipeline(walk: Walk, name: str, step: Any, flow: Flow) -> Flow:
    """A pipeline inside another counts as what it released itself."""
    before = len(walk.released)
    flow = walk_pipeline(walk, name, step, flow)
    if walk.fitted and name and "_sealed" in vars(step):
        walk.released[before:] = step._sealed.released
    return flow


STEPS[PrivatePipeline] = _private_pipeline


def _identical(one: Any, other: Any) -> bool:
    return one is other


def _ready(walk: Walk, x: Any, y: Any) -> None:
    """Raises, before anything is released, what a later step would raise afterwards; no error looks at a record."""
    for _, step in walk.private:
        step._claim()
        for name in ("feature_bound", "target_bound"):
            if getattr(step, name, None) is not None:
                positive(name, getattr(step, name))
    if any(type(step) in MODELS for _, step in walk.private):
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        if not isinstance(y, str) and hasattr(x, "shape") and hasattr(y, "__len__"):
            same_length(x.shape[0], len(y))
    for name, columns in walk.computed:
        if not _typed(x if columns is None else _safe_indexing(x, columns, axis=1)):
            raise ValueError(refusal("learn", "step-needs-types", name=name))


def _typed(x: Any) -> bool:
    """Whether columns hold real numbers by their declared types."""
    kinds: Any = x.dtypes if hasattr(x, "dtypes") else getattr(x, "dtype", None)
    named: list[Any] = list(kinds) if np.ndim(kinds) else [kinds]  # of a frame, or of one array
    return all(one.is_numeric() if hasattr(one, "is_numeric") else getattr(one, "kind", "O") in "biuf" for one in named)


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
    given = {
        "epsilon": None if epsilon is None else positive("epsilon", epsilon),
        "delta": None if delta is None else probability("delta", delta),
    }
    if type(fitted) is PrivatePipeline:
        check_is_fitted(fitted, "privacy_")
        sealed: Seal | None = vars(fitted).get("_sealed")
        if sealed is None or not sealed.holds(fitted, checked(fitted, fitted=True)):
            raise ValueError(refusal("learn", "changed-since"))
        if given == {"epsilon": None, "delta": None}:
            return sealed.whole
        return composed(sealed.released, scope=SCOPE, vouched=sealed.vouched, **given)
    if type(fitted) is Pipeline:
        return _certified(checked(fitted, fitted=True), (refusal("learn", "assembled").strip(),), **given)
    return _certified(checked(Pipeline([("the estimator", fitted)]), fitted=True), (), **given)


def _certified(walk: Walk, vouched: tuple[str, ...] = (), **claim: float | None) -> Certificate:
    """The certificate of a fitted pipeline, from what its steps released."""
    vouched = (*walk.vouched, *vouched)
    if len(walk.released) == 1 and not vouched and not any(claim.values()):
        return replace(walk.released[0], scope=SCOPE)
    return composed(walk.released, scope=SCOPE, vouched=vouched, **claim)
