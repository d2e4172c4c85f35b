"""Published calibrations, faithful to their papers; what each is worth is computed, and may refute it."""

from collections.abc import Callable

from shapedp.mechanisms import Additive
from shapedp.papers.classics.recipes import analytic_gaussian, classic_gaussian, laplace, multivariate_laplace
from shapedp.papers.geodp.recipes import GeoDP, geodp
from shapedp.papers.inid_noise import recipes as inid
from shapedp.papers.product_noise.recipes import product_noise, r1smg
from shapedp.papers.tensor_noise.recipes import idn, mvg, tvg, udn

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
