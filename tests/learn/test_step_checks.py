"""The four steps before a model: scikit-learn's own checks, and what reaches their noise for 1,000 neighbour pairs."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.learn.conventions import checked

from shapedp import audit
from shapedp.learn import PrivateImputer, PrivateScaler, PublicOneHot, PublicScaler, make_pipeline

CLAIM = {"epsilon": 1.0, "delta": 1e-6, "random_state": 0}
RANGE = {"low": 0.0, "high": 100.0}
STEPS = [
    PublicScaler(-10.0, 10.0),
    PublicScaler(-10.0, 10.0, missing=0.5),
    PrivateScaler(**CLAIM, low=-10.0, high=10.0),
    PrivateScaler(**CLAIM, low=-10.0, high=10.0, by="quantiles"),
    PrivateImputer(**CLAIM, low=-10.0, high=10.0),
    PrivateImputer(**CLAIM, low=-10.0, high=10.0, strategy="median"),
]


WIDTHS = "fits tables of other widths, and categories are named for two columns"
WORDS = "looks for words of scikit-learn's own message; a record or a column too few is refused in ours"
CANNOT_HOLD = {  # of PublicOneHot([[0, 1], [0, 1]]); the other steps pass every check
    **dict.fromkeys(
        (
            "check_fit_score_takes_y",
            "check_dont_overwrite_parameters",
            "check_n_features_in_after_fitting",
            "check_positive_only_tag_during_fit",
            "check_estimators_dtypes",
            "check_dtype_object",
            "check_pipeline_consistency",
            "check_estimators_pickle",
            "check_f_contiguous_array_estimator",
            "check_transformer_general",
            "check_transformer_preserve_dtypes",
            "check_methods_sample_order_invariance",
            "check_methods_subset_invariance",
            "check_dict_unchanged",
            "check_fit2d_predict1d",
        ),
        WIDTHS,
    ),
    **dict.fromkeys(("check_estimators_empty_data_messages", "check_fit2d_1sample", "check_fit2d_1feature"), WORDS),
    "check_transformer_data_not_an_array": "an object that is neither array, frame nor list is not looked into",
}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([*STEPS, PublicOneHot([[0, 1], [0, 1]])])
def test_checks_of_scikit_learn(estimator, check):
    checked(estimator, check, CANNOT_HOLD if isinstance(estimator, PublicOneHot) else ())


BAD = [np.nan, None, np.inf, -np.inf, "text", "", "12", 1e308, -0.0, 10**400, True, 1 + 2j, b"7", pd.NaT]
CONTAINERS = {
    "array": lambda rows: np.array([[as_number(one) for one in row] for row in rows]),
    "objects": lambda rows: rows,
    "list": lambda rows: [list(row) for row in rows],
    "pandas": lambda rows: pd.DataFrame({f"c{i}": pd.Series(list(rows[:, i]), dtype=object) for i in range(2)}),
    "polars": lambda rows: pl.DataFrame(
        {f"c{i}": pl.Series([as_number(one) for one in rows[:, i]], dtype=pl.Float64) for i in range(2)}
    ),
    "arrow": lambda rows: pa.table(
        {f"c{i}": pa.array([as_number(one) for one in rows[:, i]], pa.float64()) for i in range(2)}
    ),
}
PRIVATE = {
    "moments": PrivateScaler(**CLAIM, **RANGE),
    "counted": PrivateScaler(**CLAIM, **RANGE, missing=True),
    "mean": PrivateImputer(**CLAIM, **RANGE),
    "quantiles": PrivateScaler(**CLAIM, **RANGE, by="quantiles"),
    "median": PrivateImputer(**CLAIM, **RANGE, strategy="median"),
    "behind a public step": make_pipeline(PublicScaler(0, 50), PrivateScaler(**CLAIM, low=0.0, high=1.0)),
    "two": make_pipeline(PrivateScaler(**CLAIM, **RANGE), PrivateImputer(**CLAIM, low=-9.0, high=9.0)),
}


def as_number(one):
    return float(one) if isinstance(one, float) else np.nan


def neighbours(rng, adjacency, number):
    """Tables of 12 records, some cells odd, and the same with one record blank, or exchanged for another odd one."""
    for _ in range(number):
        rows = np.empty((12, 2), dtype=object)
        for at in np.ndindex(rows.shape):
            rows[at] = BAD[rng.integers(len(BAD))] if rng.random() < 0.2 else float(rng.uniform(-50, 150))
        other, at = rows.copy(), int(rng.integers(12))
        rows[at] = [float(one) for one in rng.choice([0.0, 100.0, -1e300, 1e300, 50.0], 2)]
        for i in range(2):
            other[at, i] = np.nan if adjacency == "zero-out" else BAD[rng.integers(len(BAD))]
        yield rows, other


@pytest.mark.parametrize("adjacency", ["zero-out", "replace"])
@pytest.mark.parametrize("name", PRIVATE)
def test_neighbours_move_releases_within_the_certified_set(name, adjacency):
    """72 pairs for each of 7 x 2: 1,008 in all, in six containers; shapes and certificates are equal."""
    rng = np.random.default_rng([*map(ord, name + adjacency)])
    step = PRIVATE[name]
    step.set_params(**{one: adjacency for one in step.get_params() if one.rpartition("__")[2] == "adjacency"})
    made = list(neighbours(rng, adjacency, 72))
    kinds = [CONTAINERS[kind] for kind in CONTAINERS]
    pairs = [tuple((kinds[i % 6](one), None) for one in pair) for i, pair in enumerate(made)]
    found = audit.replay(step, pairs, adjacency=adjacency, public=shapes)
    assert found.passed, found.explain()
    assert found.releases >= found.pairs == 72
    assert found.largest > 0.4  # the pairs are worth something


def shapes(step):
    parts = [one for _, one in step.steps] if hasattr(step, "steps") else [step]
    named = [(name, np.shape(one), getattr(one, "dtype", None)) for part in parts for name, one in vars(part).items()]
    return [*named, step.privacy_.to_json()]


def test_what_public_steps_give_for_a_row_depends_on_that_row():
    rng = np.random.default_rng(3)
    steps = [PublicScaler(0, 100), PublicScaler(0, 100, missing=0.5), PublicOneHot([["text", 1.0], ["12", 50.0]])]
    for rows, other in neighbours(rng, "replace", 60):
        at = int(rng.integers(12))
        moved = rows.copy()
        moved[at] = other[at]
        for step in steps:
            for kind in CONTAINERS.values():
                one, two = (step.fit_transform(kind(table)) for table in (rows, moved))
                assert one.shape == two.shape
                assert one.dtype == two.dtype == np.float64
                np.testing.assert_array_equal(np.delete(one, at, 0), np.delete(two, at, 0))
