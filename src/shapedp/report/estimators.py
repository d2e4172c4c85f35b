"""A fitted estimator: its certificate, its weights and their standard errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shapedp.boundary.documents import described
from shapedp.boundary.refusals import refusal
from shapedp.privacy import Certificate
from shapedp.report.figures import counted, number, whole
from shapedp.report.markup import Markup, el, text
from shapedp.report.page import charts, facts, figure, more, section, table
from shapedp.report.svg import Chart, linear, places

_DRAWN = 40
_LISTED = 1000
_SETTINGS = ("target", "solver", "feature_bound", "target_bound")
RELEASED = {
    "coefficients": "coef_",
    "intercept": "intercept_",
    "standard_errors": "coef_standard_error_",
    "intercept_standard_error": "intercept_standard_error_",
    "features": "feature_names_in_",
    "classes": "classes_",
}
MODELS = {"linear-regression": "Linear regression", "logistic-regression": "Logistic regression"}
_HIDDEN = frozenset({"epsilon", "delta", "adjacency", "random_state", "progress"})


@dataclass(frozen=True)
class Weight:
    """A released coefficient, with its standard error; NaN where that is not known."""

    name: str
    value: float
    error: float = math.nan


@dataclass(frozen=True, eq=False)
class Fitted:
    """What is shown of a fitted estimator: all of it was released.

    Parameters
    ----------
    kind
        What was fitted, in words.
    certificate
        Of the fit.
    weights
        The released coefficients.
    settings
        Names and values of the settings.

    Examples
    --------
    >>> import shapedp as sdp
    >>> mechanism = sdp.calibrate("laplace", sdp.L1(1.0, dim=2), epsilon=1.0, delta=0.0)
    >>> Fitted("Two means", mechanism.certificate, (Weight("age", 40.25), Weight("visits", 2.5))).weights[0].name
    'age'
    """

    kind: str
    certificate: Certificate
    weights: tuple[Weight, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, estimator: Any) -> Fitted:
        """From an estimator with `privacy_`, and `coef_`, `intercept_`, their standard errors and names if present."""
        certificate = getattr(estimator, "privacy_", None)
        if not isinstance(certificate, Certificate):
            raise TypeError(refusal("report", "no-subject", kind=type(estimator).__name__))
        weights = _weights(released(estimator), getattr(estimator, "fit_intercept", True))
        return cls(type(estimator).__name__, certificate, weights, _settings(estimator))

    @classmethod
    @described
    def from_json(cls, model: Mapping[str, Any], certificate: Mapping[str, Any]) -> Fitted:
        """From the two files that `shapedp fit` writes. A certificate of another claim than the model's is refused."""
        if model.get("kind") not in MODELS:
            raise ValueError(f"not a model: the field kind must read one of {', '.join(MODELS)}")
        made = Certificate.from_json(dict(certificate))
        for name in ("epsilon", "delta", "adjacency"):
            stated, found = model.get(name), getattr(made, name)
            if stated != found:
                raise ValueError(refusal("report", "another-model", name=name, found=found, stated=stated))
        try:
            weights = _weights({name: model[name] for name in RELEASED if model.get(name) is not None})
        except (TypeError, ValueError) as wrong:
            raise ValueError(f"not a model: its weights, errors and names do not fit together ({wrong})") from None
        settings = {name: model[name] for name in _SETTINGS if isinstance(model.get(name), str | int | float)}
        return cls(MODELS[model["kind"]], made, weights, _plain(settings))

    def sections(self) -> list[Markup]:
        """The weights with their error bars, and the settings."""
        found = [_weights_section(self.weights)] if self.weights else []
        if self.settings:
            pairs = [(name.replace("_", " "), value) for name, value in self.settings]
            found.append(section("settings", "How it was fitted", el("p", text("fitted")), facts(*pairs)))
        return found


def released(estimator: Any) -> dict[str, Any]:
    """What a fitted estimator releases, under its names in the file of a model."""
    given = {name: getattr(estimator, attribute, None) for name, attribute in RELEASED.items()}
    return {name: value for name, value in given.items() if value is not None}


def _settings(estimator: Any) -> tuple[tuple[str, str], ...]:
    given = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    plain = {k: v for k, v in given.items() if k not in _HIDDEN and isinstance(v, str | int | float | bool)}
    if isinstance(solver := getattr(estimator, "solver_", None), str):
        plain["solver"] = solver
    return _plain(plain)


def _plain(settings: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, number(value) if isinstance(value, float) else str(value)) for name, value in settings.items())


def _weights(held: Mapping[str, Any], intercept: bool = True) -> tuple[Weight, ...]:
    """The released coefficients, from values under the names of `RELEASED`."""
    if "coefficients" not in held:
        return ()
    values = np.atleast_2d(np.asarray(held["coefficients"], dtype=np.float64))

    def spread(name: str, shape: tuple[int, ...]) -> Any:
        return np.broadcast_to(np.asarray(held.get(name, np.nan), dtype=np.float64), shape).tolist()

    errors = spread("standard_errors", values.shape)
    starts, start_errors = (spread(name, values.shape[:1]) for name in ("intercept", "intercept_standard_error"))
    names = [str(name) for name in held.get("features", [f"feature {k + 1}" for k in range(values.shape[1])])]
    labels = [str(label) for label in held.get("classes", ())]
    found = []
    for k, row in enumerate(values.tolist()):
        of = f" ({labels[k] if len(labels) == len(values) else k + 1})" if len(values) > 1 else ""
        if intercept and "intercept" in held:
            found.append(Weight(f"intercept{of}", starts[k], start_errors[k]))
        found += [Weight(f"{name}{of}", *pair) for name, *pair in zip(names, row, errors[k], strict=True)]
    return tuple(found)


def _weights_section(weights: Sequence[Weight]) -> Markup:
    known = all(math.isfinite(weight.error) for weight in weights)
    rows = [[w.name, number(w.value), *([number(w.error, 3)] if known else [])] for w in weights[:_LISTED]]
    listed = table("Released weights", ("weight", "released value", *(["standard error"] if known else [])), rows)
    left = el("p", f"The first {_LISTED} of {whole(len(weights))} are listed.") if len(weights) > _LISTED else None
    drawn = weights[:_DRAWN]
    errors = el("p", text("errors-known" if known else "errors-unknown"))
    picture = charts(_weights_figure(drawn, known)) if all(math.isfinite(w.value) for w in drawn) else None
    shown = listed if len(weights) <= 30 else more("Every weight", listed)
    return section("weights", "What was released", errors, picture, left, shown)


def _weights_figure(weights: Sequence[Weight], known: bool) -> Markup:
    reach = [(w.value - 2 * w.error, w.value + 2 * w.error) if known else (w.value,) * 2 for w in weights]
    y = linear("released value", min(0.0, *(low for low, _ in reach)), max(0.0, *(high for _, high in reach)))
    n = len(weights)
    x = places("weight, in the order of the table", n)
    chart = Chart(x, y, "Released weights", f"{counted(n, 'weight')}, from {number(y.low)} to {number(y.high)}.")
    chart.across((x.low, 0.0), (x.high, 0.0), "plain")
    for k, (weight, (low, high)) in enumerate(zip(weights, reach, strict=True), 1):
        tip = f"{weight.name}: {number(weight.value)}"
        if known:
            tip += f", standard error {number(weight.error, 3)}"
            chart.across((k, low), (k, high), "whisker", tip)
        chart.mark(k, weight.value, "one", tip, radius=3.5)
    note = "Lines reach two standard errors to either side." if known else "Values only."
    return figure("weights-drawn", chart, note)
