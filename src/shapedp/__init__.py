"""Differential privacy in high dimension: noise shaped to the query, with a guarantee you can check."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from shapedp import _moved
from shapedp._version import __version__

if TYPE_CHECKING:
    from shapedp import audit
    from shapedp.accounting import ComposedLoss, Plan, compose, plan, subsample
    from shapedp.mechanisms import (
        Additive,
        Advice,
        DoesNotApplyError,
        KeySelection,
        Mechanism,
        Mixing,
        Release,
        Selection,
        advise,
        calibrate,
        certify,
        quantiles,
        top_k,
        verify,
    )
    from shapedp.noise import DiscreteLaplace, Gaussian, Laplace, Law, Radial, TensorGaussian
    from shapedp.papers import recipes
    from shapedp.privacy import (
        Bracket,
        Certificate,
        GaussianLoss,
        LaplaceLoss,
        Loss,
        NotCertifiedError,
        RefutedError,
        UndecidedError,
    )
    from shapedp.private import (
        Answers,
        MixedPlan,
        PrivateTable,
        Question,
        TablePlan,
        col,
        count,
        mean,
        median,
        quantile,
        sum,
        table,
        variance,
    )
    from shapedp.sensitivity import L1, L2, Blocks, Box, Hull, Sensitivity, Slices
    from shapedp.workloads import Workload

__all__ = [
    "L1",
    "L2",
    "Additive",
    "Advice",
    "Answers",
    "Blocks",
    "Box",
    "Bracket",
    "Certificate",
    "ComposedLoss",
    "DiscreteLaplace",
    "DoesNotApplyError",
    "Gaussian",
    "GaussianLoss",
    "Hull",
    "KeySelection",
    "Laplace",
    "LaplaceLoss",
    "Law",
    "Loss",
    "Mechanism",
    "MixedPlan",
    "Mixing",
    "NotCertifiedError",
    "Plan",
    "PrivateTable",
    "Question",
    "Radial",
    "RefutedError",
    "Release",
    "Selection",
    "Sensitivity",
    "Slices",
    "TablePlan",
    "TensorGaussian",
    "UndecidedError",
    "Workload",
    "__version__",
    "advise",
    "audit",
    "calibrate",
    "certify",
    "col",
    "compose",
    "count",
    "mean",
    "median",
    "plan",
    "quantile",
    "quantiles",
    "recipes",
    "subsample",
    "sum",
    "table",
    "top_k",
    "variance",
    "verify",
]

# Nothing is loaded before it is used: `shapedp --help` waits neither for numpy nor for scipy.
_CORE = (
    "accounting",
    "mechanisms",
    "noise",
    "privacy",
    "sensitivity",
    "workloads",
    "private",
)  # where the names of `__all__` are defined
_PACKAGES = {
    name: f"shapedp.{name}"
    for name in (
        *_CORE,
        *("boundary", "numerics", "sampling", "tables"),
        *("audit", "learn", "ledger", "papers", "report", "scale", "torch"),
    )
} | {
    "claims": "shapedp.papers.register",
    "datasets": "shapedp.papers.datasets",
    "recipes": "shapedp.papers.recipes",
}

_moved.install()


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(_PACKAGES[name])
    if name in __all__:
        for package in _CORE:
            found = import_module(f"shapedp.{package}")
            if name in found.__all__:
                return globals().setdefault(name, getattr(found, name))
    raise AttributeError(f"module 'shapedp' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
