"""Small tables of numbers: California and Boston housing, electricity, communities, Tecator, wine, bicycles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.numerics.checks import one_of
from shapedp.papers.datasets.base import DataFormatError, Dataset, build, limits, parts
from shapedp.papers.datasets.cards import CARDS
from shapedp.papers.datasets.columns import NAMES, RANGES, bounds_of
from shapedp.papers.datasets.files import Folder, read
from shapedp.papers.datasets.formats import encode, numbers, parse_numbers, read_columns

INF = math.inf
COMMUNITIES_IDENTIFIERS = ("state", "county", "community", "communityname", "fold")
COMMUNITIES_INCOMPLETE = NAMES["communities_incomplete"]
COMMUNITIES_TARGET = "ViolentCrimesPerPop"

TECATOR_SPLITS = {
    "train": slice(0, 129),
    "monitoring": slice(129, 172),
    "test": slice(172, 215),
    "extrapolation_1": slice(215, 223),
    "extrapolation_2": slice(223, 240),
    "usual": slice(0, 215),
}


def load_california_housing(folder: Folder = None) -> Dataset:
    """Block groups of California, 1990: x (20640, 8), y the median house value in 100,000 dollars.

    Parameters: `folder`, as for `load_mnist`. Returns: the data set.

    >>> load_california_housing().x.shape  # doctest: +SKIP
    (20640, 8)
    """
    card = CARDS["california_housing"]
    columns = read_columns(read(card, "california_housing/cal_housing.csv.gz", folder))
    names = ("medianIncome", "housingMedianAge", "totalRooms", "totalBedrooms", "population", "households")
    income, age, rooms, bedrooms, population, households = numbers(columns, names).T
    latitude, longitude, value = numbers(columns, ("latitude", "longitude", "medianHouseValue")).T
    per_household = [total / households for total in (rooms, bedrooms, population)]
    x = np.column_stack([income, age, *per_household[:2], population, per_household[2], latitude, longitude])
    return _build("california_housing", x, value / 100_000, target_bounds=(0.0, INF))


def load_electricity(folder: Folder = None) -> Dataset:
    """Prices in New South Wales by half hour: x (45312, 8), y 1 where the price goes up, rows in order of time.

    Parameters: `folder`, as for `load_mnist`. Returns: the data set.

    >>> load_electricity().x.shape  # doctest: +SKIP
    (45312, 8)
    """
    columns = read_columns(read(CARDS["electricity"], "electricity/electricity.csv.gz", folder))
    classes = ("DOWN", "UP")
    x = numbers(columns, tuple(RANGES["electricity"]))
    return _build("electricity", x, encode(columns["class"], classes), classes=classes)


def load_communities_crime(folder: Folder = None) -> Dataset:
    """Communities of the USA: x (1994, 99), y the violent crimes per person, all scaled to [0, 1] by the publisher.

    The 23 predictors documented as having missing values are left out, as a whole and by name. extra holds the
    published ten folds ("fold") and the names ("communityname").

    Parameters: `folder`, as for `load_mnist`. Returns: the data set.

    >>> load_communities_crime().x.shape  # doctest: +SKIP
    (1994, 99)
    """
    card = CARDS["communities_crime"]
    columns = read_columns(read(card, "communities_crime/communities.csv.gz", folder))
    dropped = {*COMMUNITIES_IDENTIFIERS, *COMMUNITIES_INCOMPLETE, COMMUNITIES_TARGET}
    names = tuple(name for name in columns if name not in dropped)
    fold, target = numbers(columns, ("fold", COMMUNITIES_TARGET)).T
    return build(
        card,
        numbers(columns, names),
        target.copy(),
        feature_names=names,
        bounds=limits(np.zeros(len(names)), np.ones(len(names))),
        target_bounds=(0.0, 1.0),
        extra={"fold": fold.astype(np.int64), "communityname": np.array(columns["communityname"])},
    )


def load_tecator(folder: Folder = None) -> Dataset:
    """Near infrared spectra of meat: x (240, 100) absorbances, y fat in percent.

    Parts: 'train' (129), 'monitoring' (43), 'test' (43), 'extrapolation_1' (8), 'extrapolation_2' (17), and 'usual',
    the first 215. extra: "moisture", "protein" and "principal_components" (240, 22).

    Parameters: `folder`, as for `load_mnist`. Returns: the data set.

    >>> load_tecator().x.shape  # doctest: +SKIP
    (240, 100)
    """
    card = CARDS["tecator"]
    columns = read_columns(read(card, "tecator/tecator.csv.gz", folder))
    names = tuple(f"absorbance_{k}" for k in range(1, 101))
    components = numbers(columns, [name for name in columns if name.startswith("principal")])
    moisture, fat, protein = (column.copy() for column in numbers(columns, ("moisture", "fat", "protein")).T)
    return build(
        card,
        numbers(columns, names),
        fat,
        feature_names=names,
        splits=TECATOR_SPLITS,
        target_bounds=(0.0, 100.0),
        extra={"moisture": moisture, "protein": protein, "principal_components": components},
    )


def load_boston_housing(folder: Folder = None) -> Dataset:
    """Census tracts of Boston, 1970: x (506, 13), y the median house value in 1,000 dollars.

    Column B encodes race; the set is for comparison with older results only.

    Parameters: `folder`, as for `load_mnist`. Returns: the data set.

    >>> load_boston_housing().x.shape  # doctest: +SKIP
    (506, 13)
    """
    values = parse_numbers(read(CARDS["boston_housing"], "boston_housing/housing.data.gz", folder))
    if values.size % 14:
        raise DataFormatError(f"Boston housing must have 14 columns, got {values.size} values")
    table = values.reshape(-1, 14)
    return _build("boston_housing", table[:, :13].copy(), table[:, 13].copy(), target_bounds=(0, INF))


def load_wine_quality(folder: Folder = None) -> Dataset:
    """Red and white wines: x (6497, 11), y a grade from 0 to 10; parts 'red' (1599) and 'white' (4898).

    Parameters: `folder`, as for `load_mnist`. Returns: the data set.

    >>> load_wine_quality().x.shape  # doctest: +SKIP
    (6497, 11)
    """
    colours = ("red", "white")
    tables = []
    for colour in colours:
        content = read(CARDS["wine_quality"], f"wine_quality/winequality-{colour}.csv.gz", folder)
        tables.append(numbers(read_columns(content, delimiter=";"), (*RANGES["wine_quality"], "quality")))
    table = np.concatenate(tables)
    splits = parts(map(len, tables), colours)
    return _build("wine_quality", table[:, :11].copy(), table[:, 11].copy(), splits=splits, target_bounds=(0.0, 10.0))


def load_bike_sharing(folder: Folder = None, *, every: str = "hour") -> Dataset:
    """Rentals in Washington, 2011-2012: x (17379, 12) by the hour or (731, 11) by the day, y their number.

    extra: "casual" and "registered" (which add up to y) and "date".

    Parameters: `folder`, as for `load_mnist`; every: "hour" or "day". Returns: the data set.

    >>> load_bike_sharing().x.shape  # doctest: +SKIP
    (17379, 12)
    """
    one_of("every", every, ("hour", "day"))
    card = CARDS["bike_sharing"]
    columns = read_columns(read(card, f"bike_sharing/{every}.csv.gz", folder))
    ranges = {name: one for name, one in RANGES["bike_sharing"].items() if name != "hr" or every == "hour"}
    casual, registered, total = (one.copy() for one in numbers(columns, ("casual", "registered", "cnt")).T)
    dates = np.array(columns["dteday"], dtype="datetime64[D]")
    return build(
        card,
        numbers(columns, tuple(ranges)),
        total,
        feature_names=tuple(ranges),
        bounds=bounds_of(ranges.values()),
        target_bounds=(0.0, INF),
        extra={"casual": casual, "registered": registered, "date": dates},
    )


def _build(name: str, x: NDArray[Any], y: NDArray[Any], **fields: Any) -> Dataset:
    """A data set whose columns are those documented, with their ranges."""
    ranges = RANGES[name]
    return build(CARDS[name], x, y, feature_names=tuple(ranges), bounds=bounds_of(ranges.values()), **fields)
