"""Selections with exact probabilities: the best candidates, keys that nobody listed before, quantiles."""

from shapedp.mechanisms.selection.choose import Selected, Selection, top_k
from shapedp.mechanisms.selection.keys import KeySelection

__all__ = ["KeySelection", "Selected", "Selection", "top_k"]
