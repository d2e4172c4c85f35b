"""How often the 95% intervals of private tables hold: every verb, many releases of Adult, every kind of noise.

    python experiments/tables/coverage.py                 # 10,000 releases of each plan, as in results/coverage.txt
    python experiments/tables/coverage.py --releases 200  # quick

Each row of Adult is a person, and bounds and domains hold all rows: nothing is cut. The truth comes from pandas, not
from the table. Exact sums are kept between releases and the noise is drawn anew. Private keys and bounds are drawn anew
as well; the rows are summed once for each of their outcomes.

An interval holds as often as it says, or more often where it is conservative. Each interval is counted by itself. It
may be five deviations off: 93.9% to 96.1% over 10,000 releases.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import shapedp as sdp
from shapedp.mechanisms.selection.prefixes import Prefixes
from shapedp.private import drawn, mixed, unknown
from shapedp.private.dropped import Dropped, DroppedRows
from shapedp.private.engine import dropped_rows
from shapedp.private.layout import layout
from shapedp.workloads import WorkloadMechanism
from shapedp.workloads.counting import counted

sys.path.insert(0, str(Path(__file__).parents[1] / "workloads"))

from adult import frame, schema

LEVEL = 0.95
CLAIM = {"epsilon": 1.0, "delta": 1e-6}
HOURS, BY = "hours-per-week", ("education", "sex")
EDGES = [0, 20, 30, 40, 50, 60, 101]
LEVELS = (0.1, 0.5, 0.9)


@dataclass
class Held:
    """How often each interval of one question held."""

    question: str
    noise: str
    conservative: bool = False
    inside: Any = 0
    seen: Any = 0

    def saw(self, low: Any, high: Any, truth: Any, shown: Any = True) -> None:
        """One more release; `shown` says which of the intervals it gave."""
        low, high, truth = (np.atleast_1d(np.asarray(one, dtype=np.float64)) for one in (low, high, truth))
        self.inside = self.inside + (shown & (low <= truth) & (truth <= high))
        self.seen = self.seen + (shown & np.ones(truth.size, dtype=bool)).astype(int)

    @property
    def shares(self) -> np.ndarray:
        """Of each interval that was given often enough to count."""
        often = self.seen >= self.seen.max() / 2
        return self.inside[often] / self.seen[often]

    @property
    def holds(self) -> bool:
        """Whether every interval held as often as it should, within five deviations."""
        off = 5 * math.sqrt(LEVEL * (1 - LEVEL) / self.seen.max())
        return bool((self.shares >= LEVEL - off).all() and (self.conservative or (self.shares <= LEVEL + off).all()))

    def line(self) -> str:
        """A row of the table."""
        shares = [f"{100 * one:7.2f}" for one in (self.shares.mean(), self.shares.min(), self.shares.max())]
        kind = "at least" if self.conservative else "exact"
        words = f"{self.question:46} {self.noise:27} {kind:9} {self.shares.size:5} {self.seen.max():7}"
        return " ".join([words, *shares, "" if self.holds else "FAILS"]).rstrip()


HEAD = f"{'question':46} {'noise':27} {'promise':9} {'cells':>5} {'draws':>7} {'held, %':>7} {'least':>7} {'most':>7}"


@dataclass
class Study:
    """Questions that are released together: `draw` makes a release and tells each of `held` what it saw."""

    held: list[Held]
    draw: Callable[[Any], None]


def private(data: pd.DataFrame, **options: Any) -> sdp.PrivateTable:
    """Adult as a private table: a row is a person."""
    given = {"person": None, "bounds": {HOURS: (0, 100), "age": (0, 100)}, "domains": labels(*BY), **options}
    return sdp.table(data, **given)


def labels(*names: str) -> dict[str, Any]:
    """The domains of columns."""
    return {name: list(schema()[name]["labels"]) for name in names}


def groups(data: pd.DataFrame, *by: str) -> Callable[[Callable[[Any], Any]], np.ndarray]:
    """What pandas computes of each group, in the order of the answers."""
    order = pd.MultiIndex.from_product(labels(*by).values()) if len(by) > 1 else labels(*by)[by[0]]
    return lambda made: made(data.groupby(list(by) if len(by) > 1 else by[0])).reindex(order).to_numpy(dtype=float)


def ends(columns: Any, name: str) -> tuple[Any, Any]:
    """The ends of an answer's intervals."""
    return np.array(columns[name + "_low"]), np.array(columns[name + "_high"])


