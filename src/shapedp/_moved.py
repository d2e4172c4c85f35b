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
    "shapedp.accounting.ledger": "shapedp.ledger",
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
    "shapedp.torch.stack": "shapedp.noise.stack",
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
        warnings.warn(f"{module.__name__} is now {place}", DeprecationWarning, stacklevel=2)
        sys.modules[module.__name__] = importlib.import_module(place)


def install() -> None:
    """Find old paths after everything else failed."""
    if not any(isinstance(finder, _Moved) for finder in sys.meta_path):
        sys.meta_path.append(_Moved())
