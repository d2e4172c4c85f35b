"""Mechanisms, their calibration and advice."""

from shapedp.mechanisms.adaptive_mixing import AdaptiveMixing
from shapedp.mechanisms.additive import Additive
from shapedp.mechanisms.angles import AngleWindows, MeanAngles
from shapedp.mechanisms.base import Mechanism, Release
from shapedp.mechanisms.calibrate import Advice, advise, calibrate
from shapedp.mechanisms.certify import certify, mechanism_from_json, verify
from shapedp.mechanisms.mixing import Mixing, Sketch
from shapedp.mechanisms.objective import ObjectivePerturbation
from shapedp.mechanisms.selection import KeySelection, Quantiles, Selected, Selection, quantiles, top_k
from shapedp.noise import DoesNotApplyError

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
