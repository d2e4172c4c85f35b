"""Every Python example and every command of the pages runs, page by page, in an empty folder."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.docs.commands import BLOCK, run, words_of

from shapedp.cli import main
from shapedp.papers.datasets import MissingDataError

ROOT = Path(__file__).parents[2]
# Pages of Python examples whose own tests run all of them and look at what they print.
OWN = {
    "docs/deep-learning.md": "torch/test_docs.py",
    "docs/geodp.md": "papers/geodp/test_recipes.py",
    "docs/ledger.md": "ledger/test_docs.py",
    "docs/membership.md": "torch/test_studies.py",
}
PAGES = [
    path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if BLOCK.search(path.read_text("utf-8")) and path.relative_to(ROOT).as_posix() not in OWN
]


def test_there_are_pages_with_examples() -> None:
    assert len(PAGES) > 8


@pytest.mark.parametrize("page", OWN)
def test_the_other_pages_have_tests_of_their_own(page: str) -> None:
    assert {kind for kind, _ in BLOCK.findall((ROOT / page).read_text("utf-8"))} == {"python"}
    own = (ROOT / "tests" / OWN[page]).read_text("utf-8")
    assert Path(page).name in own
    assert 're.findall(r"```python\\n(.*?)```"' in own


def test_what_is_work_for_a_shell_is_left_to_it() -> None:
    assert words_of("shapedp release a.json 'b c.csv' \\\n    -o d.csv") == [
        "shapedp",
        "release",
        "a.json",
        "b c.csv",
        "-o",
        "d.csv",
    ]
    for command in (
        "shapedp audit a.json > b.json",
        "cat a | shapedp verify",
        "shapedp verify *.json",
        "a && b",
        "echo $HOME",
    ):
        assert words_of(command) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = ModuleType("example")
    monkeypatch.setitem(sys.modules, "example", module)
    for kind, source in BLOCK.findall(page.read_text("utf-8")):
        if kind == "console":
            run(source, None if page.name == "README.md" else main)  # those of the README as processes
            continue
        try:
            exec(compile(source, str(page), "exec", dont_inherit=True), vars(module))
        except MissingDataError as missing:
            pytest.skip(str(missing))
