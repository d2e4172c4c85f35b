"""Hyper-parameters chosen on the data, with the choice inside the accounting."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import MetaEstimatorMixin, is_classifier
from sklearn.model_selection import ParameterGrid
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from shapedp.accounting.repeat import draw_runs, gamma_for
from shapedp.boundary.arrays import cells, equal
from shapedp.boundary.columns import is_frame
from shapedp.boundary.refusals import refusal
from shapedp.learn.base import PrivateEstimator, checked_rows, refuse
from shapedp.learn.classifiers import class_list
from shapedp.learn.pipelines import PrivatePipeline
from shapedp.learn.register import counted
from shapedp.learn.runs import Template, budget
from shapedp.learn.walk import MODELS, STEPS
from shapedp.mechanisms import Additive
from shapedp.noise import Gaussian
from shapedp.numerics.checks import positive
from shapedp.numerics.outward import ABOVE_8192, WIDE
from shapedp.sampling import Source, source
from shapedp.sensitivity import Box
from shapedp.tables.blocks import entries, same_length, target_of


def _table(search: Any, x: Any, *, reset: bool = True) -> Any:
    """A table for a pipeline: a pandas frame or an array, of numbers or not; a list becomes an array of objects."""
    compressed = sparse.issparse(x)
    table: Any = x if is_frame(x) or compressed or isinstance(x, np.ndarray) else np.stack(cells(x), axis=1)
    table = table.tocsr() if compressed else table
    validate_data(search, table, reset=reset, skip_check_array=True)
    return table


def _delegated(name: str, doc: str) -> Any:
    """A method that the best estimator has too, if it has it; the columns of X are checked first."""

    def method(self: Any, X: Any, *others: Any) -> Any:
        check_is_fitted(self)
        if isinstance(self.best_estimator_, PrivatePipeline):
            _table(self, X, reset=False)
        else:
            checked_rows(self, X, reset=False)
        return getattr(self.best_estimator_, name)(X, *others)  # X itself, with the names of its columns

    method.__name__, method.__doc__ = name, doc
    return available_if(lambda search: hasattr(getattr(search, "best_estimator_", search.estimator), name))(method)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateSearch(MetaEstimatorMixin, PrivateEstimator):  # type: ignore[misc]
    """The best of a random number of private fits, in place of a grid search, under (epsilon, delta) in all.

    Each run draws one candidate, fits a clone of the estimator to most of the records, and scores it with noise on
    the others. The run with the best score is kept, and nothing else is shown: no warning and no bar of any run. The
    number of runs is random (logarithmic law): a fixed number would have to be paid for run by run. The score of a
    record is 1 or 0 (right or wrong class) or, for a regression, 1 - min(error/score_bound, 1)^2.

    Parameters
    ----------
    estimator: an estimator of `shapedp.learn`, or a pipeline (see `make_pipeline`): its private steps share each run
        as their own claims do.
    candidates: a list of parameter dicts, or a dict of lists, which stands for their grid.
    epsilon, delta: the claim of the whole search.
    repeats: the mean number of runs.
    holdout: the share of the records that is held out for the scores.
    score_bound: for a regression, the error at which a prediction is worth nothing.
    adjacency: what a neighbour is, "zero-out" or "replace".
    random_state: a seed, for simulations only; None: secure randomness.
    unsafe: release even if the claim is not certified.

    Fitted: `best_estimator_`, `best_params_`, `best_score_` (noisy, a mean over the records held out), `privacy_`
    (the certificate of the whole search, which is also that of `best_estimator_`), `run_epsilon_` and `run_delta_`
    (the claim of each fit). The time a search takes shows the number of runs. Where a classifier is not told its
    `classes`, those that occur in y are treated as public, with a warning.

    Guarantee: one run spends at most the Renyi divergence of a Gaussian with the mu of `run_epsilon_`, `run_delta_`, at
    the two orders that decide the claim: a record is either fitted or held out, so the fit and the score do not add up.
    A fit whose certificate says more is thrown away unseen and made again with a smaller claim; where no claim helps
    (noise without a Renyi divergence), an error.
    Reference: Papernot and Steinke 2022, Theorem 2; Liu and Talwar 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from shapedp.learn import LogisticRegression
    >>> x = np.linspace(-1, 1, 2_000)[:, None]
    >>> model = LogisticRegression(epsilon=1.0, delta=1e-6, feature_bound=1.0, classes=[0, 1], solver="cd")
    >>> search = PrivateSearch(model, {"passes": [2, 5]}, epsilon=4.0, delta=1e-6, repeats=2.0, random_state=0)
    >>> search.fit(x, x[:, 0] > 0).predict([[-0.9], [0.9]])
    array([0, 1])
    """

    estimator: Any = field(kw_only=False)
    candidates: Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]] = field(kw_only=False)
    repeats: float = 10.0
    holdout: float = 0.2
    score_bound: float | None = None

    @counted
    def fit(self, X: Any, y: Any, **unsupported: Any) -> PrivateSearch:
        """Fit to features X and a target y, both in memory."""
        refuse(unsupported)
        epsilon, delta, adjacency = self._claim()
        template = Template(self.estimator)
        candidates = self._candidates(template)
        gamma = gamma_for(self.repeats)
        own = budget(gamma, epsilon, delta, adjacency)
        rng = self._rng()
        randomness = source(rng)
        unnamed = any(template.classes(one) is None for one in candidates)
        occur = class_list(type(template.model).__name__, X, y, None).tolist() if unnamed else None
        shared = {"adjacency": adjacency, "random_state": rng, "unsafe": self.unsafe, "classes": occur}
        parts = self._parts(X, y, randomness, template)
        certificate = self._required(own.stated(tuple(template.vouched)))
        score = Additive(Gaussian(ABOVE_8192 / own.run.mu, 1), Box([1.0], adjacency=adjacency), epsilon, delta)
        best = None
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # of runs that are not shown
            for _ in range(draw_runs(gamma, randomness)):
                drawn = int(randomness.words(1)[0]) * len(candidates) >> 64  # uniform up to 2^-60
                model = template.fitted(drawn, candidates[drawn], own, shared, parts[:2])
                total = score.release([self._utility(model, *parts[2:])], rng=rng, unsafe=self.unsafe).value[0]
                if best is None or total > best[0]:
                    best = (float(total), model, candidates[drawn])
        assert best is not None
        self.privacy_ = certificate
        self.best_estimator_, self.best_params_ = template.kept(best[1], certificate), dict(best[2])
        if hasattr(self, "feature_names_in_") and not template.is_pipeline:
            self.best_estimator_.feature_names_in_ = self.feature_names_in_
        self.best_score_ = best[0] / parts[2].shape[0]
        self.run_epsilon_, self.run_delta_ = own.epsilon, own.delta
        if hasattr(self.best_estimator_, "classes_"):
            self.classes_ = self.best_estimator_.classes_
        return self

    predict = _delegated("predict", "Predictions of the best estimator.")
    predict_proba = _delegated("predict_proba", "Probabilities of the best estimator.")
    decision_function = _delegated("decision_function", "Decision values of the best estimator.")
    score = _delegated("score", "The score of the best estimator on records X and targets y, which is not private.")

    def _candidates(self, template: Template) -> list[dict[str, Any]]:
        given = list(ParameterGrid(self.candidates)) if isinstance(self.candidates, Mapping) else list(self.candidates)
        if not given or not all(isinstance(one, Mapping) for one in given) or self.candidates == {}:
            raise ValueError("candidates must be a non-empty list of parameter dicts, or a dict of lists")
        template.check([{}, *map(dict, given)])
        if not is_classifier(self.estimator):
            if self.score_bound is None:
                raise ValueError(refusal("learn", "no-score-bound"))
            positive("score_bound", self.score_bound)
        return [dict(one) for one in given]

    def _parts(self, x: Any, y: Any, randomness: Source, template: Template) -> tuple[Any, Any, Any, Any]:
        """Records to fit and records held out, drawn whatever they hold."""
        if not 0 < positive("holdout", self.holdout) < 1:
            raise ValueError(f"holdout must lie in (0, 1), got {self.holdout!r}")
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        rows = _table(self, x) if template.is_pipeline else checked_rows(self, x)
        records = rows.shape[0]
        target = entries(y) if is_classifier(self.estimator) else target_of(y, records)
        same_length(records, len(target))
        if records < 2:
            raise ValueError("a search needs at least 2 records, one of them held out, got n_samples = 1")
        held = min(max(round(records * self.holdout), 1), records - 1)
        order = np.argsort(randomness.words(records), kind="stable")
        fitted, out = order[held:], order[:held]
        taken = [rows.iloc[one] if is_frame(rows) else rows[one] for one in (fitted, out)]
        return taken[0], target[fitted], taken[1], target[out]

    def _utility(self, model: Any, x: Any, y: Any) -> float:
        """The sum over records of a score in [0, 1]; a record that cannot be scored counts 0."""
        predicted = model.predict(x)
        if is_classifier(model):
            return float(sum((equal(predicted, one) & equal(y, one)).sum() for one in model.classes_.tolist()))
        with np.errstate(all="ignore"):
            part = np.minimum(np.abs(predicted - y) / self.score_bound, 1.0)
            steps = np.floor((1 - np.square(np.nan_to_num(part, nan=1.0))) * 2.0**30)
        return float(steps.sum()) * WIDE

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags

        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type, tags.classifier_tags = inner.estimator_type, inner.classifier_tags
        tags.regressor_tags, tags.target_tags = inner.regressor_tags, inner.target_tags
        return tags


MODELS.add(PrivateSearch)
STEPS[PrivateSearch] = STEPS[next(iter(MODELS - {PrivateSearch}))]
