"""Every Python example and every command of the pages runs, page by page, in an empty folder."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.docs.commands import BLOCK, run

from shapedp.papers.datasets import MissingDataError

ROOT = Path(__file__).parents[2]
PAGES = [
    path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if BLOCK.search(path.read_text("utf-8"))
]


def test_there_are_pages_with_examples() -> None:
    assert len(PAGES) > 8


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
