"""Published calibrations, faithful to their papers; what each is worth is computed, and may refute it."""

from collections.abc import Callable
from typing import Any

from shapedp.mechanisms import Additive
from shapedp.papers.classics.recipes import analytic_gaussian, classic_gaussian, laplace, multivariate_laplace
from shapedp.papers.geodp.recipes import GeoDP, geodp
from shapedp.papers.inid_noise import recipes as inid
from shapedp.papers.product_noise.recipes import product_noise, r1smg
from shapedp.papers.tensor_noise.recipes import idn, mvg, tvg, udn

_ADDITIVE: tuple[Any, ...] = (classic_gaussian, analytic_gaussian, laplace, multivariate_laplace, product_noise, r1smg)
RECIPES: dict[str, Callable[..., Additive]] = {
    recipe.__name__.replace("_", "-"): recipe for recipe in (*_ADDITIVE, tvg, udn, idn, mvg)
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
