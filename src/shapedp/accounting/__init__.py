"""Composition, amplification and planning, every answer a bracket."""

from shapedp.accounting.bare import BareLoss
from shapedp.accounting.compose import ComposedLoss, compose

__all__ = ["BareLoss", "ComposedLoss", "compose"]
