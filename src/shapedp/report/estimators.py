"""A fitted estimator: its certificate, its weights and their standard errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from shapedp.boundary.documents import described
from shapedp.privacy import Certificate
from shapedp.report.figures import counted, number, whole
from shapedp.report.markup import Child, Markup, el
from shapedp.report.page import charts, facts, figure, more, section, table
from shapedp.report.svg import Chart, linear, places

_DRAWN = 40
_LISTED = 1000
_SETTINGS = ("target", "solver", "feature_bound", "target_bound")
_FITTED = {
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
    """A released coefficient, with its standard error where that is known."""

    name: str
    value: float
    error: float | None = None


@dataclass(frozen=True, eq=False)
class Fitted:
    """What is shown of a fitted estimator: all of it was released."""

    kind: str
    certificate: Certificate
    weights: tuple[Weight, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, estimator: Any) -> Fitted:
        """From an estimator with `privacy_`; `coef_`, `intercept_`, their standard errors and names where "
        "it has them."""
        certificate = getattr(estimator, "privacy_", None)
        if not isinstance(certificate, Certificate):
            raise TypeError(
                f"a report is of a mechanism, a certificate, a plan, a ledger or a fitted estimator with privacy_, "
                f"got {type(estimator).__name__}"
            )
        return cls(type(estimator).__name__, certificate, _weights(estimator), _settings(estimator))

    @classmethod
    @described
    def from_json(cls, model: Mapping[str, Any], certificate: Mapping[str, Any]) -> Fitted:
        """From the two files that `shapedp fit` writes. A certificate of another claim than the model's is refused."""
        if model.get("kind") not in MODELS:
            raise ValueError(f"not a model: the field kind must read one of {', '.join(MODELS)}")
        made = Certificate.from_json(dict(certificate))
        for name in ("epsilon", "delta", "adjacency"):
            if model.get(name) != getattr(made, name):
                raise ValueError(
                    f"the certificate is not the model's: its {name} is {getattr(made, name)!r}, the model states "
                    f"{model.get(name)!r}"
                )
        held = {attribute: model[name] for name, attribute in _FITTED.items() if model.get(name) is not None}
        try:
            weights = _weights(SimpleNamespace(**held))
        except (TypeError, ValueError) as wrong:
            raise ValueError(f"not a model: its weights, errors and names do not fit together ({wrong})") from None
        settings = {name: model[name] for name in _SETTINGS if isinstance(model.get(name), str | int | float)}
        return cls(MODELS[model["kind"]], made, weights, _plain(settings))

    def sections(self) -> list[Markup]:
        """The weights with their error bars, and the settings."""
        found = [_weights_section(self.weights)] if self.weights else []
        if self.settings:
            pairs: list[tuple[str, Child]] = [(name.replace("_", " "), value) for name, value in self.settings]
            found.append(section("settings", "How it was fitted", el("p", _STATISTICS), facts(pairs)))
        return found


_STATISTICS = (
    "The model was computed from noisy statistics of the data, or from noisy steps; nothing else about the data "
    "reached it but the number of records and of columns. The noise described below is that of the statistics."
)


def _settings(estimator: Any) -> tuple[tuple[str, str], ...]:
    given = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    plain = {k: v for k, v in given.items() if k not in _HIDDEN and isinstance(v, str | int | float | bool)}
    if isinstance(solver := getattr(estimator, "solver_", None), str):
        plain["solver"] = solver
    return _plain(plain)


def _plain(settings: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, number(value) if isinstance(value, float) else str(value)) for name, value in settings.items())


def _weights(estimator: Any) -> tuple[Weight, ...]:
    if getattr(estimator, "coef_", None) is None:
        return ()
    values = np.atleast_2d(np.asarray(estimator.coef_, dtype=np.float64))
    errors = _errors(estimator, "coef_standard_error_", values.shape)
    starts = np.broadcast_to(np.asarray(getattr(estimator, "intercept_", 0.0), dtype=np.float64), len(values))
    start_errors = _errors(estimator, "intercept_standard_error_", (len(values),))
    names = [str(name) for name in getattr(estimator, "feature_names_in_", range(1, values.shape[1] + 1))]
    if not hasattr(estimator, "feature_names_in_"):
        names = [f"feature {name}" for name in names]
    labels = [str(label) for label in getattr(estimator, "classes_", ())]
    found = []
    for k, row in enumerate(values):
        of = f" ({labels[k] if len(labels) == len(values) else k + 1})" if len(values) > 1 else ""
        if getattr(estimator, "fit_intercept", True) and hasattr(estimator, "intercept_"):
            found.append(Weight(f"intercept{of}", float(starts[k]), _one(start_errors, k)))
        found += [
            Weight(f"{name}{of}", float(v), _one(errors, k, j))
            for j, (name, v) in enumerate(zip(names, row, strict=True))
        ]
    return tuple(found)


def _errors(estimator: Any, name: str, shape: tuple[int, ...]) -> Any:
    given = getattr(estimator, name, None)
    return None if given is None else np.broadcast_to(np.asarray(given, dtype=np.float64), shape)


def _one(errors: Any, *place: int) -> float | None:
    return None if errors is None else float(errors[place])


def _weights_section(weights: Sequence[Weight]) -> Markup:
    known = all(weight.error is not None and math.isfinite(weight.error) for weight in weights)
    text = (
        "Standard errors are for the noise added for privacy and the sampling of the data together, as far "
        "as they follow "
        "from what was released; the bias of regularisation is not in them."
        if known
        else "Standard errors do not follow from what this solver releases, so none are given."
    )
    rows = [[w.name, number(w.value), "" if w.error is None else number(w.error, 3)] for w in weights[:_LISTED]]
    headers = ("weight", "released value", "standard error")
    listed = table("Released weights", headers if known else headers[:2], rows if known else [r[:2] for r in rows])
    left = el("p", f"The first {_LISTED} of {whole(len(weights))} are listed.") if len(weights) > _LISTED else None
    drawn = (
        charts(_weights_figure(weights[:_DRAWN], known))
        if all(math.isfinite(w.value) for w in weights[:_DRAWN])
        else None
    )
    return section(
        "weights",
        "What was released",
        el("p", text),
        drawn,
        left,
        listed if len(weights) <= 30 else more("Every weight", listed),
    )


def _weights_figure(weights: Sequence[Weight], known: bool) -> Markup:
    reach = [
        (w.value - 2 * (w.error or 0.0), w.value + 2 * (w.error or 0.0)) if known else (w.value,) * 2 for w in weights
    ]
    y = linear("released value", min(0.0, *(low for low, _ in reach)), max(0.0, *(high for _, high in reach)))
    n = len(weights)
    x = places("weight, in the order of the table", n)
    chart = Chart(x, y, "Released weights", f"{counted(n, 'weight')}, from {number(y.low)} to {number(y.high)}.")
    chart.across((x.low, 0.0), (x.high, 0.0), "plain")
    for k, (weight, (low, high)) in enumerate(zip(weights, reach, strict=True), 1):
        tip = f"{weight.name}: {number(weight.value)}"
        if known:
            tip += f", standard error {number(weight.error or 0.0, 3)}"
            chart.across((k, low), (k, high), "whisker", tip)
        chart.mark(k, weight.value, "one", tip, radius=3.5)
    note = "Lines reach two standard errors to either side." if known else "Values only."
    return figure("weights-drawn", chart, note)
