"""The demonstration: totals of a real table whose columns differ by four orders of magnitude."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shapedp.mechanisms import Additive, calibrate
from shapedp.papers.recipes import RECIPES
from shapedp.report.pictures import picture
from shapedp.sensitivity import L1, L2, Box

EPSILON, DELTA = 1.0, 1e-6

# What a radiologist would allow for, chosen without looking at the data: mean, standard error and worst value of
# radius, texture, perimeter, area, smoothness, compactness, concavity, concave points, symmetry, fractal dimension.
BOUNDS = (
    *(40, 50, 300, 5000, 0.3, 0.5, 0.6, 0.3, 0.5, 0.15),
    *(5, 8, 40, 800, 0.05, 0.2, 0.5, 0.1, 0.1, 0.05),
    *(50, 60, 400, 6000, 0.4, 1.5, 1.5, 0.4, 0.8, 0.3),
)
REFUSED = (
    ("Product noise, as published", "product-noise", EPSILON, DELTA),
    ("Gaussian, classic formula", "classic-gaussian", 10.0, 1e-5),
)


@dataclass(frozen=True, eq=False)
class Entry:
    """One mechanism of the demonstration."""

    name: str
    mechanism: Additive
    measured: float | None
    note: str

    @property
    def verdict(self) -> str:
        """The certificate's verdict."""
        return self.mechanism.certificate.verdict

    @property
    def expected(self) -> float:
        """The expected error of a total, root mean square."""
        return math.sqrt(self.mechanism.expected_squared_error / self.mechanism.law.dim)

    def to_json(self) -> dict[str, Any]:
        """The figures, without the mechanism."""
        bracket = self.mechanism.certificate.bracket
        return {
            "mechanism": self.name,
            "expected_rms_error": self.expected,
            "measured_rms_error": self.measured,
            "verdict": self.verdict,
            "delta": [bracket.lower, bracket.upper],
            "note": self.note,
        }


def table_of_patients() -> NDArray[np.float64]:
    """Wisconsin diagnostic breast cancer data (Wolberg et al. 1995, UCI), as scikit-learn ships it."""
    try:
        from sklearn.datasets import load_breast_cancer
    except ImportError:
        raise ImportError("the demonstration reads a table from scikit-learn: pip install 'shapedp[learn]'") from None
    return np.asarray(load_breast_cancer().data, dtype=np.float64)


def records() -> list[Entry]:
    """Every applicable mechanism on the same query, then what is refused."""
    rows, box = Box(BOUNDS).clip(table_of_patients(), adjacency="add-remove")
    truth = rows.sum(axis=0)
    bounds = np.asarray(BOUNDS)
    ball = L2(float(np.linalg.norm(bounds)) * (1 + 1e-12), bounds.size, adjacency="add-remove")
    cross = L1(float(bounds.sum()) * (1 + 1e-12), bounds.size, adjacency="add-remove")
    served = [
        ("Gaussian, shaped", calibrate("gaussian", box, epsilon=EPSILON, delta=DELTA)),
        ("Gaussian, one scale", calibrate("gaussian", ball, epsilon=EPSILON, delta=DELTA)),
        ("Radial, best law", calibrate("radial", ball, epsilon=EPSILON, delta=DELTA)),
        ("Laplace, shaped, pure DP", calibrate("laplace", box, epsilon=EPSILON, delta=0.0)),
        ("Laplace, one scale, pure DP", calibrate("laplace", cross, epsilon=EPSILON, delta=0.0)),
    ]
    served.sort(key=lambda pair: pair[1].expected_squared_error)
    entries, least = [], served[0][1].expected_squared_error
    for name, mechanism in served:
        error = np.asarray(mechanism.release(truth)) - truth
        more = mechanism.expected_squared_error / least
        note = "least noise" if more == 1 else f"{more:.3g} times the noise energy"
        entries.append(Entry(name, mechanism, math.sqrt(float(np.square(error).mean())), note))
    return entries + [_published(bounds.size, ball.radius, *claim) for claim in REFUSED]


def _published(dim: int, radius: float, name: str, recipe: str, epsilon: float, delta: float) -> Entry:
    mechanism = RECIPES[recipe](dim=dim, sensitivity=radius, epsilon=epsilon, delta=delta)
    exact = mechanism.certificate.bracket
    note = f"published claim ({epsilon:g}, {delta:g}) refused: exact delta {exact.lower:.4g}"
    return Entry(name, mechanism, None, note)


def draw(entries: list[Entry], path: Path) -> None:
    """The errors, the noise of each coordinate, and claimed against computed delta, in one picture."""
    places, order, floor = np.arange(len(entries))[::-1], np.argsort(BOUNDS)[::-1], 1e-8
    colours = ["#1b7f5c" if e.verdict == "certified" else "#c0392b" for e in entries]
    with picture(path, (15, 4.8), 3) as (left, middle, right):
        left.barh(places, [e.expected for e in entries], color=colours)
        left.set_yticks(places, [e.name for e in entries])
        left.set(xscale="log", xlabel="expected error per total (rms)", title="The same query, released")
        for entry in (e for e in entries if e.verdict == "certified"):
            middle.plot(entry.mechanism.law.marginal_scales()[order], label=entry.name, drawstyle="steps-mid")
        middle.plot(np.asarray(BOUNDS)[order], "k:", label="what one patient can change")
        middle.set(yscale="log", xlabel="the 30 totals, most sensitive first", ylabel="noise (standard deviation)")
        middle.set_title("Noise shaped to the query")
        middle.legend(fontsize=8)
        for place, entry, colour in zip(places, entries, colours, strict=True):
            certificate = entry.mechanism.certificate
            right.plot([max(certificate.delta, floor)], [place], "|", color="black", markersize=16)
            right.plot([max(certificate.bracket.upper, floor)], [place], "o", color=colour)
        right.set(xscale="log", xlabel="delta: claimed |, computed o (1e-8 stands for 0)")
        right.set_yticks(places, [e.verdict for e in entries])
        right.set_title("A guarantee is computed, never declared")
