"""The import direction, and what `import shapedp` needs: numpy, scipy, under half a second."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
IMPORT_SECONDS = 0.5

LINT = (
    "import sys; from importlinter.cli import lint_imports; "
    "sys.exit(lint_imports(config_filename='pyproject.toml', no_cache=True))"
)

# Imports are timed, and everything that is neither standard library, numpy nor scipy is hidden.
BARE = """
import json, sys, time
import sysconfig
sysconfig.get_config_vars()  # scipy asks for them; their module has a name of the platform's own
allowed = set(sys.stdlib_module_names) | {"numpy", "scipy", "shapedp"}
asked = set()

class Hide:
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top not in allowed:
            asked.add(top)
            raise ModuleNotFoundError(f"{top} is hidden by this test", name=top)
        return None

sys.meta_path.insert(0, Hide())
before = set(sys.modules)
start = time.process_time()  # other tests share the cores; `make bare` measures the clock
import shapedp
seconds = time.process_time() - start
def own(name):  # compiled parts of numpy and scipy register helpers under bare names
    spec = getattr(sys.modules[name], "__spec__", None)
    origin = getattr(sys.modules[name], "__file__", None) or getattr(spec, "origin", None) or "scipy"
    return "numpy" not in origin and "scipy" not in origin
tops = {name.partition(".")[0] for name in set(sys.modules) - before if own(name)}
print(json.dumps({"seconds": seconds, "foreign": sorted(tops - allowed), "asked": sorted(asked)}))
"""


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    """Run the contract of root/pyproject.toml on root/src, in a fresh interpreter."""
    environment = os.environ | {"PYTHONPATH": str(root / "src")}
    return subprocess.run(
        [sys.executable, "-c", LINT], cwd=root, env=environment, capture_output=True, text=True, check=False
    )


def with_import(tmp_path: Path, importer: str, imported: str) -> Path:
    """Copy the source tree and add one import between two packages, making either if absent."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name in (importer, imported):
        package = tmp_path / "src" / "shapedp" / name
        package.mkdir(exist_ok=True)
        (package / "__init__.py").touch()
    (tmp_path / "src" / "shapedp" / importer / "added.py").write_text(f"import shapedp.{imported}\n")
    return tmp_path


def test_the_source_keeps_the_import_direction() -> None:
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_contract_accepts_a_downward_import(tmp_path: Path) -> None:
    result = lint_imports(with_import(tmp_path, "cli", "numerics"))
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("numerics", "noise"),
        ("noise", "sensitivity"),
        ("sampling", "sensitivity"),
        ("sampling", "noise"),
        ("privacy", "mechanisms"),
        ("mechanisms", "cli"),
        ("mechanisms", "papers"),
        ("learn", "papers"),
        ("learn", "torch"),
    ],
)
def test_the_contract_refuses_a_wrong_import(tmp_path: Path, importer: str, imported: str) -> None:
    result = lint_imports(with_import(tmp_path, importer, imported))
    assert result.returncode == 1, result.stdout + result.stderr
    assert f"shapedp.{importer}.added -> shapedp.{imported}" in result.stdout


def test_the_contract_refuses_a_package_without_a_layer(tmp_path: Path) -> None:
    result = lint_imports(with_import(tmp_path, "unplaced", "numerics"))
    assert result.returncode == 1, result.stdout + result.stderr
    assert "unplaced" in result.stdout


def test_import_needs_numpy_and_scipy_only_and_is_quick() -> None:
    runs = []
    for _ in range(5):
        result = subprocess.run([sys.executable, "-I", "-c", BARE], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        runs.append(json.loads(result.stdout))
        if runs[-1]["seconds"] < IMPORT_SECONDS:
            break
    assert all(run["foreign"] == [] for run in runs), runs
    assert min(run["seconds"] for run in runs) < IMPORT_SECONDS, runs


@pytest.mark.skipif(sys.platform == "win32", reason="links to installed packages need POSIX")
def test_import_works_in_a_bare_environment(tmp_path: Path) -> None:
    """A real environment that holds numpy, scipy and shapedp and nothing else, not even pip."""
    venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
    (site,) = (tmp_path / "bare").glob("lib/python*/site-packages")
    for name in ("numpy", "scipy"):
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        package = Path(spec.origin).parent
        for folder in (package, package.with_name(f"{name}.libs")):
            if folder.exists():
                (site / folder.name).symlink_to(folder)
    (site / "shapedp").symlink_to(ROOT / "src" / "shapedp")
    check = (
        "import importlib.util, shapedp; print(shapedp.__version__); "
        "assert importlib.util.find_spec('cryptography') is None; "
        "assert importlib.util.find_spec('pip') is None"
    )
    python = tmp_path / "bare" / "bin" / "python"
    result = subprocess.run([python, "-I", "-c", check], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip()
