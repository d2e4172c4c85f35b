"""Adult (Census Income), with the categories of its documentation."""

from __future__ import annotations

import math

import numpy as np

from shapedp.numerics.checks import one_of
from shapedp.papers.datasets.base import Dataset, build, limits
from shapedp.papers.datasets.cards import CARDS
from shapedp.papers.datasets.files import Folder, read
from shapedp.papers.datasets.formats import encode, numbers, read_rows, set_one_hot

# The order of the columns in the file; those with categories are listed in CATEGORIES.
COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
)

# The lists of adult.names, in its order; not those that happen to occur.
CATEGORIES = {
    "workclass": "Private, Self-emp-not-inc, Self-emp-inc, Federal-gov, Local-gov, State-gov, Without-pay, "
    "Never-worked",
    "education": "Bachelors, Some-college, 11th, HS-grad, Prof-school, Assoc-acdm, Assoc-voc, 9th, 7th-8th, 12th, "
    "Masters, 1st-4th, 10th, Doctorate, 5th-6th, Preschool",
    "marital-status": "Married-civ-spouse, Divorced, Never-married, Separated, Widowed, Married-spouse-absent, "
    "Married-AF-spouse",
    "occupation": "Tech-support, Craft-repair, Other-service, Sales, Exec-managerial, Prof-specialty, "
    "Handlers-cleaners, Machine-op-inspct, Adm-clerical, Farming-fishing, Transport-moving, Priv-house-serv, "
    "Protective-serv, Armed-Forces",
    "relationship": "Wife, Own-child, Husband, Not-in-family, Other-relative, Unmarried",
    "race": "White, Asian-Pac-Islander, Amer-Indian-Eskimo, Other, Black",
    "sex": "Female, Male",
    "native-country": "United-States, Cambodia, England, Puerto-Rico, Canada, Germany, "
    "Outlying-US(Guam-USVI-etc), India, Japan, Greece, South, China, Cuba, Iran, Honduras, Philippines, Italy, "
    "Poland, Jamaica, Vietnam, Mexico, Portugal, Ireland, France, Dominican-Republic, Laos, Ecuador, Taiwan, Haiti, "
    "Columbia, Hungary, Guatemala, Nicaragua, Scotland, Thailand, Yugoslavia, El-Salvador, Trinadad&Tobago, Peru, "
    "Hong, Holand-Netherlands",
}

# Least value: adult.names states age > 16, weight > 1 and hours > 0; 16 levels of education. No maxima are stated.
NUMBERS = {
    "age": (17, math.inf),
    "fnlwgt": (1, math.inf),
    "education-num": (1, 16),
    "capital-gain": (0, math.inf),
    "capital-loss": (0, math.inf),
    "hours-per-week": (1, math.inf),
}


def load_adult(folder: Folder = None, *, missing: str = "zero") -> Dataset:
    """Persons of the 1994 census: x (48842, 105), y 1 where the income exceeds 50,000 dollars; 'train' and 'test'.

    Columns: six numbers as published, then one 0/1 column per category of adult.names. missing="zero": an unknown
    category is a block of zeros; missing="drop": rows with one are left out (30162 + 15060 remain).
    extra["complete"] tells the rows without missing values.
    """
    one_of("missing", missing, ("zero", "drop"))
    card = CARDS["adult"]
    train = read_rows(read(card, "adult/adult.data.gz", folder), 15)
    test = read_rows(read(card, "adult/adult.test.gz", folder), 15)
    if missing == "drop":
        train, test = ([row for row in rows if "?" not in row] for rows in (train, test))
    rows = train + test
    columns = {name: [row[k] for row in rows] for k, name in enumerate(COLUMNS)}
    names, blocks = list(NUMBERS), [numbers(columns, tuple(NUMBERS))]
    for name, text in CATEGORIES.items():
        categories = text.split(", ")
        block = np.zeros((len(rows), len(categories)))
        set_one_hot(block, encode(columns[name], categories, missing="?"))
        names += [f"{name}={category}" for category in categories]
        blocks.append(block)
    binary = len(names) - len(NUMBERS)
    lower, upper = zip(*NUMBERS.values(), strict=True)
    classes = ("<=50K", ">50K")
    return build(
        card,
        np.concatenate(blocks, axis=1),
        encode([row[14].removesuffix(".") for row in rows], classes),
        feature_names=tuple(names),
        classes=classes,
        splits={"train": slice(0, len(train)), "test": slice(len(train), len(rows))},
        bounds=limits([*lower, *[0] * binary], [*upper, *[1] * binary]),
        extra={"complete": np.array(["?" not in row for row in rows])},
    )
