"""Published calibrations, faithful to their papers; what each is worth is computed, and may refute it."""

from collections.abc import Callable

from shapedp.mechanisms import Additive
from shapedp.recipes.gaussian import analytic_gaussian, classic_gaussian
from shapedp.recipes.laplace import laplace

RECIPES: dict[str, Callable[..., Additive]] = {
    "classic-gaussian": classic_gaussian,
    "analytic-gaussian": analytic_gaussian,
    "laplace": laplace,
}

__all__ = ["RECIPES", "analytic_gaussian", "classic_gaussian", "laplace"]