def law(made: Any) -> str:
    """The noise of a workload's mechanism, in words."""
    if isinstance(made, WorkloadMechanism):
        return "Gaussian"
    (name,) = {f"{'discrete ' if one.whole else ''}{one.law.capitalize()}" for one in made.noise}
    return name


def summed(data: pd.DataFrame) -> Study:
    """Counts, sums, means, variances and a histogram in one plan."""
    t = private(data).drop_missing(HOURS, "age")
    plan = t.plan(
        t.group_by(*BY).agg(n=sdp.count(), s=sdp.sum(HOURS), m=sdp.mean("age")),
        t.group_by("sex").agg(v=sdp.variance("age")),
        t.histogram("age", EDGES),
        t.agg(m=sdp.mean(HOURS)),
        **CLAIM,
    )
    assert law(plan.mechanism) == "Gaussian"  # tables that overlap
    cells, tables = groups(data, *BY), plan.exact_tables()
    sizes = cells(lambda rows: rows.size())
    large = sizes >= 1000
    age = cells(lambda rows: rows["age"].mean())
    rows = [
        (Held("count by education, sex", "Gaussian"), 0, "n", sizes, large | True),
        (Held("sum by education, sex", "Gaussian"), 0, "s", cells(lambda rows: rows[HOURS].sum()), large | True),
        (Held("mean by education, sex, >= 1000 rows", "Gaussian"), 0, "m", age, large),
        (Held("mean by education, sex, fewer rows", "Gaussian", True), 0, "m", age, ~large),
        (Held("variance by sex", "Gaussian", True), 1, "v", groups(data, "sex")(lambda g: g["age"].var(ddof=0)), ...),
        (Held("histogram of age", "Gaussian"), 2, "count", np.histogram(data["age"], EDGES)[0], ...),
        (Held("mean of all", "Gaussian"), 3, "m", np.array([data[HOURS].mean()]), ...),
    ]

    def draw(rng: Any) -> None:
        found = plan.answers(plan.mechanism.release(tables, rng=rng)).tables
        for held, place, name, truth, which in rows:
            low, high = ends(found[place], name)
            held.saw(low[which], high[which], truth[which])

    return Study([row[0] for row in rows], draw)


def usual(data: pd.DataFrame) -> Study:
    """One table by group at the default noise, which is Laplace noise there."""
    t, held = private(data), list[tuple[Held, Any, str, Any]]()
    grouped, by, cells = t.group_by(*BY), t.group_by("sex"), groups(data, *BY)
    two = groups(data, "sex")
    for question, name, verb, truth in (
        (grouped.agg(n=sdp.count()), "n", "count by education, sex", cells(lambda rows: rows.size())),
        (grouped.agg(s=sdp.sum(HOURS)), "s", "sum by education, sex", cells(lambda rows: rows[HOURS].sum())),
        (by.agg(m=sdp.mean(HOURS)), "m", "mean by sex", two(lambda rows: rows[HOURS].mean())),
        (by.agg(v=sdp.variance("age")), "v", "variance by sex", two(lambda rows: rows["age"].var(ddof=0))),
        (t.histogram("age", EDGES), "count", "histogram of age", np.histogram(data["age"], EDGES)[0]),
    ):
        plan = t.plan(question, **CLAIM)
        held.append((Held(f"default: {verb}", law(plan.mechanism), name != "s"), plan, name, truth))
    assert {one.noise for one, *_ in held} == {"Laplace", "discrete Laplace"}
    tables = [plan.exact_tables() for _, plan, _, _ in held]

    def draw(rng: Any) -> None:
        for (one, plan, name, truth), exact in zip(held, tables, strict=True):
            (found,) = plan.answers(plan.mechanism.release(exact, rng=rng)).tables
            one.saw(*ends(found, name), truth)

    return Study([one for one, *_ in held], draw)


