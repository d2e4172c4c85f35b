"""Private deep learning: clips, noise and certified accounting for PyTorch."""

from shapedp.torch.clips import Adaptive, Auto, Clip, Flat, NormClip, PerLayer, PerValue
from shapedp.torch.layout import Layout

__all__ = ["Adaptive", "Auto", "Clip", "Flat", "Layout", "NormClip", "PerLayer", "PerValue"]
