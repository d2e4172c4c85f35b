"""The help of every command took 0.4 to 0.8 s: it loaded scipy to print a list of names."""

import subprocess
import sys
import tomllib
from importlib import import_module, resources

import pytest

BOOK = tomllib.loads((resources.files("shapedp.cli") / "commands.toml").read_text(encoding="utf-8"))
COMMANDS = [[name] for name in BOOK["commands"]]


@pytest.mark.parametrize("address", sorted(BOOK["names"]))
def test_the_names_are_those_of_the_collection(address):
    module, _, name = address.partition(":")
    assert BOOK["names"][address] == list(vars(import_module(module))[name])


@pytest.mark.parametrize("words", [*COMMANDS, ["ledger", "spend"]], ids=" ".join)
def test_help_loads_no_numpy(words):
    code = (
        f"import sys\nfrom shapedp.cli import main\n"
        f"try:\n    main({[*words, '--help']!r})\nexcept SystemExit:\n    pass\n"
        "print('loaded', sorted({'numpy', 'scipy', 'sqlalchemy'} & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.endswith("loaded []\n")