def workload(data: pd.DataFrame, noise: str) -> Study:
    """Counts, sums and means of a workload with noise on the grid of whole numbers, or a finer one."""
    asked = sdp.Workload({name: {"labels": one} for name, one in labels(*BY).items()}, measures={HOURS: (0, 100)})
    plain = noise != "laplace"  # whole numbers are for counts alone
    asked = asked.marginal(*BY).marginal("sex") if plain else asked.means(HOURS, *BY)
    made = asked.calibrate(epsilon=1.0, delta=0.0, noise=noise)
    word = f"{'discrete ' if plain else ''}{made.noise[0].law.capitalize()}{', cells' if noise == 'cells' else ''}"
    exact, cells = counted(made, data), groups(data, *BY)
    truths = [cells(lambda rows: rows.size()), cells(lambda rows: rows[HOURS].sum())]
    held = [Held("count by education, sex", word, plain)]
    if plain:
        truths[1] = groups(data, "sex")(lambda rows: rows.size())
        held.append(Held("count by sex", word, plain))
    else:
        held += [Held("sum by education, sex", word), Held("mean by education, sex", word, True)]

    def draw(rng: Any) -> None:
        release = made.release(exact, rng=rng)
        for one, term, truth in zip(held, asked.terms, truths, strict=False):
            one.saw(*(np.ravel(end) for end in release.interval(term.name, LEVEL)), truth)
        if not plain:
            _, low, high = release.means(HOURS, *BY, confidence=LEVEL)
            held[2].saw(low.ravel(), high.ravel(), truths[1] / truths[0])

    return Study(held, draw)


def rounded(data: pd.DataFrame) -> Study:
    """All tables of two of five columns, as whole numbers with delta > 0: rounded Gaussian noise."""
    names = (*BY, "race", "workclass", "relationship")
    asked = sdp.Workload({name: {"labels": one} for name, one in labels(*names).items()}).marginals(2)
    kept = data[np.logical_and.reduce([data[name].isin(one) for name, one in labels(*names).items()])]
    made = asked.calibrate(**CLAIM, noise="discrete")
    exact, held = counted(made, kept), Held("all tables of two of five columns", "discrete Gaussian", True)
    pairs = [[names[place] for place in term.attributes] for term in asked.terms]
    truth = np.concatenate([np.nan_to_num(groups(kept, *pair)(lambda rows: rows.size())) for pair in pairs])

    def draw(rng: Any) -> None:
        release = made.release(exact, rng=rng)
        both = [release.interval(term.name, LEVEL) for term in asked.terms]
        held.saw(*(np.concatenate([np.ravel(one[k]) for one in both]) for k in (0, 1)), truth)

    assert {one.law for one in made.noise} == {"gaussian"}
    return Study([held], draw)


def additive(data: pd.DataFrame) -> Study:
    """A histogram as a vector, with noise of several families."""
    counts, size, pure = np.histogram(data["age"], EDGES)[0], len(EDGES) - 1, {"epsilon": 1.0, "delta": 0.0}
    made = {
        "Gaussian": sdp.calibrate("gaussian", sdp.L2(1.0, dim=size), **CLAIM),
        "Laplace": sdp.calibrate("laplace", sdp.L1(1.0, dim=size), **pure),
        "Laplace of whole numbers": sdp.calibrate("laplace", sdp.L1(1.0, dim=size).of_integers(), **pure),
        "logistic": sdp.calibrate("logistic", sdp.L1(1.0, dim=size), **CLAIM),
    }
    held = {name: Held("histogram of age, a vector", name) for name in made}

    def draw(rng: Any) -> None:
        for name, mechanism in made.items():
            held[name].saw(*mechanism.release(counts, rng=rng).interval(LEVEL), counts)

    return Study(list(held.values()), draw)


def prefixes(data: pd.DataFrame) -> Study:
    """Many quantiles of a column at once, from prefix counts."""
    grid, levels = np.arange(101), np.arange(1, 10) / 10
    made = Prefixes.calibrate(grid, levels, adjacency="add-remove", **CLAIM)
    counts, held = np.bincount(data["age"].astype(int), minlength=101), Held("sdp.quantiles of age", "Gaussian", True)
    truth = lower_quantiles(data["age"], levels)
    return Study([held], lambda rng: held.saw(*made.release(counts, rng=rng).interval(LEVEL), truth))


def lower_quantiles(values: pd.Series, levels: Any) -> np.ndarray:
    """The least value up to which a share of the rows lies."""
    ranked = np.sort(values.to_numpy())
    return ranked[np.ceil(np.asarray(levels) * ranked.size - 1e-9).astype(int) - 1]


