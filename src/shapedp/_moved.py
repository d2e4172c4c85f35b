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
        warnings.warn(f"{module.__name__} is now {place}", DeprecationWarning, stacklevel=2)
        sys.modules[module.__name__] = importlib.import_module(place)


def install() -> None:
    """Find old paths after everything else failed."""
    if not any(isinstance(finder, _Moved) for finder in sys.meta_path):
        sys.meta_path.append(_Moved())
