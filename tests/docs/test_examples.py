"""Every Python example and every command of the pages runs, page by page, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from shapedp.datasets import MissingDataError

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\$ (.*?(?:\\\n.*?)*)(?:\s+# exit code (\d+))?$", re.MULTILINE)
PAGES = [
    path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if BLOCK.search(path.read_text("utf-8"))
]


def test_there_are_pages_with_examples() -> None:
    assert len(PAGES) > 8


def run(commands: str) -> None:
    """The lines behind `$`, one after the other; each must end with the exit code it states, or 0."""
    found = COMMAND.findall(commands)
    assert found, f"no command in {commands!r}"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command, code in found:
        if command.startswith("pip install"):
            continue  # this environment has it
        done = subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, timeout=240, env={**os.environ, "PATH": path}
        )
        assert done.returncode == int(code or 0), f"{command}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = ModuleType("example")
    monkeypatch.setitem(sys.modules, "example", module)
    for kind, source in BLOCK.findall(page.read_text("utf-8")):
        if kind == "console":
            run(source)
            continue
        try:
            exec(compile(source, str(page), "exec", dont_inherit=True), vars(module))
        except MissingDataError as missing:
            pytest.skip(str(missing))
