"""The command line starts quickly: nothing is loaded before its use, and the order of loading does not matter."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import shapedp
from shapedp.accounting import Plan, Step
from shapedp.privacy import GaussianLoss

resource = pytest.importorskip("resource")

RATIO = 1.5  # of the processor time of `import numpy`; about 0.8 was measured
HELP = "import sys; from shapedp.cli import main; sys.argv = ['shapedp', '--help']; main()"
CORE = ("accounting", "boundary", "mechanisms", "noise", "numerics", "privacy", "recipes", "sampling", "sensitivity")


def _run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)


def _seconds(code: str) -> float:
    """Processor time of a fresh interpreter, user and system together."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _run(code)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return float(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def test_help_costs_little_more_than_numpy() -> None:
    ours, theirs = [], []
    for _ in range(10):  # best of ten, taken in turn: other tests share the processor
        ours.append(_seconds(HELP))
        theirs.append(_seconds("import numpy"))
        if min(ours) < RATIO * min(theirs):
            return
    pytest.fail(f"shapedp --help took {min(ours):.3f} s, import numpy {min(theirs):.3f} s")


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["verify", "--help"], ["plan", "--help"]])
def test_help_loads_neither_numpy_nor_scipy(words: list[str]) -> None:
    code = (
        f"import sys\nfrom shapedp.cli import main\ntry:\n    main({words!r})\nexcept SystemExit:\n    pass\n"
        "print('loaded', sorted({'numpy', 'scipy', 'sqlalchemy'} & set(sys.modules)))"
    )
    assert _run(code).stdout.endswith("loaded []\n")


@pytest.mark.parametrize("package", CORE)
def test_every_package_of_the_core_loads_alone(package: str) -> None:
    assert _run(f"import shapedp.{package}; print('done')").stdout == "done\n"


def test_a_plan_is_read_whatever_was_loaded_before() -> None:
    data = json.dumps(Plan((Step(GaussianLoss(0.5), 0.1, 3),)).to_json())
    code = f"import json; from shapedp.mechanisms import mechanism_from_json as read; print(read(json.loads({data!r})))"
    assert "Plan" in _run(code).stdout


def test_every_exported_name_is_there_and_listed() -> None:
    for name in shapedp.__all__:
        assert getattr(shapedp, name) is not None
    assert set(shapedp.__all__) <= set(dir(shapedp))
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = shapedp.no_such_name
