"""shapedp fit: a private regression from a file; the model, and the certificate beside it."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

from shapedp.boundary.files import readable
from shapedp.cli.files import write_json
from shapedp.cli.options import add_claim, add_json, add_no_header
from shapedp.cli.output import print_certificate, print_json, table
from shapedp.cli.paths import beside, writing

SCHEMA = 1
SHOWN = 30
SOLVERS = {  # named here, as importing them takes a second that no other command should wait for
    "linear": ("mixing", "mixing-paper", "adassp", "adassp-joint", "suffstats", "sheffet", "sheffet-rdp"),
    "logistic": ("output", "bolt-on", "objective", "kifer", "cd", "mixing"),
}

_EPILOG = """\
examples:
  shapedp fit linear houses.parquet --target price --feature-bound 3 --target-bound 1 \\
      --epsilon 1 --delta 1e-6 --output model.json
  shapedp fit logistic loans.csv --target default --classes no,yes --features age,income,debt \\
      --feature-bound 2 --solver mixing --epsilon 1 --delta 1e-6 --output model.json

Bounds come from what you know about the units of the data, never from the data: a record with a larger norm is
pulled in to the bound, so a bound that is too small biases the model and one that is too large adds noise. Scale the
columns first, by constants known beforehand, so that each matters. A record with a missing value counts as zeros.

