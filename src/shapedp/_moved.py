"""Old module paths: each is the module at its new place, for one version."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

MOVED = dict(line.split() for line in Path(__file__).with_name("moved.txt").read_text().splitlines())


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
