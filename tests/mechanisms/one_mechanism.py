"""Every shipped mechanism as the exported protocol: mypy checks this file, `test_one_mechanism` runs it."""

from __future__ import annotations

from shapedp import L2, Additive, Gaussian, KeySelection, Laplace, Mechanism, Mixing, Release, Selection
from shapedp.mechanisms import AdaptiveMixing, AngleWindows, MeanAngles, ObjectivePerturbation, Quantiles, Sketch
from shapedp.mechanisms.angles import Direction
from shapedp.numerics.arrays import Floats
from shapedp.papers.gaussian_mixing.recipes import ModifiedGaussMix
from shapedp.papers.gaussian_mixing.sheffet import ThresholdMixing
from shapedp.papers.geodp.recipes import GeoDP

CLASSES: tuple[type[Mechanism], ...] = (
    Additive,
    Mixing,
    AdaptiveMixing,
    ObjectivePerturbation,
    MeanAngles,
    AngleWindows,
    GeoDP,
    ModifiedGaussMix,
    ThresholdMixing,
    Selection,
    KeySelection,
    Quantiles,
)


def some() -> tuple[Mechanism, ...]:
    """One of each kind of release."""
    return (
        Additive(Laplace(2.0, 3), L2(0.1, 3), 1.0, 1e-5),
        Mixing(5, 1.0, 100.0, 1.0, 1e-5),
        ObjectivePerturbation(Gaussian(9.0, 2), 1.0, 1, 0.0, Gaussian(9.0, 2), 0.0, 1.0, 1e-5),
        MeanAngles.calibrate(dim=3, clip=1.0, batch=4, epsilon=1.0, delta=1e-5),
        Selection.calibrate(3, epsilon=1.0, delta=0.0, sensitivity=1, monotone=True),
        KeySelection.calibrate(keys=1, epsilon=1.0, delta=1e-5, adjacency="add-remove"),
        Quantiles.calibrate(3, [0.5], epsilon=1.0, delta=0.0, adjacency="add-remove"),
    )


def values(sketch: Sketch, direction: Direction) -> tuple[Floats, Release[Floats]]:
    """A sketch and a gradient are releases of arrays."""
    released: Release[Floats] = sketch
    turned: Release[Floats] = direction
    return released.value + turned.value, turned
