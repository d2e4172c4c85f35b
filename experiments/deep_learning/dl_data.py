"""The data sets of the studies as tensors, whole on one device; nothing here is computed from the records.

To keep the studies short, Fashion-MNIST is its first 20,000 training and 5,000 test images, and the test reviews of
IMDb are every fifth. The test ratings of MovieLens are a fifth, drawn once with a fixed seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from shapedp.papers.datasets import (
    Dataset,
    load_adult,
    load_cifar10,
    load_fashion_mnist,
    load_imdb,
    load_mnist,
    load_movielens_1m,
)

Tensor = torch.Tensor
WORDS, LENGTH = 10_000, 256
LARGEST = (100.0, 1e6, 16.0, 1e5, 5e3, 100.0)  # what Adult's six numbers are divided by: public round figures


@dataclass(frozen=True)
class Data:
    """Training and test records with their labels."""

    x: Tensor
    y: Tensor
    test_x: Tensor
    test_y: Tensor

    @classmethod
    def of(cls, dataset: Dataset, turned: Callable[[Any], Tensor], kept: tuple[slice, slice], device: str) -> Data:
        """What is kept of the parts 'train' and 'test' of a data set."""
        parts: list[Tensor] = []
        for name, rows in zip(("train", "test"), kept, strict=True):
            x, y = (values[rows] for values in dataset.split(name))
            parts += [turned(x).to(device), torch.from_numpy(np.asarray(y, dtype=np.int64)).to(device)]
        return cls(*parts)


def _grey(x: Any) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(x)).float().reshape(-1, 1, 28, 28) / 255


def _colour(x: Any) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(x)).float().permute(0, 3, 1, 2).contiguous() / 127.5 - 1


def _persons(x: Any) -> Tensor:
    scaled = np.array(x, dtype=np.float32)
    scaled[:, : len(LARGEST)] /= LARGEST
    return torch.from_numpy(scaled).clamp(-1, 1)


def _words(x: Any) -> Tensor:
    return torch.from_numpy(np.asarray(x, dtype=np.int64))


def _pairs(x: Any) -> Tensor:
    return torch.from_numpy(np.asarray(x, dtype=np.int64)) - 1


def movielens() -> Dataset:
    """MovieLens 1M in two parts, 80% and 20%; the labels are the classes 0 to 4 for one to five stars."""
    whole = load_movielens_1m()
    order = np.random.default_rng(0).permutation(len(whole.y))
    held = -(-len(order) // 5)
    splits = {"train": slice(0, len(order) - held), "test": slice(len(order) - held, len(order))}
    return replace(whole, x=whole.x[order], y=whole.y[order] - 1, splits=splits)


SETS: dict[str, tuple[Callable[[], Dataset], Callable[[Any], Tensor]]] = {
    "MNIST": (load_mnist, _grey),
    "Fashion-MNIST": (load_fashion_mnist, _grey),
    "CIFAR-10": (load_cifar10, _colour),
    "Adult": (load_adult, _persons),
    "IMDb": (lambda: load_imdb(length=LENGTH, words=WORDS), _words),
    "MovieLens": (movielens, _pairs),
}


ALL = (slice(None), slice(None))
KEPT = {"Fashion-MNIST": (slice(20_000), slice(5_000)), "IMDb": (slice(None), slice(None, None, 5))}


def load(name: str, device: str = "cpu") -> Data:
    """The set of that name; raises MissingDataError where its file is not at hand."""
    read, turned = SETS[name]
    return Data.of(read(), turned, KEPT.get(name, ALL), device)
