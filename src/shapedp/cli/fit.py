"""shapedp fit: a private regression from a file; the model, and the certificate beside it."""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

import numpy as np

from shapedp.boundary.documents import write
from shapedp.boundary.refusals import refusal
from shapedp.cli.output import certificate_lines, show, table, written
from shapedp.cli.paths import beside, beside_certificate

SCHEMA = 1
SHOWN = 30
_SHARED = ("epsilon", "delta", "feature_bound", "adjacency", "solver", "sketch_rows", "unsafe")
_STATED = ("feature_bound", "target_bound", "epsilon", "delta", "adjacency")
# The solvers are named here because importing them takes seconds that `fit --help` should not wait for.
LINEAR = (
    "refined",
    "suffstats",
    "mixing",
    "hessian-mixing",
    "hessian-mixing-paper",
    "adassp-joint",
    "adassp",
    "boosted",
    "descent",
    "sheffet",
    "sheffet-rdp",
    "mixing-paper",
)
LOGISTIC = ("output", "bolt-on", "objective", "kifer", "cd", "mixing", "descent")


def fit(options: argparse.Namespace) -> int:
    """Fit, write, summarise."""
    certificate = beside(options)
    _check(options)
    estimator, x, y = _prepared(options)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        estimator.fit(x, y)
    for message in dict.fromkeys(str(one.message) for one in raised):
        print(f"shapedp: note: {message}", file=sys.stderr)
    record = {**estimator.privacy_.to_json(), "unsafe": estimator.privacy_.verdict != "certified"}
    model = _described(estimator, options)
    with beside_certificate(certificate, record):
        write(options.output, model)
    lines = [*_summary(estimator, model, options), *written(options.output, certificate)]
    return show(options, {"model": model, "certificate": record}, *lines)


def _check(options: argparse.Namespace) -> None:
    """The command line, before the data are opened."""
    if options.model == "linear" and options.target_bound is None:
        raise ValueError("fit linear needs --target-bound, a bound on the size of the target")
    if options.model == "linear" and options.classes is not None:
        raise ValueError("--classes is for fit logistic")
    if options.model == "logistic" and options.target_bound is not None:
        raise ValueError("--target-bound is for fit linear: labels need none")
    is_csv = options.data.suffix.lower() == ".csv"
    if is_csv and options.features is None:
        raise ValueError(refusal("cli", "features"))
    if is_csv and options.types is None:
        raise ValueError(refusal("cli", "types"))
    if options.types is not None and not is_csv:
        raise ValueError("--types is for csv files: parquet and feather files declare the types of their columns")
    _types(options)


def _types(options: argparse.Namespace) -> Any:
    """What --types declares: "number" for all columns, or the type of each by name."""
    if options.types is None or options.types.strip() == "number":
        return None if options.types is None else "number"
    pairs = [part.rpartition("=") for part in options.types.split(",")]
    found = {name.strip(): kind.strip() for name, _, kind in pairs}
    if "" in found or len(found) < len(pairs) or not set(found.values()) <= {"number", "text"}:
        raise ValueError(refusal("cli", "types-form", given=options.types))
    named = [*_features(options), *([options.target] if options.model == "linear" else [])]
    missing = [name for name in named if name not in found]
    if missing:
        raise ValueError(f"--types must name every column that is used, {', '.join(missing)} too")
    text = [name for name in named if found[name] == "text"]
    if text:
        raise ValueError(refusal("cli", "text", names=", ".join(text)))
    return found


def _features(options: argparse.Namespace) -> list[str]:
    return [name.strip() for name in options.features.split(",")]


def _prepared(options: argparse.Namespace) -> tuple[Any, Any, Any]:
    """The estimator, and what its `fit` is given."""
    try:
        from shapedp.learn import LinearRegression, LogisticRegression
        from shapedp.tables.blocks import Columns, labels_of
        from shapedp.tables.sources import source_of
    except ImportError as error:
        raise ImportError(f"fit needs scikit-learn: pip install 'shapedp[learn]' ({error})") from None
    shared = {name: getattr(options, name) for name in _SHARED}
    shared |= {"fit_intercept": not options.no_intercept, "progress": sys.stderr.isatty() and not options.json}
    source = source_of(options.data, header=not options.no_header)
    assert source is not None
    others = [name for name in source.names if name != options.target]
    features = others if options.features is None else _features(options)
    x = Columns(options.data, features, header=not options.no_header, types=_types(options))
    if options.model == "linear":
        x.as_table(options.target, None)
        return LinearRegression(**shared, target_bound=options.target_bound), x, options.target
    x.as_table(options.target, (0, 1))
    if options.classes is None:
        print(f"shapedp: note: which labels occur in {options.target} is treated as public", file=sys.stderr)
        classes = labels_of(x, options.target).tolist()
    else:
        classes = _labels(options, source)
    estimator = LogisticRegression(**shared, classes=classes)
    if options.solver in ("mixing", "descent") and len(classes) == 2:
        return estimator, x, options.target
    frame, labels = x.loaded(options.target)
    return estimator, frame, labels


def _labels(options: argparse.Namespace, source: Any) -> list[Any]:
    """The classes in the type of the target's column; in a csv file, whose cells have none, numbers where they can."""
    words = [word.strip() for word in options.classes.split(",")]
    if not source.declared:
        return [_whole(source.label(word)) for word in words]
    if options.target not in source.names or source.not_numeric((options.target,)):
        return words
    truth: dict[str, Any] = {"true": True, "false": False}
    try:
        return [truth[word.lower()] if word.lower() in truth else _whole(float(word)) for word in words]
    except ValueError:
        raise ValueError(refusal("cli", "classes", options=options)) from None


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _described(estimator: Any, options: argparse.Namespace) -> dict[str, Any]:
    """The model as JSON."""
    from shapedp.report.estimators import released  # takes time, too

    stated = {name: getattr(estimator, name, None) for name in _STATED}
    return {
        "schema": SCHEMA,
        "kind": f"{options.model}-regression",
        "target": options.target,
        **{name: np.asarray(value).tolist() for name, value in released(estimator).items()},
        "solver": estimator.solver_,
        **{name: value for name, value in stated.items() if value is not None},
        "unsafe": estimator.privacy_.verdict != "certified",
    }


def _summary(estimator: Any, model: dict[str, Any], options: argparse.Namespace) -> list[str]:
    """Coefficients and certificate as text."""
    columns, headers = [[*model["features"], "(intercept)"]], ["feature"]
    if options.model == "linear":
        headers.append("coefficient")
        columns.append([f"{value:.6g}" for value in (*model["coefficients"], model["intercept"])])
        if "standard_errors" in model:
            headers.append("standard error")
            errors = (*model["standard_errors"], model["intercept_standard_error"])
            columns.append([f"{value:.3g}" for value in errors])
    else:
        labels = model["classes"][1:] if len(model["classes"]) == 2 else model["classes"]
        for label, weights, start in zip(labels, model["coefficients"], model["intercept"], strict=True):
            headers.append(f"for {label}")
            columns.append([f"{value:.6g}" for value in (*weights, start)])
    rows = [list(row) for row in zip(*columns, strict=True)]
    if len(rows) > SHOWN:
        rows = [*rows[: SHOWN - 2], ["..."] * len(headers), rows[-1]]
    count = len(model["features"])
    features = f"{count} feature{'s' if count > 1 else ''}"
    return [
        f"fitted     {options.model} regression of {options.target}, {features}, solver {estimator.solver_}",
        table(headers, rows),
        *certificate_lines(estimator.privacy_),
        *(["unsafe     the claim is NOT certified: do not publish this model"] if model["unsafe"] else []),
    ]
