"""Old paths that an upgrade lost: modules of moved packages, names that changed their module, pickles of such names."""

import importlib
import pickle

import pytest

import shapedp
from shapedp._moved import NAMES
from shapedp.noise import L1Staircase

pytestmark = pytest.mark.filterwarnings("ignore:.* is now shapedp:DeprecationWarning")


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        ("from shapedp.recipes import mixing as found", "shapedp.papers.gaussian_mixing.recipes"),
        ("from shapedp.recipes import gaussian as found", "shapedp.papers.classics.recipes"),
        ("from shapedp.claims import tensor as found", "shapedp.papers.tensor_noise.claims"),
        ("from shapedp.datasets import adult as found", "shapedp.papers.datasets.tables"),
        ("from shapedp.scale import partitions as found", "shapedp.learn.partitions"),
        ("import shapedp.scale.partitions as found", "shapedp.learn.partitions"),
        ("import shapedp.learn.progress as found", "shapedp.boundary.progress"),
        ("import shapedp.cli.files as found", "shapedp.tables.vectors"),
    ],
)
def test_a_module_of_a_moved_package_is_found(statement, place):
    names = {}
    exec(statement, names)
    assert names["found"] is importlib.import_module(place)


def test_an_old_module_with_the_name_of_a_function_leaves_the_function():
    old = importlib.import_module("shapedp.mechanisms.advise")
    assert old.Advice is shapedp.Advice
    assert shapedp.mechanisms.advise is old.advise is shapedp.advise


@pytest.mark.parametrize("old", sorted(NAMES))
def test_a_name_is_found_at_its_old_place(old):
    module, _, name = old.partition(":")
    if module.startswith("shapedp.torch"):
        pytest.importorskip("torch")
    with pytest.warns(DeprecationWarning, match=f"is now {NAMES[old]}.{name}"):
        found = getattr(importlib.import_module(module), name)
    assert found is getattr(importlib.import_module(NAMES[old]), name)


def test_what_was_never_there_is_still_missing():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = importlib.import_module("shapedp.boundary.values").nothing
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("shapedp.papers.recipes.nothing")


def test_a_module_keeps_the_names_that_it_finds_itself():
    pytest.importorskip("torch")
    assert importlib.import_module("shapedp.torch").PublishedGeoDP.__name__ == "PublishedGeoDP"


def test_a_pickle_that_names_the_old_module_is_read():
    law = L1Staircase(1.0, 0.5, 2)
    old = pickle.dumps(law, protocol=0).replace(b"shapedp.noise.staircase_l1", b"shapedp.noise.staircase")
    assert pickle.loads(old).to_json() == law.to_json()
