"""Composition, amplification and planning, every answer a bracket."""

from shapedp.accounting.bare import BareLoss
from shapedp.accounting.compose import ComposedLoss, compose
from shapedp.accounting.subsample import SubsampledLoss, amplify, amplify_pure, subsample

__all__ = ["BareLoss", "ComposedLoss", "SubsampledLoss", "amplify", "amplify_pure", "compose", "subsample"]
