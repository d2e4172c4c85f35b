"""Mechanisms, their calibration and advice."""

from shapedp.mechanisms.additive import Additive
from shapedp.mechanisms.advise import Advice, advise
from shapedp.mechanisms.base import Mechanism, Release
from shapedp.mechanisms.calibrate import calibrate, certify, verify
from shapedp.mechanisms.families import DoesNotApplyError

__all__ = [
    "Additive",
    "Advice",
    "DoesNotApplyError",
    "Mechanism",
    "Release",
    "advise",
    "calibrate",
    "certify",
    "verify",
]
