"""Small tables of numbers: California and Boston housing, electricity, communities, Tecator, wine, bicycles."""

from __future__ import annotations

import math

import numpy as np

from shapedp.numerics.checks import one_of
from shapedp.papers.datasets.base import DataFormatError, Dataset, build, limits
from shapedp.papers.datasets.cards import CARDS
from shapedp.papers.datasets.files import Folder, read
from shapedp.papers.datasets.formats import encode, numbers, parse_numbers, read_columns

INF = math.inf

# The eight features of scikit-learn, which divide rooms, bedrooms and persons by the households of a block group.
CALIFORNIA = ("MedInc", "HouseAge", "AveRooms", "AveBedrms", "Population", "AveOccup", "Latitude", "Longitude")

# Name, least and largest value as documented (OpenML 151); the day of the week is 1 to 7, all else is normalised.
ELECTRICITY = ("date", "day", "period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer")

# Columns documented as having missing values: police statistics known for large communities only, and one other.
COMMUNITIES_IDENTIFIERS = ("state", "county", "community", "communityname", "fold")
COMMUNITIES_INCOMPLETE = (
    "OtherPerCap",
    "LemasSwornFT",
    "LemasSwFTPerPop",
    "LemasSwFTFieldOps",
    "LemasSwFTFieldPerPop",
    "LemasTotalReq",
    "LemasTotReqPerPop",
    "PolicReqPerOffic",
    "PolicPerPop",
    "RacialMatchCommPol",
    "PctPolicWhite",
    "PctPolicBlack",
    "PctPolicHisp",
    "PctPolicAsian",
    "PctPolicMinor",
    "OfficAssgnDrugUnits",
    "NumKindsDrugsSeiz",
    "PolicAveOTWorked",
    "PolicCars",
    "PolicOperBudg",
    "LemasPctPolicOnPatr",
    "LemasGangUnitDeploy",
    "PolicBudgPerPop",
)
COMMUNITIES_TARGET = "ViolentCrimesPerPop"

TECATOR_SPLITS = {
    "train": slice(0, 129),
    "monitoring": slice(129, 172),
    "test": slice(172, 215),
    "extrapolation_1": slice(215, 223),
    "extrapolation_2": slice(223, 240),
    "usual": slice(0, 215),
}

# Name and largest documented value; all are at least 0. Proportions are in percent.
BOSTON = {
    "CRIM": INF,
    "ZN": 100,
    "INDUS": 100,
    "CHAS": 1,
    "NOX": INF,
    "RM": INF,
    "AGE": 100,
    "DIS": INF,
    "RAD": INF,
    "TAX": INF,
    "PTRATIO": INF,
    "B": INF,
    "LSTAT": 100,
}

WINE = (
    "fixed acidity",
    "volatile acidity",
    "citric acid",
    "residual sugar",
    "chlorides",
    "free sulfur dioxide",
    "total sulfur dioxide",
    "density",
    "pH",
    "sulphates",
    "alcohol",
)
# Everything is at least 0; alcohol is in percent by volume; pH is left open.
WINE_BOUNDS = limits([0.0] * 8 + [-INF, 0.0, 0.0], [INF] * 10 + [100.0])

# Name, least and largest documented value.
BIKE = {
    "season": (1, 4),
    "yr": (0, 1),
    "mnth": (1, 12),
    "hr": (0, 23),
    "holiday": (0, 1),
    "weekday": (0, 6),
    "workingday": (0, 1),
    "weathersit": (1, 4),
    "temp": (0, 1),
    "atemp": (0, 1),
    "hum": (0, 1),
    "windspeed": (0, 1),
}


def load_california_housing(folder: Folder = None) -> Dataset:
    """Block groups of California, 1990: x (20640, 8), y the median house value in 100,000 dollars."""
    card = CARDS["california_housing"]
    columns = read_columns(read(card, "california_housing/cal_housing.csv.gz", folder))
    names = ("medianIncome", "housingMedianAge", "totalRooms", "totalBedrooms", "population", "households")
    income, age, rooms, bedrooms, population, households = numbers(columns, names).T
    latitude, longitude, value = numbers(columns, ("latitude", "longitude", "medianHouseValue")).T
    per_household = [total / households for total in (rooms, bedrooms, population)]
    x = np.column_stack([income, age, *per_household[:2], population, per_household[2], latitude, longitude])
    bounds = limits([0.0] * 6 + [-90.0, -180.0], [INF] * 6 + [90.0, 180.0])
    return build(card, x, value / 100_000, feature_names=CALIFORNIA, bounds=bounds, target_bounds=(0.0, INF))


def load_electricity(folder: Folder = None) -> Dataset:
    """Prices in New South Wales by half hour: x (45312, 8), y 1 where the price goes up, rows in order of time."""
    card = CARDS["electricity"]
    columns = read_columns(read(card, "electricity/electricity.csv.gz", folder))
    classes = ("DOWN", "UP")
    return build(
        card,
        numbers(columns, ELECTRICITY),
        encode(columns["class"], classes),
        feature_names=ELECTRICITY,
        classes=classes,
        bounds=limits([0, 1] + [0] * 6, [1, 7] + [1] * 6),
    )


