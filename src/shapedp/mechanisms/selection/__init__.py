"""Selections with exact probabilities: the best candidates, keys that nobody listed before, quantiles."""

from shapedp.mechanisms.selection.choose import Selected, Selection, top_k
from shapedp.mechanisms.selection.keys import KeySelection
from shapedp.mechanisms.selection.prefixes import Prefixes, QuantileRelease
from shapedp.mechanisms.selection.recursion import Quantiles, quantiles

__all__ = [
    "KeySelection",
    "Prefixes",
    "QuantileRelease",
    "Quantiles",
    "Selected",
    "Selection",
    "quantiles",
    "top_k",
]
