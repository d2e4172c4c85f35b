"""Tables: Adult, California and Boston housing, electricity, communities, Tecator, wine, bicycles."""

from __future__ import annotations

import numpy as np

from shapedp.numerics.checks import one_of
from shapedp.papers.datasets.base import DataFormatError, Dataset, limits, parts
from shapedp.papers.datasets.cards import CHOICES, NAMES, RANGES, bounds_of, build, one_hot_names
from shapedp.papers.datasets.files import Folder, read
from shapedp.papers.datasets.formats import encode, numbers, parse_numbers, read_columns, read_rows, set_one_hot

ADULT_COLUMNS, ADULT_CATEGORIES, ADULT_NUMBERS = NAMES["adult"], CHOICES["adult"], RANGES["adult"]
COMMUNITIES_IDENTIFIERS = ("state", "county", "community", "communityname", "fold")
COMMUNITIES_INCOMPLETE = NAMES["communities_incomplete"]
COMMUNITIES_TARGET = "ViolentCrimesPerPop"

TECATOR_PARTS = ("train", "monitoring", "test", "extrapolation_1", "extrapolation_2")
TECATOR_SPLITS = {**parts((129, 43, 43, 8, 17), TECATOR_PARTS), "usual": slice(0, 215)}


def load_adult(folder: Folder = None, *, missing: str = "zero") -> Dataset:
    """Persons of the 1994 census: x (48842, 105), y 1 where the income exceeds 50,000 dollars; 'train' and 'test'.

    Columns: six numbers as published, then one 0/1 column per category of adult.names. missing="zero": an unknown
    category is a block of zeros; missing="drop": rows with one are left out (30162 + 15060 remain).
    extra["complete"] tells the rows without missing values.

    Parameters: `folder`, as for `load_mnist`; missing: "zero" keeps rows with an unknown category, "drop" leaves
    them out. Returns: the data set.

    >>> load_adult().x.shape  # doctest: +SKIP
    (48842, 105)
    """
    one_of("missing", missing, ("zero", "drop"))
    train, test = (read_rows(read(f"adult/adult.{part}.gz", folder), 15) for part in ("data", "test"))
    if missing == "drop":
        train, test = ([row for row in rows if "?" not in row] for rows in (train, test))
    rows = train + test
    columns = {name: [row[k] for row in rows] for k, name in enumerate(ADULT_COLUMNS)}
    blocks = [numbers(columns, tuple(ADULT_NUMBERS))]
    for name, known in ADULT_CATEGORIES.items():
        blocks.append(np.zeros((len(rows), len(known))))
        set_one_hot(blocks[-1], encode(columns[name], known, missing="?"))
    names = (*ADULT_NUMBERS, *one_hot_names(ADULT_CATEGORIES))
    x, y = np.concatenate(blocks, axis=1), encode([row[14].removesuffix(".") for row in rows], ("<=50K", ">50K"))
    bounds = bounds_of(ADULT_NUMBERS.get(name, (0, 1)) for name in names)
    splits, extra = parts(map(len, (train, test))), {"complete": np.array(["?" not in row for row in rows])}
    return build("adult", x, y, feature_names=names, splits=splits, bounds=bounds, extra=extra)


def load_california_housing(folder: Folder = None) -> Dataset:
    """Block groups of California, 1990: x (20640, 8), y the median house value in 100,000 dollars.

    Parameters: `folder`, as for `load_mnist`. Returns: the data set.

    >>> load_california_housing().x.shape  # doctest: +SKIP
    (20640, 8)
    """
    columns = read_columns(read("california_housing/cal_housing.csv.gz", folder))
    names = ("medianIncome", "housingMedianAge", "totalRooms", "totalBedrooms", "population", "households")
    income, age, rooms, bedrooms, population, households = numbers(columns, names).T
    latitude, longitude, value = numbers(columns, ("latitude", "longitude", "medianHouseValue")).T
    per_household = [total / households for total in (rooms, bedrooms, population)]
    x = np.column_stack([income, age, *per_household[:2], population, per_household[2], latitude, longitude])
    return build("california_housing", x, value / 100_000)


def load_electricity(folder: Folder = None) -> Dataset:
    """Prices in New South Wales by half hour: x (45312, 8), y 1 where the price goes up, rows in order of time.

    Parameters: `folder`, as for `load_mnist`. Returns: the data set.

    >>> load_electricity().x.shape  # doctest: +SKIP
    (45312, 8)
    """
    columns = read_columns(read("electricity/electricity.csv.gz", folder))
    x = numbers(columns, tuple(RANGES["electricity"]))
    return build("electricity", x, encode(columns["class"], ("DOWN", "UP")))


