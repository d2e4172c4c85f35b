"""Families of noise that `calibrate` and `advise` know, one file each."""

from shapedp.mechanisms.families import gaussian, laplace, mixed, radial, staircase, tensor
from shapedp.mechanisms.families.base import DoesNotApplyError, Family, Request

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        gaussian.FAMILY,
        laplace.FAMILY,
        radial.FAMILY,
        mixed.FAMILY,
        staircase.FAMILY,
        tensor.FAMILY,
    )
}

__all__ = ["FAMILIES", "DoesNotApplyError", "Family", "Request"]
