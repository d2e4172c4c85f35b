"""Tables of people in other libraries: each task as its documentation does it, from a file to numbers.

A function prepares what may be prepared once and returns what is timed. `draws=0`: one release as a user makes it.
`draws=n`: n releases, for their errors, from what is set up once.

Every release is epsilon-differentially private with delta = 0, for one row more or less (Adult) or one person more or
less (visits). That meets (epsilon, delta) for every delta. Noise for which delta is used, Gaussian noise, is larger in
all these tasks at (1, 1e-6).
"""

import itertools
import os
import pathlib
import sys
import tempfile
import warnings

TOWNS = ["A", "B", "C"]
SEXES = ["Female", "Male"]
HOURS = [float(k) for k in range(101)]


# OpenDP: Context API over Polars.


def opendp_table(task, file, degrees, draws=0):
    """Values of one release, or of many."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    warnings.simplefilter("ignore")
    keys = pl.LazyFrame([list(pair) for pair in itertools.product(degrees, SEXES)], ["education", "sex"], orient="row")
    hours = pl.col.hours.cast(float).fill_null(0.0).fill_nan(0.0)
    towns = pl.LazyFrame({"town": TOWNS})
    cost = pl.col.cost.fill_null(0.0).fill_nan(0.0)
    person = dp.unit_of(contributions=1, identifier="id") if task == "visits" else dp.unit_of(contributions=1)
    margin = dp.polars.Margin(by=["town"], max_groups=3, max_length=10_000_000) if task == "visits" else None
    by_sex = dp.polars.Margin(by=["sex"], invariant="keys", max_groups=2, max_length=100_000)
    by_both = dp.polars.Margin(by=["education", "sex"], invariant="keys", max_groups=32, max_length=100_000)
    weeks = 3 if task == "weeks" else 1
    asked = {
        "histogram": lambda q: q.group_by("education", "sex").agg(dp.len(signed=True)).with_keys(keys),
        "means": lambda q: q.group_by("sex").agg(hours.dp.mean((0.0, 100.0))),
        "quantiles": lambda q: q.select(
            hours.dp.median(HOURS).alias("median"), hours.dp.quantile(0.9, HOURS).alias("p90")
        ),
        "quantiles by group": lambda q: q.group_by("education", "sex").agg(
            hours.dp.median(HOURS).alias("median"), hours.dp.quantile(0.9, HOURS).alias("p90")
        ),
        "total": lambda q: q.select(pl.col.hours.cast(int).fill_null(0).dp.sum((0, 100))),
        "visits": lambda q: (
            q.truncate_per_group(3)
            .group_by("town")
            .agg(dp.len(signed=True).alias("n"), cost.dp.sum((0.0, 500.0)))
            .with_keys(towns)
        ),
        "weeks": lambda q: q.group_by("education", "sex").agg(dp.len(signed=True)).with_keys(keys),
    }[task]

    def context():
        return dp.Context.compositor(
            data=pl.scan_parquet(file),
            privacy_unit=person,
            privacy_loss=dp.loss_of(epsilon=float(weeks)),
            split_evenly_over=weeks,
            margins=[margin] if margin else [dp.polars.Margin(max_length=100_000), by_sex, by_both],
        )

    def values(frame):
        names = [name for name in ("education", "sex", "town") if name in frame.columns]
        frame = (frame.sort(*names) if names else frame).drop(names)
        if task == "visits":
            return [*frame["n"].to_list(), *(frame["cost"] / frame["n"]).to_list()]
        return [value for column in frame.columns for value in frame[column].to_list()]

    def release():
        opened = context()
        return [value for _ in range(weeks) for value in values(asked(opened.query()).release().collect())]

    if not draws:
        return release
    made, rows = asked(context().query()).resolve(), pl.read_parquet(file).lazy()
    return lambda: [values(made(rows).collect()) for _ in range(draws)]


# diffprivlib: tools on arrays.


def diffprivlib_table(task, file, degrees, draws=0):
    """Values of one release; sums and counts of disjoint groups get the whole of epsilon each."""
    import numpy as np
    import pandas as pd
    from diffprivlib import BudgetAccountant, tools

    warnings.simplefilter("ignore")

    def histogram(frame, **given):
        codes = [frame.education.map({one: k for k, one in enumerate(degrees)}), frame.sex.map(SEXES.index)]
        sizes = [len(degrees), len(SEXES)]
        found, _ = tools.histogramdd(codes, bins=sizes, range=[(0, size) for size in sizes], **given)
        return found.reshape(-1).tolist()

    def means(frame):
        """`tools.mean` takes the number of rows for public: sums and counts do not."""
        found = []
        for one in SEXES:
            of = frame.sex.to_numpy() == one
            total = tools.sum(np.where(of, frame.hours, 0), epsilon=0.5, bounds=(0, 100))
            found.append(float(total / max(tools.count_nonzero(of, epsilon=0.5), 1)))
        return found

    def quantiles(frame):
        """With hours as they are, the 15,217 rows of 40 leave no interval a probability above 0, and it fails."""
        hours = frame.hours.to_numpy() + np.random.default_rng().uniform(-0.49, 0.49, len(frame))
        return [float(tools.quantile(hours, level, epsilon=0.5, bounds=(0, 100))) for level in (0.5, 0.9)]

    def by_group(frame):
        parts = [frame[(frame.education == one) & (frame.sex == sex)] for one in degrees for sex in SEXES]
        pairs = [quantiles(part) for part in parts]
        return [pair[k] for k in range(2) for pair in pairs]

    def weeks(frame):
        budget = BudgetAccountant(epsilon=3.0, delta=0.0)
        return [value for _ in range(3) for value in histogram(frame, epsilon=1.0, accountant=budget)]

    asked = {
        "histogram": lambda frame: histogram(frame, epsilon=1.0),
        "means": means,
        "quantiles": quantiles,
        "quantiles by group": by_group,
        "total": lambda frame: [float(tools.sum(frame.hours.to_numpy(), epsilon=1.0, bounds=(0, 100), dtype=int))],
        "weeks": weeks,
    }[task]
    if not draws:
        return lambda: asked(pd.read_parquet(file))
    frame = pd.read_parquet(file)
    return lambda: [asked(frame) for _ in range(draws)]


# Tumult Analytics: sessions over Spark.


def _spark():
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    place = pathlib.Path(tempfile.gettempdir()) / f"tumult-{os.getpid()}"
    made = SparkSession.builder.master("local[*]").config("spark.sql.warehouse.dir", str(place))
    given = {"ui.enabled": "false", "driver.host": "127.0.0.1", "driver.bindAddress": "127.0.0.1"}
    given |= {"sql.shuffle.partitions": "2", "driver.memory": "2g", "ui.showConsoleProgress": "false"}
    for name, value in given.items():
        made = made.config(f"spark.{name}", value)
    session = made.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def tumult_table(task, file, degrees, draws=0):
    """Values of one release; for many, noise of the laws and scales that Tumult states for its own queries."""
    warnings.simplefilter("ignore")
    spark = _spark()
    from tmlt.analytics import AddOneRow, AddRowsWithID, KeySet, MaxRowsPerID, PureDPBudget, QueryBuilder, Session

    def rows():  # a builder changes with every call
        return QueryBuilder("rows")

    def both():
        return rows().groupby(KeySet.from_dict({"education": degrees, "sex": SEXES}))

    def towns():
        return rows().enforce(MaxRowsPerID(3)).groupby(KeySet.from_dict({"town": TOWNS}))

    queries = {
        "histogram": lambda: [(both().count(), 1)],
        "means": lambda: [(rows().groupby(KeySet.from_dict({"sex": SEXES})).average("hours", 0, 100), 1)],
        "quantiles": lambda: [(rows().quantile("hours", level, 0, 100), 0.5) for level in (0.5, 0.9)],
        "quantiles by group": lambda: [(both().quantile("hours", level, 0, 100), 0.5) for level in (0.5, 0.9)],
        "total": lambda: [(rows().sum("hours", 0, 100), 1)],
        "visits": lambda: [(towns().count(), 0.5), (towns().sum("cost", 0, 500), 0.5)],
        "weeks": lambda: [(both().count(), 1)] * 3,
    }[task]()

    def session():
        return Session.from_dataframe(
            privacy_budget=PureDPBudget(sum(share for _, share in queries)),
            source_id="rows",
            dataframe=spark.read.parquet(file),
            protected_change=AddRowsWithID("id") if task == "visits" else AddOneRow(),
        )

    def release():
        opened, found = session(), []
        for query, share in queries:
            frame = opened.evaluate(query, PureDPBudget(share)).toPandas()
            names = [name for name in ("education", "sex", "town") if name in frame]
            frame = (frame.sort_values(names) if names else frame).drop(columns=names)
            found.append([float(value) for value in frame.iloc[:, 0]])
        if task == "visits":
            return [*found[0], *(total / n for n, total in zip(*found, strict=True))]
        return [value for part in found for value in part]

    if not draws:
        return release
    stated = [session()._noise_info(query, PureDPBudget(share)) for query, share in queries]
    return lambda: _tumult_draws(task, file, degrees, stated, draws)


def _tumult_draws(task, file, degrees, stated, draws):
    """Releases with Tumult's own samplers, on exact sums: a release through Spark takes seconds."""
    import numpy as np
    import pandas as pd
    from sympy import Rational
    from tmlt.core.domains.numpy_domains import NumpyFloatDomain, NumpyIntegerDomain
    from tmlt.core.domains.pandas_domains import PandasSeriesDomain
    from tmlt.core.measurements.noise_mechanisms import AddGeometricNoise, AddLaplaceNoise
    from tmlt.core.measurements.pandas_measurements.series import NoisyQuantile
    from tmlt.core.measures import PureDP

    frame = pd.read_parquet(file)
    scales = [(one["noise_mechanism"].name, one["noise_parameter"]) for part in stated for one in part]

    def noisy(values, place):
        law, scale = scales[place]
        if law == "GEOMETRIC":
            return [AddGeometricNoise(scale)(int(value)) for value in values]
        return [AddLaplaceNoise(NumpyFloatDomain(), scale)(float(value)) for value in values]

    def quantiles(parts):
        domain = PandasSeriesDomain(NumpyIntegerDomain())
        makers = [NoisyQuantile(domain, PureDP(), level, 0, 100, Rational(1, 2)) for level in (0.5, 0.9)]
        return [float(make(part)) for make in makers for part in parts]

    if task in ("histogram", "weeks"):
        size = frame.groupby(["education", "sex"]).size()
        exact = [int(size.get((one, sex), 0)) for one in degrees for sex in SEXES]
        return [noisy(exact, 0) for _ in range(draws)]
    if task == "total":
        return [noisy([frame.hours.clip(0, 100).sum()], 0) for _ in range(draws)]
    if task == "means":  # centred: 100 and 2 are the scales of the sum of (hours - 50) and of the count
        by = frame.assign(hours=frame.hours.clip(0, 100) - 50).groupby("sex").hours
        totals, sizes = by.sum()[SEXES], by.size()[SEXES]
        pairs = ((noisy(totals, 0), noisy(sizes, 1)) for _ in range(draws))
        return [[50 + total / max(n, 1) for total, n in zip(*pair, strict=True)] for pair in pairs]
    if task == "visits":
        by = frame.assign(cost=frame.cost.clip(0, 500)).groupby("town").cost
        sizes, totals = by.size()[TOWNS], by.sum()[TOWNS]
        pairs = ((noisy(sizes, 0), noisy(totals, 1)) for _ in range(draws))
        return [[*counts, *(total / n for n, total in zip(counts, costs, strict=True))] for counts, costs in pairs]
    groups = [frame.hours]
    if task == "quantiles by group":
        groups = [frame.hours[(frame.education == one) & (frame.sex == sex)] for one in degrees for sex in SEXES]
    groups = [part.astype(np.int64).reset_index(drop=True) for part in groups]
    return [quantiles(groups) for _ in range(draws)]
