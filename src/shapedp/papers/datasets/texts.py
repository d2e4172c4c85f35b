"""Text and ratings: IMDb, RCV1, real-sim, MovieLens."""

from __future__ import annotations

import io
import zipfile

import numpy as np
from numpy.typing import NDArray

from shapedp.numerics.checks import count
from shapedp.papers.datasets.base import DataFormatError, Dataset, parts
from shapedp.papers.datasets.cards import CARDS, build
from shapedp.papers.datasets.files import Folder, check_md5, read, read_unlisted
from shapedp.papers.datasets.formats import read_npz, read_ratings, read_svmlight

RCV1_FEATURES, RCV1_ROWS = 47_236, 20_242
REAL_SIM_FEATURES, REAL_SIM_ROWS = 20_958, 72_309
MOVIELENS_MD5 = {  # of the archive as GroupLens publishes it, and of the file in it
    "ml-1m.zip": "c4d9eecfca2ab87c1945afe126590906",
    "ratings.dat": "a89aa3591bc97d6d4e0c89459ff39362",
}


def load_imdb(folder: Folder = None, *, length: int = 256, words: int | None = None) -> Dataset:
    """Movie reviews: x (50000, length) word ranks, y 1 where positive; parts 'train' and 'test' (25000 each).

    A row is the first `length` words of a review, filled up with zeros. Rank k >= 1 is vocabulary[k - 1]; 0 is a word
    outside the vocabulary or, from extra["lengths"] on, filling. words: keep the most frequent words only.
    extra: whole reviews ("tokens", "offsets": review i is tokens[offsets[i]:offsets[i + 1]]), "lengths", "stars",
    "id" (the number in the published file name) and "vocabulary".

    Parameters: `folder`, as for `load_mnist`; length: the words kept of a review; words: the number of most
    frequent words to keep; all by default. Returns: the data set.

    >>> load_imdb().x.shape  # doctest: +SKIP
    (50000, 256)
    """
    count("length", length)
    keys = ("tokens", "label", "stars", "id", "offsets")
    names = [f"{part}_{key}" for key in keys for part in ("train", "test")]
    arrays = read_npz(read("imdb/imdb_tokens.npz", folder), names)
    vocabulary = tuple(read("imdb/vocab.txt.gz", folder).decode("utf-8").removesuffix("\n").split("\n"))
    joined = (np.concatenate([arrays[f"train_{key}"], arrays[f"test_{key}"]]) for key in keys[:-1])
    tokens, label, stars, number = joined
    train, test = arrays["train_offsets"], arrays["test_offsets"]
    offsets = np.concatenate([train, test[1:] + train[-1]])
    if words is not None:
        count("words", words)
        tokens, vocabulary = np.where(tokens <= words, tokens, 0).astype(tokens.dtype), vocabulary[:words]
    extra = {"tokens": tokens, "offsets": offsets, "lengths": np.diff(offsets), "stars": stars, "id": number}
    x, splits = pad(tokens, offsets, length), parts((len(train) - 1, len(test) - 1))
    return build("imdb", x, label.astype(np.int64), splits=splits, extra={**extra, "vocabulary": vocabulary})


def pad(tokens: NDArray[np.uint16], offsets: NDArray[np.int64], length: int) -> NDArray[np.uint16]:
    """One row per review: its first `length` tokens, then zeros."""
    kept = np.minimum(np.diff(offsets), length)
    out = np.zeros((len(kept), length), dtype=tokens.dtype)
    row = np.repeat(np.arange(len(kept)), kept)
    column = np.arange(row.size) - np.repeat(np.cumsum(kept) - kept, kept)
    out[row, column] = tokens[offsets[:-1][row] + column]
    return out


def load_rcv1(folder: Folder = None) -> Dataset:
    """A small sample of RCV1: sparse x (1500, 47236), y +1 for CCAT and -1 otherwise; 'train' (1000), 'test' (500).

    Parameters: `folder`, as for `load_mnist`. Returns: the data set.

    >>> load_rcv1().x.shape  # doctest: +SKIP
    (1500, 47236)
    """
    from scipy.sparse import vstack

    files = (f"rcv1/rcv1_ccat_small_{part}.svm.gz" for part in ("train", "test"))
    x, y = zip(*(read_svmlight(read(name, folder), RCV1_FEATURES) for name in files), strict=True)
    labels = np.concatenate(y).astype(np.int64)
    return build("rcv1", vstack(x, format="csr"), labels, splits=parts(map(len, y)))


def load_rcv1_train(folder: Folder = None) -> Dataset:
    """LIBSVM's rcv1_train.binary (plain, .gz or .bz2, in rcv1/): sparse x (20242, 47236), y +1 or -1.

    Parameters: `folder`, as for `load_mnist`. Returns: the data set.

    >>> load_rcv1_train().x.shape  # doctest: +SKIP
    (20242, 47236)
    """
    places = ("rcv1/rcv1_train.binary", "rcv1_train.binary")
    return _load_libsvm("rcv1_train", places, (RCV1_ROWS, RCV1_FEATURES), folder)


def load_real_sim(folder: Folder = None) -> Dataset:
    """LIBSVM's real-sim (plain, .gz or .bz2, in real_sim/): sparse x (72309, 20958), y +1 (real) or -1 (simulated).

    Parameters: `folder`, as for `load_mnist`. Returns: the data set.

    >>> load_real_sim().x.shape  # doctest: +SKIP
    (72309, 20958)
    """
    return _load_libsvm("real_sim", ("real_sim/real-sim", "real-sim"), (REAL_SIM_ROWS, REAL_SIM_FEATURES), folder)


def _load_libsvm(name: str, places: tuple[str, ...], shape: tuple[int, int], folder: Folder) -> Dataset:
    content, path = read_unlisted(name, places, folder)
    x, y = read_svmlight(content, shape[1])
    if x.shape[0] != shape[0]:
        source = CARDS[name].source
        raise DataFormatError(f"{path} must have {shape[0]} rows, got {x.shape[0]}; fetch it again from {source}")
    return build(name, x, y.astype(np.int64))


def load_movielens_1m(folder: Folder = None) -> Dataset:
    """MovieLens 1M: x (1000209, 2) user and movie, y stars from 1 to 5; extra["time"] in seconds since 1970.

    Read from ratings.dat in movielens_1m/ or ml-1m/, or from the official archive ml-1m.zip.

    Parameters: `folder`, as for `load_mnist`. Returns: the data set.

    >>> load_movielens_1m().x.shape  # doctest: +SKIP
    (1000209, 2)
    """
    places = ("movielens_1m/ratings.dat", "ml-1m/ratings.dat", "movielens_1m/ml-1m.zip", "ml-1m.zip")
    content, path = read_unlisted("movielens_1m", places, folder)
    if path.suffix == ".zip":
        check_md5("movielens_1m", path, content, MOVIELENS_MD5["ml-1m.zip"])
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            content = archive.read("ml-1m/ratings.dat")
    table = read_ratings(check_md5("movielens_1m", path, content, MOVIELENS_MD5["ratings.dat"]))
    x, time = table[:, :2].astype(np.int32), table[:, 3].copy()
    return build("movielens_1m", x, table[:, 2].copy(), extra={"time": time})
