"""MNIST, Fashion-MNIST, CIFAR-10 and CIFAR-100: pixels 0..255 as uint8, colours last."""

from __future__ import annotations

import numpy as np

from shapedp.papers.datasets.base import DataFormatError, Dataset, parts
from shapedp.papers.datasets.cards import build
from shapedp.papers.datasets.files import Folder, read, read_unlisted
from shapedp.papers.datasets.formats import read_cifar_binary, read_idx, read_npz

CIFAR_BATCH = 10_000


def load_mnist(folder: Folder = None) -> Dataset:
    """Handwritten digits: x (70000, 28, 28), parts 'train' (60000) and 'test' (10000).

    Parameters
    ----------
    folder: the folder that holds the data sets; that of the variable SHAPEDP_DATA by default.

    Returns
    -------
    The data set. Raises MissingDataError where a file is not at hand, ChecksumError where it is another one.

    >>> load_mnist().x.shape  # doctest: +SKIP
    (70000, 28, 28)
    """
    return _load_idx("mnist", folder)


def load_fashion_mnist(folder: Folder = None) -> Dataset:
    """Articles of clothing: x (70000, 28, 28), parts 'train' (60000) and 'test' (10000).

    Parameters: `folder`, as for `load_mnist`. Returns: the data set.

    >>> load_fashion_mnist().x.shape  # doctest: +SKIP
    (70000, 28, 28)
    """
    return _load_idx("fashion_mnist", folder)


def _load_idx(name: str, folder: Folder) -> Dataset:
    images, labels = (
        [read_idx(read(f"{name}/{part}-{kind}-ubyte.gz", folder)) for part in ("train", "t10k")]
        for kind in ("images-idx3", "labels-idx1")
    )
    return build(name, np.concatenate(images), np.concatenate(labels), splits=parts(map(len, labels)))


def load_cifar10(folder: Folder = None) -> Dataset:
    """A subset of CIFAR-10: x (12000, 32, 32, 3), parts 'train' (10000) and 'test' (2000).

    extra["official_index"] is the position in the official training (or test) set.

    Parameters: `folder`, as for `load_mnist`. Returns: the data set.

    >>> load_cifar10().x.shape  # doctest: +SKIP
    (12000, 32, 32, 3)
    """
    keys = ("x_train", "y_train", "train_index", "x_test", "y_test", "test_index")
    arrays = read_npz(read("cifar10/cifar10_10k_2k.npz", folder), keys)
    x, y, index = (np.concatenate([arrays[a], arrays[b]]) for a, b in zip(keys[:3], keys[3:], strict=True))
    sizes = [len(arrays[key]) for key in ("y_train", "y_test")]
    return build("cifar10", x, y, splits=parts(sizes), extra={"official_index": index})


def load_cifar10_full(folder: Folder = None) -> Dataset:
    """All of CIFAR-10 from the files of its binary version: x (60000, 32, 32, 3), parts 'train' and 'test'.

    Reads data_batch_1.bin to data_batch_5.bin and test_batch.bin in cifar10/ or cifar-10-batches-bin/. No checksum
    is published for the single files: their size and labels are checked.

    Parameters: `folder`, as for `load_mnist`. Returns: the data set.

    >>> load_cifar10_full().x.shape  # doctest: +SKIP
    (60000, 32, 32, 3)
    """
    images, labels = [], []
    for name in (*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"):
        places = (f"cifar-10-batches-bin/{name}", f"cifar10/{name}")
        content, path = read_unlisted("cifar10_full", places, folder)
        x, y = read_cifar_binary(content)
        if len(y) != CIFAR_BATCH:
            raise DataFormatError(f"{path} must hold {CIFAR_BATCH} images, got {len(y)}")
        images.append(x)
        labels.append(y)
    splits = parts((5 * CIFAR_BATCH, CIFAR_BATCH))
    return build("cifar10_full", np.concatenate(images), np.concatenate(labels), splits=splits)


def load_cifar100(folder: Folder = None) -> Dataset:
    """Classes 3 (bear) and 8 (bicycle) of CIFAR-100: x (1200, 32, 32, 3), y holds 3 and 8; no official split.

    Parameters: `folder`, as for `load_mnist`. Returns: the data set.

    >>> load_cifar100().x.shape  # doctest: +SKIP
    (1200, 32, 32, 3)
    """
    arrays = read_npz(read("cifar100/cifar100_classes_3_8.npz", folder), ("x", "y"))
    return build("cifar100", arrays["x"], arrays["y"])
