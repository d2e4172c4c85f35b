"""Figures 1 to 4 and Table II of the i.n.i.d. noise paper, and Laplace against Gaussian noise with the exact profile.

    shapedp reproduce inid-noise/figure-4 [--full]

Expected: the numbers of inid_figures.py and inid_tables.py; under (1, 1e-6) exact Laplace noise stays within a factor
of 2 of Gaussian noise in every dimension, where pure Laplace noise grows without bound on the uniform profile.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from shapedp.papers.register.harness import Item, Progress, Table, compared

sys.path.insert(0, str(Path(__file__).parent))

from exact_laplace import ratios
from inid_figures import CURVES, K, crossing, gaussian_error, laplace_error, reductions
from inid_profiles import decibel, profile
from inid_tables import EPSILONS, PRINTED, absolute_errors

from shapedp.papers.recipes import inid


def _figure(x: list[float], name: str, curves: dict[str, Callable[[float], float]], progress: Progress) -> Table:
    columns = {}
    for done, (label, value) in enumerate(curves.items()):
        columns[label] = tuple(value(point) for point in x)
        progress(done + 1, len(curves), label)
    return Table(
        headers=(name, *columns),
        rows=tuple((point, *(column[i] for column in columns.values())) for i, point in enumerate(x)),
        curves=tuple((label, tuple(x), column) for label, column in columns.items()),
        axes=(name, "expected squared error, dB"),
        log=(False, False),
    )


def _dims(full: bool) -> list[float]:
    return [float(k) for k in (range(2, 31) if full else (2, 3, 8, 9, 20, 25))]


def figure_1(full: bool, progress: Progress) -> Table:
    """Gaussian noise over K, delta = 1e-6, epsilon = 0.5, unit l2 sensitivity."""
    curves = {name: lambda k, name=name: decibel(gaussian_error(name, int(k))) for name in CURVES}
    printed = [*zip(CURVES[1:], reductions()["gaussian"], (1.145, 2.442, 9.658), strict=True)]
    printed.append(("saturation", decibel(gaussian_error("exponential", 200)), 21.477))
    return replace(_figure(_dims(full), "K", curves, progress), **compared(printed, 6e-4))


def figure_2(full: bool, progress: Progress) -> Table:
    """The Gini coefficient of each profile over K."""
    curves = {name: lambda k, name=name: inid.gini(profile(name, int(k), 2)) for name in CURVES}
    return _figure(_dims(full), "K", curves, progress)


def figure_3(full: bool, progress: Progress) -> Table:
    """Laplace noise over epsilon at K = 20, unit l1 sensitivity."""
    x = [0.1 * i for i in range(1, 21)] if full else [0.1, 0.5, 1.0, 2.0]
    curves = {name: lambda e, name=name: decibel(laplace_error(name, K, e)) for name in CURVES}
    printed = [*zip(CURVES[1:], reductions()["laplace"], (0.546, 1.39, 7.609), strict=True)]
    printed.append(("saturation in dB (two digits exchanged)", decibel(laplace_error("exponential", 200)), 14.243))
    return replace(_figure(x, "epsilon", curves, progress), **compared(printed, 8e-4))


def figure_4(full: bool, progress: Progress) -> Table:
    """Pure Laplace against Gaussian noise over K, unit l2 sensitivity."""
    curves: dict[str, Callable[[float], float]] = {}
    for name in ("uniform", "exponential"):
        curves[f"Gaussian, {name}"] = lambda k, name=name: decibel(gaussian_error(name, int(k)))
        curves[f"Laplace, {name}"] = lambda k, name=name: decibel(laplace_error(name, int(k), norm=2))
    first = crossing("uniform", 12)[0]
    return replace(_figure(_dims(full), "K", curves, progress), **compared([("crossing K", first, 9)], 0))


def table_2(full: bool, progress: Progress) -> Table:
    """l1 errors in two dimensions, profile (0.85, 0.15): computed, then printed."""
    rows = []
    for done, epsilon in enumerate(EPSILONS):
        printed = [row[done] for row in PRINTED.values()]
        rows.append((epsilon, *absolute_errors(epsilon), *printed))
        progress(done + 1, len(EPSILONS), f"epsilon {epsilon:g}")
    half = len(PRINTED)
    pairs = [(f"epsilon {row[0]:g}", row[1 + i], row[1 + half + i]) for row in rows for i in range(half)]
    headers = ("epsilon", *PRINTED, *(f"{name}, printed" for name in PRINTED))
    return Table(headers=headers, rows=tuple(rows), **compared(pairs, 2e-3))


def exact(full: bool, progress: Progress) -> Table:
    """Squared error of Laplace over Gaussian noise at (1, 1e-6), unit l2 sensitivity."""
    names = CURVES if full else ("uniform",)
    dims = (2, 9, 20, 100, 400, 2000) if full else (20, 400)
    rows = []
    for done, (name, dim) in enumerate((name, dim) for name in names for dim in dims):
        now, pure, relaxed, gap = ratios(name, dim)
        rows.append((name, dim, now, pure, relaxed, gap))
        progress(done + 1, len(names) * len(dims), f"{name}, K = {dim}")
    return Table(headers=("profile", "K", "exact", "pure", "Corollary 6", "bracket gap"), rows=tuple(rows))


ITEMS = (
    Item("figure-1", "Gaussian noise under various profiles", figure_1),
    Item("figure-2", "Gini coefficients", figure_2),
    Item("figure-3", "Laplace noise under various profiles", figure_3),
    Item("figure-4", "Gaussian against pure Laplace noise", figure_4),
    Item("table-2", "l1 errors of staircase and Laplace noise", table_2),
    Item("exact-laplace", "Laplace noise with its exact (epsilon, delta) profile", exact),
)