def drawn_alone(data: pd.DataFrame) -> Study:
    """Quantiles by group and the most frequent values, drawn with pure privacy."""
    t = private(data)
    plan = t.plan(
        t.group_by("sex").quantiles(HOURS, LEVELS),
        t.median("fnlwgt", grid=list(range(0, 1_600_000, 4000))),
        t.top_k("education", 3),
        epsilon=1.0,
        delta=0.0,
    )
    middle = (lower_quantiles(data["fnlwgt"], [0.5]) / 4000).round() * 4000
    counts = data["education"].value_counts()
    word = "permute-and-flip" if len(plan.drawn) == len(LEVELS) + 2 else "Laplace, a tree"
    quantiles = [Held(f"quantile {level:g} by sex", word, True) for level in LEVELS]
    median, top = (
        Held("median of fnlwgt, 400 cells", "permute-and-flip", True),
        Held("top_k: the shortfall", "permute-and-flip", True),
    )
    truths = np.array([lower_quantiles(data[data["sex"] == one][HOURS], LEVELS) for one in labels("sex")["sex"]])

    def draw(rng: Any) -> None:
        by_sex, alone, best = plan.release(rng=rng).tables
        for held, level, truth in zip(quantiles, LEVELS, truths.T, strict=True):
            held.saw(*ends(by_sex, f"q{level:g}"), truth)
        median.saw(*ends(alone, "median"), middle)
        left, behind = counts.copy(), []
        for name in best["education"]:
            behind.append(left.max() - left[name])
            left = left.drop(name)
        top.saw(0.0, best["shortfall"], behind)

    return Study([*quantiles, median, top], draw)


def several(data: pd.DataFrame, delta: float) -> Study:
    """Nineteen quantiles of a column by group, from counts up to each of 400 cells."""
    t, levels, points = private(data), np.arange(1, 20) / 20, np.arange(0, 1_600_000, 4000.0)
    plan = t.plan(t.group_by("sex").quantiles("fnlwgt", levels, grid=points), epsilon=1.0, delta=delta)
    held = Held("19 quantiles by sex, 400 cells", "shaped Gaussian" if delta else "Laplace, a tree", True)
    truth = []
    for one in labels("sex")["sex"]:
        values = data[data["sex"] == one]["fnlwgt"]
        near = points[np.searchsorted(points[:-1] + 2000, values, side="right")]
        truth.append(lower_quantiles(pd.Series(near), levels))

    def draw(rng: Any) -> None:
        (found,) = plan.release(rng=rng).tables
        both = [ends(found, f"q{level:g}") for level in levels]
        held.saw(*(np.ravel([one[k] for one in both]) for k in (0, 1)), np.ravel(np.transpose(truth)))

    return Study([held], draw)


