"""No public name is lost: `public_names.txt` lists those of version 0.1, at the paths they had then."""

import importlib
import warnings
from pathlib import Path

import pytest

NAMES = (Path(__file__).parent / "public_names.txt").read_text().split()


@pytest.mark.parametrize("module", sorted({name.rpartition(".")[0] for name in NAMES}))
def test_every_name_is_still_there(module):
    if module == "shapedp.torch":
        pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        found = importlib.import_module(module)
        lost = [
            name for name in NAMES if name.rpartition(".")[0] == module and not hasattr(found, name.rpartition(".")[2])
        ]
    assert not lost
