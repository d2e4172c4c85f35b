"""What the papers provide to the packages below them, found by name.

The papers lie above every other package, which therefore cannot import them. A room is loaded when one of its things is
asked for by name: a file names a kind of mechanism, a user names a solver or a noise.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

Kind = Literal["law", "mechanism", "objective noise", "recipe", "solver", "training noise"]

PROVIDED: dict[Kind, dict[str, str]] = {
    "mechanism": {
        "geodp": "geodp.recipes:GeoDP",
        "modified-gauss-mix": "gaussian_mixing.recipes:ModifiedGaussMix",
        "threshold-mixing": "gaussian_mixing.sheffet:ThresholdMixing",
    },
    "recipe": {
        "classic-gaussian": "classics.recipes:classic_gaussian",
        "analytic-gaussian": "classics.recipes:analytic_gaussian",
        "multivariate-laplace": "classics.recipes:multivariate_laplace",
        "product-noise": "product_noise.recipes:product_noise",
        "r1smg": "product_noise.recipes:r1smg",
    },
    "solver": {
        "mixing-paper": "gaussian_mixing.solvers:MIXING_PAPER",
        "hessian-mixing-paper": "hessian_mixing.solvers:HESSIAN_MIXING_PAPER",
        "sheffet": "gaussian_mixing.solvers:SHEFFET",
        "sheffet-rdp": "gaussian_mixing.solvers:SHEFFET_RDP",
    },
    "objective noise": {"product-noise": "product_noise.solvers:AMP"},
    "law": {"geodp": "geodp.training:TurnedNoise"},
    "training noise": {
        "PublishedGeoDP": "geodp.training:PublishedGeoDP",
        "PublishedProductNoise": "product_noise.training:PublishedProductNoise",
        "PublishedTensorNoise": "tensor_noise.training:PublishedTensorNoise",
    },
}


def published(kind: Kind, name: str) -> Any:
    """The published thing of that kind and name; raises KeyError where the papers have none."""
    module, _, attribute = PROVIDED[kind][name].partition(":")
    return getattr(import_module(f"shapedp.papers.{module}"), attribute)
