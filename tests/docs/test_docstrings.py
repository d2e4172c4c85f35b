"""The examples in docstrings run."""

import doctest
import importlib
import pkgutil

import pytest

import shapedp

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = [
    module.name
    for module in pkgutil.walk_packages(shapedp.__path__, "shapedp.")
    if not module.name.startswith(("shapedp.__main__", "shapedp.torch.kernels"))
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
