"""The data of section 6.1 and 6.2 as unit vectors with signs, and their splits.

Settings the paper does not print are ours and named here. Nothing is measured: numbers are divided by fixed
constants, then every record is scaled to unit length on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from shapedp import datasets
from shapedp.learn.solvers.erm.problem import Records
from shapedp.papers.datasets import MissingDataError

# Adult's six numbers are divided by these, KDD Cup's by log(1 + 1e9) after log(1 + x) (setting ours).
ADULT_UNITS = np.array([100.0, 1.5e6, 16.0, 1e5, 5e3, 100.0])
KDD_LOG = np.log1p(1e9)


@dataclass(frozen=True, eq=False)
class Set:
    """Rows within the unit ball, labels as codes 0 .. K-1 (1 is the positive one of two)."""

    name: str
    x: Any
    y: np.ndarray
    regularization: float

    @property
    def signs(self) -> np.ndarray:
        """+1 and -1, one column per two-class problem."""
        if self.y.max() == 1:
            return np.where(self.y[:, None] == 1, 1.0, -1.0)
        return np.where(self.y[:, None] == np.arange(self.y.max() + 1), 1.0, -1.0)

    def splits(self, repeats: int, share: float = 0.8) -> Iterator[tuple[Records, Any, np.ndarray]]:
        """Training records, test rows and test labels of random 80/20 splits."""
        signs = self.signs
        for seed in range(repeats):
            order = np.random.default_rng(seed).permutation(len(self.y))
            cut = int(share * len(order))
            train, test = np.sort(order[:cut]), np.sort(order[cut:])
            yield Records(self.x[train], signs[train]), self.x[test], self.y[test]


INSIDE = 1 - 2.0**-20  # so that rounding to float32 leaves no row longer than 1


def unit(x: Any) -> Any:
    """Every row over its own length, and a little less."""
    if sparse.issparse(x):
        norms = np.sqrt(np.asarray(x.multiply(x).sum(axis=1)).ravel())
        return sparse.csr_array(sparse.diags_array(INSIDE / np.maximum(norms, 1e-12)) @ x)
    norms = np.sqrt(np.einsum("ij,ij->i", x, x, dtype=np.float64))
    x *= (INSIDE / np.maximum(norms, 1e-12))[:, None]
    return x


def adult(most: int | None) -> Set:
    """45,220 complete rows and 104 columns, as in Table 5: the last row of each file and `Never-worked` left out."""
    data = datasets.load_adult(missing="drop")
    keep = np.ones(len(data.y), dtype=bool)
    keep[[data.splits["train"].stop - 1, len(keep) - 1]] = False
    columns = [i for i, name in enumerate(data.feature_names or ()) if name != "workclass=Never-worked"]
    x = data.x[keep][:, columns]
    x[:, :6] /= ADULT_UNITS
    return Set("Adult", unit(x), data.y[keep], 1e-2)


def kddcup99(most: int | None) -> Set:
    """70,000 rows drawn without replacement (docs/datasets.md), 122 columns where the paper has 114."""
    rows = np.random.default_rng(0).choice(494_021, 70_000, replace=False)
    data = datasets.load_kddcup99(target="attack", rows=rows, dtype=np.float64)
    x = data.x
    x[:, :38] = np.log1p(x[:, :38]) / KDD_LOG
    return Set("KDDCup99", unit(x), data.y, 1e-2)


def mnist(most: int | None) -> Set:
    """All 70,000 images, or the first of them."""
    data = datasets.load_mnist()
    n = min(most or 70_000, 70_000)
    return Set("MNIST", unit(data.x[:n].reshape(n, -1).astype(np.float32) / 255), data.y[:n].astype(int), 1e-4)


def synthetic_h(most: int | None) -> Set:
    """70,000 x 20,000 in float32, block by block; fewer columns with fewer than 5,000 rows, for a quick look."""
    rows = min(most or 70_000, 70_000)
    dim = 20_000 if rows >= 5_000 else 500
    stream = datasets.stream_synthetic_h(np.random.default_rng(0), rows=rows, dim=dim)
    x, y, start = np.empty((rows, dim), dtype=np.float32), np.empty(rows, dtype=int), 0
    for part, labels in stream:
        x[start : start + len(part)] = unit(part)
        y[start : start + len(part)] = labels > 0
        start += len(part)
    return Set("Synthetic-H", x, y, 1e-4)


def rcv1(most: int | None) -> Set:
    """The sample of 1,500 documents, not the paper's 50,000."""
    data = datasets.load_rcv1()
    return Set("RCV1 sample", unit(sparse.csr_array(data.x)), (data.y > 0).astype(int), 1e-4)


def real_sim(most: int | None) -> Set:
    """LIBSVM's file, where a user has it."""
    data = datasets.load_real_sim()
    return Set("Real-sim", unit(sparse.csr_array(data.x)), (data.y > 0).astype(int), 1e-4)


SETS: dict[str, Callable[[int | None], Set]] = {
    "Adult": adult,
    "KDDCup99": kddcup99,
    "MNIST": mnist,
    "Synthetic-H": synthetic_h,
    "Real-sim": real_sim,
    "RCV1 sample": rcv1,
}


def load(name: str, most: int | None = None) -> Set | None:
    """The set, at most so many rows of it where it is large, or None where its files are not at hand."""
    try:
        return SETS[name](most)
    except MissingDataError:
        return None


def scores(margins: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Accuracy and false-positive rate (mean over the classes where there are more than two) of margins (n, K)."""
    if margins.shape[1] == 1:
        found = margins[:, 0] > 0
        return float(np.mean(found == (y == 1))), float(found[y == 0].mean())
    found = margins.argmax(axis=1)
    rates = [float((found[y != k] == k).mean()) for k in range(margins.shape[1])]
    return float(np.mean(found == y)), float(np.mean(rates))
