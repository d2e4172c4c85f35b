"""Adult (Census Income), with the categories of its documentation."""

from __future__ import annotations

import numpy as np

from shapedp.numerics.checks import one_of
from shapedp.papers.datasets.base import Dataset, build, parts
from shapedp.papers.datasets.cards import CARDS
from shapedp.papers.datasets.columns import CHOICES, NAMES, RANGES, bounds_of, one_hot_names
from shapedp.papers.datasets.files import Folder, read
from shapedp.papers.datasets.formats import encode, numbers, read_rows, set_one_hot

COLUMNS = NAMES["adult"]
CATEGORIES = CHOICES["adult"]
NUMBERS = RANGES["adult"]


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
    card = CARDS["adult"]
    train = read_rows(read(card, "adult/adult.data.gz", folder), 15)
    test = read_rows(read(card, "adult/adult.test.gz", folder), 15)
    if missing == "drop":
        train, test = ([row for row in rows if "?" not in row] for rows in (train, test))
    rows = train + test
    columns = {name: [row[k] for row in rows] for k, name in enumerate(COLUMNS)}
    blocks = [numbers(columns, tuple(NUMBERS))]
    for name, known in CATEGORIES.items():
        blocks.append(np.zeros((len(rows), len(known))))
        set_one_hot(blocks[-1], encode(columns[name], known, missing="?"))
    names = (*NUMBERS, *one_hot_names(CATEGORIES))
    ranges = [NUMBERS.get(name, (0, 1)) for name in names]
    classes = ("<=50K", ">50K")
    return build(
        card,
        np.concatenate(blocks, axis=1),
        encode([row[14].removesuffix(".") for row in rows], classes),
        feature_names=names,
        classes=classes,
        splits=parts(map(len, (train, test))),
        bounds=bounds_of(ranges),
        extra={"complete": np.array(["?" not in row for row in rows])},
    )
