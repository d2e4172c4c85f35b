"""Mechanisms, their calibration and advice. Those that most users never meet are loaded when they are named."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shapedp.mechanisms.additive import Additive
from shapedp.mechanisms.base import Mechanism, Release
from shapedp.mechanisms.calibrate import Advice, advise, calibrate
from shapedp.mechanisms.certify import LATER, certify, mechanism_from_json, verify
from shapedp.noise import DoesNotApplyError

if TYPE_CHECKING:
    from shapedp.mechanisms.adaptive_mixing import AdaptiveMixing
    from shapedp.mechanisms.angles import AngleWindows, MeanAngles
    from shapedp.mechanisms.mixing import Mixing, Sketch
    from shapedp.mechanisms.objective import ObjectivePerturbation
    from shapedp.mechanisms.selection import KeySelection, Quantiles, Selected, Selection, quantiles, top_k

__all__ = [
    "AdaptiveMixing",
    "Additive",
    "Advice",
    "AngleWindows",
    "DoesNotApplyError",
    "KeySelection",
    "MeanAngles",
    "Mechanism",
    "Mixing",
    "ObjectivePerturbation",
    "Quantiles",
    "Release",
    "Selected",
    "Selection",
    "Sketch",
    "advise",
    "calibrate",
    "certify",
    "mechanism_from_json",
    "quantiles",
    "top_k",
    "verify",
]


def __getattr__(name: str) -> Any:
    for module, names in LATER.items():
        if name in names:
            return globals().setdefault(name, getattr(import_module(module), name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
