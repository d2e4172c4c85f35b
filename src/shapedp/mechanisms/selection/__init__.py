"""Selections with exact probabilities: the best candidates, keys that nobody listed before, quantiles."""

from shapedp.mechanisms.selection.choose import Selected, Selection, top_k

__all__ = ["Selected", "Selection", "top_k"]
