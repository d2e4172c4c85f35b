"""The examples in docstrings run."""

import doctest
import importlib
import inspect
import pkgutil
import warnings
from pathlib import Path

import pytest

import shapedp

ROOT = Path(__file__).parents[2]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = [
    module.name
    for module in pkgutil.walk_packages(shapedp.__path__, "shapedp.")
    if not module.name.startswith(("shapedp.__main__", "shapedp.torch.kernels", "shapedp.torch.product_kernels"))
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    try:
        module = importlib.import_module(name)
    except ImportError as missing:
        pytest.skip(str(missing))
    assert doctest.testmod(module, optionflags=OPTIONS).failed == 0


def test_there_are_examples():
    found = [test for name in MODULES for test in doctest.DocTestFinder().find(importlib.import_module(name))]
    assert sum(bool(test.examples) for test in found) > 60


def public():
    """Every public name of version 0.1 with what it stands for; modules aside."""
    found = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # old paths
        for path in (ROOT / "tests" / "public_names.txt").read_text().split():
            module, _, name = path.rpartition(".")
            if module.startswith("shapedp.torch"):
                pytest.importorskip("torch")
            thing = getattr(importlib.import_module(module), name)
            if not inspect.ismodule(thing):
                found[path] = thing
    return found


def has_a_docstring(thing):
    """Whether a thing can have a docstring of its own; a constant shows that of its class."""
    return inspect.isclass(thing) or inspect.isroutine(thing)


def has_an_example(thing):
    """Whether its own docstring, not one that it inherits, shows a call."""
    return ">>>" in str(vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__)


def test_every_public_class_and_function_has_an_example():
    named = {path: thing for path, thing in public().items() if has_a_docstring(thing)}
    assert len(named) > 200
    assert sorted(path for path, thing in named.items() if not has_an_example(thing)) == []


def test_every_public_constant_is_explained():
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    constants = [path for path, thing in public().items() if not has_a_docstring(thing)]
    assert len(constants) > 10
    assert [path for path in constants if f"| `{path}` | " not in page] == []
