"""Old module paths work for one version and say where the module went."""

import importlib
import sys

import pytest

import shapedp
from shapedp._moved import MOVED, new_path


@pytest.mark.parametrize("old", sorted(MOVED))
def test_an_old_path_is_the_module_at_its_new_place(old, monkeypatch):
    for name in [name for name in sys.modules if new_path(name) is not None]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.warns(DeprecationWarning, match=MOVED[old]):
        found = importlib.import_module(old)
    assert found is importlib.import_module(MOVED[old])


def test_submodules_follow():
    assert new_path("shapedp.accounting.ledger.store") == "shapedp.ledger.store"
    assert new_path("shapedp.accounting.plan") is None
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("shapedp.nowhere")


@pytest.mark.filterwarnings("ignore:shapedp.scale is now:DeprecationWarning")
def test_the_attribute_still_works():
    assert shapedp.scale.fit is shapedp.learn.partitions.fit


@pytest.mark.filterwarnings("ignore:shapedp.recipes is now:DeprecationWarning")
def test_an_old_module_does_not_replace_the_function_of_its_name():
    old = importlib.import_module("shapedp.recipes.geodp")
    assert old.geodp is shapedp.recipes.geodp
    assert callable(importlib.import_module("shapedp.recipes").laplace)
