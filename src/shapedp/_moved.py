"""Old module paths and old homes of names: each is found at its new place, for one version.

`moved.txt` has a line per module, or per name as `module:name`: the old place, then the new one.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

_LINES = dict(line.split() for line in Path(__file__).with_name("moved.txt").read_text().splitlines())
MOVED = {old: new for old, new in _LINES.items() if ":" not in old}
NAMES = {old: new for old, new in _LINES.items() if ":" in old}
_HOMES = {old.partition(":")[0] for old in NAMES}


def new_path(name: str) -> str | None:
    """Where a module went, or None."""
    for old, new in MOVED.items():
        if name == old or name.startswith(old + "."):
            return new + name[len(old) :]
    return None


def _inside_moved(name: str) -> str | None:
    """Where `from old_package import module` leads: Python asks for the module inside the package's new place."""
    package, _, module = name.rpartition(".")
    found = (MOVED.get(f"{old}.{module}") for old, new in MOVED.items() if new == package)
    return next(filter(None, found), None)


def _old_name(module: str, own: Callable[[str], Any] | None, name: str) -> Any:
    """A name that `module` had before; as a module's `__getattr__`, before the module's own."""
    place = NAMES.get(f"{module}:{name}")
    if place is None:
        if own is not None:
            return own(name)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    warnings.warn(f"{module}.{name} is now {place}.{name}", DeprecationWarning, stacklevel=2)
    return getattr(importlib.import_module(place), name)


class _WithOldNames(SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        vars(module)["__getattr__"] = partial(_old_name, module.__name__, vars(module).get("__getattr__"))


class _KeepsFunctions(ModuleType):
    """A package whose function has the name of an old module: importing the module must not replace it."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and callable(vars(self).get(name))):
            super().__setattr__(name, value)


class _Moved(MetaPathFinder, Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if new_path(fullname) is not None:
            return ModuleSpec(fullname, self)
        if fullname in _HOMES and (found := PathFinder.find_spec(fullname, path)) and found.origin:
            return spec_from_file_location(fullname, found.origin, loader=_WithOldNames(fullname, found.origin))
        if _inside_moved(fullname) and PathFinder.find_spec(fullname, path) is None:
            return ModuleSpec(fullname, self)
        return None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        place = new_path(name) or _inside_moved(name)
        assert place is not None
        found = sys.modules[name] = importlib.import_module(place)
        parent, _, child = name.rpartition(".")
        if callable(vars(sys.modules[parent]).get(child)):
            sys.modules[parent].__class__ = _KeepsFunctions
        if not hasattr(found, "__path__"):  # a package that became a module: its modules cannot be searched for
            for old in (old for old in MOVED if old.rpartition(".")[0] == name):
                inner = sys.modules[old] = importlib.import_module(MOVED[old])
                vars(found).setdefault(old.rpartition(".")[2], inner)
        warnings.warn(f"{name} is now {place}", DeprecationWarning, stacklevel=2)


def install() -> None:
    """Find old paths before anything else: a moved sub-module must not be loaded a second time."""
    if not any(isinstance(finder, _Moved) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Moved())
