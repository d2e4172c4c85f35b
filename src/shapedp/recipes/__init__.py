"""Published calibrations, faithful to their papers; what each is worth is computed, and may refute it."""

from collections.abc import Callable

from shapedp.mechanisms import Additive
from shapedp.recipes import inid
from shapedp.recipes.gaussian import analytic_gaussian, classic_gaussian
from shapedp.recipes.geodp import GeoDP, geodp
from shapedp.recipes.laplace import laplace
from shapedp.recipes.multivariate_laplace import multivariate_laplace
from shapedp.recipes.product_noise import product_noise, r1smg
from shapedp.recipes.tensor import idn, mvg, tvg, udn

RECIPES: dict[str, Callable[..., Additive]] = {
    "classic-gaussian": classic_gaussian,
    "analytic-gaussian": analytic_gaussian,
    "laplace": laplace,
    "multivariate-laplace": multivariate_laplace,
    "product-noise": product_noise,
    "r1smg": r1smg,
    "tvg": tvg,
    "udn": udn,
    "idn": idn,
    "mvg": mvg,
}

GRADIENT_RECIPES: dict[str, Callable[..., GeoDP]] = {"geodp": geodp}  # these take a batch size and a window

__all__ = [
    "GRADIENT_RECIPES",
    "RECIPES",
    "analytic_gaussian",
    "classic_gaussian",
    "geodp",
    "idn",
    "inid",
    "laplace",
    "multivariate_laplace",
    "mvg",
    "product_noise",
    "r1smg",
    "tvg",
    "udn",
]