def dropped(data: pd.DataFrame) -> Study:
    """Three rows to a person, of whom one counts: two thirds of the rows are dropped."""
    whole = data[: len(data) // 3 * 3]
    t = sdp.table(whole.assign(id=np.arange(len(whole)) // 3), person="id", domains=labels(*BY))
    part = DroppedRows.of(t, 0.05, "add-remove")
    exact, held = (len(whole) // 3, 2 * len(whole) // 3), Held("share of rows dropped", "Laplace", True)

    def draw(rng: Any) -> None:
        noisy = [one.release(np.array([n]), rng=rng).value[0] for one, n in zip(part.mechanisms, exact, strict=True)]
        held.saw(*Dropped(np.array(noisy), part.mechanisms).interval(LEVEL), 2 / 3)

    assert dropped_rows(t, layout(t, [t.count()]), part.most).tolist() == list(exact)
    return Study([held], draw)


def together(data: pd.DataFrame) -> Study:
    """Counts, means and medians of one mixed plan."""
    t, cells = private(data), groups(data, "sex")
    plan = t.plan(t.group_by("sex").agg(n=sdp.count(), m=sdp.mean(HOURS), q=sdp.median("age")), **CLAIM)
    middle = [lower_quantiles(data[data["sex"] == one]["age"], [0.5])[0] for one in labels("sex")["sex"]]
    truths = [cells(lambda rows: rows.size()), cells(lambda rows: rows[HOURS].mean()), np.array(middle)]
    noise = law(plan.sums)
    kinds = (
        ("count", noise, "discrete" in noise),
        ("mean", noise, noise != "Gaussian"),
        ("median", "exponential", True),
    )
    held = [Held(f"mixed plan: {verb} by sex", noise, cautious) for verb, noise, cautious in kinds]

    def draw(rng: Any) -> None:
        (found,) = plan.release(rng=rng).tables
        for one, name, truth in zip(held, "nmq", truths, strict=True):
            one.saw(*ends(found, name), truth)

    return Study(held, draw)


def keys(data: pd.DataFrame) -> Study:
    """Counts and means of groups whose names were private."""
    t = private(data, domains={"education": "private"})
    plan = t.plan(t.group_by("education").agg(n=sdp.count(), m=sdp.mean(HOURS)), **CLAIM)
    cells, names = groups(data, "education"), labels("education")["education"]
    truths = {"n": cells(lambda rows: rows.size()), "m": cells(lambda rows: rows[HOURS].mean())}
    words = {"n": "private keys: count", "m": "private keys: mean"}
    held = {name: Held(word, "Gaussian after thresholds", name == "m") for name, word in words.items()}

    def draw(rng: Any) -> None:
        (found,) = plan.release(rng=rng).tables
        places = [names.index(label) for label in found["education"]]
        shown = np.isin(np.arange(len(names)), places)
        for name, one in held.items():
            both = np.zeros((2, len(names)))
            both[:, places] = ends(found, name)
            one.saw(*both, truths[name], shown)

    return Study(list(held.values()), draw)


def bounds(data: pd.DataFrame) -> Study:
    """Sums, means, variances and medians between bounds that were private; the truth is that between them."""
    t = private(data, bounds={HOURS: "private"})
    asked = {"s": sdp.sum(HOURS), "m": sdp.mean(HOURS), "v": sdp.variance(HOURS), "q": sdp.median(HOURS, grid=64)}
    plan = t.plan(t.agg(**asked), **CLAIM)
    words = {"s": "sum", "m": "mean", "v": "variance", "q": "median"}
    noises = {"q": "exponential after Laplace"}
    held = {
        name: Held(f"private bounds: {word}", noises.get(name, "Gaussian after Laplace"), name in "vq")
        for name, word in words.items()
    }

    def draw(rng: Any) -> None:
        made = plan.release(rng=rng)
        low, high = made.release.found[HOURS]
        cut = data[HOURS].clip(low, high)
        points = np.linspace(low, high, 65)
        near = points[np.searchsorted(points[:-1] + np.diff(points) / 2, cut, side="right")]  # the cell of each row
        truths = {"s": cut.sum(), "m": cut.mean(), "v": cut.var(ddof=0), "q": lower_quantiles(pd.Series(near), [0.5])}
        for name, one in held.items():
            one.saw(*ends(made.tables[0], name), truths[name])

    return Study(list(held.values()), draw)


STUDIES: tuple[Callable[[pd.DataFrame], Study], ...] = (
    summed,
    usual,
    lambda data: workload(data, "laplace"),
    lambda data: workload(data, "discrete"),
    lambda data: workload(data, "cells"),
    rounded,
    additive,
    prefixes,
    drawn_alone,
    lambda data: several(data, 0.0),
    lambda data: several(data, CLAIM["delta"]),
    dropped,
    together,
    keys,
    bounds,
)


def remembered(function: Callable[..., Any], key: Callable[..., str]) -> Callable[..., Any]:
    """The same function, computed once for each key."""
    known: dict[str, Any] = {}

    def found(*given: Any) -> Any:
        name = key(*given)
        if name not in known:
            known[name] = function(*given)
        return known[name]

    return found


@contextmanager
def sums_kept() -> Iterator[None]:
    """Exact sums, and the noise planned for them, are kept between releases: the same rows give the same."""

    def of_layout(made: Any) -> str:
        shapes = [one.to_json() for one in made.workload.schema.attributes]
        return repr((shapes, made.features, made.workload.terms, sorted(made.conditions), made.groups))

    def of_table(table: Any, made: Any, needed: Any) -> str:
        return repr((id(table.source), of_layout(made), sorted(needed)))

    places = {
        (mixed, "counted"): of_table,
        (drawn, "counted"): of_table,
        (unknown, "counted"): of_table,
        (unknown, "key_counts"): lambda table, column: repr((id(table.source), column)),
        (mixed, "_noise"): lambda made, mu, delta, options: repr((of_layout(made), mu, delta, options)),
    }
    before = {place: getattr(*place) for place in places}
    for place, key in places.items():
        setattr(*place, remembered(before[place], key))
    try:
        yield
    finally:
        for place, function in before.items():
            setattr(*place, function)


def measured(data: pd.DataFrame, make: Callable[[pd.DataFrame], Study], releases: int, seed: int = 0) -> list[Held]:
    """What one study saw over many releases."""
    with sums_kept():
        made, rng = make(data), np.random.default_rng(seed)
        for _ in range(releases):
            made.draw(rng)
    return made.held


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", type=int, default=10_000, help="of each plan")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the number of the first study")
    options = parser.parse_args()
    data, start, failed = frame(), time.process_time(), 0
    print(HEAD)
    for make in STUDIES[options.first :]:
        for held in measured(data, make, options.releases):
            print(held.line(), flush=True)
            failed += not held.holds
    print(f"{failed} failed; {time.process_time() - start:.0f} s of processor time")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
