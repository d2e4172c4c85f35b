"""What one person can change, and the clips that enforce it."""

from shapedp.sensitivity.balls import L1, L2
from shapedp.sensitivity.base import ADJACENCIES, Adjacency, Sensitivity
from shapedp.sensitivity.boxes import Blocks, Box
from shapedp.sensitivity.hull import Hull
from shapedp.sensitivity.io import sensitivity_from_json
from shapedp.sensitivity.slices import Slices
from shapedp.sensitivity.symmetric import symmetric, symmetric_matrix, upper_triangle

__all__ = [
    "ADJACENCIES",
    "L1",
    "L2",
    "Adjacency",
    "Blocks",
    "Box",
    "Hull",
    "Sensitivity",
    "Slices",
    "sensitivity_from_json",
    "symmetric",
    "symmetric_matrix",
    "upper_triangle",
]
