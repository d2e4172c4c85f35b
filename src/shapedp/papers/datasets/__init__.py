"""Loaders for the papers' real data sets and generators of their synthetic ones."""

from shapedp.papers.datasets.base import ChecksumError, DataFormatError, Dataset, MissingDataError
from shapedp.papers.datasets.images import (
    load_cifar10,
    load_cifar10_full,
    load_cifar100,
    load_fashion_mnist,
    load_mnist,
)
from shapedp.papers.datasets.kddcup99 import load_kddcup99
from shapedp.papers.datasets.synthetic import (
    Stream,
    make_gaussian,
    make_mlp,
    make_synthetic_h,
    make_uniform,
    stream_gaussian,
    stream_mlp,
    stream_synthetic_h,
    stream_uniform,
)
from shapedp.papers.datasets.tables import (
    load_adult,
    load_bike_sharing,
    load_boston_housing,
    load_california_housing,
    load_communities_crime,
    load_electricity,
    load_tecator,
    load_wine_quality,
)
from shapedp.papers.datasets.texts import load_imdb, load_movielens_1m, load_rcv1, load_rcv1_train, load_real_sim

__all__ = [
    "ChecksumError",
    "DataFormatError",
    "Dataset",
    "MissingDataError",
    "Stream",
    "load_adult",
    "load_bike_sharing",
    "load_boston_housing",
    "load_california_housing",
    "load_cifar10",
    "load_cifar10_full",
    "load_cifar100",
    "load_communities_crime",
    "load_electricity",
    "load_fashion_mnist",
    "load_imdb",
    "load_kddcup99",
    "load_mnist",
    "load_movielens_1m",
    "load_rcv1",
    "load_rcv1_train",
    "load_real_sim",
    "load_tecator",
    "load_wine_quality",
    "make_gaussian",
    "make_mlp",
    "make_synthetic_h",
    "make_uniform",
    "stream_gaussian",
    "stream_mlp",
    "stream_synthetic_h",
    "stream_uniform",
]
