"""The models of diffprivlib's tutorials beside diffprivlib: linear, logistic, naive Bayes, k-means and PCA.

Both libraries get the same columns, brought to [-1, 1] by public ranges, and the same epsilon; ours also has a delta of
1e-5, which diffprivlib's models do not use. What is measured is the median over fits of an error on rows that were held
out (k-means, PCA: on all rows), as a multiple of the error without privacy: squared error, misclassified share, squared
distance to the nearest centre, squared distance to the plane. `lines` counts the lines of code of a fit, here and in
peers/models.py. Needs SHAPEDP_DATA for Adult and California housing.
"""

from __future__ import annotations

import ast
import inspect
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import KMeans as PlainKMeans
from sklearn.datasets import load_diabetes, load_digits
from sklearn.decomposition import PCA as PlainPCA
from sklearn.linear_model import LinearRegression as PlainLinear
from sklearn.linear_model import LogisticRegression as PlainLogistic
from sklearn.naive_bayes import GaussianNB as PlainNB

from _harness import Peers, Result
from peers import models as theirs_written
from shapedp.learn import PCA, GaussianNB, KMeans, LinearRegression, LogisticRegression
from shapedp.papers.datasets import MissingDataError, load_adult, load_california_housing

EPSILONS, DELTA = (0.3, 1.0, 3.0), 1e-5
SMOOTHING = 0.03  # of naive Bayes once more: variances raised by that share of the largest possible
DIABETES = [(18, 80), (1, 2), (15, 45), (60, 140), (90, 310), (40, 250), (20, 100), (2, 10), (3, 6.5), (55, 130)]
HOUSES = [(0, 15), (0, 52), (0, 10), (0, 3), (0, 5000), (0, 6), (32, 42), (-125, -114)]
PERSONS = [(17, 90), (1, 16), (0, 20_000), (0, 5000), (1, 99)]  # all numbers of Adult but the weight of the sample
Array = np.ndarray[Any, np.dtype[np.float64]]
Parameters = list[Any]


@dataclass(frozen=True, eq=False)
class Case:
    """A task on data in [-1, 1]; `size` is the number of clusters or components."""

    task: str
    name: str
    x: Array
    y: Array
    x_test: Array
    y_test: Array
    size: int = 0


def ends(ranges: list[tuple[float, float]]) -> Array:
    """Lower ends, upper ends."""
    return np.array(ranges, float).T


def within(values: Array, low: Any, high: Any) -> Array:
    """Columns clipped to a public range and brought to [-1, 1]."""
    low, high = np.asarray(low, float), np.asarray(high, float)
    return 2 * (np.clip(values, low, high) - low) / (high - low) - 1


