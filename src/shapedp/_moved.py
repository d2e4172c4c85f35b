"""Old module paths: each is the module at its new place, for one version."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

MOVED = {
    "shapedp.recipes.gaussian": "shapedp.papers.classics.recipes",
    "shapedp.recipes.laplace": "shapedp.papers.classics.recipes",
    "shapedp.recipes.multivariate_laplace": "shapedp.papers.classics.recipes",
    "shapedp.recipes.geodp": "shapedp.papers.geodp.recipes",
    "shapedp.recipes.inid": "shapedp.papers.inid_noise.recipes",
    "shapedp.recipes.mixing": "shapedp.papers.gaussian_mixing.recipes",
    "shapedp.recipes.sheffet": "shapedp.papers.gaussian_mixing.sheffet",
    "shapedp.recipes.product_noise": "shapedp.papers.product_noise.recipes",
    "shapedp.recipes.tensor": "shapedp.papers.tensor_noise.recipes",
    "shapedp.recipes": "shapedp.papers.recipes",
    "shapedp.claims.baselines": "shapedp.papers.classics.claims",
    "shapedp.claims.composition": "shapedp.papers.classics.claims",
    "shapedp.claims.erm": "shapedp.papers.product_noise.erm_claims",
    "shapedp.claims.gaussian_mixing": "shapedp.papers.gaussian_mixing.claims",
    "shapedp.claims.geodp": "shapedp.papers.geodp.claims",
    "shapedp.claims.inid_figures": "shapedp.papers.inid_noise.claims",
    "shapedp.claims.inid_learning": "shapedp.papers.inid_noise.learning_claims",
    "shapedp.claims.inid_noise": "shapedp.papers.inid_noise.claims",
    "shapedp.claims.product_noise": "shapedp.papers.product_noise.claims",
    "shapedp.claims.tensor": "shapedp.papers.tensor_noise.claims",
    "shapedp.claims": "shapedp.papers.register",
    "shapedp.datasets": "shapedp.papers.datasets",
    "shapedp.learn.solvers.linear.mixing_paper": "shapedp.papers.gaussian_mixing.solvers",
    "shapedp.learn.solvers.linear.sheffet": "shapedp.papers.gaussian_mixing.solvers",
    "shapedp.accounting.ledger": "shapedp.ledger",
    "shapedp.mechanisms.families.base": "shapedp.noise.request",
    "shapedp.mechanisms.families": "shapedp.noise",
    "shapedp.noise.io": "shapedp.noise.base",
    "shapedp.privacy.losses.pairing": "shapedp.privacy.losses.base",
    "shapedp.privacy.losses.staircase": "shapedp.noise.staircase",
    "shapedp.privacy.losses.tensor": "shapedp.noise.tensor_reach",
    "shapedp.audit.same": "shapedp.audit.equality",
    "shapedp.boundary.texts": "shapedp.tables.csvfiles",
    "shapedp.learn.csvfiles": "shapedp.tables.csvfiles",
    "shapedp.learn.linear": "shapedp.learn.regressors",
    "shapedp.learn.logistic": "shapedp.learn.classifiers",
    "shapedp.learn.penalized": "shapedp.learn.regressors",
    "shapedp.learn.solvers.erm.estimator": "shapedp.learn.classifiers",
    "shapedp.learn.solvers.erm.labels": "shapedp.learn.classifiers",
    "shapedp.learn.solvers.erm.surrogate": "shapedp.learn.solvers.erm.mixing",
    "shapedp.learn.streams": "shapedp.tables.blocks",
    "shapedp.learn.svm": "shapedp.learn.classifiers",
    "shapedp.learn.tables": "shapedp.tables.blocks",
    "shapedp.scale": "shapedp.learn.partitions",
    "shapedp.torch.hooks": "shapedp.torch.rules",
    "shapedp.torch.pieces": "shapedp.torch.gradients",
    "shapedp.torch.stack": "shapedp.noise.stack",
    "shapedp.torch.sums": "shapedp.torch.gradients",
}


def new_path(name: str) -> str | None:
    """Where a module went, or None."""
    for old, new in MOVED.items():
        if name == old or name.startswith(old + "."):
            return new + name[len(old) :]
    return None


class _Moved(MetaPathFinder, Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return None if new_path(fullname) is None else ModuleSpec(fullname, self)

    def exec_module(self, module: ModuleType) -> None:
        place = new_path(module.__name__)
        assert place is not None
        found = sys.modules[module.__name__] = importlib.import_module(place)
        words = f"{module.__name__} is now {place}"
        for old, new in MOVED.items():  # a later import would replace a function by the old module of its name
            parent, _, name = old.rpartition(".")
            if parent == module.__name__ and callable(vars(found).get(name)):
                sys.modules[old] = importlib.import_module(new)
                words += f", {old} is now {new}"
        warnings.warn(words, DeprecationWarning, stacklevel=2)


def install() -> None:
    """Find old paths before anything else: a moved sub-module must not be loaded a second time."""
    if not any(isinstance(finder, _Moved) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Moved())