def load_communities_crime(folder: Folder = None) -> Dataset:
    """Communities of the USA: x (1994, 99), y the violent crimes per person, all scaled to [0, 1] by the publisher.

    The 23 predictors documented as having missing values are left out, as a whole and by name. extra holds the
    published ten folds ("fold") and the names ("communityname").

    Parameters: `folder`, as for `load_mnist`. Returns: the data set.

    >>> load_communities_crime().x.shape  # doctest: +SKIP
    (1994, 99)
    """
    columns = read_columns(read("communities_crime/communities.csv.gz", folder))
    dropped = {*COMMUNITIES_IDENTIFIERS, *COMMUNITIES_INCOMPLETE, COMMUNITIES_TARGET}
    names = tuple(name for name in columns if name not in dropped)
    fold, target = numbers(columns, ("fold", COMMUNITIES_TARGET)).T
    bounds = limits(np.zeros(len(names)), np.ones(len(names)))
    extra = {"fold": fold.astype(np.int64), "communityname": np.array(columns["communityname"])}
    x = numbers(columns, names)
    return build("communities_crime", x, target.copy(), feature_names=names, bounds=bounds, extra=extra)


def load_tecator(folder: Folder = None) -> Dataset:
    """Near infrared spectra of meat: x (240, 100) absorbances, y fat in percent.

    Parts: 'train' (129), 'monitoring' (43), 'test' (43), 'extrapolation_1' (8), 'extrapolation_2' (17), and 'usual',
    the first 215. extra: "moisture", "protein" and "principal_components" (240, 22).

    Parameters: `folder`, as for `load_mnist`. Returns: the data set.

    >>> load_tecator().x.shape  # doctest: +SKIP
    (240, 100)
    """
    columns = read_columns(read("tecator/tecator.csv.gz", folder))
    names = tuple(f"absorbance_{k}" for k in range(1, 101))
    components = numbers(columns, [name for name in columns if name.startswith("principal")])
    moisture, fat, protein = (column.copy() for column in numbers(columns, ("moisture", "fat", "protein")).T)
    extra = {"moisture": moisture, "protein": protein, "principal_components": components}
    return build("tecator", numbers(columns, names), fat, feature_names=names, splits=TECATOR_SPLITS, extra=extra)


def load_boston_housing(folder: Folder = None) -> Dataset:
    """Census tracts of Boston, 1970: x (506, 13), y the median house value in 1,000 dollars.

    Column B encodes race; the set is for comparison with older results only.

    Parameters: `folder`, as for `load_mnist`. Returns: the data set.

    >>> load_boston_housing().x.shape  # doctest: +SKIP
    (506, 13)
    """
    values = parse_numbers(read("boston_housing/housing.data.gz", folder))
    if values.size % 14:
        raise DataFormatError(f"Boston housing must have 14 columns, got {values.size} values")
    table = values.reshape(-1, 14)
    return build("boston_housing", table[:, :13].copy(), table[:, 13].copy())


def load_wine_quality(folder: Folder = None) -> Dataset:
    """Red and white wines: x (6497, 11), y a grade from 0 to 10; parts 'red' (1599) and 'white' (4898).

    Parameters: `folder`, as for `load_mnist`. Returns: the data set.

    >>> load_wine_quality().x.shape  # doctest: +SKIP
    (6497, 11)
    """
    colours = ("red", "white")
    tables = []
    for colour in colours:
        content = read(f"wine_quality/winequality-{colour}.csv.gz", folder)
        tables.append(numbers(read_columns(content, delimiter=";"), (*RANGES["wine_quality"], "quality")))
    table = np.concatenate(tables)
    splits = parts(map(len, tables), colours)
    return build("wine_quality", table[:, :11].copy(), table[:, 11].copy(), splits=splits)


def load_bike_sharing(folder: Folder = None, *, every: str = "hour") -> Dataset:
    """Rentals in Washington, 2011-2012: x (17379, 12) by the hour or (731, 11) by the day, y their number.

    extra: "casual" and "registered" (which add up to y) and "date".

    Parameters: `folder`, as for `load_mnist`; every: "hour" or "day". Returns: the data set.

    >>> load_bike_sharing().x.shape  # doctest: +SKIP
    (17379, 12)
    """
    one_of("every", every, ("hour", "day"))
    columns = read_columns(read(f"bike_sharing/{every}.csv.gz", folder))
    ranges = {name: one for name, one in RANGES["bike_sharing"].items() if name != "hr" or every == "hour"}
    casual, registered, total = (one.copy() for one in numbers(columns, ("casual", "registered", "cnt")).T)
    extra = {"casual": casual, "registered": registered, "date": np.array(columns["dteday"], dtype="datetime64[D]")}
    names, bounds = tuple(ranges), bounds_of(ranges.values())
    return build("bike_sharing", numbers(columns, names), total, feature_names=names, bounds=bounds, extra=extra)