def halves(task: str, name: str, x: Array, y: Array) -> Case:
    """A quarter of the rows held out."""
    order = np.random.default_rng(0).permutation(len(x))
    test, train = order[: len(x) // 4], order[len(x) // 4 :]
    return Case(task, f"{task}, {name} ({len(train)} x {x.shape[1]})", x[train], y[train], x[test], y[test])


def cases() -> list[Case]:
    """All tasks; those whose files are missing are left out."""
    raw = load_diabetes(scaled=False)
    found = [halves("linear", "diabetes", within(raw.data, *ends(DIABETES)), within(raw.target, 0, 350))]
    try:
        house, adult = load_california_housing(), load_adult()
        found.append(halves("linear", "California", within(house.x, *ends(HOUSES)), within(house.y, 0, 5)))
        x = within(adult.x[:, [0, 2, 3, 4, 5]], *ends(PERSONS))
        found += [halves(task, "Adult", x, adult.y.astype(float)) for task in ("logistic", "bayes")]
    except MissingDataError:
        pass
    rng = np.random.default_rng(0)
    centres = np.array([[-0.6, -0.5], [0.5, -0.6], [-0.4, 0.6], [0.6, 0.4]])
    blobs = np.clip(centres[rng.integers(0, 4, 5000)] + 0.12 * rng.standard_normal((5000, 2)), -1, 1)
    none = np.zeros(0)
    found.append(Case("clusters", "k-means, four groups (5000 x 2)", blobs, none, blobs, none, 4))
    digits = within(load_digits().data, 0, 16)
    return [*found, Case("components", f"PCA, digits {digits.shape}, 8 components", digits, none, digits, none, 8)]


def plain(case: Case) -> Parameters:
    """Without privacy."""
    x, y = case.x, case.y
    if case.task in ("linear", "logistic"):
        model = (PlainLinear() if case.task == "linear" else PlainLogistic()).fit(x, y)
        return [np.ravel(model.coef_), np.ravel(model.intercept_)]
    if case.task == "bayes":
        model = PlainNB().fit(x, y)
        return [*model.theta_, *model.var_, model.class_prior_]
    if case.task == "clusters":
        return list(PlainKMeans(case.size, n_init=10, random_state=0).fit(x).cluster_centers_)
    model = PlainPCA(case.size).fit(x)
    return [model.mean_, *model.components_]


def ours(case: Case, epsilon: float, smoothing: float = 0.0) -> Parameters:
    """One fit of shapedp's."""
    claim, norm = {"epsilon": epsilon, "delta": DELTA}, float(np.sqrt(case.x.shape[1]))
    x, y = case.x.copy(), case.y
    if case.task == "linear":
        model = LinearRegression(**claim, feature_bound=norm, target_bound=1.0).fit(x, y)
        return [model.coef_, [model.intercept_]]
    if case.task == "logistic":
        model = LogisticRegression(**claim, feature_bound=norm, classes=[0, 1]).fit(x, y)
        return [np.ravel(model.coef_), np.ravel(model.intercept_)]
    if case.task == "bayes":
        model = GaussianNB(**claim, low=-1, high=1, classes=[0, 1], var_smoothing=smoothing).fit(x, y)
        return [*model.theta_, *model.var_, model.class_prior_]
    if case.task == "clusters":
        return list(KMeans(case.size, **claim, low=-1, high=1).fit(x).cluster_centers_)
    model = PCA(case.size, **claim, feature_bound=norm).fit(x)
    return [model.mean_, *model.components_]


def error(case: Case, found: Parameters) -> float:
    """The error of what was learned."""
    x, y = case.x_test, case.y_test
    parts = [np.asarray(part, float) for part in found]
    if case.task == "linear":
        return float(np.mean((x @ parts[0] + parts[1] - y) ** 2))
    if case.task == "logistic":
        return float(np.mean((x @ parts[0] + parts[1] > 0) != y))
    if case.task == "bayes":
        logs = [
            np.log(parts[4][k]) - 0.5 * (np.log(parts[2 + k]) + (x - parts[k]) ** 2 / parts[2 + k]).sum(1)
            for k in (0, 1)
        ]
        return float(np.mean((logs[1] > logs[0]) != y))
    if case.task == "clusters":
        return float(np.mean(np.min([((x - one) ** 2).sum(1) for one in parts], axis=0)))
    moved, plane = x - parts[0], np.array(parts[1:])
    return float(np.mean((moved**2).sum(1)) - np.mean(((moved @ plane.T) ** 2).sum(1)))


def lines(function: Callable[..., Any]) -> dict[str, int]:
    """The lines of each branch of a function that fits by task; the last branch has no test of its own."""
    (written,) = ast.parse(inspect.getsource(function)).body
    assert isinstance(written, ast.FunctionDef)
    branches = [one for one in written.body if isinstance(one, ast.If)]
    after = written.body[written.body.index(branches[-1]) + 1 :]
    found = {ast.unparse(one.test).split("'")[1]: len(one.body) for one in branches}
    return found | {"components": len(after)}


def medians(case: Case, epsilon: float, runs: int, theirs: Callable[..., Any]) -> tuple[float, float]:
    """The median errors of both libraries."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "data.npz"
        np.savez(path, x=case.x, y=case.y)
        other = theirs("diffprivlib_model", task=case.task, path=str(path), epsilon=epsilon, size=case.size, runs=runs)
        own = [ours(case, epsilon) for _ in range(runs)]
    return tuple(float(np.median([error(case, one) for one in each])) for each in (own, other))  # type: ignore[return-value]


def smoothed(result: Result, case: Case, least: float, runs: int) -> None:
    """Naive Bayes with larger variances, without privacy and with."""
    found = plain(case)
    raised = [*found[:2], *(one + SMOOTHING for one in found[2:4]), found[4]]
    what = f"{case.name}, variances raised by {SMOOTHING:g}"
    result.figure(f"{what}, not private: error", error(case, raised) / least)
    for epsilon in EPSILONS:
        own = np.median([error(case, ours(case, epsilon, SMOOTHING)) for _ in range(runs)])
        result.figure(f"{what}, epsilon {epsilon:g}: error, shapedp", float(own) / least)


def run(quick: bool) -> Result:
    runs = 3 if quick else 10
    with Peers(".venv-diffprivlib") as peers:
        result = Result("estimators", what=f"errors as multiples of those without privacy, medians of {runs} fits")
        result.peers = peers.versions
        for case in cases():
            least = error(case, plain(case))
            for epsilon in EPSILONS[1:2] if quick else EPSILONS:
                own, other = medians(case, epsilon, runs, peers.value)
                what = f"{case.name}, epsilon {epsilon:g}: error"
                result.figure(f"{what}, shapedp", own / least)
                result.figure(f"{what}, diffprivlib", other / least)
            if case.task == "bayes":
                smoothed(result, case, least, runs)
    own_lines, their_lines = lines(ours), lines(theirs_written.fitted)
    for task in theirs_written.MODELS:
        result.figure(f"{task}: lines of code, shapedp", own_lines[task])
        result.figure(f"{task}: lines of code, diffprivlib", their_lines[task])
    result.notes += [
        f"Ours claims (epsilon, {DELTA:g}) for a record that counts as none; diffprivlib claims epsilon alone.",
        "Both get the same public ranges; a norm is bounded by the root of the number of columns.",
        "Naive Bayes on Adult errs less where variances are larger, for its columns are no bell curves: diffprivlib's "
        "larger noise raises them by chance, `var_smoothing` does by choice.",
    ]
    return result