The names and types of the columns and the number of records are public. The cells of a csv file have no type, and a
feature of text would be missing throughout: for csv name the features, columns of numbers, by --features. The file is
read in one pass, with fixed memory, by every solver of `linear` and by `logistic --solver mixing`; the others load it.
"""


def register(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "fit",
        help="fit a private linear or logistic regression to a file",
        description="Fit a regression under (epsilon, delta) to a parquet, csv or feather file (or a folder of parquet "
        "files). Writes the model as JSON and its certificate; nothing is written unless the claim is certified.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", choices=("linear", "logistic"), help="least squares, or two or more classes")
    parser.add_argument("data", type=Path, help="the records: parquet, csv or feather")
    parser.add_argument("--target", required=True, metavar="COLUMN", help="the column to predict")
    parser.add_argument(
        "--features",
        metavar="A,B,...",
        help="the columns to predict from; required for csv (default for parquet and feather: all others)",
    )
    add_no_header(parser)
    parser.add_argument(
        "--feature-bound", type=float, required=True, metavar="B", help="bound on the L2 norm of a record's features"
    )
    parser.add_argument("--target-bound", type=float, metavar="T", help="bound on |target| (linear)")
    parser.add_argument("--classes", metavar="A,B", help="the labels (logistic; default: those that occur, public)")
    add_claim(parser)
    parser.add_argument(
        "--adjacency", choices=("zero-out", "replace"), default="zero-out", help="the neighbour relation"
    )
    parser.add_argument(
        "--solver",
        default="auto",
        help="; ".join(f"{model}: {', '.join(names)}" for model, names in SOLVERS.items()) + " (default: auto)",
    )
    parser.add_argument("--sketch-rows", type=int, metavar="K", help="rows of the sketch, for solvers that mix")
    parser.add_argument("--no-intercept", action="store_true", help="no constant term")
    parser.add_argument("-o", "--output", type=Path, required=True, help="where the model goes (JSON)")
    parser.add_argument("--certificate", type=Path, help="where the certificate goes (default: beside the model)")
    parser.add_argument("--unsafe", action="store_true", help="release though the claim is not certified (research)")
    add_json(parser)
    writing(parser, "output", "certificate", certified=True)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
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
    write_json(certificate, record)
    write_json(options.output, model)
    if options.json:
        print_json({"model": model, "certificate": record})
        return 0
    _summarise(estimator, model, options)
    print(f"written    {options.output} and {certificate}")
    return 0


def _check(options: argparse.Namespace) -> None:
    """The command line, before the data are opened."""
    if options.model == "linear" and options.target_bound is None:
        raise ValueError("fit linear needs --target-bound, a bound on the size of the target")
    if options.model == "linear" and options.classes is not None:
        raise ValueError("--classes is for fit logistic")
    if options.model == "logistic" and options.target_bound is not None:
        raise ValueError("--target-bound is for fit linear: labels need none")
    readable(options.data)


def _prepared(options: argparse.Namespace) -> tuple[Any, Any, Any]:
    """The estimator, and what its `fit` is given."""
    try:
        from shapedp.learn import LinearRegression, LogisticRegression
        from shapedp.learn.csvfiles import CsvFiles
        from shapedp.learn.streams import Columns, source_of
        from shapedp.learn.tables import labels_of
    except ImportError as error:
        raise ImportError(f"fit needs scikit-learn: pip install 'shapedp[learn]' ({error})") from None
    shared = {
        "epsilon": options.epsilon,
        "delta": options.delta,
        "feature_bound": options.feature_bound,
        "adjacency": options.adjacency,
        "solver": options.solver,
        "sketch_rows": options.sketch_rows,
        "fit_intercept": not options.no_intercept,
        "unsafe": options.unsafe,
        "progress": sys.stderr.isatty() and not options.json,
    }
    source = source_of(options.data, header=not options.no_header)
    assert source is not None
    if options.features is None and isinstance(source, CsvFiles):
        raise ValueError(
            "name the features: --features a,b,c "
            "(a csv column has no type; text would make every record count as zeros)"
        )
    others = [name for name in source.names if name != options.target]
    features = others if options.features is None else [name.strip() for name in options.features.split(",")]
    x = Columns(options.data, features, header=not options.no_header)
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
    if options.solver == "mixing" and len(classes) == 2:
        return estimator, x, options.target
    frame, labels = x.loaded(options.target)
    return estimator, frame, labels


def _labels(options: argparse.Namespace, source: Any) -> list[Any]:
    """The classes in the type of the target's column; in a csv file, whose cells have none, numbers where they can."""
    from shapedp.learn.csvfiles import CsvFiles

    words = [word.strip() for word in options.classes.split(",")]
    if isinstance(source, CsvFiles):
        return [_whole(source.label(word)) for word in words]
    if options.target not in source.names or source.odd((options.target,)):
        return words
    truth: dict[str, Any] = {"true": True, "false": False}
    try:
        return [truth[word.lower()] if word.lower() in truth else _whole(float(word)) for word in words]
    except ValueError:
        raise ValueError(
            f"--classes must be numbers, as the column {options.target!r} is, got {options.classes!r}"
        ) from None


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _described(estimator: Any, options: argparse.Namespace) -> dict[str, Any]:
    """The model as JSON."""
    names = [str(name) for name in estimator.feature_names_in_]
    described = {
        "schema": SCHEMA,
        "kind": f"{options.model}-regression",
        "target": options.target,
        "features": names,
        "coefficients": estimator.coef_.tolist(),
        "intercept": estimator.intercept_ if options.model == "linear" else estimator.intercept_.tolist(),
        "solver": estimator.solver_,
        "feature_bound": estimator.feature_bound,
        "epsilon": estimator.epsilon,
        "delta": estimator.delta,
        "adjacency": estimator.adjacency,
        "unsafe": estimator.privacy_.verdict != "certified",
    }
    if options.model == "logistic":
        return {**described, "classes": estimator.classes_.tolist()}
    described["target_bound"] = estimator.target_bound
    if hasattr(estimator, "coef_standard_error_"):
        described["standard_errors"] = estimator.coef_standard_error_.tolist()
        described["intercept_standard_error"] = estimator.intercept_standard_error_
    return described


def _summarise(estimator: Any, model: dict[str, Any], options: argparse.Namespace) -> None:
    """Coefficients and certificate as text."""
    count = len(model["features"])
    features = f"{count} feature{'s' if count > 1 else ''}"
    print(f"fitted     {options.model} regression of {options.target}, {features}, ", end="")
    print(f"solver {estimator.solver_}")
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
    print(table(headers, rows if len(rows) <= SHOWN else [*rows[: SHOWN - 2], ["..."] * len(headers), rows[-1]]))
    print_certificate(estimator.privacy_)
    if model["unsafe"]:
        print("unsafe     the claim is NOT certified: do not publish this model")