def load_communities_crime(folder: Folder = None) -> Dataset:
    """Communities of the USA: x (1994, 99), y the violent crimes per person, all scaled to [0, 1] by the publisher.

    The 23 predictors documented as having missing values are left out, as a whole and by name. extra holds the
    published ten folds ("fold") and the names ("communityname").
    """
    card = CARDS["communities_crime"]
    columns = read_columns(read(card, "communities_crime/communities.csv.gz", folder))
    dropped = {*COMMUNITIES_IDENTIFIERS, *COMMUNITIES_INCOMPLETE, COMMUNITIES_TARGET}
    names = tuple(name for name in columns if name not in dropped)
    return build(
        card,
        numbers(columns, names),
        numbers(columns, (COMMUNITIES_TARGET,))[:, 0],
        feature_names=names,
        bounds=limits(np.zeros(len(names)), np.ones(len(names))),
        target_bounds=(0.0, 1.0),
        extra={
            "fold": numbers(columns, ("fold",))[:, 0].astype(np.int64),
            "communityname": np.array(columns["communityname"]),
        },
    )


def load_tecator(folder: Folder = None) -> Dataset:
    """Near infrared spectra of meat: x (240, 100) absorbances, y fat in percent.

    Parts: 'train' (129), 'monitoring' (43), 'test' (43), 'extrapolation_1' (8), 'extrapolation_2' (17), and 'usual',
    the first 215. extra: "moisture", "protein" and "principal_components" (240, 22).
    """
    card = CARDS["tecator"]
    columns = read_columns(read(card, "tecator/tecator.csv.gz", folder))
    names = tuple(f"absorbance_{k}" for k in range(1, 101))
    components = [name for name in columns if name.startswith("principal")]
    moisture, fat, protein = numbers(columns, ("moisture", "fat", "protein")).T
    return build(
        card,
        numbers(columns, names),
        fat.copy(),
        feature_names=names,
        splits=TECATOR_SPLITS,
        target_bounds=(0.0, 100.0),
        extra={
            "moisture": moisture.copy(),
            "protein": protein.copy(),
            "principal_components": numbers(columns, components),
        },
    )


def load_boston_housing(folder: Folder = None) -> Dataset:
    """Census tracts of Boston, 1970: x (506, 13), y the median house value in 1,000 dollars.

    Column B encodes race; the set is for comparison with older results only.
    """
    card = CARDS["boston_housing"]
    values = parse_numbers(read(card, "boston_housing/housing.data.gz", folder))
    if values.size % 14:
        raise DataFormatError(f"Boston housing must have 14 columns, got {values.size} values")
    table = values.reshape(-1, 14)
    bounds = limits(np.zeros(13), list(BOSTON.values()))
    return build(
        card,
        table[:, :13].copy(),
        table[:, 13].copy(),
        feature_names=tuple(BOSTON),
        bounds=bounds,
        target_bounds=(0, INF),
    )


def load_wine_quality(folder: Folder = None) -> Dataset:
    """Red and white wines: x (6497, 11), y a grade from 0 to 10; parts 'red' (1599) and 'white' (4898)."""
    card = CARDS["wine_quality"]
    tables = []
    for colour in ("red", "white"):
        content = read(card, f"wine_quality/winequality-{colour}.csv.gz", folder)
        tables.append(numbers(read_columns(content, delimiter=";"), (*WINE, "quality")))
    red, table = len(tables[0]), np.concatenate(tables)
    return build(
        card,
        table[:, :11].copy(),
        table[:, 11].copy(),
        feature_names=WINE,
        splits={"red": slice(0, red), "white": slice(red, len(table))},
        bounds=WINE_BOUNDS,
        target_bounds=(0.0, 10.0),
    )


def load_bike_sharing(folder: Folder = None, *, every: str = "hour") -> Dataset:
    """Rentals in Washington, 2011-2012: x (17379, 12) by the hour or (731, 11) by the day, y their number.

    extra: "casual" and "registered" (which add up to y) and "date".
    """
    one_of("every", every, ("hour", "day"))
    card = CARDS["bike_sharing"]
    columns = read_columns(read(card, f"bike_sharing/{every}.csv.gz", folder))
    names = tuple(name for name in BIKE if name != "hr" or every == "hour")
    casual, registered, total = numbers(columns, ("casual", "registered", "cnt")).T
    return build(
        card,
        numbers(columns, names),
        total.copy(),
        feature_names=names,
        bounds=limits([BIKE[name][0] for name in names], [BIKE[name][1] for name in names]),
        target_bounds=(0.0, INF),
        extra={
            "casual": casual.copy(),
            "registered": registered.copy(),
            "date": np.array(columns["dteday"], dtype="datetime64[D]"),
        },
    )
